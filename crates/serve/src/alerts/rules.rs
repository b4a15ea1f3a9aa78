//! Decides when to alert: from what is observed, over time.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use isolith_engine::{DamageSeen, DiskSpace};
use isolith_types::counted;

use super::alert::{Alert, Cause};

/// How often the same alert is repeated at most.
const REPEAT_AFTER: Duration = Duration::from_secs(3600);

/// With fewer jobs, a failure rate says little.
const FEWEST_JOBS: u64 = 20;

/// A server rebuilds damaged segments by itself, within seconds or minutes.
const REBUILD_PATIENCE: Duration = Duration::from_secs(600);

/// What counts as wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AlertLimits {
    /// Percentage of failed jobs.
    pub failure_percent: u64,
    /// The time over which jobs are counted.
    pub window: Duration,
    /// Free space on the disk of a store, in bytes.
    pub disk_free: u64,
}

/// What is known about a store at one time.
#[derive(Debug, Clone)]
pub(super) struct Observation {
    pub(super) store: &'static str,
    pub(super) folder: PathBuf,
    /// Number of jobs since the store was opened.
    pub(super) jobs: u64,
    /// Number of those that failed.
    pub(super) failed: u64,
    /// Roles whose breaker is open.
    pub(super) open_breakers: Vec<String>,
    /// Why the database cannot be read now.
    pub(super) damaged: Option<String>,
    /// Damage that operations met since the store was opened.
    pub(super) damage_seen: Option<DamageSeen>,
    /// Whether a damaged segment waits for its rebuild.
    pub(super) rebuild_due: bool,
    pub(super) disk: Option<DiskSpace>,
}

/// The rules, and what they have to remember.
#[derive(Debug)]
pub(super) struct Rules {
    limits: AlertLimits,
    stores: HashMap<&'static str, History>,
    /// When each alert was raised last.
    raised: HashMap<(Cause, &'static str, Option<String>), Instant>,
}

/// What was observed of a store.
#[derive(Debug, Default)]
struct History {
    /// Jobs and failures at some times. The first is from the begin of the window, or before.
    jobs: VecDeque<(Instant, u64, u64)>,
    damage: u64,
    rebuild_since: Option<Instant>,
}

impl Rules {
    pub(super) fn new(limits: AlertLimits) -> Self {
        Self { limits, stores: HashMap::new(), raised: HashMap::new() }
    }

    /// The alerts that an observation calls for, without those of the last hour.
    pub(super) fn check(&mut self, now: Instant, seen: &Observation) -> Vec<Alert> {
        let history = self.stores.entry(seen.store).or_default();
        let AlertLimits { failure_percent, window, disk_free } = self.limits;
        let mut found: Vec<(Cause, Option<String>, String)> = Vec::new();
        let (jobs, failed) = history.count(now, window, seen);
        if jobs >= FEWEST_JOBS && failed * 100 > jobs * failure_percent {
            let minutes = counted(window.as_secs() / 60, "minute");
            let message = format!("{failed} of {jobs} jobs failed within {minutes}");
            found.push((Cause::FailureRate, None, message));
        }
        for role in &seen.open_breakers {
            let message = format!("the {role} workers keep dying; their jobs are refused");
            found.push((Cause::BreakerOpen, Some(role.clone()), message));
        }
        if let Some(message) = history.damage(now, seen) {
            found.push((Cause::StoreDamaged, None, message));
        }
        if let Some(disk) = seen.disk.filter(|disk| disk.free_bytes < disk_free) {
            let [free, limit] = [disk.free_bytes, disk_free].map(|bytes| bytes / 1_000_000);
            let message = format!("{free} MB are free on the store's disk, less than {limit} MB");
            found.push((Cause::DiskNearlyFull, None, message));
        }
        found.retain(|(cause, role, _)| self.is_due(now, *cause, seen.store, role.as_ref()));
        let alert = |(cause, role, message): (_, _, String)| {
            Alert::new(cause, seen.store, seen.folder.clone(), role, &message)
        };
        found.into_iter().map(alert).collect()
    }

    fn is_due(
        &mut self,
        now: Instant,
        cause: Cause,
        store: &'static str,
        role: Option<&String>,
    ) -> bool {
        let last = self.raised.get_mut(&(cause, store, role.cloned()));
        match last {
            Some(last) if now.duration_since(*last) < REPEAT_AFTER => false,
            Some(last) => {
                *last = now;
                true
            }
            None => {
                self.raised.insert((cause, store, role.cloned()), now);
                true
            }
        }
    }
}

impl History {
    /// Jobs and failures within the window.
    fn count(&mut self, now: Instant, window: Duration, seen: &Observation) -> (u64, u64) {
        // A store that was closed and opened again counts from zero.
        if self.jobs.back().is_none_or(|(_, jobs, _)| *jobs > seen.jobs) {
            self.jobs.clear();
            self.jobs.push_back((now, 0, 0));
        }
        self.jobs.push_back((now, seen.jobs, seen.failed));
        while self.jobs.get(1).is_some_and(|(at, ..)| now.duration_since(*at) >= window) {
            self.jobs.pop_front();
        }
        let (_, jobs, failed) = self.jobs.front().copied().unwrap_or((now, 0, 0));
        (seen.jobs - jobs, seen.failed.saturating_sub(failed))
    }

    /// What is damaged now, or was met since the last check.
    fn damage(&mut self, now: Instant, seen: &Observation) -> Option<String> {
        let count = seen.damage_seen.as_ref().map_or(0, |damage| damage.count);
        let is_new = count > std::mem::replace(&mut self.damage, count);
        match seen.rebuild_due {
            true => _ = self.rebuild_since.get_or_insert(now),
            false => self.rebuild_since = None,
        }
        if let Some(message) = &seen.damaged {
            return Some(message.clone());
        }
        if let Some(damage) = seen.damage_seen.as_ref().filter(|_| is_new) {
            return Some(damage.message.clone());
        }
        let since = self.rebuild_since.filter(|since| now - *since >= REBUILD_PATIENCE)?;
        let minutes = counted((now - since).as_secs() / 60, "minute");
        Some(format!("a damaged segment has not been rebuilt for {minutes}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn rules() -> Rules {
        Rules::new(AlertLimits { failure_percent: 10, window: 5 * MINUTE, disk_free: 1_000_000 })
    }

    fn fine() -> Observation {
        Observation {
            store: "user",
            folder: "/s".into(),
            jobs: 0,
            failed: 0,
            open_breakers: Vec::new(),
            damaged: None,
            damage_seen: None,
            rebuild_due: false,
            disk: Some(DiskSpace { free_bytes: 2_000_000, total_bytes: 4_000_000 }),
        }
    }

    fn causes(alerts: &[Alert]) -> Vec<Cause> {
        alerts.iter().map(|alert| alert.cause).collect()
    }

    #[test]
    fn the_failure_rate_is_that_of_the_window() {
        let (mut rules, start) = (rules(), Instant::now());
        let mut check = |minute: u32, jobs, failed| {
            let alerts =
                rules.check(start + minute * MINUTE, &Observation { jobs, failed, ..fine() });
            causes(&alerts)
        };
        assert_eq!(check(0, 0, 0), []);
        assert_eq!(check(1, 19, 19), [], "too few to tell");
        assert_eq!(check(2, 1_000, 100), [], "not more than 10 %");
        assert_eq!(check(3, 1_100, 130), [Cause::FailureRate]);
        assert_eq!(check(4, 1_200, 230), [], "not twice within an hour");
        assert_eq!(check(70, 2_200, 240), [], "old failures do not count");
        assert_eq!(check(75, 2_300, 252), [Cause::FailureRate]);
        assert_eq!(check(140, 5, 5), [], "opened again: counts from zero");
        assert_eq!(check(141, 40, 40), [Cause::FailureRate]);
    }

    #[test]
    fn each_cause_is_raised_once_an_hour() {
        let (mut rules, start) = (rules(), Instant::now());
        let wrong = Observation {
            open_breakers: vec!["parse".to_owned(), "store-reader".to_owned()],
            damaged: Some("page 3".to_owned()),
            disk: Some(DiskSpace { free_bytes: 999_999, total_bytes: 4_000_000 }),
            ..fine()
        };
        let all =
            [Cause::BreakerOpen, Cause::BreakerOpen, Cause::StoreDamaged, Cause::DiskNearlyFull];
        let first = rules.check(start, &wrong);
        assert_eq!(causes(&first), all);
        assert_eq!(first[1].role.as_deref(), Some("store-reader"));
        assert_eq!(first[2].message, "page 3");
        assert_eq!(causes(&rules.check(start + 59 * MINUTE, &wrong)), []);
        let other = Observation { store: "project", ..wrong.clone() };
        assert_eq!(causes(&rules.check(start + 59 * MINUTE, &other)), all);
        assert_eq!(causes(&rules.check(start + 60 * MINUTE, &wrong)), all);
    }

    #[test]
    fn damage_counts_when_it_is_met_and_segments_when_they_are_not_rebuilt() {
        let (mut rules, start) = (rules(), Instant::now());
        let met = |count| Observation {
            damage_seen: Some(DamageSeen { count, message: "a page".to_owned() }),
            ..fine()
        };
        assert_eq!(rules.check(start, &met(2))[0].message, "a page");
        let later = start + 2 * REPEAT_AFTER;
        assert_eq!(causes(&rules.check(later, &met(2))), [], "nothing new");
        let due = Observation { rebuild_due: true, ..met(2) };
        assert_eq!(causes(&rules.check(later, &due)), []);
        assert_eq!(causes(&rules.check(later + 9 * MINUTE, &due)), []);
        let alerts = rules.check(later + 10 * MINUTE, &due);
        assert_eq!(alerts[0].message, "a damaged segment has not been rebuilt for 10 minutes");
    }
}
