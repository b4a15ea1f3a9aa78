//! Background work of a server: completes unfinished work at startup, and checks segments
//! periodically.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use isolith_protocol::{
    CollectionState, GetOverview, Overview, Searched, SegmentDamageKind, SegmentsOf, VerifySegments,
};

use crate::open::Engine;

/// How often all segments are read and checked.
const CHECK_EVERY: Duration = Duration::from_secs(30);

impl Engine {
    /// Maintains the store, as long as the engine lives.
    pub(crate) fn keep_up(&self) {
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            if let Some(inner) = inner.upgrade() {
                Engine { inner }.take_over().await;
            }
            loop {
                tokio::time::sleep(CHECK_EVERY).await;
                let Some(inner) = inner.upgrade() else { return };
                Engine { inner }.check_segments().await;
            }
        });
    }

    /// Takes over unfinished work of dead processes.
    async fn take_over(&self) {
        let Ok(overview) = self.ask(GetOverview).await else { return };
        let Overview { collections, purge_due, graph, .. } = overview;
        for state in collections.iter().filter(|state| state.fold_due() || needs_rebuild(state)) {
            self.fold_later(&state.name);
        }
        if graph.build_due() {
            self.build_later(SegmentsOf::Graph);
        }
        if purge_due {
            self.inner.purge_due.store(true, Ordering::Relaxed);
            self.inner.due_changed.notify_one();
        }
    }

    /// Quarantines segments that were damaged since they were opened.
    async fn check_segments(&self) {
        let Ok(found) = self.ask(VerifySegments).await else { return };
        for (whose, searched) in found {
            // A missing file may have been replaced by a fold in the meantime; the next
            // reader finds out.
            let damaged =
                searched.damaged.iter().filter(|it| it.kind == SegmentDamageKind::Damaged);
            let searched = Searched { damaged: damaged.cloned().collect(), ..searched.clone() };
            self.quarantine(whose, &searched, false).await;
        }
        self.rebuild_quarantined().await;
    }

    /// Rebuilds what is in quarantine: another process may have found the damage and left the
    /// rebuild, or the last one may have failed.
    async fn rebuild_quarantined(&self) {
        let Ok(Overview { collections, graph, .. }) = self.ask(GetOverview).await else { return };
        for state in collections.iter().filter(|state| needs_rebuild(state)) {
            self.fold_later(&state.name);
        }
        if graph.is_quarantined() {
            self.build_later(SegmentsOf::Graph);
        }
    }
}

fn needs_rebuild(state: &CollectionState) -> bool {
    let mut segments = state.generation.iter().flat_map(|generation| &generation.segments);
    segments.any(|entry| entry.quarantined.is_some())
}
