//! Keeps indexes up to date in the background, with one task per indexed root. Of several
//! processes, one watches a root and the others wait to take over.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use isolith_engine::{Engine, IndexOptions, WatchEvent};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Files parsed at the same time; low, because no client waits for them.
const PARSERS: usize = 1;

/// How long a query waits for observed changes to be indexed.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// The watched roots.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<HashMap<PathBuf, Watcher>>);

#[derive(Debug)]
struct Watcher {
    task: AbortHandle,
    state: watch::Receiver<WatchState>,
}

/// How a root is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchState {
    /// Not watched by this process.
    No,
    /// WatchState by another process.
    Elsewhere,
    /// WatchState here, and the index is up to date.
    Here,
    /// WatchState here, with changes that are not in the index yet.
    Changed,
}

impl WatchState {
    /// The name in answers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Elsewhere => "elsewhere",
            Self::Here | Self::Changed => "here",
        }
    }
}

impl Watchers {
    /// Starts watching the fully indexed roots that questions are answered for.
    pub(crate) async fn watch_all(&self, engine: &Engine) {
        let roots = match engine.roots_here().await {
            Ok(roots) => roots,
            Err(failure) => return tracing::debug!(%failure, "no roots to watch"),
        };
        let mut watchers = self.all();
        watchers.retain(|_, watcher| !watcher.task.is_finished());
        for root in roots.into_iter().filter(|root| root.indexed_at.is_some()) {
            let start = || Watcher::start(engine.clone(), root.folder.clone());
            watchers.entry(root.folder.clone()).or_insert_with(start);
        }
    }

    /// Waits up to [`MAX_WAIT`] until observed changes are in the index.
    pub(crate) async fn wait(&self) {
        let states: Vec<_> = self.all().values().map(|it| it.state.clone()).collect();
        let all = async {
            for mut state in states {
                // An error means that the watcher has stopped; there is nothing to wait for.
                let _ = state.wait_for(|state| *state != WatchState::Changed).await;
            }
        };
        let _ = tokio::time::timeout(MAX_WAIT, all).await;
    }

    /// How a root is watched.
    pub(crate) fn state(&self, root: &Path) -> WatchState {
        self.all().get(root).map_or(WatchState::No, |watcher| *watcher.state.borrow())
    }

    pub(crate) fn stop(&self) {
        self.all().drain().for_each(|(_, watcher)| watcher.task.abort());
    }

    fn all(&self) -> MutexGuard<'_, HashMap<PathBuf, Watcher>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher {
    fn start(engine: Engine, root: PathBuf) -> Self {
        let (sender, state) = watch::channel(WatchState::No);
        Self { task: tokio::spawn(watch_root(engine, root, sender)).abort_handle(), state }
    }
}

async fn watch_root(engine: Engine, root: PathBuf, state: watch::Sender<WatchState>) {
    let options = IndexOptions {
        of_root: Some(root.clone()),
        parsers: PARSERS,
        ..IndexOptions::new(root.clone())
    };
    let folder = root.clone();
    let listener = move |event: WatchEvent| {
        tracing::debug!(?event, root = %folder.display(), "watching");
        state.send_replace(match event {
            WatchEvent::Waiting => WatchState::Elsewhere,
            WatchEvent::Changed => WatchState::Changed,
            WatchEvent::Watching
            | WatchEvent::Updated(_)
            | WatchEvent::Failed(_)
            | WatchEvent::Polling(_) => WatchState::Here,
        });
    };
    if let Err(failure) = engine.watch(&options, Arc::new(listener)).await {
        tracing::warn!(%failure, root = %root.display(), "stopped watching a root");
    }
}
