//! The server: its stores, its tools and its running calls.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use isolith_config::Layers;
use isolith_engine::{Engine, Surroundings};
use isolith_types::Failure;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::stores::{Shut, Stores, Whose};
use crate::tool::Tool;
use crate::tools;
use crate::watchers::{Watched, Watchers};

/// How long after initialization to wait before warming up, so that the client's first requests
/// come first.
const WARM_UP_AFTER: Duration = Duration::from_millis(100);

/// Where a server finds its stores, and what it may read.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where to look for stores.
    pub surroundings: Surroundings,
    /// Folders outside the project that path arguments may lie in.
    pub allowed: Vec<PathBuf>,
    /// Time limit of one query or write; a worker that takes longer is killed.
    pub deadline: Duration,
    /// The user's settings, for indexing.
    pub settings: Layers,
    /// Default numbers of results.
    pub defaults: DefaultLimits,
}

/// Default numbers of results; `None` for those of each tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultLimits {
    /// For searches.
    pub results: Option<u32>,
    /// For lists.
    pub rows: Option<u32>,
}

/// The server. Clones are handles to the same one.
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
    defaults: DefaultLimits,
    /// Whether warming up was started.
    warm: AtomicBool,
    stop: CancellationToken,
}

impl Server {
    /// A server that has not opened anything yet.
    pub fn new(options: ServerOptions) -> Self {
        let inner = Inner {
            defaults: options.defaults,
            stores: Stores::new(options),
            tools: OnceLock::new(),
            calls: watch::Sender::new(0),
            watchers: Watchers::default(),
            warm: AtomicBool::new(false),
            stop: CancellationToken::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Accepts no more calls. Running ones get up to `budget`.
    pub fn begin_drain(&self, budget: Duration) {
        self.stores().begin_drain(budget);
    }

    /// Completes after a drain, when all calls are answered and all workers have exited.
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

    /// Cancelled when the server is to stop.
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.inner.stop.clone()
    }

    pub(crate) fn stores(&self) -> &Stores {
        &self.inner.stores
    }

    /// Starts watching what is indexed in a store.
    pub(crate) async fn keep_fresh(&self, engine: &Engine) {
        self.inner.watchers.watch_all(engine).await;
    }

    /// Default numbers of results.
    pub(crate) fn defaults(&self) -> DefaultLimits {
        self.inner.defaults
    }

    /// How a root is watched.
    pub(crate) fn watched(&self, root: &Path) -> Watched {
        self.inner.watchers.state(root)
    }

    /// Waits, within limits, until observed changes are in the index.
    pub(crate) async fn settled(&self) {
        self.inner.watchers.settled().await;
    }

    /// Warms up once, after the client's first requests.
    pub(crate) fn warm_up_soon(&self) {
        if self.inner.warm.swap(true, Ordering::Relaxed) {
            return;
        }
        let server = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(WARM_UP_AFTER).await;
            server.warm_up().await;
        });
    }

    /// Opens the existing stores, and watches what is indexed in them.
    pub(crate) async fn warm_up(&self) {
        for (whose, opened) in self.stores().all() {
            match opened {
                Ok(engine) => self.keep_fresh(&engine).await,
                Err(failure) => {
                    tracing::warn!(store = whose.name(), %failure, "cannot open a store");
                }
            }
        }
    }

    /// Closes a store. It stays closed until the guard is dropped.
    pub(crate) async fn shut(&self, whose: Whose, meanwhile: Failure) -> Result<Shut, Failure> {
        // Watchers hold the engine. Those of the other store are restarted with it.
        self.inner.watchers.stop();
        self.stores().shut(whose, meanwhile).await
    }

    /// The tools.
    pub(crate) fn tools(&self) -> &[Tool] {
        self.inner.tools.get_or_init(tools::all)
    }

    /// Counts a call. The server waits for it before it stops.
    pub(crate) fn begin_call(&self) -> Underway {
        self.inner.calls.send_modify(|calls| *calls += 1);
        Underway(Arc::clone(&self.inner))
    }
}

/// A call that is running until this is dropped.
pub(crate) struct Underway(Arc<Inner>);

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.calls.send_modify(|calls| *calls -= 1);
    }
}
