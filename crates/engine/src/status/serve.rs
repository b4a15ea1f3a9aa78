//! Answers status requests on a socket, without waiting for slow clients.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use isolate::{PoolSnapshot, Supervised};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use super::front::FrontSnapshot;
use super::recent::Recent;
use super::socket::RunFolder;
use crate::open::{Engine, Inner};

/// Maximum number of concurrent connections; further ones are closed.
const MAX_CLIENTS: usize = 16;

/// How long a client may take to read its reply.
const CLIENT_PATIENCE: Duration = Duration::from_secs(1);

/// How long to wait when accepting fails for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What an engine needs to report its status.
pub(crate) struct Serving {
    pub(crate) recent: Arc<Recent>,
    since: Instant,
    guests: Mutex<Vec<Arc<dyn Supervised>>>,
    /// The socket of a long-lived engine.
    own: Mutex<Option<StatusSocket>>,
}

impl Serving {
    pub(crate) fn new(recent: Arc<Recent>) -> Self {
        Self { recent, since: Instant::now(), guests: Mutex::default(), own: Mutex::default() }
    }

    fn guests(&self) -> MutexGuard<'_, Vec<Arc<dyn Supervised>>> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A socket on which a front answers, until dropped.
#[derive(Debug)]
pub struct StatusSocket {
    folder: Arc<RunFolder>,
    name: String,
    task: AbortHandle,
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        self.task.abort();
        self.folder.remove(&self.name);
    }
}

/// A pool listed with the engine's own, until dropped.
pub struct WatchedPool {
    inner: Weak<Inner>,
    pool: Arc<dyn Supervised>,
}

impl Drop for WatchedPool {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.upgrade() {
            inner.serving.guests().retain(|guest| !Arc::ptr_eq(guest, &self.pool));
        }
    }
}

impl Engine {
    /// Answers `isolith status` on a socket in the store's `run/`, as long as the guard lives.
    /// Must be called within a tokio runtime. Returns `None` if no socket can be created, as in
    /// a read-only store.
    pub fn serve_status(&self) -> Option<StatusSocket> {
        let store = &self.inner.folder;
        let listen = || {
            // The first writer creates the folder, but may not have started yet.
            let _ = store.create();
            let folder = RunFolder::open(&store.run())?;
            folder.listen().map(|(listener, name)| (folder, listener, name))
        };
        match listen() {
            Ok((folder, listener, name)) => {
                let task = tokio::spawn(answer_all(listener, Arc::downgrade(&self.inner)));
                let task = task.abort_handle();
                Some(StatusSocket { folder: Arc::new(folder), name, task })
            }
            Err(error) => {
                tracing::debug!(%error, "no status socket");
                None
            }
        }
    }

    /// Answers for the life of the engine.
    pub(crate) fn serve_always(&self) {
        let socket = self.serve_status();
        *self.inner.serving.own.lock().unwrap_or_else(PoisonError::into_inner) = socket;
    }

    /// This front's status.
    pub fn front_snapshot(&self) -> FrontSnapshot {
        self.inner.front_snapshot()
    }

    /// The process ids of all workers.
    pub(crate) fn worker_pids(&self) -> Vec<u32> {
        let pools = self.pools().into_iter().map(|pool| pool.snapshot());
        pools.flat_map(|pool| pool.workers).filter_map(|worker| worker.pid).collect()
    }

    /// Lists a pool owned by the caller with the engine's own, and stops it with them.
    pub fn watch_pool(&self, pool: Arc<dyn Supervised>) -> WatchedPool {
        self.inner.serving.guests().push(Arc::clone(&pool));
        WatchedPool { inner: Arc::downgrade(&self.inner), pool }
    }
}

impl Inner {
    pub(crate) fn pools(&self) -> Vec<Arc<dyn Supervised>> {
        let Self { readers, writer, builder, .. } = self;
        let mut pools: Vec<Arc<dyn Supervised>> =
            vec![Arc::new(readers.clone()), Arc::new(writer.clone()), Arc::new(builder.clone())];
        pools.extend(self.serving.guests().iter().cloned());
        pools
    }

    fn front_snapshot(&self) -> FrontSnapshot {
        let Serving { recent, since, .. } = &self.serving;
        let pools: Vec<PoolSnapshot> = self.pools().iter().map(|pool| pool.snapshot()).collect();
        let due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        FrontSnapshot {
            pid: std::process::id(),
            age_ms: u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX),
            pools,
            recent: recent.jobs(),
            deaths: recent.deaths(),
            due: due.iter().map(ToString::to_string).collect(),
        }
    }
}

async fn answer_all(listener: UnixListener, inner: Weak<Inner>) {
    let room = Arc::new(Semaphore::new(MAX_CLIENTS));
    loop {
        let Ok((client, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Some(engine) = inner.upgrade() else { return };
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else { continue };
        let snapshot = engine.front_snapshot();
        drop(engine);
        tokio::spawn(async move {
            // The client may be gone; ignore it.
            let _ = tokio::time::timeout(CLIENT_PATIENCE, answer(client, &snapshot)).await;
            drop(place);
        });
    }
}

async fn answer(mut client: UnixStream, snapshot: &FrontSnapshot) -> std::io::Result<()> {
    let text = serde_json::to_vec(snapshot)?;
    client.write_all(&text).await?;
    client.shutdown().await
}
