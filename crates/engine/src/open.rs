use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use isolate::{CrashFolder, Hooks, Pool, PoolSettings, Supervised, Tally};
use isolith_config::Layers;
use isolith_folder::Folder;
use isolith_protocol::{RootPlace, SegmentsOf};
use isolith_roles::{StoreBuilder, StoreReader, StoreSettings, StoreWriter};
use isolith_store::{Durability, StoreFolder};
use isolith_types::{Code, Failure, Hint};
use tokio::sync::{Notify, OnceCell};

use crate::failure::of_call;
use crate::graph::{KnownWrites, Spools};
use crate::location::PROJECT_FOLDER;
use crate::quarantine::StoreQuarantine;
use crate::seal::SEAL;
use crate::status::{Activity, ActivityCounts, Recent, Serving};
use crate::trust::{IfMissing, StorePlace};
use crate::within::{RootsSeen, Within};
use crate::writes::WriteQueue;

/// A store and the workers that serve it. Clones are handles to the same engine.
#[derive(Clone)]
pub struct Engine {
    pub(crate) inner: Arc<Inner>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine({})", self.inner.folder.path().display())
    }
}

pub(crate) struct Inner {
    pub(crate) place: StorePlace,
    pub(crate) folder: StoreFolder,
    /// Settings passed to workers when they start.
    settings: Mutex<StoreSettings>,
    pub(crate) options: EngineOptions,
    pub(crate) readers: Pool<StoreReader>,
    pub(crate) writer: Pool<StoreWriter>,
    pub(crate) builder: Pool<StoreBuilder>,
    pub(crate) writes: WriteQueue,
    pub(crate) quarantine: Arc<StoreQuarantine>,
    pub(crate) poisons_known: OnceCell<()>,
    pub(crate) hooks: Hooks,
    pub(crate) tally: Arc<Tally>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) serving: Serving,
    /// The remaining pages of long replies.
    pub(crate) spools: Arc<Spools>,
    pub(crate) known_writes: KnownWrites,
    /// What is due for new segments.
    pub(crate) due: Mutex<BTreeSet<SegmentsOf>>,
    /// Whether a query would have been faster with an up-to-date graph segment.
    pub(crate) graph_wanted: AtomicBool,
    pub(crate) due_changed: Arc<Notify>,
    /// Whether rows of deleted collections remain to be removed.
    pub(crate) purge_due: AtomicBool,
    pub(crate) roots_seen: RootsSeen,
    /// The roots as the last search saw them.
    pub(crate) seen_roots: Mutex<Vec<RootPlace>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Wakes the background tasks, so that they end.
        self.due_changed.notify_one();
    }
}

/// How an engine runs.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Whether to create the store if it does not exist.
    pub create: bool,
    /// How durable a commit is.
    pub durability: Durability,
    /// Short-lived or long-lived: decides about spares and background work.
    pub life: Life,
    /// Maximum number of concurrent reads.
    pub readers: usize,
    /// The deadline of a job.
    pub deadline: Duration,
    /// The program to start as workers; by default the running one.
    pub program: Option<PathBuf>,
    /// The folders it may read, whatever roots the store has; by default everything.
    pub within: Option<Within>,
    /// The folder that questions about code are asked in: the root around it answers them. By
    /// default all roots do.
    pub here: Option<PathBuf>,
    /// Folders whose roots answer as well.
    pub also: Vec<PathBuf>,
    /// The user's settings. Settings of a project are added when it is indexed.
    pub settings: Layers,
}

impl EngineOptions {
    fn missing(&self) -> IfMissing {
        if self.create { IfMissing::Create } else { IfMissing::Refuse }
    }
}

/// How long an engine lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// One command: no spares; folding waits for [`Engine::settle`].
    OneShot,
    /// A server: spares, and folding in the background.
    Server,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            create: false,
            durability: Durability::Full,
            life: Life::OneShot,
            readers: 1,
            deadline: Duration::from_secs(30),
            program: None,
            within: None,
            here: None,
            also: Vec::new(),
            settings: Layers::default(),
        }
    }
}

/// Maximum number of stored crash reports.
pub(crate) const CRASH_REPORTS: usize = 200;

/// Deadline of a fold, enough for millions of rows.
const FOLD_DEADLINE: Duration = Duration::from_secs(1800);

/// Minimum memory limit of a worker, in bytes.
const MIN_WORKER_MEMORY: u64 = 1 << 30;

/// How long workers may take to finish when the engine closes.
const CLOSING: Duration = Duration::from_secs(10);

impl Engine {
    /// Opens the store in `place`. Must be called within a tokio runtime. Workers start
    /// when they are first needed.
    ///
    /// # Errors
    /// `no_store` if there is none and none is to be created; `store_foreign` if it has no
    /// seal of this user; `store_refused` if it must not be used; `read_only` if it cannot
    /// be created.
    pub fn open(place: &StorePlace, options: EngineOptions) -> Result<Self, Failure> {
        let folder = place.admit(options.missing())?;
        if options.create {
            hide_from_git(&folder);
        }
        Self::start(place.clone(), folder, options)
    }

    fn start(
        place: StorePlace,
        folder: StoreFolder,
        options: EngineOptions,
    ) -> Result<Self, Failure> {
        let settings = store_settings(&folder, &options);
        let (quarantine, news) = StoreQuarantine::new();
        let (tally, activity) = (Arc::new(Tally::default()), Arc::<Activity>::default());
        let recent = Arc::new(Recent::new(Arc::clone(&tally)));
        // A read-only store gets no crash reports.
        let crashes = CrashFolder::open(folder.crashes(), CRASH_REPORTS).ok();
        let hooks = Hooks {
            crashes: crashes.map(|folder| Arc::new(folder) as _),
            quarantine: Arc::clone(&quarantine) as _,
            metrics: Arc::clone(&recent) as _,
        };
        let failed = |error| of_call(&error);
        let reading = pool_settings(&options, options.readers);
        let writing = pool_settings(&options, 1);
        let building = PoolSettings { job_deadline: FOLD_DEADLINE, spares: 0, ..writing.clone() };
        let writer = Pool::start(&settings, writing, hooks.clone()).map_err(failed)?;
        let engine = Self {
            inner: Arc::new(Inner {
                readers: Pool::start(&settings, reading, hooks.clone()).map_err(failed)?,
                builder: Pool::start(&settings, building, hooks.clone()).map_err(failed)?,
                writes: WriteQueue::start(
                    writer.clone(),
                    folder.clone(),
                    options.deadline,
                    Arc::clone(&activity),
                ),
                writer,
                place,
                folder,
                settings: Mutex::new(settings),
                quarantine,
                poisons_known: OnceCell::new(),
                hooks,
                tally,
                activity,
                serving: Serving::new(recent),
                spools: Arc::default(),
                known_writes: KnownWrites::default(),
                due: Mutex::default(),
                due_changed: Arc::default(),
                purge_due: AtomicBool::new(false),
                graph_wanted: AtomicBool::new(false),
                roots_seen: RootsSeen::default(),
                seen_roots: Mutex::default(),
                options,
            }),
        };
        engine.store_quarantine(news);
        if engine.inner.options.life == Life::Server {
            engine.fold_in_background();
            engine.keep_up();
            engine.serve_always();
        }
        Ok(engine)
    }

    /// Checks again whether the store may be used, after a worker has found a different one.
    /// Returns whether it was replaced; workers then use the new one.
    pub(crate) fn look_again(&self) -> Result<bool, Failure> {
        let Inner { place, options, settings, readers, writer, builder, .. } = &*self.inner;
        // A slower concurrent check must not overwrite a newer result.
        let mut known = settings.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = place.admit(options.missing())?;
        let now = store_settings(&folder, options);
        if *known == now {
            return Ok(false);
        }
        let failed = |error| of_call(&error);
        readers.change_settings(&now).map_err(failed)?;
        writer.change_settings(&now).map_err(failed)?;
        builder.change_settings(&now).map_err(failed)?;
        *known = now;
        Ok(true)
    }

    /// The store's folder.
    pub fn folder(&self) -> &Path {
        self.inner.folder.path()
    }

    /// All current pools, to be drained or killed on a signal: the store's own, and those of
    /// running work, such as parsers.
    pub fn pools(&self) -> Vec<Arc<dyn Supervised>> {
        self.inner.pools()
    }

    /// What this engine was asked to do.
    pub fn activity(&self) -> ActivityCounts {
        self.inner.activity.counts()
    }

    /// Counters of jobs, worker starts and deaths.
    pub fn tally(&self) -> &Tally {
        &self.inner.tally
    }

    /// Lets running jobs finish, and stops all workers.
    pub async fn close(&self) {
        // Record poison jobs first, so that the next process refuses them.
        let _ = tokio::time::timeout(CLOSING, self.inner.quarantine.stored()).await;
        let pools = self.pools();
        for pool in &pools {
            pool.begin_drain(CLOSING);
        }
        for pool in &pools {
            pool.drained().await;
        }
    }

    pub(crate) fn due(&self) -> std::sync::MutexGuard<'_, BTreeSet<SegmentsOf>> {
        self.inner.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn pool_settings(options: &EngineOptions, workers: usize) -> PoolSettings {
    let mut settings = PoolSettings {
        workers,
        spares: usize::from(options.life == Life::Server),
        memory_cap: Some(half_of_memory()),
        job_deadline: options.deadline,
        queue_patience: options.deadline,
        environment: isolith_roles::environment(),
        ..PoolSettings::default()
    };
    if let Some(program) = &options.program {
        settings.program.clone_from(program);
    }
    settings
}

/// A limit that stops a runaway worker before the system's OOM killer acts.
fn half_of_memory() -> u64 {
    let system = rustix::system::sysinfo();
    (system.totalram * u64::from(system.mem_unit) / 2).max(MIN_WORKER_MEMORY)
}

pub(crate) fn no_store(folder: &Path) -> Failure {
    Failure::new(Code::NoStore, format!("there is no store in {}", folder.display()))
        .with_hint(Hint::CreateStore)
}

pub(crate) fn store_settings(folder: &StoreFolder, options: &EngineOptions) -> StoreSettings {
    StoreSettings {
        folder: folder.path().to_owned(),
        truth: folder.truth_id().clone(),
        durability: options.durability,
        create: options.create,
    }
}

/// Creates the folder of a store, for this user alone.
pub(crate) fn create_folder(path: &Path) -> Result<(), Failure> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| {
        Failure::new(Code::ReadOnly, format!("cannot create {}: {error}", path.display()))
            .with_hint(Hint::NameStore {
                advice: "choose a folder that you can write to".to_owned(),
            })
    })
}

/// Writes a `.gitignore` into the store, because a store must not become part of a
/// repository. Not if the folder contains other files, which git may track.
pub(crate) fn hide_from_git(folder: &StoreFolder) {
    let hidden = Folder::open(folder.path()).and_then(|opened| {
        let is_of_project = folder.path().file_name().is_some_and(|name| name == PROJECT_FOLDER);
        match is_of_project || opened.entries()?.iter().all(|entry| entry.name == SEAL) {
            true => write_ignore(&opened),
            false => Ok(()),
        }
    });
    if let Err(error) = hidden {
        tracing::debug!(%error, "the store is not hidden from git");
    }
}

fn write_ignore(folder: &Folder) -> std::io::Result<()> {
    match folder.create(".gitignore") {
        Ok(mut ignore) => ignore.write_all(b"*\n"),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}
