//! Keeping indexes fresh in the background: a task for each root that was indexed once.
//! Across processes, one of them works and the others wait.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use isolith_engine::{Engine, IndexOptions, WatchEvent};
use tokio::task::AbortHandle;

/// How many files are parsed at the same time: nobody waits for it.
const PARSERS: usize = 1;

/// The roots that are watched.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<HashMap<PathBuf, AbortHandle>>);

impl Watchers {
    /// Watches all roots of a store that were indexed to their end and are not watched
    /// yet.
    pub(crate) async fn watch_all(&self, engine: &Engine) {
        let roots = match engine.roots().await {
            Ok(roots) => roots,
            Err(failure) => return tracing::debug!(%failure, "no roots to be watched"),
        };
        let mut tasks = self.tasks();
        tasks.retain(|_, task| !task.is_finished());
        for root in roots.into_iter().filter(|root| root.indexed_at.is_some()) {
            let engine = engine.clone();
            let task = || tokio::spawn(watch(engine, root.folder.clone())).abort_handle();
            tasks.entry(root.folder.clone()).or_insert_with(task);
        }
    }

    /// Watches nothing any more.
    pub(crate) fn stop(&self) {
        self.tasks().drain().for_each(|(_, task)| task.abort());
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<PathBuf, AbortHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn watch(engine: Engine, root: PathBuf) {
    let options = IndexOptions {
        of_root: Some(root.clone()),
        parsers: PARSERS,
        ..IndexOptions::new(root.clone())
    };
    let folder = root.clone();
    let listener = move |event: WatchEvent| {
        tracing::debug!(?event, root = %folder.display(), "watching");
    };
    if let Err(failure) = engine.watch(&options, Arc::new(listener)).await {
        tracing::warn!(%failure, root = %root.display(), "a root is not watched any more");
    }
}
