//! `isolith doctor`: checks and repairs a store.

use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use indicatif::{ProgressBar, ProgressStyle};
use isolate::{Interrupted, Signals, run_until_signalled};
use isolith_engine::{
    CheckReport, Doctor, DoctorOptions, DoctorReport, EngineOptions, Health, QuarantinedJob,
    StorePlace,
};
use isolith_types::{Code, Failure, counted};
use serde_json::json;

use crate::output::Output;
use crate::session::{Session, interrupted};
use crate::table::table;
use crate::terminal::one_line;

/// What to do with a store.
pub(crate) enum DoctorCommand {
    Examine(DoctorOptions),
    ListJobs,
    /// Releases one job, or all of them, so that they are tried again.
    ReleaseJobs {
        id: Option<String>,
    },
}

/// How long running jobs may take after the first signal.
const DRAIN: Duration = Duration::from_secs(10);

pub(crate) fn run(
    store: &StorePlace,
    command: DoctorCommand,
    output: &Output,
) -> Result<ExitCode, Failure> {
    match command {
        DoctorCommand::Examine(options) => examine(store, options, output),
        DoctorCommand::ListJobs => {
            let jobs = with_session(store, async |engine| engine.quarantined_jobs().await)?;
            output.result(&json!({ "jobs": jobs }), &list(&jobs))?;
            Ok(ExitCode::SUCCESS)
        }
        DoctorCommand::ReleaseJobs { id } => {
            let release =
                async |engine: &isolith_engine::Engine| engine.release_jobs(id.as_deref()).await;
            let jobs = with_session(store, release)?;
            let text = format!("{} released\n", counted(jobs.len(), "job"));
            output.result(&json!({ "released": jobs }), &text)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn with_session<T>(
    store: &StorePlace,
    work: impl AsyncFnOnce(&isolith_engine::Engine) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut session = Session::open(store, EngineOptions::default())?;
    let done = session.run(work);
    session.close();
    done
}

fn examine(
    store: &StorePlace,
    options: DoctorOptions,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let failed =
        |error: io::Error| Failure::new(Code::Failed, format!("cannot start the command: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    let _guard = runtime.enter();
    let mut signals = Signals::listen().map_err(failed)?;
    let bar = progress(output);
    let shown = bar.clone();
    let doctor = Doctor::open(store, options, move |check| {
        shown.inc(1);
        shown.set_message(check.name);
    })?;
    let pools = || doctor.pools();
    let outcome = runtime.block_on(run_until_signalled(&mut signals, pools, DRAIN, doctor.run()));
    bar.finish_and_clear();
    let report = match outcome {
        Ok(report) => report,
        Err(Interrupted { signal, .. }) => return Err(interrupted(signal)),
    };
    runtime.block_on(doctor.close());
    if let Some(error) = &report.error {
        output.complain(error);
    }
    output.result(&report, &show(&report, colours()))?;
    Ok(ExitCode::from(report.exit_status()))
}

fn progress(output: &Output) -> ProgressBar {
    if !output.draws_progress() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} checks done: {pos}, last: {msg}");
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn colours() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !refused
}

fn show(report: &DoctorReport, colours: bool) -> String {
    let rows: Vec<Vec<String>> = report
        .checks
        .iter()
        .map(|check| {
            let seconds = format!("{:.2}", check.seconds);
            vec![check.name.into(), check.status.name().into(), seconds, one_line(&check.detail)]
        })
        .collect();
    let mut text = table(&["CHECK", "STATUS", ">SECONDS", "DETAIL"], &rows);
    if colours {
        text = paint(&text, &report.checks);
    }
    if !report.repaired.is_empty() {
        text.push_str("\ndone:\n");
        for line in &report.repaired {
            let _ = writeln!(text, "  {}", one_line(line));
        }
    }
    let verdict = match report.worst() {
        _ if report.error.is_some() => "some damage could not be repaired",
        Health::Ok | Health::Warn if !report.lost.is_empty() => {
            "the store works again, but some data was lost: see above"
        }
        Health::Ok | Health::Warn if report.has_losses() => {
            "the store works, but an earlier repair lost data: see losses"
        }
        Health::Ok => "the store is healthy",
        Health::Warn => "the store is healthy, with warnings",
        Health::Failed => "some checks could not be completed",
        Health::Corrupt => "the store is damaged: run `isolith doctor --repair`",
    };
    let _ = writeln!(text, "\n{verdict}");
    text
}

/// Colours the second column of a table. The first is as wide as the longest name.
fn paint(text: &str, checks: &[CheckReport]) -> String {
    let names = checks.iter().map(|check| check.name.len()).chain(["CHECK".len()]);
    let start = names.max().unwrap_or(0) + 2;
    let mut lines = text.lines();
    let mut painted = lines.next().unwrap_or_default().to_owned() + "\n";
    for (line, check) in lines.zip(checks) {
        let status = check.status.name();
        let colour = match check.status {
            Health::Ok => 32,
            Health::Warn => 33,
            Health::Failed | Health::Corrupt => 31,
        };
        let (before, after) = line.split_at(start);
        let after = after.strip_prefix(status).unwrap_or(after);
        let _ = writeln!(painted, "{before}\x1b[{colour}m{status}\x1b[0m{after}");
    }
    painted
}

fn list(jobs: &[QuarantinedJob]) -> String {
    if jobs.is_empty() {
        return "no quarantined jobs\n".to_owned();
    }
    let rows: Vec<Vec<String>> = jobs
        .iter()
        .map(|job| {
            let id = job.id.get(..16).unwrap_or(&job.id);
            vec![
                one_line(id),
                one_line(&job.role),
                one_line(&job.kind),
                one_line(&job.class),
                format!("{} ago", ago(job.unix_ms)),
            ]
        })
        .collect();
    table(&["ID", "ROLE", "KIND", "CLASS", "WHEN"], &rows)
}

/// Time since then, in its largest unit.
pub(crate) fn ago(unix_ms: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let then = Duration::from_millis(unix_ms);
    crate::status::duration(now.saturating_sub(then))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> DoctorReport {
        let check = |name, status, detail: &str| CheckReport {
            name,
            status,
            detail: detail.to_owned(),
            seconds: 0.25,
        };
        DoctorReport {
            ok: false,
            checks: vec![
                check("integrity", Health::Ok, "10 records in 1 collection"),
                check("segments", Health::Corrupt, "c1.vec: it is\ndamaged"),
                check("disk", Health::Warn, "the disk is nearly full"),
            ],
            repaired: vec!["rebuilt the segments of docs from 10 records".to_owned()],
            lost: Vec::new(),
            error: None,
        }
    }

    #[test]
    fn a_report_is_a_table() {
        insta::assert_snapshot!(show(&report(), false), @r"
        CHECK      STATUS   SECONDS  DETAIL
        integrity  ok          0.25  10 records in 1 collection
        segments   corrupt     0.25  c1.vec: it is damaged
        disk       warn        0.25  the disk is nearly full

        done:
          rebuilt the segments of docs from 10 records

        the store is damaged: run `isolith doctor --repair`
        ");
    }

    #[test]
    fn colours_do_not_change_the_text() {
        let painted = show(&report(), true);
        assert!(painted.contains("segments   \x1b[31mcorrupt\x1b[0m  "), "{painted:?}");
        assert!(painted.contains("disk       \x1b[33mwarn\x1b[0m  "), "{painted:?}");
        let mut plain = painted;
        for code in ["\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"] {
            plain = plain.replace(code, "");
        }
        assert_eq!(plain, show(&report(), false));
    }
}
