//! Decides when to fold, and coordinates folding between processes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use isolate::{CallOptions, Progress};
use isolith_protocol::{Purge, SegmentsOf, Tidy};
use isolith_roles::{BuildJob, BuildOutcome, FoldJob, GraphJob};
use isolith_types::{Code, Failure};

use crate::failure::of_call;
use crate::open::Engine;
use crate::writes::fresh_key;

/// How long to wait before asking again while another process is building.
pub(crate) const BUILDER_BUSY: Duration = Duration::from_millis(200);

/// How often an idle server removes expired data.
const TIDY_EVERY: Duration = Duration::from_secs(3600);

/// Rows of deleted collections removed in one transaction.
const PURGE_ROWS: u32 = 2_000;

impl Engine {
    /// Builds a new generation of a collection's segments if one is due, or always with
    /// `rebuild`.
    ///
    /// # Errors
    /// If it cannot be built; the old generation stays in use.
    pub async fn fold(
        &self,
        collection: &str,
        rebuild: bool,
        on_progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    ) -> Result<BuildOutcome, Failure> {
        let collection = collection.to_owned();
        let job = FoldJob { collection, ignore_threshold: true, rebuild, key: fresh_key() };
        self.build(&BuildJob::Fold(job), on_progress).await
    }

    /// Rebuilds the segment of the graph.
    ///
    /// # Errors
    /// If it cannot be built; the graph is then queried without a segment.
    pub(crate) async fn rebuild_graph(&self) -> Result<BuildOutcome, Failure> {
        let job = GraphJob { ignore_threshold: true, rebuild: true };
        self.build(&BuildJob::Graph(job), None).await
    }

    async fn build(
        &self,
        job: &BuildJob,
        on_progress: Option<Arc<dyn Fn(Progress) + Send + Sync>>,
    ) -> Result<BuildOutcome, Failure> {
        let options = CallOptions { idempotent: true, on_progress, ..CallOptions::default() };
        let answer = self.inner.builder.call(job, options).await;
        answer.map_err(|error| of_call(&error))?.reply
    }

    /// Completes the work that writes have made due: folds, removes the rows of deleted
    /// collections, shortens the log. Work that another process is doing is left to it.
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

    /// Builds segments as they become due, as long as the engine lives.
    pub(crate) fn fold_in_background(&self) {
        let inner = Arc::downgrade(&self.inner);
        let due_changed = Arc::clone(&self.inner.due_changed);
        tokio::spawn(async move {
            let mut rest = BuildPause::default();
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

    async fn build_quietly(
        &self,
        what: &SegmentsOf,
        ignore_threshold: bool,
    ) -> Option<BuildOutcome> {
        let job = match what {
            SegmentsOf::Collection(collection) => BuildJob::Fold(FoldJob {
                collection: collection.clone(),
                ignore_threshold,
                rebuild: false,
                key: fresh_key(),
            }),
            SegmentsOf::Graph => BuildJob::Graph(GraphJob { ignore_threshold, rebuild: false }),
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

    /// Removes expired data. Failures are ignored: the next run tries again.
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

/// Limits how often the graph's segment is built: it is always built as a whole, so a graph
/// that changes constantly would be rebuilt constantly.
#[derive(Default)]
struct BuildPause(Option<Instant>);

impl BuildPause {
    /// Building takes at most one part in this many of the time.
    const PART: u32 = 10;

    fn after(&mut self, took: Duration) {
        self.0 = Some(Instant::now() + took * (Self::PART - 1));
    }

    fn left(&self) -> Duration {
        self.0.map_or(Duration::ZERO, |end| end.saturating_duration_since(Instant::now()))
    }
}
