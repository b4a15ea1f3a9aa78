//! Folding: when it is done, and by whom.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use isolate::{CallOptions, Progress};
use isolith_roles::{FoldDone, FoldJob};
use isolith_store::Action;
use isolith_types::{Code, Failure};

use crate::failure::of_call;
use crate::open::Engine;
use crate::writes::fresh_key;

/// How long to leave another process's builder alone before asking again.
pub(crate) const BUILDER_BUSY: Duration = Duration::from_millis(200);

/// How often a server that has nothing else to do clears up.
const TIDY_EVERY: Duration = Duration::from_secs(3600);

/// Rows of deleted collections that go in one transaction.
const PURGE_ROWS: u32 = 2_000;

impl Engine {
    /// Makes a new generation of a collection's segments if one is due, or in any case
    /// with `rebuild`.
    ///
    /// # Errors
    /// What keeps it from being built; the old generation stays.
    pub async fn fold(
        &self,
        collection: &str,
        rebuild: bool,
        on_progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    ) -> Result<FoldDone, Failure> {
        let collection = collection.to_owned();
        let job = FoldJob { collection, even_little: true, rebuild, key: fresh_key() };
        self.build(&job, on_progress).await
    }

    async fn build(
        &self,
        job: &FoldJob,
        on_progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    ) -> Result<FoldDone, Failure> {
        let options = CallOptions { idempotent: true, on_progress, ..CallOptions::default() };
        let answer = self.inner.builder.call(job, options).await;
        answer.map_err(|error| of_call(&error))?.reply
    }

    /// Does what writes have left to be done: folds what is due, removes the rows of
    /// deleted collections, leaves a short log. If another process is at it, that is
    /// left to it.
    pub async fn settle(&self) {
        let due = std::mem::take(&mut *self.due());
        for collection in due {
            self.fold_quietly(&collection, true).await;
        }
        self.purge().await;
        self.tidy().await;
    }

    pub(crate) fn fold_later(&self, collection: String) {
        self.due().insert(collection);
        self.inner.due_changed.notify_one();
    }

    /// Folds whenever something is due, as long as the engine lives.
    pub(crate) fn fold_in_background(&self) {
        let inner = Arc::downgrade(&self.inner);
        let due_changed = Arc::clone(&self.inner.due_changed);
        tokio::spawn(async move {
            while let Some(engine) = inner.upgrade().map(|inner| Engine { inner }) {
                let next = engine.due().pop_first();
                let Some(collection) = next else {
                    engine.purge().await;
                    drop(engine);
                    let idle = tokio::time::timeout(TIDY_EVERY, due_changed.notified()).await;
                    if let (Err(_), Some(inner)) = (idle, inner.upgrade()) {
                        Engine { inner }.tidy().await;
                    }
                    continue;
                };
                if engine.fold_quietly(&collection, false).await.is_some_and(|done| done.busy) {
                    tokio::time::sleep(BUILDER_BUSY).await;
                    engine.due().insert(collection);
                }
            }
        });
    }

    async fn fold_quietly(&self, collection: &str, even_little: bool) -> Option<FoldDone> {
        let job = FoldJob {
            collection: collection.to_owned(),
            even_little,
            rebuild: false,
            key: fresh_key(),
        };
        match self.build(&job, None).await {
            Ok(done) => Some(done),
            Err(failure) if failure.code == Code::NotFound => None,
            Err(failure) => {
                tracing::warn!(collection, %failure, "folding failed");
                None
            }
        }
    }

    /// Removes what has had its day. What fails now is done another time.
    async fn tidy(&self) {
        let _ = self.inner.writes.send(Action::Tidy, None).await;
    }

    async fn purge(&self) {
        if !self.inner.purge_due.swap(false, Ordering::Relaxed) {
            return;
        }
        let purge = || self.inner.writes.send(Action::Purge { limit_rows: PURGE_ROWS }, None);
        while let Ok(written) = purge().await
            && written.outcome.more
        {}
    }
}
