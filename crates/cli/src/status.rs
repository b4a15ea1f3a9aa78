//! `isolith status`: a store and the processes that have it open.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use isolate::{Confinement, Enforcement};
use isolith_engine::{
    EngineOptions, GraphStatus, MemoryStatus, Problem, StatusReport, StorePlace, WorkerStatus,
};
use isolith_types::{Code, Failure, counted};
use serde_json::json;

use crate::output::Output;
use crate::session::Session;
use crate::table::table;
use crate::terminal::one_line;

/// A store that does not answer within this time is reported as busy or damaged.
const DEADLINE: Duration = Duration::from_secs(5);

pub(crate) fn run(store: &StorePlace, check: bool, output: &Output) -> Result<ExitCode, Failure> {
    let options = EngineOptions { deadline: DEADLINE, ..EngineOptions::default() };
    let mut session = Session::open(store, options)?;
    let report = session.run(async |engine| Ok(engine.status().await));
    session.close();
    let report = report?;
    if check {
        return check_report(&report, output);
    }
    if let Some(error) = &report.error {
        output.complain(error);
    }
    output.result(&report, &show(&report))?;
    let status = report.error.as_ref().map_or(0, |error| error.code.exit_status());
    Ok(ExitCode::from(status))
}

/// Prints what is wrong. Damage decides about the exit code before what may pass, and that before
/// everything else.
fn check_report(report: &StatusReport, output: &Output) -> Result<ExitCode, Failure> {
    let problems = &report.problems;
    let lines = problems.iter().map(|problem| one_line(&problem.message) + "\n");
    let document = json!({ "ok": problems.is_empty(), "problems": problems });
    output.result(&document, &lines.collect::<String>())?;
    Ok(ExitCode::from(check_status(problems)))
}

fn check_status(problems: &[Problem]) -> u8 {
    let is_one = |code: &Code| {
        problems.iter().any(|problem| problem.code.exit_status() == code.exit_status())
    };
    let worst = [Code::Corrupt, Code::Timeout].into_iter().find(is_one);
    let worst = worst.or((!problems.is_empty()).then_some(Code::Failed));
    worst.map_or(0, Code::exit_status)
}

fn show(report: &StatusReport) -> String {
    let mut text = format!(
        "{}: {} on disk, including {} of write-ahead log\n",
        report.store.display(),
        bytes(report.disk_bytes),
        bytes(report.wal_bytes),
    );
    if report.error.is_none() {
        let _ = write!(text, "\n{}", collections(report));
        text.push_str(&roots(report));
        if report.memory.drawers > 0 {
            let MemoryStatus { wings, drawers } = report.memory;
            let _ = writeln!(
                text,
                "\nmemory: {} in {}",
                counted(drawers, "drawer"),
                counted(wings, "wing")
            );
        }
        if report.graph.nodes > 0 {
            let GraphStatus { nodes, relationships, .. } = report.graph;
            let _ = writeln!(
                text,
                "\ngraph: {}, {}",
                counted(nodes, "node"),
                counted(relationships, "relationship")
            );
        }
    }
    let _ = write!(text, "\n{}", fronts(report));
    let deaths: Vec<String> =
        report.crashes.iter().map(|(class, count)| format!("{count} {class}")).collect();
    let deaths = if deaths.is_empty() { "none".to_owned() } else { deaths.join(", ") };
    let _ = writeln!(text, "\nworker failures: {deaths}");
    if report.error.is_none() {
        let _ = writeln!(text, "quarantined jobs: {}", report.quarantine);
    }
    for warning in &report.warnings {
        let _ = writeln!(text, "warning: {}", one_line(warning));
    }
    text
}

fn collections(report: &StatusReport) -> String {
    if report.collections.is_empty() {
        return "no collections\n".to_owned();
    }
    let rows: Vec<Vec<String>> = report
        .collections
        .iter()
        .map(|it| {
            let due = match it {
                it if it.rebuild_due => "rebuild",
                it if it.fold_due => "fold",
                _ => "",
            };
            vec![
                one_line(&it.full_name()),
                it.records.to_string(),
                it.generation.to_string(),
                it.tail.to_string(),
                bytes(it.segment_bytes),
                due.to_owned(),
            ]
        })
        .collect();
    table(&["COLLECTION", ">RECORDS", ">GENERATION", ">TAIL", ">SEGMENTS", "DUE"], &rows)
}

fn roots(report: &StatusReport) -> String {
    if report.roots.is_empty() {
        return String::new();
    }
    let rows: Vec<Vec<String>> = report
        .roots
        .iter()
        .map(|root| {
            let age = root.indexed_at.map(|at| {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let at = Duration::from_millis(u64::try_from(at).unwrap_or(0));
                format!("{} ago", duration(now.saturating_sub(at)))
            });
            vec![
                one_line(&root.folder.to_string_lossy()),
                root.files.to_string(),
                root.chunks.to_string(),
                age.unwrap_or_else(|| "not completely yet".to_owned()),
            ]
        })
        .collect();
    format!("\n{}", table(&["CODE", ">FILES", ">CHUNKS", "INDEXED"], &rows))
}

fn fronts(report: &StatusReport) -> String {
    if report.fronts.is_empty() {
        return "no server or watcher is running\n".to_owned();
    }
    let mut text = String::new();
    for front in &report.fronts {
        let state = match (front.age_ms, front.recent) {
            (Some(age), Some(recent)) => format!(
                "for {}, {} of its last {} failed",
                duration(Duration::from_millis(age)),
                recent.failed,
                counted(recent.jobs, "job")
            ),
            _ => "not responding".to_owned(),
        };
        let _ = writeln!(text, "open in process {}: {state}", front.pid);
    }
    if !report.workers.is_empty() {
        let rows: Vec<Vec<String>> = report.workers.iter().map(worker_row).collect();
        let headings =
            [">FRONT", "ROLE", ">PID", "STATE", ">AGE", ">JOBS", ">MEMORY", "SANDBOX", "NOW"];
        text.push_str(&table(&headings, &rows));
    }
    text
}

fn worker_row(status: &WorkerStatus) -> Vec<String> {
    let worker = &status.worker;
    let unknown = || "-".to_owned();
    let state = serde_json::to_value(worker.state).ok();
    let state = state.as_ref().and_then(|state| state.as_str()).map_or_else(unknown, str::to_owned);
    let now = worker.job.as_ref().map_or(String::new(), |job| {
        format!("{} for {}", one_line(&job.kind), duration(Duration::from_millis(job.age_ms)))
    });
    vec![
        status.front.to_string(),
        one_line(&status.role),
        worker.pid.map_or_else(unknown, |pid| pid.to_string()),
        state,
        duration(Duration::from_millis(worker.age_ms)),
        worker.jobs_done.to_string(),
        worker.rss_bytes.map_or_else(unknown, bytes),
        worker.confinement.map_or_else(unknown, |confinement| sandbox(&confinement)),
        now,
    ]
}

/// What is restricted, and how far the kernel enforces it.
fn sandbox(confinement: &Confinement) -> String {
    let Confinement { files, sockets, system_calls } = *confinement;
    let parts = [("files", files), ("sockets", sockets), ("calls", system_calls)];
    let asked = parts.iter().filter_map(|(name, enforcement)| match enforcement {
        Enforcement::NotAsked => None,
        Enforcement::Enforced => Some((*name).to_owned()),
        Enforcement::Partial => Some(format!("{name} partly")),
        Enforcement::NotAvailable => Some(format!("{name} not available")),
    });
    let asked: Vec<String> = asked.collect();
    if asked.is_empty() { "none".to_owned() } else { asked.join(", ") }
}

/// A duration in its largest unit.
pub(crate) fn duration(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        1..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        1_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use isolate::DeathClass;
    use isolith_engine::{CollectionStatus, FrontStatus, RecentJobs};

    use super::*;

    #[test]
    fn missing_sandbox_features_are_listed() {
        use Enforcement::{Enforced, NotAsked, NotAvailable, Partial};
        let table = [
            ([Enforced, Enforced, Enforced], "files, sockets, calls"),
            ([Partial, Enforced, NotAvailable], "files partly, sockets, calls not available"),
            ([NotAsked, NotAsked, NotAsked], "none"),
        ];
        for ([files, sockets, system_calls], text) in table {
            assert_eq!(sandbox(&Confinement { files, sockets, system_calls }), text);
        }
    }

    #[test]
    fn damage_decides_about_the_exit_code_of_a_check() {
        let problem = |code| Problem { code, message: String::new() };
        for (codes, status) in [
            (&[][..], 0),
            (&[Code::Quarantined], 1),
            (&[Code::NotFound, Code::DiskFull], 1),
            (&[Code::DiskFull, Code::BreakerOpen], 75),
            (&[Code::LockHeld, Code::Corrupt, Code::NotFound], 74),
        ] {
            let problems: Vec<Problem> = codes.iter().copied().map(problem).collect();
            assert_eq!(check_status(&problems), status, "{codes:?}");
        }
    }

    #[test]
    fn a_status_is_shown_as_tables() {
        let report = StatusReport {
            store: "/home/someone/.isolith".into(),
            schema: Some(1),
            write_lock: None,
            collections: vec![CollectionStatus {
                name: "docs".to_owned(),
                database: None,
                records: 1200,
                generation: 3,
                tail: 17,
                segment_bytes: 2_500_000,
                fold_due: false,
                rebuild_due: true,
            }],
            roots: Vec::new(),
            memory: MemoryStatus { wings: 3, drawers: 120 },
            graph: GraphStatus { nodes: 40, relationships: 70, ..GraphStatus::default() },
            fronts: vec![
                FrontStatus {
                    pid: 41,
                    answers: true,
                    age_ms: Some(300_000),
                    recent: Some(RecentJobs { jobs: 12, failed: 1 }),
                    deaths: [].into(),
                    breakers: Vec::new(),
                    pools: Vec::new(),
                },
                FrontStatus {
                    pid: 42,
                    answers: false,
                    age_ms: None,
                    recent: None,
                    deaths: [].into(),
                    breakers: Vec::new(),
                    pools: Vec::new(),
                },
            ],
            workers: Vec::new(),
            crashes: [(DeathClass::Crash, 2)].into(),
            quarantine: 0,
            warnings: vec!["process 42 has the store open and does not answer".to_owned()],
            problems: Vec::new(),
            wal_bytes: 4_000,
            disk_bytes: 9_000_000,
            disk: None,
            error: None,
        };
        insta::assert_snapshot!(show(&report), @r"
        /home/someone/.isolith: 9 MB on disk, including 4 kB of write-ahead log

        COLLECTION  RECORDS  GENERATION  TAIL  SEGMENTS  DUE
        docs           1200           3    17      2 MB  rebuild

        memory: 120 drawers in 3 wings

        graph: 40 nodes, 70 relationships

        open in process 41: for 5 min, 1 of its last 12 jobs failed
        open in process 42: not responding

        worker failures: 2 crash
        quarantined jobs: 0
        warning: process 42 has the store open and does not answer
        ");
    }
}
