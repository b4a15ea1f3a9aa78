//! Keeps indexes up to date in the background, with a task for each root that has been indexed.
//! Across processes, one works and the others wait.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use isolith_engine::{Engine, IndexOptions, WatchEvent};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Files parsed at the same time: few, as nobody waits for them.
const PARSERS: usize = 1;

/// How long a query waits for observed changes to be indexed.
const PATIENCE: Duration = Duration::from_millis(500);

/// The watched roots.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<HashMap<PathBuf, Watcher>>);

#[derive(Debug)]
struct Watcher {
    task: AbortHandle,
    state: watch::Receiver<Watched>,
}

/// How a root is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Watched {
    /// Not watched by this process.
    No,
    /// Watched by another process.
    Elsewhere,
    /// Watched here, and the index is up to date.
    Here,
    /// Watched here, with changes that are not in the index yet.
    Changed,
}

impl Watched {
    /// For answers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Elsewhere => "elsewhere",
            Self::Here | Self::Changed => "here",
        }
    }
}

impl Watchers {
    /// Watches the completely indexed roots that questions are answered for, if they are not
    /// watched yet.
    pub(crate) async fn watch_all(&self, engine: &Engine) {
        let roots = match engine.roots_here().await {
            Ok(roots) => roots,
            Err(failure) => return tracing::debug!(%failure, "no roots to watch"),
        };
        let mut watchers = self.all();
        watchers.retain(|_, watcher| !watcher.task.is_finished());
        for root in roots.into_iter().filter(|root| root.indexed_at.is_some()) {
            let begin = || Watcher::begin(engine.clone(), root.folder.clone());
            watchers.entry(root.folder.clone()).or_insert_with(begin);
        }
    }

    /// Waits, within limits, until observed changes are in the index.
    pub(crate) async fn settled(&self) {
        let states: Vec<_> = self.all().values().map(|it| it.state.clone()).collect();
        let all = async {
            for mut state in states {
                // A watcher that has ended changes nothing any more.
                let _ = state.wait_for(|state| *state != Watched::Changed).await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, all).await;
    }

    /// How a root is watched.
    pub(crate) fn state(&self, root: &Path) -> Watched {
        self.all().get(root).map_or(Watched::No, |watcher| *watcher.state.borrow())
    }

    /// Stops all watchers.
    pub(crate) fn stop(&self) {
        self.all().drain().for_each(|(_, watcher)| watcher.task.abort());
    }

    fn all(&self) -> MutexGuard<'_, HashMap<PathBuf, Watcher>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher {
    fn begin(engine: Engine, root: PathBuf) -> Self {
        let (sender, state) = watch::channel(Watched::No);
        Self { task: tokio::spawn(keep_fresh(engine, root, sender)).abort_handle(), state }
    }
}

async fn keep_fresh(engine: Engine, root: PathBuf, state: watch::Sender<Watched>) {
    let options = IndexOptions {
        of_root: Some(root.clone()),
        parsers: PARSERS,
        ..IndexOptions::new(root.clone())
    };
    let folder = root.clone();
    let listener = move |event: WatchEvent| {
        tracing::debug!(?event, root = %folder.display(), "watching");
        state.send_replace(match event {
            WatchEvent::Waiting => Watched::Elsewhere,
            WatchEvent::Changed => Watched::Changed,
            WatchEvent::Watching
            | WatchEvent::Updated(_)
            | WatchEvent::Failed(_)
            | WatchEvent::Polling(_) => Watched::Here,
        });
    };
    if let Err(failure) = engine.watch(&options, Arc::new(listener)).await {
        tracing::warn!(%failure, root = %root.display(), "a root is no longer watched");
    }
}
