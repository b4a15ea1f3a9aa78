//! Metrics, reported through a small trait so that a server can expose them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Counters, which only increase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counter {
    /// Jobs, by outcome: `answered` or the code of a [`CallError`](crate::CallError).
    Jobs,
    /// Workers started.
    Spawns,
    /// Deaths of workers, by class.
    Deaths,
    /// Crash reports that could not be stored.
    ReportsLost,
}

/// Values recorded as distributions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Histogram {
    /// Seconds that jobs waited for a worker.
    QueueSeconds,
    /// Seconds that jobs ran in their worker.
    RunSeconds,
    /// Seconds from sending a job to its answer, minus the time it ran.
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

/// Receives measurements. Pools call it on their hot path with their lock held, so it must be
/// fast and must not call the pool.
pub trait Metrics: Send + Sync {
    /// Increases a counter.
    fn add(&self, counter: Counter, role: &'static str, label: &'static str, by: u64);
    /// Records a value in a histogram.
    fn observe(&self, histogram: Histogram, role: &'static str, value: f64);
    /// Sets a gauge.
    fn set(&self, gauge: Gauge, role: &'static str, value: f64);
}

/// Metrics kept in memory.
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

/// A histogram with bounds at 1, 4, 16 … microseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spread {
    /// The number of values in each bucket; the last bucket holds those above all bounds.
    pub counts: [u64; Spread::BOUNDS + 1],
    /// The number of values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
}

impl Spread {
    /// The number of bounds: from 1 µs to about 18 minutes.
    pub const BOUNDS: usize = 16;

    /// The upper bound of bucket `index`, in seconds.
    pub fn bound(index: usize) -> f64 {
        1e-6 * 4f64.powi(i32::try_from(index).unwrap_or(i32::MAX))
    }

    /// Records a value.
    pub fn add(&mut self, value: f64) {
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

    /// All counters: metric, role, label, value.
    pub fn counters(&self) -> Vec<(Counter, &'static str, &'static str, u64)> {
        let inner = self.inner();
        inner.counters.iter().map(|(&(metric, role, label), &n)| (metric, role, label, n)).collect()
    }

    /// The value of one counter, summed over all labels if `label` is `None`.
    pub fn count(&self, counter: Counter, role: &str, label: Option<&str>) -> u64 {
        let wanted = |&&(metric, of, with): &&(Counter, &'static str, &'static str)| {
            metric == counter && of == role && label.is_none_or(|label| label == with)
        };
        let inner = self.inner();
        inner.counters.iter().filter(|(key, _)| wanted(key)).map(|(_, n)| n).sum()
    }

    /// All histograms: metric, role, value.
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
    fn recorded_metrics_can_be_read() {
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
