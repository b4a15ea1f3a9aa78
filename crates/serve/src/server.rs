//! The server: its stores, its tools, and the calls that are under way.

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

/// After a client has said hello, so much time is its own before anything is warmed up.
const WARM_UP_AFTER: Duration = Duration::from_millis(100);

/// Where a server finds its stores, and what it may read.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Where stores are looked for.
    pub surroundings: Surroundings,
    /// Folders beside the project that path arguments may lie in.
    pub allowed: Vec<PathBuf>,
    /// How long one question or write may take; a worker that takes longer is killed.
    pub deadline: Duration,
    /// What the user has set, for indexing.
    pub settings: Layers,
    /// How many results calls return that do not say how many.
    pub defaults: DefaultLimits,
}

/// How many results calls return that do not say how many; none for those of each tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct DefaultLimits {
    /// Of a search.
    pub results: Option<u32>,
    /// Of a list.
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
    /// How many calls are under way.
    calls: watch::Sender<usize>,
    watchers: Watchers,
    defaults: DefaultLimits,
    /// Whether it was warmed up, or will be at once.
    warm: AtomicBool,
    stop: CancellationToken,
}

impl Server {
    /// A server that has opened nothing yet.
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

    /// Takes no more calls, and gives those that run up to `budget`.
    pub fn begin_drain(&self, budget: Duration) {
        self.stores().begin_drain(budget);
    }

    /// Completes when, after a drain, all calls are answered and all workers gone.
    pub async fn drained(&self) {
        // The sender lives as long as `self`.
        let _ = self.inner.calls.subscribe().wait_for(|calls| *calls == 0).await;
        self.stores().drained().await;
    }

    /// Says goodbye to all clients: what serves them ends.
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

    /// Told when the server is to stop.
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.inner.stop.clone()
    }

    pub(crate) fn stores(&self) -> &Stores {
        &self.inner.stores
    }

    /// Keeps what is indexed in a store fresh from now on.
    pub(crate) async fn keep_fresh(&self, engine: &Engine) {
        self.inner.watchers.watch_all(engine).await;
    }

    /// How many results calls return that do not say how many.
    pub(crate) fn defaults(&self) -> DefaultLimits {
        self.inner.defaults
    }

    /// How a root is watched.
    pub(crate) fn watched(&self, root: &Path) -> Watched {
        self.inner.watchers.state(root)
    }

    /// Waits until changes of code that were seen are in the index, within limits.
    pub(crate) async fn settled(&self) {
        self.inner.watchers.settled().await;
    }

    /// Warms up, once, when the client has what it asked for first.
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

    /// Opens the stores that there are, and keeps fresh what is indexed in them.
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

    /// Closes a store; nobody opens it again before the guard is dropped.
    pub(crate) async fn shut(&self, whose: Whose, meanwhile: Failure) -> Result<Shut, Failure> {
        // They hold on to the engine. Those of the other store begin again with it.
        self.inner.watchers.stop();
        self.stores().shut(whose, meanwhile).await
    }

    /// What agents can do here.
    pub(crate) fn tools(&self) -> &[Tool] {
        self.inner.tools.get_or_init(tools::all)
    }

    /// Counts a call, which is waited for when the server stops.
    pub(crate) fn begin_call(&self) -> Underway {
        self.inner.calls.send_modify(|calls| *calls += 1);
        Underway(Arc::clone(&self.inner))
    }
}

/// A call that is under way until this is dropped.
pub(crate) struct Underway(Arc<Inner>);

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.calls.send_modify(|calls| *calls -= 1);
    }
}
