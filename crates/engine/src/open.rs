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
use isolith_protocol::SegmentsOf;
use isolith_roles::{StoreBuilder, StoreReader, StoreSettings, StoreWriter};
use isolith_store::{Durability, StoreFolder};
use isolith_types::{Code, Failure, Hint};
use tokio::sync::{Notify, OnceCell};

use crate::failure::of_call;
use crate::graph::Spools;
use crate::location::PROJECT_FOLDER;
use crate::quarantine::StoreQuarantine;
use crate::seal::SEAL;
use crate::status::{Recent, Serving};
use crate::trust::{Missing, StorePlace};
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
    /// What workers are told at their start.
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
    pub(crate) serving: Serving,
    /// What is left of answers that are longer than a page.
    pub(crate) spools: Arc<Spools>,
    /// What wants new segments.
    pub(crate) due: Mutex<BTreeSet<SegmentsOf>>,
    /// Whether a query would have been quicker with a newer segment of the graph.
    pub(crate) graph_wanted: AtomicBool,
    pub(crate) due_changed: Arc<Notify>,
    /// Whether a collection was deleted whose rows are still there.
    pub(crate) purge_due: AtomicBool,
    pub(crate) roots_seen: RootsSeen,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Whoever waits for something to be due learns that nothing ever will be.
        self.due_changed.notify_one();
    }
}

/// How an engine runs.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Whether a store is made where there is none.
    pub create: bool,
    /// How durable a commit is.
    pub durability: Durability,
    /// How long it lives, which decides about spares and background work.
    pub life: Life,
    /// How many reads run at the same time.
    pub readers: usize,
    /// How long one job may take.
    pub deadline: Duration,
    /// The program to start as workers; by default the running one.
    pub program: Option<PathBuf>,
    /// What it may read and answer for, whatever roots the store has; by default anything.
    pub within: Option<Within>,
    /// What the user has set. Projects add to it when they are indexed.
    pub settings: Layers,
}

impl EngineOptions {
    fn missing(&self) -> Missing {
        if self.create { Missing::Create } else { Missing::Refuse }
    }
}

/// How long an engine lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// For one command: no spares; folding is left until [`Engine::settle`].
    OneShot,
    /// For long: spares, and folding in the background.
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
            settings: Layers::default(),
        }
    }
}

/// Crash reports that are kept.
pub(crate) const CRASH_REPORTS: usize = 200;

/// A fold of millions of rows takes its time.
const FOLD_DEADLINE: Duration = Duration::from_secs(1800);

/// What a worker may use on any machine.
const LEAST_CAP: u64 = 1 << 30;

/// How long a drained engine's workers may take to finish.
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
        let tally = Arc::new(Tally::default());
        let recent = Arc::new(Recent::new(Arc::clone(&tally)));
        // A store that cannot be written goes without reports.
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
                writes: WriteQueue::start(writer.clone(), folder.clone(), options.deadline),
                writer,
                place,
                folder,
                settings: Mutex::new(settings),
                quarantine,
                poisons_known: OnceCell::new(),
                hooks,
                tally,
                serving: Serving::new(recent),
                spools: Arc::default(),
                due: Mutex::default(),
                due_changed: Arc::default(),
                purge_due: AtomicBool::new(false),
                graph_wanted: AtomicBool::new(false),
                roots_seen: RootsSeen::default(),
                options,
            }),
        };
        engine.remember_poisons(news);
        if engine.inner.options.life == Life::Server {
            engine.fold_in_background();
            engine.keep_up();
            engine.serve_always();
        }
        Ok(engine)
    }

    /// Looks again whether the store may be used, after a worker has found another one than
    /// it was told of. Returns whether it is another one, which workers now know.
    pub(crate) fn look_again(&self) -> Result<bool, Failure> {
        let Inner { place, options, settings, readers, writer, builder, .. } = &*self.inner;
        // Whoever looks last must not put back what another has seen before.
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

    /// The pools that there are now, to be drained or killed on a signal: the store's own, and
    /// those of work that is under way, such as parsers.
    pub fn pools(&self) -> Vec<Arc<dyn Supervised>> {
        self.inner.pools()
    }

    /// What was counted: jobs, starts, deaths.
    pub fn tally(&self) -> &Tally {
        &self.inner.tally
    }

    /// Lets running jobs finish, and stops all workers.
    pub async fn close(&self) {
        // Whoever was killed by a job should not be killed by it tomorrow.
        let _ = tokio::time::timeout(CLOSING, self.inner.quarantine.written_down()).await;
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

/// A worker that runs away is refused memory before the system looks for somebody to kill.
fn half_of_memory() -> u64 {
    let system = rustix::system::sysinfo();
    (system.totalram * u64::from(system.mem_unit) / 2).max(LEAST_CAP)
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

/// A store inside a repository is no part of it. Somebody may have removed it and had it
/// created again by a process that was still there. In a folder that holds other things,
/// too, git may want to see those.
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
