//! The endpoint for jobs in quarantine.

use isolith_engine::QuarantinedJob;
use isolith_types::{Code, Failure, Moment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint::{Endpoint, Verb};
use crate::arguments::NoArguments;
use crate::tool::Call;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            (Verb::Get, "/quarantine"),
            "quarantine_list",
            "List the jobs that are skipped because they killed their workers, the newest first",
            list,
        ),
        Endpoint::new(
            (Verb::Post, "/quarantine/release"),
            "quarantine_release",
            "Let a job run again, or all of them",
            release,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JobsToRelease {
    /// The store: `project` or `user`. By default all.
    whose: Option<String>,
    /// The id of a job, or the beginning of it. By default all jobs.
    id: Option<String>,
}

async fn release(call: Call, arguments: JobsToRelease) -> Result<Released, Failure> {
    let JobsToRelease { whose, id } = arguments;
    let (mut released, mut missing) = (Vec::new(), None);
    for (owner, engine) in call.server.stores().all() {
        if whose.as_deref().is_some_and(|whose| whose != owner.name()) {
            continue;
        }
        match engine?.release_jobs(id.as_deref()).await {
            Ok(jobs) => released.extend(jobs.into_iter().map(|job| Job::of(owner.name(), job))),
            // It may be in the other store.
            Err(failure) if failure.code == Code::NotFound => missing = Some(failure),
            Err(failure) => return Err(failure),
        }
    }
    match missing {
        Some(missing) if released.is_empty() => Err(missing),
        _ => Ok(Released { released }),
    }
}

/// The jobs that may run again.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ReleasedJobs")]
struct Released {
    released: Vec<Job>,
}

async fn list(call: Call, _: NoArguments) -> Result<QuarantineList, Failure> {
    let mut jobs = Vec::new();
    for (owner, engine) in call.server.stores().all() {
        // /status says why a store cannot be opened or read.
        let Ok(engine) = engine else { continue };
        let Ok(found) = engine.quarantined_jobs().await else { continue };
        jobs.extend(found.into_iter().map(|job| (owner.name(), job)));
    }
    jobs.sort_by_key(|(_, job)| std::cmp::Reverse(job.unix_ms));
    Ok(QuarantineList { jobs: jobs.into_iter().map(|(whose, job)| Job::of(whose, job)).collect() })
}

#[derive(Serialize, JsonSchema)]
struct QuarantineList {
    jobs: Vec<Job>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "QuarantinedJob")]
struct Job {
    /// The store: `project` for code, `user` for memory.
    whose: String,
    /// The hash of its input, which `isolith doctor --quarantine retry` takes.
    id: String,
    role: String,
    kind: String,
    /// The class of the last death.
    class: String,
    since: String,
}

impl Job {
    fn of(whose: &str, job: QuarantinedJob) -> Self {
        let QuarantinedJob { id, role, kind, class, unix_ms } = job;
        let since = Moment::instant(i64::try_from(unix_ms).unwrap_or(i64::MAX)).to_string();
        Self { whose: whose.to_owned(), id, role, kind, class, since }
    }
}
