//! Facts: what may be said, how names are compared, and when a fact is true. All of it
//! pure; what is kept of it is written by `write/facts` and read by `read/facts`.

pub(crate) mod names;
pub(crate) mod validity;

use isolith_types::{EntityPatch, Moment, NewFact, Supersede, WhichFact};
use serde::{Deserialize, Serialize};

use crate::error::StoreError;

/// What a write does to facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FactWrite {
    /// Adds a fact, or finds the one that says the same.
    Add(NewFact),
    /// Ends a fact.
    Invalidate {
        /// Which one.
        which: WhichFact,
        /// When; now if not given.
        at: Option<Moment>,
    },
    /// Ends a fact and puts another in its place.
    Supersede(Supersede),
    /// Notes what is known of an entity.
    Describe(EntityPatch),
}

impl FactWrite {
    /// A short name, for reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Add(_) => "add_fact",
            Self::Invalidate { .. } => "invalidate_fact",
            Self::Supersede(_) => "supersede_fact",
            Self::Describe(_) => "describe_entity",
        }
    }
}

/// A fact's id as the outside sees it.
pub(crate) fn id_of(number: i64) -> String {
    format!("f{number}")
}

/// The number in a fact's id.
pub(crate) fn number_of(id: &str) -> Result<i64, StoreError> {
    let digits = id.trim().strip_prefix(['f', 'F']);
    let number = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    number.and_then(|digits| digits.parse().ok()).filter(|number| *number > 0).ok_or_else(|| {
        let id: String = id.chars().take(60).collect();
        StoreError::Invalid(format!("{id:?} is no fact's id: they look like f12"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        for number in [1, 12, i64::MAX] {
            assert_eq!(number_of(&id_of(number)), Ok(number));
        }
        assert_eq!(number_of(" F7 "), Ok(7));
        for wrong in ["", "f", "12", "f0", "f-1", "f+1", "f1.0", "fact 1", "f9223372036854775808"] {
            let error = number_of(wrong).unwrap_err().to_string();
            assert!(error.contains("f12"), "{wrong}: {error}");
        }
    }
}
