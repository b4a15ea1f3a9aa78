//! Folding: when it is done, and by whom.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use isolate::{CallOptions, Progress};
use isolith_protocol::{Purge, SegmentsOf, Tidy};
use isolith_roles::{BuildJob, FoldDone, FoldJob, GraphJob};
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
        self.build(&BuildJob::Fold(job), on_progress).await
    }

    /// Rebuilds the segment of the graph.
    ///
    /// # Errors
    /// What keeps it from being built; the graph is walked without.
    pub(crate) async fn rebuild_graph(&self) -> Result<FoldDone, Failure> {
        let job = GraphJob { even_little: true, rebuild: true };
        self.build(&BuildJob::Graph(job), None).await
    }

    async fn build(
        &self,
        job: &BuildJob,
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
        for what in due {
            self.build_quietly(&what, true).await;
        }
        self.purge().await;
        self.tidy().await;
    }

    pub(crate) fn fold_later(&self, collection: &str) {
        self.build_later(SegmentsOf::Collection(collection.to_owned()));
    }

    pub(crate) fn build_later(&self, what: SegmentsOf) {
        self.due().insert(what);
        self.inner.due_changed.notify_one();
    }

    /// Builds whenever something is due, as long as the engine lives.
    pub(crate) fn fold_in_background(&self) {
        let inner = Arc::downgrade(&self.inner);
        let due_changed = Arc::clone(&self.inner.due_changed);
        tokio::spawn(async move {
            let mut rest = Rest::default();
            while let Some(engine) = inner.upgrade().map(|inner| Engine { inner }) {
                let next = engine.due().pop_first();
                let Some(what) = next else {
                    engine.purge().await;
                    drop(engine);
                    let idle = tokio::time::timeout(TIDY_EVERY, due_changed.notified()).await;
                    if let (Err(_), Some(inner)) = (idle, inner.upgrade()) {
                        Engine { inner }.tidy().await;
                    }
                    continue;
                };
                let again = match what {
                    SegmentsOf::Collection(_) => Duration::ZERO,
                    SegmentsOf::Graph => rest.left(),
                };
                if !again.is_zero() {
                    engine.build_after(what, again);
                    continue;
                }
                let wanted = what == SegmentsOf::Graph
                    && engine.inner.graph_wanted.swap(false, Ordering::Relaxed);
                let started = Instant::now();
                let done = engine.build_quietly(&what, wanted).await;
                if done.is_some_and(|done| done.busy) {
                    engine.inner.graph_wanted.fetch_or(wanted, Ordering::Relaxed);
                    engine.build_after(what, BUILDER_BUSY);
                } else if what == SegmentsOf::Graph {
                    rest.after(started.elapsed());
                }
            }
        });
    }

    fn build_after(&self, what: SegmentsOf, time: Duration) {
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            if let Some(inner) = inner.upgrade() {
                Engine { inner }.build_later(what);
            }
        });
    }

    async fn build_quietly(&self, what: &SegmentsOf, even_little: bool) -> Option<FoldDone> {
        let job = match what {
            SegmentsOf::Collection(collection) => BuildJob::Fold(FoldJob {
                collection: collection.clone(),
                even_little,
                rebuild: false,
                key: fresh_key(),
            }),
            SegmentsOf::Graph => BuildJob::Graph(GraphJob { even_little, rebuild: false }),
        };
        match self.build(&job, None).await {
            Ok(done) => Some(done),
            Err(failure) if failure.code == Code::NotFound => None,
            Err(failure) => {
                tracing::warn!(%what, %failure, "building segments failed");
                None
            }
        }
    }

    /// Removes what has had its day. What fails now is done another time.
    async fn tidy(&self) {
        let _ = self.inner.writes.send(Tidy, None).await;
    }

    async fn purge(&self) {
        if !self.inner.purge_due.swap(false, Ordering::Relaxed) {
            return;
        }
        let purge = || self.inner.writes.send(Purge { limit_rows: PURGE_ROWS }, None);
        while let Ok(written) = purge().await
            && written.done.reply.more
        {}
    }
}

/// How long the graph's segment is left as it is after it was built: it is always built as
/// a whole, so that a graph that changes all the time would be built all the time.
#[derive(Default)]
struct Rest(Option<Instant>);

impl Rest {
    /// Building takes this part of the time at most.
    const PART: u32 = 10;

    fn after(&mut self, took: Duration) {
        self.0 = Some(Instant::now() + took * (Self::PART - 1));
    }

    fn left(&self) -> Duration {
        self.0.map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now()))
    }
}
