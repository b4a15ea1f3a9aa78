//! The endpoint for crash reports.

use isolate::{CrashReport, JobNote};
use isolith_types::{Failure, Moment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint::{Endpoint, Verb};
use super::status::name_of;
use crate::tool::{Call, Limits};

/// Numbers of reports in an answer. A store keeps 200.
const REPORTS: Limits = Limits { default: 20, agent: 20, program: 400 };

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::new(
        (Verb::Get, "/crashes"),
        "crash_list",
        "List the reports of workers that died, the newest first",
        list,
    )]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReportsToList {
    /// Only the reports of this worker.
    worker_pid: Option<u32>,
    /// Maximum number of reports: 1 to 400, by default 20.
    #[schemars(range(min = 1, max = 400))]
    limit: Option<u32>,
}

async fn list(call: Call, arguments: ReportsToList) -> Result<CrashList, Failure> {
    let ReportsToList { worker_pid, limit } = arguments;
    let limit = call.limit(limit, REPORTS)? as usize;
    let is_wanted = |report: &CrashReport| worker_pid.is_none() || report.pid == worker_pid;
    let mut crashes = Vec::new();
    for (owner, engine) in call.server.stores().all() {
        // /status says why a store cannot be opened.
        let Ok(engine) = engine else { continue };
        let reports = engine.crash_reports().filter(|(_, report)| is_wanted(report));
        crashes.extend(reports.take(limit).map(|(name, report)| (owner.name(), name, report)));
    }
    crashes.sort_by_key(|(_, _, report)| std::cmp::Reverse(report.unix_ms));
    crashes.truncate(limit);
    let shown = |(whose, name, report)| Crash::of(whose, name, report);
    Ok(CrashList { crashes: crashes.into_iter().map(shown).collect() })
}

#[derive(Serialize, JsonSchema)]
struct CrashList {
    crashes: Vec<Crash>,
}

/// The report of a worker's death.
#[derive(Serialize, JsonSchema)]
struct Crash {
    /// The store: `project` for code, `user` for memory.
    whose: String,
    /// Its file in the store's folder `crashes`.
    report: String,
    died_at: String,
    /// The class of the death, such as `crash` or `timeout`.
    class: String,
    /// The name of the signal, or the exit code.
    end: String,
    signal: Option<i32>,
    exit_code: Option<i32>,
    role: String,
    /// Null if the process could not be started.
    worker_pid: Option<u32>,
    /// How long the worker lived.
    age_ms: u64,
    /// Number of jobs it had completed.
    jobs_done: u64,
    /// Its resident memory when it was last measured.
    rss_bytes: Option<u64>,
    /// The job it was running.
    job: Option<CrashedJob>,
    /// Its panic message.
    panic: Option<String>,
    /// How it broke the protocol, or why it could not be started.
    violation: Option<String>,
    /// The last lines it printed.
    output: Vec<String>,
    /// What was done about it, such as `retried` or `quarantined`.
    action: String,
}

#[derive(Serialize, JsonSchema)]
struct CrashedJob {
    kind: String,
    /// The hash of its input, which names it in quarantine.
    input_hash: String,
    /// 0 for the first attempt.
    attempt: u32,
    /// How long it had been running.
    ran_ms: u64,
}

impl From<JobNote> for CrashedJob {
    fn from(JobNote { kind, input_hash, attempt, ran_ms }: JobNote) -> Self {
        Self { kind, input_hash, attempt, ran_ms }
    }
}

impl Crash {
    fn of(whose: &str, report: String, crash: CrashReport) -> Self {
        let died_at = i64::try_from(crash.unix_ms).unwrap_or(i64::MAX);
        Self {
            whose: whose.to_owned(),
            report,
            died_at: Moment::instant(died_at).to_string(),
            class: name_of(&crash.class),
            end: crash.end,
            signal: crash.signal,
            exit_code: crash.exit_code,
            role: crash.role,
            worker_pid: crash.pid,
            age_ms: crash.age_ms,
            jobs_done: crash.jobs_done,
            rss_bytes: crash.rss_bytes,
            job: crash.job.map(CrashedJob::from),
            panic: crash.panic,
            violation: crash.violation,
            output: crash.output,
            action: name_of(&crash.action),
        }
    }
}
