use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::class::DeathClass;

/// Remembers the jobs that killed their workers, so that they are refused from then on.
///
/// Implement it on persistent storage to keep the quarantine across restarts. Pools call it
/// with their lock held, so it must be fast and must not call the pool.
pub trait Quarantine: Send + Sync {
    /// The entry for this input of this role.
    fn find(&self, role: &str, input_hash: &str) -> Option<Poison>;
    /// Adds an entry.
    fn add(&self, poison: Poison);
    /// Removes an entry; false if there was none.
    fn remove(&self, role: &str, input_hash: &str) -> bool;
    /// All entries.
    fn list(&self) -> Vec<Poison>;
    /// The number of entries. With zero, calls skip hashing their input.
    fn len(&self) -> usize;
    /// Whether there are no entries.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A job that killed two workers by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poison {
    /// The role whose workers it killed.
    pub role: String,
    /// The hash that identifies its input.
    pub input_hash: String,
    /// The kind of job.
    pub kind: String,
    /// The class of the last death.
    pub class: DeathClass,
    /// The build of the program that it killed.
    pub build: String,
    /// When it was quarantined, in milliseconds since 1970.
    pub unix_ms: u64,
}

impl Poison {
    /// Whether the entry still applies: the build is the same and `term` has not passed.
    pub(crate) fn holds(&self, build: &str, now_unix_ms: u64, term: Duration) -> bool {
        let age = Duration::from_millis(now_unix_ms.saturating_sub(self.unix_ms));
        self.build == build && age < term
    }
}

/// A quarantine that lasts as long as the process.
#[derive(Debug, Default)]
pub struct MemoryQuarantine {
    poisons: Mutex<HashMap<(String, String), Poison>>,
}

impl MemoryQuarantine {
    /// The maximum number of entries; beyond it, the oldest is dropped.
    const LIMIT: usize = 10_000;

    fn poisons(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), Poison>> {
        self.poisons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Quarantine for MemoryQuarantine {
    fn find(&self, role: &str, input_hash: &str) -> Option<Poison> {
        self.poisons().get(&(role.to_owned(), input_hash.to_owned())).cloned()
    }

    fn add(&self, poison: Poison) {
        let mut poisons = self.poisons();
        if poisons.len() >= Self::LIMIT {
            let oldest = poisons.iter().min_by_key(|(_, poison)| poison.unix_ms);
            if let Some(key) = oldest.map(|(key, _)| key.clone()) {
                poisons.remove(&key);
            }
        }
        poisons.insert((poison.role.clone(), poison.input_hash.clone()), poison);
    }

    fn remove(&self, role: &str, input_hash: &str) -> bool {
        self.poisons().remove(&(role.to_owned(), input_hash.to_owned())).is_some()
    }

    fn list(&self) -> Vec<Poison> {
        self.poisons().values().cloned().collect()
    }

    fn len(&self) -> usize {
        self.poisons().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_build_or_the_end_of_the_term_releases_a_job() {
        let poison = Poison {
            role: "r".into(),
            input_hash: "h".into(),
            kind: "k".into(),
            class: DeathClass::Crash,
            build: "one".into(),
            unix_ms: 1_000,
        };
        let term = Duration::from_secs(10);
        assert!(poison.holds("one", 2_000, term));
        assert!(!poison.holds("two", 2_000, term));
        assert!(!poison.holds("one", 11_000, term));
        // A clock that was set back does not release it.
        assert!(poison.holds("one", 0, term));
    }
}
