//! The answer to `isolith status`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use isolate::{BreakerState, CrashReport, DeathClass};
use isolith_protocol::{CollectionState, GetOverview, GraphState, Overview};
use isolith_roles::{CrashHistory, bytes_below, crash_reports};
use isolith_store::{LockHolder, StoreFolder, schema_version, write_lock_holder};
use isolith_types::{Code, DatabaseName, Failure, Wing, counted};
use serde::Serialize;
use tokio::task::JoinSet;

use super::figures::{DiskSpace, MIN_DISK_FREE};
use super::front::{BreakerStatus, FrontSnapshot, PoolStatus, WorkerStatus};
use super::recent::RecentJobs;
use super::socket::{FrontReply, RunFolder, owner};
use crate::index::Root;
use crate::open::Engine;

/// Size of the write-ahead log from which on to warn that nothing shortens it.
const LONG_LOG: u64 = 256 << 20;

/// The status of a store.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatusReport {
    /// Its folder.
    pub store: PathBuf,
    /// Its schema version; `None` if it cannot be read.
    pub schema: Option<u32>,
    /// Its collections; empty if they cannot be read.
    pub collections: Vec<CollectionStatus>,
    /// The indexed folders.
    pub roots: Vec<Root>,
    /// Counts of its agent memory.
    pub memory: MemoryStatus,
    /// The size of its graph.
    pub graph: GraphStatus,
    /// The long-lived processes that have it open.
    pub fronts: Vec<FrontStatus>,
    /// Their workers.
    pub workers: Vec<WorkerStatus>,
    /// Number of worker deaths by class, as far as recorded.
    pub crashes: BTreeMap<DeathClass, u64>,
    /// Number of jobs in quarantine.
    pub quarantine: u64,
    /// Warnings, in sentences.
    pub warnings: Vec<String>,
    /// What needs attention: those of the warnings that do, and what makes reads fail.
    #[serde(skip)]
    pub problems: Vec<Problem>,
    /// The process that holds the write lock now.
    pub write_lock: Option<LockHolder>,
    /// Size of the database's write-ahead log, in bytes.
    pub wal_bytes: u64,
    /// Total size of its files, in bytes.
    pub disk_bytes: u64,
    /// The space on its disk, if the system tells.
    pub disk: Option<DiskSpace>,
    /// Why the collections cannot be read.
    pub error: Option<Failure>,
}

/// Something that needs attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The kind of failure, which decides about the exit status.
    pub code: Code,
    /// What is wrong, in one sentence.
    pub message: String,
}

/// The status of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CollectionStatus {
    /// Its name, in its database.
    pub name: String,
    /// Its database, unless it is the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// Number of records.
    pub records: u64,
    /// Its generation; 0 before the first fold.
    pub generation: u64,
    /// Number of changes in the tail.
    pub tail: u64,
    /// Total size of its segments, in bytes.
    pub segment_bytes: u64,
    /// Whether a fold is due.
    pub fold_due: bool,
    /// Whether a segment is in quarantine and must be rebuilt.
    pub rebuild_due: bool,
}

/// Counts of a store's agent memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct MemoryStatus {
    /// Number of wings.
    pub wings: u64,
    /// Number of drawers.
    pub drawers: u64,
}

/// The size of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct GraphStatus {
    /// Number of nodes.
    pub nodes: u64,
    /// Number of relationships.
    pub relationships: u64,
    /// Size of its segment in bytes; 0 if it has none.
    pub segment_bytes: u64,
    /// Whether the segment is up to date.
    pub segment_current: bool,
    /// Whether the segment is in quarantine and must be rebuilt.
    pub rebuild_due: bool,
}

/// A process that has the store open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FrontStatus {
    /// The process id.
    pub pid: u32,
    /// Whether it answered in time.
    pub answers: bool,
    /// How long the store has been open.
    pub age_ms: Option<u64>,
    /// The outcomes of its last jobs.
    pub recent: Option<RecentJobs>,
    /// Number of worker deaths, by class.
    pub deaths: BTreeMap<String, u64>,
    /// The breakers that are not closed.
    pub breakers: Vec<BreakerStatus>,
    /// Its worker pools.
    pub pools: Vec<PoolStatus>,
}

impl Engine {
    /// The reports of dead workers by file name, the newest first. Those that cannot be read are
    /// left out.
    pub fn crash_reports(&self) -> impl Iterator<Item = (String, CrashReport)> + use<> {
        crash_reports(&self.inner.folder.crashes())
    }

    /// Reports the status of the store and its live fronts. Omits what cannot be determined, and
    /// says why.
    pub async fn status(&self) -> StatusReport {
        let folder = &self.inner.folder;
        let (overview, fronts) = tokio::join!(self.overview(), ask_all(folder.run()));
        let crashes = CrashHistory::read(&folder.crashes());
        let mut report = StatusReport {
            store: folder.path().to_owned(),
            schema: None,
            collections: Vec::new(),
            roots: Vec::new(),
            memory: MemoryStatus::default(),
            graph: GraphStatus::default(),
            fronts: Vec::new(),
            workers: Vec::new(),
            warnings: Vec::new(),
            problems: Vec::new(),
            crashes: BTreeMap::new(),
            quarantine: 0,
            write_lock: write_lock_holder(folder),
            wal_bytes: log_bytes(folder),
            disk_bytes: bytes_below(folder.path()),
            disk: DiskSpace::of(folder.path()),
            error: None,
        };
        if let Some(warning) = crashes.warning() {
            report.problem(Code::WorkerDied, warning);
        }
        report.crashes = crashes.by_class;
        match overview {
            Ok((collections, jobs, graph)) => {
                // A store of another version is migrated or refused when it is opened.
                report.schema = Some(schema_version());
                report.quarantine = jobs;
                report.graph = GraphStatus::of(&graph);
                report.collections = collections;
                match self.roots().await {
                    Ok(roots) => report.roots = roots,
                    Err(failure) => report.error = Some(failure),
                }
                match self.taxonomy().await {
                    Ok(wings) => report.memory = MemoryStatus::of(&wings),
                    Err(failure) => report.error = Some(failure),
                }
            }
            Err(failure) => report.error = Some(failure),
        }
        for (pid, front) in fronts {
            report.add_front(pid, front);
        }
        report.warn();
        report
    }

    /// The long-lived processes that have the store open, and their workers. Reads nothing, and so
    /// can be asked for often.
    pub async fn fronts(&self) -> (Vec<FrontStatus>, Vec<WorkerStatus>) {
        let mut found = (Vec::new(), Vec::new());
        for (pid, front) in ask_all(self.inner.folder.run()).await {
            found.0.push(FrontStatus::of(pid, front.as_ref()));
            found.1.extend(front.into_iter().flat_map(FrontSnapshot::into_workers));
        }
        found
    }

    pub(super) async fn overview(
        &self,
    ) -> Result<(Vec<CollectionStatus>, u64, GraphState), Failure> {
        let overview = self.ask(GetOverview).await?;
        let Overview { collections, databases, poisons, graph, .. } = overview;
        let collections =
            collections.iter().map(|state| CollectionStatus::of(state, &databases)).collect();
        Ok((collections, poisons.len() as u64, graph))
    }
}

impl MemoryStatus {
    fn of(wings: &[Wing]) -> Self {
        let drawers = wings.iter().map(|wing| wing.drawers).sum();
        Self { wings: wings.len() as u64, drawers }
    }
}

impl GraphStatus {
    pub(super) fn of(state: &GraphState) -> Self {
        Self {
            nodes: state.nodes,
            relationships: state.edges,
            segment_bytes: state.segment.as_ref().map_or(0, |segment| segment.bytes),
            segment_current: state.current().is_some(),
            rebuild_due: state.is_quarantined(),
        }
    }
}

impl StatusReport {
    /// Adds a warning that needs attention.
    fn problem(&mut self, code: Code, message: String) {
        self.problems.push(Problem { code, message: message.clone() });
        self.warnings.push(message);
    }

    fn add_front(&mut self, pid: u32, front: Option<FrontSnapshot>) {
        let Some(front) = front else {
            let message = format!("process {pid} has the store open and does not answer");
            self.problem(Code::Timeout, message);
            self.fronts.push(FrontStatus::of(pid, None));
            return;
        };
        if let Some(warning) = front.recent.warning() {
            self.problem(Code::WorkerDied, format!("process {}: {warning}", front.pid));
        }
        for BreakerStatus { role, state } in &front.breakers() {
            let pid = front.pid;
            let message = match state {
                BreakerState::HalfOpen => {
                    format!("process {pid}: its {role} workers died; the breaker is half-open")
                }
                BreakerState::Open | BreakerState::Closed => format!(
                    "process {pid}: the breaker is open: its {role} workers keep dying, and jobs \
                     are refused"
                ),
            };
            self.problem(Code::BreakerOpen, message);
        }
        self.fronts.push(FrontStatus::of(pid, Some(&front)));
        self.workers.extend(front.into_workers());
    }

    fn warn(&mut self) {
        let mut missing = Vec::new();
        for root in self.roots.iter().filter(|root| !root.folder.is_dir()) {
            let next = match root.is_removed_worktree() {
                true => "; the next run of index or doctor drops its index",
                false => "",
            };
            let folder = root.folder.display();
            missing.push(format!("{folder} is indexed but does not exist{next}"));
        }
        for message in missing {
            self.problem(Code::NotFound, message);
        }
        self.warn_of_segments();
        if self.quarantine > 0 {
            let jobs = counted(self.quarantine, "job");
            self.problem(Code::Quarantined, format!("skipping {jobs} in quarantine"));
        }
        if let Some(holder) = self.write_lock.as_ref().filter(|holder| holder.is_stopped()) {
            let pid = holder.pid;
            let message = format!(
                "the write lock is held by {holder}: nobody else can write until it is continued \
                 (`kill -CONT {pid}`) or ended"
            );
            self.problem(Code::LockHeld, message);
        }
        if self.wal_bytes > LONG_LOG {
            let megabytes = self.wal_bytes / 1_000_000;
            let message = format!("the write-ahead log has grown to {megabytes} MB");
            self.problem(Code::Failed, message);
        }
        if let Some(disk) = self.disk.filter(|disk| disk.free_bytes < MIN_DISK_FREE) {
            let megabytes = disk.free_bytes / 1_000_000;
            let message = format!("the disk is nearly full: {megabytes} MB are free");
            self.problem(Code::DiskFull, message);
        }
        if let Some(Failure { code, message, .. }) = self.error.clone() {
            self.problems.insert(0, Problem { code, message });
        }
    }

    fn warn_of_segments(&mut self) {
        let (mut damaged, mut due) = (Vec::new(), Vec::new());
        for collection in &self.collections {
            if collection.rebuild_due {
                let name = &collection.name;
                damaged.push(format!("{name}: a segment is in quarantine; a rebuild is due"));
            } else if collection.fold_due {
                due.push(format!("{}: folding is due", collection.name));
            }
        }
        if self.graph.rebuild_due {
            damaged.push("the graph: its segment is in quarantine; a rebuild is due".to_owned());
        }
        for message in damaged {
            self.problem(Code::Corrupt, message);
        }
        // The next command that writes, or a server, does it.
        self.warnings.extend(due);
    }
}

impl FrontStatus {
    /// Of the process with this id, and what it answered, if it did.
    fn of(pid: u32, front: Option<&FrontSnapshot>) -> Self {
        Self {
            pid,
            answers: front.is_some(),
            age_ms: front.map(|front| front.age_ms),
            recent: front.map(|front| front.recent),
            deaths: front.map(|front| front.deaths.clone()).unwrap_or_default(),
            breakers: front.map(FrontSnapshot::breakers).unwrap_or_default(),
            pools: front.map(FrontSnapshot::pools).unwrap_or_default(),
        }
    }
}

impl CollectionStatus {
    /// Its name after that of its database, unless this is the default one.
    pub fn full_name(&self) -> String {
        match &self.database {
            Some(database) => format!("{database}/{}", self.name),
            None => self.name.clone(),
        }
    }

    fn of(state: &CollectionState, databases: &[(String, DatabaseName)]) -> Self {
        let segments = state.generation.as_ref().map_or(&[][..], |it| &it.segments);
        let in_database = databases.iter().find_map(|(prefix, database)| {
            Some((state.name.strip_prefix(prefix.as_str())?, database.to_string()))
        });
        let (name, database) = match in_database {
            Some((name, database)) => (name, Some(database)),
            None => (&*state.name, None),
        };
        Self {
            name: name.to_owned(),
            database,
            records: state.records,
            generation: state.generation_number(),
            tail: state.unfolded,
            segment_bytes: segments.iter().map(|segment| segment.bytes).sum(),
            fold_due: state.fold_due(),
            rebuild_due: segments.iter().any(|segment| segment.quarantined.is_some()),
        }
    }
}

/// Queries all fronts at once. Returns their process ids and the replies that arrived in time.
async fn ask_all(run: PathBuf) -> Vec<(u32, Option<FrontSnapshot>)> {
    let Ok(folder) = RunFolder::open(&run) else { return Vec::new() };
    let folder = Arc::new(folder);
    let mut asking = JoinSet::new();
    for name in folder.sockets() {
        let Some(pid) = owner(&name) else { continue };
        let folder = Arc::clone(&folder);
        asking.spawn(async move { (pid, folder.ask(&name).await) });
    }
    let mut fronts = Vec::new();
    while let Some(asked) = asking.join_next().await {
        match asked {
            Ok((_, FrontReply::Answered(snapshot))) => fronts.push((snapshot.pid, Some(*snapshot))),
            Ok((pid, FrontReply::Silent)) => fronts.push((pid, None)),
            Ok((_, FrontReply::Dead)) | Err(_) => {}
        }
    }
    fronts.sort_by_key(|(pid, _)| *pid);
    fronts
}

pub(super) fn log_bytes(folder: &StoreFolder) -> u64 {
    let mut name = folder.truth().into_os_string();
    name.push("-wal");
    std::fs::metadata(PathBuf::from(name)).map_or(0, |metadata| metadata.len())
}
