//! Validates requests. Nothing is written before all of a request has passed.

use std::collections::HashSet;

use isolith_protocol::{CollectionState, Records, StoreError};
use isolith_types::{LONGEST_VECTOR, Metric, counted};

/// Maximum length of an id, in bytes.
const MAX_ID_LEN: usize = 1000;

/// Maximum dimension of a vector.
pub(super) const MAX_DIMENSION: u32 = 65_536;

/// Maximum length of a collection's name, in bytes.
const MAX_NAME_LEN: usize = 512;

/// Checks a batch against its collection.
pub(super) fn records(records: &Records, collection: &CollectionState) -> Result<(), StoreError> {
    let count = records.ids.len();
    let lists =
        [("document", records.documents.len()), ("metadata object", records.metadatas.len())];
    for (name, length) in lists {
        if length != count && length != 0 {
            let reason = format!("{}, but {}", counted(count, "id"), counted(length, name));
            return Err(StoreError::Invalid(reason));
        }
    }
    if count == 0 {
        return Ok(());
    }
    check_dimension(records.dimension, collection)?;
    let width = records.dimension as usize * 4;
    if records.vectors.len() != count * width {
        return Err(StoreError::Invalid(format!(
            "expected {} bytes ({} of dimension {}), found {}",
            count * width,
            counted(count, "vector"),
            records.dimension,
            records.vectors.len()
        )));
    }
    let mut seen = HashSet::with_capacity(count);
    for (row, (id, vector)) in records.ids.iter().zip(records.vectors.chunks(width)).enumerate() {
        let checked = check_id(id, &mut seen).and_then(|()| any_vector(vector));
        checked.map_err(|reason| bad(row, id, reason))?;
    }
    Ok(())
}

/// Checks an id, which must be unique in the request.
pub(super) fn check_id<'a>(id: &'a str, seen: &mut HashSet<&'a str>) -> Result<(), String> {
    if id.is_empty() {
        return Err("the id is empty".to_owned());
    }
    if id.len() > MAX_ID_LEN {
        return Err(format!("the id is longer than {MAX_ID_LEN} bytes"));
    }
    if !seen.insert(id) {
        return Err("the id occurs twice in one call".to_owned());
    }
    Ok(())
}

/// Checks the numbers of a vector that was computed from a text, which is never zero.
pub(super) fn vector_bytes(vector: &[u8], metric: Metric) -> Result<(), String> {
    any_vector(vector)?;
    match squared_length(vector) == 0.0 && metric == Metric::Cosine {
        true => Err("a zero vector has no cosine similarity".to_owned()),
        false => Ok(()),
    }
}

/// Checks the numbers of a vector. A zero vector has the cosine distance 1 from everything.
pub(super) fn any_vector(vector: &[u8]) -> Result<(), String> {
    let numbers = || vector.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    let is_finite = numbers().fold(true, |all, number| all & number.is_finite());
    if !is_finite {
        let at = numbers().position(|number| !number.is_finite()).unwrap_or_default();
        return Err(format!("number {at} of the vector is infinite or NaN"));
    }
    if squared_length(vector).sqrt() > LONGEST_VECTOR {
        return Err(format!("the vector is longer than {LONGEST_VECTOR:e}"));
    }
    Ok(())
}

/// Uses f64, which neither overflows nor underflows for any f32, and eight parallel sums, which
/// the compiler vectorizes.
fn squared_length(vector: &[u8]) -> f64 {
    let square = |bytes: &[u8; 4]| f64::from(f32::from_le_bytes(*bytes)).powi(2);
    let (eights, rest) = vector.as_chunks::<4>().0.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for eight in eights {
        for (sum, bytes) in sums.iter_mut().zip(eight) {
            *sum += square(bytes);
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(square).sum::<f64>()
}

/// Checks that vectors of this dimension fit the collection.
pub(super) fn check_dimension(
    dimension: u32,
    collection: &CollectionState,
) -> Result<(), StoreError> {
    if dimension == 0 || dimension > MAX_DIMENSION {
        let reason = format!("vectors have 1 to {MAX_DIMENSION} numbers, not {dimension}");
        return Err(StoreError::Invalid(reason));
    }
    match collection.dimension {
        Some(expected) if expected != dimension => Err(StoreError::BadRecord {
            row: 0,
            id: String::new(),
            reason: format!(
                "the vector has dimension {dimension}, collection {:?} has {expected}",
                collection.name
            ),
        }),
        _ => Ok(()),
    }
}

/// Checks the name of a collection.
pub(super) fn name(name: &str) -> Result<(), StoreError> {
    let problem = if name.is_empty() {
        "is empty"
    } else if name.len() > MAX_NAME_LEN {
        "is longer than 512 bytes"
    } else if name.chars().any(char::is_control) {
        "contains control characters"
    } else if name.starts_with('@') {
        "begins with @, which is reserved"
    } else {
        return Ok(());
    };
    Err(StoreError::Invalid(format!("the name of the collection {problem}")))
}

/// An error about one row of a request.
pub(super) fn bad(row: usize, id: &str, reason: String) -> StoreError {
    let id = if id.len() > MAX_ID_LEN { "" } else { id };
    StoreError::BadRecord { row: row as u64, id: id.to_owned(), reason }
}
