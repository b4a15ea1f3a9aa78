//! Endpoints for the state of the stores, and for their repair.

use std::collections::BTreeMap;
use std::path::Path;

use isolate::DeathSnapshot;
use isolith_engine::{
    CheckReport, Doctor, DoctorOptions, DoctorReport, FrontStatus, PoolStatus, Problem, Root,
    StatusReport, StorePlace, WorkerStatus,
};
use isolith_types::{Code, Failure, Moment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::answer::shown;
use super::endpoint::{Endpoint, Verb};
use super::jobs::{self, JobError};
use super::live;
use crate::arguments::NoArguments;
use crate::stores::StoreOwner;
use crate::tool::Call;
use crate::tools::repair::reconnect;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            (Verb::Get, "/status"),
            "health",
            "Report the state of the stores: counts, workers, crashes, warnings",
            status,
        ),
        Endpoint::new(
            (Verb::Get, "/status/events"),
            "health_events",
            "Follow the workers: their state once a second, as server-sent events",
            live::status,
        )
        .live(),
        Endpoint::new(
            (Verb::Post, "/doctor"),
            "repair",
            "Check the stores; with repair, repair them",
            doctor,
        )
        .job(),
        Endpoint::new(
            (Verb::Post, "/stores/reconnect"),
            "reconnect",
            "Close and reopen the stores, for example after one was restored",
            reconnect,
        ),
        Endpoint::new((Verb::Get, "/jobs"), "job_list", "List the jobs", jobs::list),
        Endpoint::new(
            (Verb::Get, "/jobs/{id}"),
            "job_get",
            "Get the state of a job; can wait for its end",
            jobs::get,
        ),
        Endpoint::new(
            (Verb::Get, "/jobs/{id}/events"),
            "job_events",
            "Follow the progress of a job",
            jobs::get_to_follow,
        )
        .events(),
        Endpoint::new(
            (Verb::Delete, "/jobs/{id}"),
            "job_cancel",
            "Cancel and forget a job; what it has finished is kept",
            jobs::cancel,
        ),
    ]
}

async fn status(call: Call, _: NoArguments) -> Result<StatusAnswer, Failure> {
    let mut stores = Vec::new();
    for (owner, opened) in call.server.stores().all() {
        stores.push(match opened {
            Ok(engine) => StoreStatus::of(owner, engine.status().await),
            Err(failure) => StoreStatus {
                whose: owner.name().to_owned(),
                error: Some(JobError::of(&shown(failure))),
                ..StoreStatus::default()
            },
        });
    }
    let ok = stores.iter().all(|store| store.error.is_none());
    Ok(StatusAnswer { ok, version: env!("CARGO_PKG_VERSION").to_owned(), stores })
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Status")]
struct StatusAnswer {
    ok: bool,
    version: String,
    stores: Vec<StoreStatus>,
}

#[derive(Default, Serialize, JsonSchema)]
struct StoreStatus {
    /// `project` for code, `user` for memory.
    whose: String,
    store: String,
    schema: Option<u32>,
    collections: Vec<CollectionNow>,
    roots: Vec<RootNow>,
    wings: u64,
    drawers: u64,
    nodes: u64,
    relationships: u64,
    /// The processes that have the store open.
    processes: Vec<Process>,
    workers: Vec<Worker>,
    /// Number of worker deaths by class.
    crashes: BTreeMap<String, u64>,
    /// Number of jobs in quarantine.
    quarantine: u64,
    wal_bytes: u64,
    disk_bytes: u64,
    warnings: Vec<String>,
    /// What needs attention, as `isolith status --check` reports it.
    problems: Vec<ProblemNow>,
    /// Why the store cannot be read.
    error: Option<JobError>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CollectionStatus")]
struct CollectionNow {
    name: String,
    /// Its database, unless it is the default one.
    database: Option<String>,
    records: u64,
    generation: u64,
    tail: u64,
    segment_bytes: u64,
    fold_due: bool,
    rebuild_due: bool,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Root")]
struct RootNow {
    root: String,
    files: u64,
    chunks: u64,
    /// When a run was last completed.
    indexed_at: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Process {
    pid: u32,
    answers: bool,
    age_ms: Option<u64>,
    /// Number of its last jobs, at most 100, and of those that failed.
    recent_jobs: Option<u64>,
    recent_failed: Option<u64>,
    /// Number of worker deaths since it started, by class.
    deaths: BTreeMap<String, u64>,
    pools: Vec<WorkerPool>,
}

/// The workers of one role in a process.
#[derive(Serialize, JsonSchema)]
struct WorkerPool {
    role: String,
    /// `closed`, `half_open`, or `open`: jobs are refused because workers keep dying.
    breaker: String,
    /// Number of jobs waiting for a worker.
    waiting: u64,
    /// Number of workers that died and were replaced.
    restarts: u64,
    last_death: Option<LastDeath>,
}

/// The most recent death of a worker.
#[derive(Serialize, JsonSchema)]
struct LastDeath {
    class: String,
    /// The name of the signal, or the exit code.
    end: String,
    worker_pid: Option<u32>,
    died_at: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "StoreProblem")]
struct ProblemNow {
    code: String,
    message: String,
    /// The command that fixes it or says more, if there is one.
    command: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Worker {
    front: u32,
    role: String,
    pid: Option<u32>,
    state: String,
    /// How long it has existed.
    age_ms: u64,
    job: Option<String>,
    /// How long the job has been running.
    job_ms: Option<u64>,
    jobs_done: u64,
    rss_bytes: Option<u64>,
}

pub(super) fn name_of(value: &impl Serialize) -> String {
    json!(value).as_str().unwrap_or_default().to_owned()
}

impl StoreStatus {
    fn of(owner: StoreOwner, report: StatusReport) -> Self {
        let root = |it: Root| RootNow {
            root: it.folder.display().to_string(),
            files: it.files,
            chunks: it.chunks,
            indexed_at: it.indexed_at.map(|at| Moment::instant(at).to_string()),
        };
        let problem = |it: Problem| ProblemNow {
            command: command_for(it.code, &report.store),
            code: name_of(&it.code),
            message: it.message,
        };
        let crashes = report.crashes.into_iter();
        Self {
            whose: owner.name().to_owned(),
            store: report.store.display().to_string(),
            schema: report.schema,
            collections: report.collections.into_iter().map(CollectionNow::from).collect(),
            roots: report.roots.into_iter().map(root).collect(),
            wings: report.memory.wings,
            drawers: report.memory.drawers,
            nodes: report.graph.nodes,
            relationships: report.graph.relationships,
            processes: report.fronts.into_iter().map(Process::from).collect(),
            workers: report.workers.into_iter().map(Worker::from).collect(),
            crashes: crashes.map(|(class, count)| (name_of(&class), count)).collect(),
            quarantine: report.quarantine,
            wal_bytes: report.wal_bytes,
            disk_bytes: report.disk_bytes,
            warnings: report.warnings,
            problems: report.problems.into_iter().map(problem).collect(),
            error: report.error.map(|failure| JobError::of(&shown(failure))),
        }
    }
}

/// The command that fixes a problem, or shows more of it.
fn command_for(code: Code, store: &Path) -> Option<String> {
    let command = match code {
        Code::Corrupt => "isolith doctor --repair",
        Code::Quarantined => "isolith doctor --quarantine list",
        Code::NotFound => "isolith doctor",
        Code::WorkerDied | Code::BreakerOpen | Code::StartFailure => "isolith status",
        Code::StoreForeign => "isolith adopt",
        _ => return None,
    };
    let store = store.display().to_string().replace('\'', r"'\''");
    Some(format!("{command} --store '{store}'"))
}

impl From<FrontStatus> for Process {
    fn from(front: FrontStatus) -> Self {
        let FrontStatus { pid, answers, age_ms, recent, deaths, pools, breakers: _ } = front;
        Self {
            pid,
            answers,
            age_ms,
            recent_jobs: recent.map(|recent| recent.jobs),
            recent_failed: recent.map(|recent| recent.failed),
            deaths,
            pools: pools.into_iter().map(WorkerPool::from).collect(),
        }
    }
}

impl From<PoolStatus> for WorkerPool {
    fn from(PoolStatus { role, breaker, waiting, restarts, last_death }: PoolStatus) -> Self {
        let death = |it: DeathSnapshot| LastDeath {
            class: name_of(&it.class),
            end: it.end,
            worker_pid: it.pid,
            died_at: Moment::instant(i64::try_from(it.unix_ms).unwrap_or(i64::MAX)).to_string(),
        };
        Self {
            role,
            breaker: name_of(&breaker),
            waiting: waiting as u64,
            restarts,
            last_death: last_death.map(death),
        }
    }
}

impl From<isolith_engine::CollectionStatus> for CollectionNow {
    fn from(status: isolith_engine::CollectionStatus) -> Self {
        Self {
            name: status.name,
            database: status.database,
            records: status.records,
            generation: status.generation,
            tail: status.tail,
            segment_bytes: status.segment_bytes,
            fold_due: status.fold_due,
            rebuild_due: status.rebuild_due,
        }
    }
}

impl From<WorkerStatus> for Worker {
    fn from(WorkerStatus { front, role, worker }: WorkerStatus) -> Self {
        Self {
            front,
            role,
            pid: worker.pid,
            state: name_of(&worker.state),
            age_ms: worker.age_ms,
            job_ms: worker.job.as_ref().map(|job| job.age_ms),
            job: worker.job.map(|job| job.kind),
            jobs_done: worker.jobs_done,
            rss_bytes: worker.rss_bytes,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Examination {
    /// Also compare indexes with their tables, which takes longer.
    full: Option<bool>,
    /// Repair what can be repaired. The stores are closed meanwhile.
    repair: Option<bool>,
}

async fn doctor(call: Call, arguments: Examination) -> Result<DoctorAnswer, Failure> {
    let repair = arguments.repair.unwrap_or(false);
    let options =
        DoctorOptions { full: arguments.full.unwrap_or(false), repair, ..Default::default() };
    let mut stores = Vec::new();
    for (owner, place) in call.server.stores().existing() {
        let closed = match repair {
            true => {
                let reason = Failure::new(Code::LockHeld, "the store is being repaired")
                    .with_hint("try again in a few seconds");
                Some(call.server.close_store(owner, reason).await?)
            }
            false => None,
        };
        stores.push(examine(owner, &place, options.clone()).await);
        drop(closed);
    }
    if repair {
        call.server.warm_up().await;
    }
    Ok(DoctorAnswer { ok: stores.iter().all(|store| store.ok), stores })
}

async fn examine(owner: StoreOwner, place: &StorePlace, options: DoctorOptions) -> Examined {
    let store = place.path().display().to_string();
    match Doctor::open(place, options, |_| {}) {
        Ok(doctor) => {
            let report = doctor.run().await;
            doctor.close().await;
            Examined::of(owner, store, report)
        }
        Err(failure) => Examined {
            whose: owner.name().to_owned(),
            store,
            ok: false,
            checks: Vec::new(),
            repaired: Vec::new(),
            lost: Vec::new(),
            error: Some(JobError::of(&shown(failure))),
        },
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "DoctorReport")]
struct DoctorAnswer {
    ok: bool,
    stores: Vec<Examined>,
}

#[derive(Serialize, JsonSchema)]
struct Examined {
    whose: String,
    store: String,
    ok: bool,
    checks: Vec<CheckAnswer>,
    /// The repairs that were made.
    repaired: Vec<String>,
    /// Data that could not be recovered unchanged.
    lost: Vec<Value>,
    /// Why a repair failed.
    error: Option<JobError>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Check")]
struct CheckAnswer {
    name: String,
    /// `ok`, `warn`, `failed` or `corrupt`.
    status: String,
    detail: String,
    seconds: f64,
}

impl Examined {
    fn of(owner: StoreOwner, store: String, report: DoctorReport) -> Self {
        let check = |it: CheckReport| CheckAnswer {
            name: it.name.to_owned(),
            status: it.status.name().to_owned(),
            detail: it.detail,
            seconds: it.seconds,
        };
        Self {
            whose: owner.name().to_owned(),
            store,
            ok: report.ok,
            checks: report.checks.into_iter().map(check).collect(),
            repaired: report.repaired,
            lost: report.lost.iter().map(|loss| json!(loss)).collect(),
            error: report.error.map(|failure| JobError::of(&shown(failure))),
        }
    }
}
