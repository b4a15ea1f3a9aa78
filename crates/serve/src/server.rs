//! The server: its stores, its tools and its running calls.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use isolith_config::Layers;
use isolith_engine::{Engine, Surroundings};
use isolith_types::{DatabaseName, Failure};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::api::Jobs;
use crate::metrics::Monitoring;
use crate::stores::{ClosedStore, StoreOwner, Stores};
use crate::tool::{Tool, ToolSelection};
use crate::tools;
use crate::watchers::{WatchState, Watchers};

/// Delay before warming up, so that the client's first requests are answered first.
const WARM_UP_DELAY: Duration = Duration::from_millis(100);

/// Options of a server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where to look for stores.
    pub surroundings: Surroundings,
    /// Folders outside the project that tools may read.
    pub allowed: Vec<PathBuf>,
    /// Time limit of one query or write; a worker that takes longer is killed.
    pub deadline: Duration,
    /// The user's settings, for indexing.
    pub settings: Layers,
    /// The database of collections, apart from Chroma's API, whose clients name theirs.
    pub database: DatabaseName,
    /// Default numbers of results, from the settings.
    pub defaults: DefaultLimits,
    /// The tools that agents are offered.
    pub tools: ToolSelection,
}

/// Default numbers of results; `None` leaves the default to each tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultLimits {
    /// For searches.
    pub results: Option<u32>,
    /// For lists.
    pub rows: Option<u32>,
}

/// The MCP server. Clones share the same state.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

struct Inner {
    stores: Stores,
    tools: OnceLock<Vec<Tool>>,
    /// Number of running calls.
    calls: watch::Sender<usize>,
    watchers: Watchers,
    jobs: Jobs,
    defaults: DefaultLimits,
    selection: ToolSelection,
    warm_up_started: AtomicBool,
    stop: CancellationToken,
    monitoring: Monitoring,
    started: Instant,
}

impl Server {
    /// Creates a server. It opens its stores later, when they are needed.
    pub fn new(options: ServerOptions) -> Self {
        let inner = Inner {
            defaults: options.defaults,
            selection: options.tools.clone(),
            stores: Stores::new(options),
            tools: OnceLock::new(),
            calls: watch::Sender::new(0),
            watchers: Watchers::default(),
            jobs: Jobs::default(),
            warm_up_started: AtomicBool::new(false),
            stop: CancellationToken::new(),
            monitoring: Monitoring::default(),
            started: Instant::now(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Refuses new calls. Running ones get up to `budget`.
    pub fn begin_drain(&self, budget: Duration) {
        self.stores().begin_drain(budget);
    }

    /// Waits until all calls are answered and all workers have exited, after
    /// [`Self::begin_drain`].
    pub async fn drained(&self) {
        // The sender lives as long as `self`.
        let _ = self.inner.calls.subscribe().wait_for(|calls| *calls == 0).await;
        self.stores().drained().await;
    }

    /// Disconnects all clients.
    pub fn stop(&self) {
        self.inner.stop.cancel();
    }

    /// Kills all workers.
    pub fn kill(&self) {
        self.stores().kill();
    }

    /// Lets running jobs finish, and stops all workers.
    pub async fn close(&self) {
        self.inner.watchers.stop();
        self.stores().close().await;
    }

    /// The database of collections, if it is not the default one and does not exist.
    pub async fn missing_database(&self) -> Option<&DatabaseName> {
        let database = self.stores().database();
        if database.is_default() {
            return None;
        }
        let is_missing = match self.stores().collections() {
            Ok(Some(engine)) => matches!(engine.database(database.clone()).await, Ok(None)),
            Ok(None) => true,
            // Every call says why the store cannot be opened.
            Err(_) => false,
        };
        is_missing.then_some(database)
    }

    /// A token that is cancelled when the server stops.
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.inner.stop.clone()
    }

    /// What the server counts for `/metrics`.
    pub(crate) fn monitoring(&self) -> &Monitoring {
        &self.inner.monitoring
    }

    /// How long it has been running.
    pub(crate) fn age(&self) -> Duration {
        self.inner.started.elapsed()
    }

    pub(crate) fn stores(&self) -> &Stores {
        &self.inner.stores
    }

    pub(crate) fn jobs(&self) -> &Jobs {
        &self.inner.jobs
    }

    /// Starts watching the indexed roots of a store.
    pub(crate) async fn watch_roots(&self, engine: &Engine) {
        self.inner.watchers.watch_all(engine).await;
    }

    pub(crate) fn defaults(&self) -> DefaultLimits {
        self.inner.defaults
    }

    pub(crate) fn watch_state(&self, root: &Path) -> WatchState {
        self.inner.watchers.state(root)
    }

    /// Waits briefly until observed changes are in the index.
    pub(crate) async fn wait_for_watchers(&self) {
        self.inner.watchers.wait().await;
    }

    /// Schedules [`Self::warm_up`], unless that has been done before.
    pub(crate) fn warm_up_soon(&self) {
        if self.inner.warm_up_started.swap(true, Ordering::Relaxed) {
            return;
        }
        let server = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(WARM_UP_DELAY).await;
            server.warm_up().await;
        });
    }

    /// Opens the existing stores and watches their indexed roots.
    pub(crate) async fn warm_up(&self) {
        for (owner, opened) in self.stores().all() {
            match opened {
                Ok(engine) => self.watch_roots(&engine).await,
                Err(failure) => {
                    tracing::warn!(store = owner.name(), %failure, "cannot open a store");
                }
            }
        }
    }

    /// Closes a store until the guard is dropped. Calls in the meantime fail with `reason`.
    pub(crate) async fn close_store(
        &self,
        owner: StoreOwner,
        reason: Failure,
    ) -> Result<ClosedStore, Failure> {
        // Watchers hold engines. `warm_up` restarts those of both stores.
        self.inner.watchers.stop();
        self.stores().close_store(owner, reason).await
    }

    /// The tools that agents are offered.
    pub(crate) fn selection(&self) -> &ToolSelection {
        &self.inner.selection
    }

    /// All tools, offered or not.
    pub(crate) fn tools(&self) -> &[Tool] {
        self.inner.tools.get_or_init(tools::all)
    }

    /// Counts a running call until the guard is dropped. [`Self::drained`] waits for it.
    pub(crate) fn begin_call(&self) -> CallGuard {
        self.inner.calls.send_modify(|calls| *calls += 1);
        CallGuard(Arc::clone(&self.inner))
    }
}

/// Counts a call as running until dropped.
pub(crate) struct CallGuard(Arc<Inner>);

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.0.calls.send_modify(|calls| *calls -= 1);
    }
}
