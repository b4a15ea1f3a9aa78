//! Facts: which are valid, how names are compared, and when a fact is true. Pure functions;
//! `write/facts` and `read/facts` access the tables.

use isolith_protocol::StoreError;

pub(crate) mod names;
pub(crate) mod validity;

/// A fact's id as users see it.
pub(crate) fn id_of(number: i64) -> String {
    format!("f{number}")
}

/// Parses a fact's id.
pub(crate) fn number_of(id: &str) -> Result<i64, StoreError> {
    let digits = id.trim().strip_prefix(['f', 'F']);
    let number = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    number.and_then(|digits| digits.parse().ok()).filter(|number| *number > 0).ok_or_else(|| {
        let id: String = id.chars().take(60).collect();
        StoreError::Invalid(format!("{id:?} is not a fact id: ids look like f12"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_round_trip() {
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
