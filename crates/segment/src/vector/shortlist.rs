use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::query::DistanceEstimate;

/// The positions that may be among the `want` nearest.
#[derive(Debug)]
pub(super) struct Shortlist {
    want: usize,
    /// The smallest upper bounds of distances, as a max-heap.
    certain: BinaryHeap<Distance>,
    entries: Vec<ShortlistEntry>,
    prune_at: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ShortlistEntry {
    pub(super) position: usize,
    pub(super) estimate: f64,
    pub(super) at_least: f64,
}

impl Shortlist {
    pub(super) fn new(want: usize) -> Self {
        Self { want, certain: BinaryHeap::new(), entries: Vec::new(), prune_at: 1024 }
    }

    /// Positions with a larger lower bound are not among the nearest.
    #[inline]
    pub(super) fn limit(&self) -> f64 {
        match self.certain.peek() {
            Some(worst) if self.certain.len() >= self.want => worst.0,
            _ => f64::INFINITY,
        }
    }

    #[inline]
    pub(super) fn offer(&mut self, position: usize, estimate: DistanceEstimate) {
        let at_least = estimate.distance - estimate.error;
        if at_least <= self.limit() {
            self.accept(position, estimate, at_least);
        }
    }

    fn accept(&mut self, position: usize, estimate: DistanceEstimate, at_least: f64) {
        let at_most = estimate.distance + estimate.error;
        if self.certain.len() < self.want {
            self.certain.push(Distance(at_most));
        } else if at_most < self.limit() {
            self.certain.pop();
            self.certain.push(Distance(at_most));
        }
        self.entries.push(ShortlistEntry { position, estimate: estimate.distance, at_least });
        if self.entries.len() >= self.prune_at {
            self.prune();
            self.prune_at = 1024.max(2 * self.entries.len());
        }
    }

    /// The entries, by lower bound and then by position.
    pub(super) fn finish(mut self) -> Vec<ShortlistEntry> {
        self.prune();
        self.entries.sort_unstable_by(|a, b| {
            a.at_least.total_cmp(&b.at_least).then(a.position.cmp(&b.position))
        });
        self.entries
    }

    fn prune(&mut self) {
        let limit = self.limit();
        self.entries.retain(|entry| entry.at_least <= limit);
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Distance(f64);

impl Eq for Distance {}

impl PartialOrd for Distance {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Distance {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}
