//! Names of entities and predicates: which are valid, and which are equal.

use isolith_protocol::StoreError;
use unicode_normalization::UnicodeNormalization as _;

/// Maximum length of the names of entities, predicates, drawers and agents, in bytes.
const MAX_NAME_LEN: usize = 1000;

/// Maximum length of an entity's type, in bytes.
const MAX_TYPE_LEN: usize = 100;

/// Maximum length of a file's path, in bytes.
const MAX_PATH_LEN: usize = 4096;

/// A name and the form it is looked up by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FactName {
    /// As given, trimmed.
    pub(crate) written: String,
    /// Equal for all spellings of the same name.
    pub(crate) folded: String,
}

impl FactName {
    /// Validates the name of an entity; `what` names it in errors.
    pub(crate) fn of_entity(what: &str, text: &str) -> Result<Self, StoreError> {
        let written = checked(what, text, MAX_NAME_LEN)?.to_owned();
        Ok(Self { folded: fold(&written), written })
    }

    /// Validates a predicate. `works at` and `works_at` are the same.
    pub(crate) fn of_predicate(text: &str) -> Result<Self, StoreError> {
        let written = checked("predicate", text, MAX_NAME_LEN)?.to_owned();
        let folded = fold_predicate(&written);
        match folded.is_empty() {
            true => Err(StoreError::Invalid("the predicate is empty".to_owned())),
            false => Ok(Self { folded, written }),
        }
    }
}

/// Normalizes the name of an entity for comparison.
pub(crate) fn fold(name: &str) -> String {
    let lower: String = name.nfc().flat_map(char::to_lowercase).nfc().collect();
    let words: Vec<&str> = lower.split_whitespace().collect();
    words.join(" ")
}

/// Normalizes a predicate for comparison.
pub(crate) fn fold_predicate(name: &str) -> String {
    fold(&name.replace('_', " "))
}

/// Validates the type of an entity, if given.
pub(crate) fn type_of(text: Option<&str>) -> Result<Option<&str>, StoreError> {
    optional("type", text, MAX_TYPE_LEN)
}

/// Validates the name of a drawer or an agent, if given.
pub(crate) fn label<'a>(what: &str, text: Option<&'a str>) -> Result<Option<&'a str>, StoreError> {
    optional(what, text, MAX_NAME_LEN)
}

/// Validates the path of a file, if given.
pub(crate) fn path(text: Option<&str>) -> Result<Option<&str>, StoreError> {
    optional("file", text, MAX_PATH_LEN)
}

/// Empty counts as not given.
fn optional<'a>(
    what: &str,
    text: Option<&'a str>,
    longest: usize,
) -> Result<Option<&'a str>, StoreError> {
    let given = text.map(str::trim).filter(|text| !text.is_empty());
    given.map(|text| checked(what, text, longest)).transpose()
}

fn checked<'a>(what: &str, text: &'a str, longest: usize) -> Result<&'a str, StoreError> {
    let text = text.trim();
    let problem = if text.is_empty() {
        "is empty".to_owned()
    } else if text.len() > longest {
        format!(
            "has {} bytes, at most {longest} are allowed: store long texts in a drawer",
            text.len()
        )
    } else if text.chars().any(char::is_control) {
        "contains line breaks or other control characters".to_owned()
    } else {
        return Ok(text);
    };
    Err(StoreError::Invalid(format!("the {what} {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equivalent_spellings_fold_to_the_same_name() {
        for (one, other) in [
            ("Max", " mAX\t"),
            ("Max  Planck", "max planck"),
            ("Zürich", "zu\u{308}rich"),
            ("ÅNGSTRÖM", "a\u{30A}ngstro\u{308}m"),
            ("İstanbul", "i\u{307}stanbul"),
        ] {
            assert_eq!(fold(one), fold(other), "{one}");
        }
        for (one, other) in [("Max", "Maxi"), ("max_planck", "max planck"), ("Zurich", "Zürich")] {
            assert_ne!(fold(one), fold(other), "{one}");
        }
        assert_eq!(fold_predicate("Works_At"), fold_predicate("works  at"));
        assert_ne!(fold_predicate("works_at"), fold_predicate("worksat"));
    }

    #[test]
    fn invalid_names_are_rejected() {
        let long = "x".repeat(1001);
        for (text, reason) in [
            ("", "the subject is empty"),
            (" \u{2003} ", "the subject is empty"),
            ("a\nb", "the subject contains line breaks"),
            ("a\0", "the subject contains line breaks"),
            (&long, "the subject has 1001 bytes, at most 1000 are allowed"),
        ] {
            let error = FactName::of_entity("subject", text).unwrap_err().to_string();
            assert!(error.starts_with(reason), "{error}");
        }
        assert!(FactName::of_predicate(" __ ").is_err());
        assert_eq!(FactName::of_entity("subject", " Ann ").unwrap().written, "Ann");
        assert_eq!(type_of(Some("  ")), Ok(None));
        assert!(type_of(Some(&long)).is_err() && path(Some(&long)).is_ok());
    }
}
