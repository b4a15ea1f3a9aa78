//! Which queries change the graph, as far as it is known.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of texts, and the length of each: programs send the same few with parameters.
const MAX_TEXTS: usize = 256;
const MAX_LENGTH: usize = 4096;

/// Texts of queries that a reader left to the writer. It does so for the text alone, whatever the
/// parameters and the graph are.
#[derive(Debug, Default)]
pub(crate) struct KnownWrites(Mutex<HashSet<Box<str>>>);

impl KnownWrites {
    pub(super) fn contains(&self, text: &str) -> bool {
        self.texts().contains(text)
    }

    pub(super) fn insert(&self, text: &str) {
        if text.len() > MAX_LENGTH {
            return;
        }
        let mut texts = self.texts();
        if texts.len() >= MAX_TEXTS {
            texts.clear();
        }
        texts.insert(text.into());
    }

    fn texts(&self) -> MutexGuard<'_, HashSet<Box<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_of_texts_is_kept() {
        let known = KnownWrites::default();
        known.insert("CREATE (:A)");
        assert!(known.contains("CREATE (:A)") && !known.contains("CREATE (:B)"));
        known.insert(&"x".repeat(MAX_LENGTH + 1));
        assert_eq!(known.texts().len(), 1);
        for number in 0..MAX_TEXTS {
            known.insert(&format!("CREATE ({{x: {number}}})"));
        }
        assert!(known.texts().len() <= MAX_TEXTS);
        assert!(known.contains(&format!("CREATE ({{x: {}}})", MAX_TEXTS - 1)));
    }
}
