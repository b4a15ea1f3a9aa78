//! What is counted, behind a small trait, so that a server can expose it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Counts that only rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Jobs, by outcome: `answered` or the code of a [`CallError`](crate::CallError).
    Jobs,
    /// Workers started.
    Spawns,
    /// Deaths of workers, by class.
    Deaths,
    /// Crash reports that could not be kept.
    ReportsLost,
}

/// Values whose distribution matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Histogram {
    /// Seconds that jobs waited for a worker.
    QueueSeconds,
    /// Seconds that jobs ran in their worker.
    RunSeconds,
    /// Seconds between a job's sending and its answer, less the time it ran.
    OverheadSeconds,
}

/// Values that go up and down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Gauge {
    /// 0 closed, 1 half-open, 2 open.
    Breaker,
    /// Jobs in quarantine.
    Quarantine,
    /// Resident bytes of all workers of the role.
    WorkerBytes,
}

/// Takes measurements. A pool calls it on its hot path and with its lock held: be
/// quick, and do not call the pool.
pub trait Metrics: Send + Sync {
    /// Adds to a count.
    fn add(&self, counter: Counter, role: &'static str, label: &'static str, by: u64);
    /// Adds a value to a distribution.
    fn observe(&self, histogram: Histogram, role: &'static str, value: f64);
    /// Sets a value.
    fn set(&self, gauge: Gauge, role: &'static str, value: f64);
}

/// Metrics in memory, to be read by whoever exposes them.
#[derive(Debug, Default)]
pub struct Tally {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    counters: BTreeMap<(Counter, &'static str, &'static str), u64>,
    histograms: BTreeMap<(Histogram, &'static str), Spread>,
    gauges: BTreeMap<(Gauge, &'static str), f64>,
}

/// A distribution: how many values were at most 1, 4, 16 … microseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spread {
    /// How many values fell under each bound and above the one before, the last
    /// being those above all bounds.
    pub counts: [u64; Spread::BOUNDS + 1],
    /// How many values there were.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

impl Spread {
    /// How many bounds there are: from 1 µs to about 18 minutes.
    pub const BOUNDS: usize = 16;

    /// The bound with this index.
    pub fn bound(index: usize) -> f64 {
        1e-6 * 4f64.powi(i32::try_from(index).unwrap_or(i32::MAX))
    }

    fn add(&mut self, value: f64) {
        let mut bounds = std::iter::successors(Some(Self::bound(0)), |bound| Some(bound * 4.0))
            .take(Self::BOUNDS);
        let index = bounds.position(|bound| value <= bound).unwrap_or(Self::BOUNDS);
        self.counts[index] += 1;
        self.count += 1;
        self.sum += value;
    }
}

impl Tally {
    fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All counts: metric, role, label, value.
    pub fn counters(&self) -> Vec<(Counter, &'static str, &'static str, u64)> {
        let inner = self.inner();
        inner.counters.iter().map(|(&(metric, role, label), &n)| (metric, role, label, n)).collect()
    }

    /// One count, summed over its labels if `label` is `None`.
    pub fn count(&self, counter: Counter, role: &str, label: Option<&str>) -> u64 {
        let wanted = |&&(metric, of, with): &&(Counter, &'static str, &'static str)| {
            metric == counter && of == role && label.is_none_or(|label| label == with)
        };
        let inner = self.inner();
        inner.counters.iter().filter(|(key, _)| wanted(key)).map(|(_, n)| n).sum()
    }

    /// All distributions: metric, role, value.
    pub fn histograms(&self) -> Vec<(Histogram, &'static str, Spread)> {
        let inner = self.inner();
        inner
            .histograms
            .iter()
            .map(|(&(metric, role), spread)| (metric, role, spread.clone()))
            .collect()
    }

    /// All gauges: metric, role, value.
    pub fn gauges(&self) -> Vec<(Gauge, &'static str, f64)> {
        self.inner().gauges.iter().map(|(&(metric, role), &value)| (metric, role, value)).collect()
    }
}

impl Metrics for Tally {
    fn add(&self, counter: Counter, role: &'static str, label: &'static str, by: u64) {
        *self.inner().counters.entry((counter, role, label)).or_default() += by;
    }

    fn observe(&self, histogram: Histogram, role: &'static str, value: f64) {
        self.inner().histograms.entry((histogram, role)).or_default().add(value);
    }

    fn set(&self, gauge: Gauge, role: &'static str, value: f64) {
        self.inner().gauges.insert((gauge, role), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_can_be_read_back() {
        let tally = Tally::default();
        tally.add(Counter::Deaths, "parse", "crash", 2);
        tally.add(Counter::Deaths, "parse", "panic", 1);
        tally.add(Counter::Deaths, "store", "panic", 5);
        tally.observe(Histogram::RunSeconds, "parse", 3e-6);
        tally.observe(Histogram::RunSeconds, "parse", 1e9);
        assert_eq!(tally.count(Counter::Deaths, "parse", None), 3);
        assert_eq!(tally.count(Counter::Deaths, "parse", Some("crash")), 2);
        let (_, _, spread) = tally.histograms().remove(0);
        assert_eq!((spread.counts[1], spread.counts[Spread::BOUNDS], spread.count), (1, 1, 2));
    }
}
