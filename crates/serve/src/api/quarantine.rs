//! The endpoint for jobs in quarantine.

use isolith_engine::QuarantinedJob;
use isolith_types::{Failure, Moment};
use schemars::JsonSchema;
use serde::Serialize;

use super::endpoint::{Endpoint, Verb};
use crate::arguments::NoArguments;
use crate::tool::Call;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::new(
        (Verb::Get, "/quarantine"),
        "quarantine_list",
        "List the jobs that are skipped because they killed their workers, the newest first",
        list,
    )]
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
