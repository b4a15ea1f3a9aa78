//! `health` and `workers`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use isolith_engine::{StatusReport, WorkerStatus};
use isolith_types::{Failure, counted};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::arguments::NoArguments;
use crate::server::Server;
use crate::stores::StoreOwner;
use crate::tool::{Call, Effect, Tool, ToolAnswer};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "health",
            Effect::Read,
            "Report the state of the stores: counts, crashes, warnings. Use it after an unexpected error. For processes use workers. Example: {}",
            health,
        ),
        Tool::new(
            "workers",
            Effect::Read,
            "List the worker processes and their jobs. Use it when calls are slow or hang. For the stores use health. Example: {}",
            workers,
        ),
    ]
}

async fn health(call: Call, _: NoArguments) -> Result<Health, Failure> {
    report(&call.server).await
}

/// The answer of `health`.
pub(crate) async fn report(server: &Server) -> Result<Health, Failure> {
    let mut stores = Vec::new();
    for (owner, opened) in server.stores().all() {
        stores.push(match opened {
            Ok(engine) => StoreHealth::of(owner, engine.status().await),
            Err(failure) => StoreHealth::closed(owner, &failure),
        });
    }
    let ok = stores.iter().all(|store| store.error.is_none());
    Ok(Health { ok, version: env!("CARGO_PKG_VERSION").to_owned(), stores })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Health {
    ok: bool,
    version: String,
    stores: Vec<StoreHealth>,
}

#[derive(Default, Serialize, JsonSchema)]
struct StoreHealth {
    whose: String,
    store: String,
    collections: BTreeMap<String, u64>,
    roots: Vec<String>,
    processes: u64,
    crashes: BTreeMap<String, u64>,
    quarantine: u64,
    disk_bytes: u64,
    warnings: Vec<String>,
    error: Option<String>,
}

impl StoreHealth {
    fn of(owner: StoreOwner, report: StatusReport) -> Self {
        let name = |class| json!(class).as_str().unwrap_or_default().to_owned();
        Self {
            whose: owner.name().to_owned(),
            store: report.store.display().to_string(),
            collections: report.collections.into_iter().map(|it| (it.name, it.records)).collect(),
            roots: report.roots.iter().map(|root| root.folder.display().to_string()).collect(),
            processes: report.fronts.len() as u64,
            crashes: report
                .crashes
                .into_iter()
                .map(|(class, count)| (name(class), count))
                .collect(),
            quarantine: report.quarantine,
            disk_bytes: report.disk_bytes,
            warnings: report.warnings,
            error: report.error.map(|failure| failure.message),
        }
    }

    fn closed(owner: StoreOwner, failure: &Failure) -> Self {
        let error = Some(failure.message.clone());
        Self { whose: owner.name().to_owned(), error, ..Self::default() }
    }
}

impl ToolAnswer for Health {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        let mut text =
            format!("isolith {}: {}\n", self.version, if self.ok { "ok" } else { "not ok" });
        for store in &self.stores {
            let crashes = counted(store.crashes.values().sum::<u64>(), "crash");
            let processes = counted(store.processes, "process");
            let _ = writeln!(
                text,
                "{} store {}: open in {processes}, {crashes} recorded",
                store.whose, store.store
            );
            for line in store.error.iter().chain(&store.warnings) {
                let _ = writeln!(text, "  {line}");
            }
        }
        if self.stores.is_empty() {
            text.push_str("no store exists yet\n");
        }
        text
    }
}

async fn workers(call: Call, _: NoArguments) -> Result<Workers, Failure> {
    let mut workers = Vec::new();
    for (owner, opened) in call.server.stores().all() {
        let Ok(engine) = opened else { continue };
        let report = engine.status().await;
        workers.extend(report.workers.into_iter().map(|worker| Worker::of(owner, worker)));
    }
    Ok(Workers { workers })
}

#[derive(Serialize, JsonSchema)]
struct Workers {
    workers: Vec<Worker>,
}

#[derive(Serialize, JsonSchema)]
struct Worker {
    store: String,
    front: u32,
    role: String,
    pid: Option<u32>,
    state: String,
    job: Option<String>,
    jobs_done: u64,
    rss_bytes: Option<u64>,
}

impl Worker {
    fn of(owner: StoreOwner, status: WorkerStatus) -> Self {
        let WorkerStatus { front, role, worker } = status;
        Self {
            store: owner.name().to_owned(),
            front,
            role,
            pid: worker.pid,
            state: json!(worker.state).as_str().unwrap_or_default().to_owned(),
            job: worker.job.map(|job| job.kind),
            jobs_done: worker.jobs_done,
            rss_bytes: worker.rss_bytes,
        }
    }
}

impl ToolAnswer for Workers {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        let line = |it: &Worker| {
            let pid = it.pid.map_or(String::new(), |pid| format!(" {pid}"));
            let jobs = counted(it.jobs_done, "job");
            format!("{} {}{pid}: {}, {jobs} done\n", it.store, it.role, it.state)
        };
        match self.workers.is_empty() {
            true => "no workers running; they start when needed".to_owned(),
            false => self.workers.iter().map(line).collect(),
        }
    }
}
