use isolith_protocol::StoreError;
use isolith_sql::{Connection, Params, params};
use isolith_types::{Metadata, Scalar, Value};

use super::{ProblemList, metadata_of};
use crate::deadline::Deadline;
use crate::read::code::makes_sense;
use crate::sqlite::During;
use crate::write::{AsValue, IN_A_LIST, type_of};

pub(super) fn vectors(
    db: &dyn Connection,
    deadline: &Deadline,
    found: &mut ProblemList,
) -> Result<(), StoreError> {
    let mut read = || {
        let mut statement = db.prepare(
            "SELECT r.row, r.id, c.dimension, v.data FROM vector v \
             JOIN record r ON r.row = v.row JOIN collection c ON c.id = r.collection \
             ORDER BY v.row",
        )?;
        let mut rows = statement.query([])?;
        let mut at = 0_u64;
        while let Some(row) = rows.next()? {
            at += 1;
            if found.is_full() || (at.is_multiple_of(256) && deadline.passed()) {
                break;
            }
            let (number, dimension): (u64, Option<usize>) = (row.get(0)?, row.get(2)?);
            let vector = row.get_ref(3)?.as_blob()?;
            if dimension.is_none_or(|dimension| dimension * 4 != vector.len()) {
                let expected = dimension.map_or("none".to_owned(), |numbers| numbers.to_string());
                let id: String = row.get(1)?;
                found.add(format!(
                    "the vector of {id:?} (row {number}) has {} bytes; the dimension is {expected}",
                    vector.len()
                ));
            } else if !is_finite(vector) {
                let id: String = row.get(1)?;
                found.add(format!(
                    "the vector of {id:?} (row {number}) has infinite or NaN numbers"
                ));
            }
        }
        Ok(())
    };
    read().during(db, "check vectors")?;
    deadline.check("check vectors")
}

pub(super) fn fields(
    db: &dyn Connection,
    deadline: &Deadline,
    found: &mut ProblemList,
) -> Result<(), StoreError> {
    let mut read = || {
        let mut statement = db.prepare(
            "SELECT r.row, r.collection, r.id, r.metadata FROM record r \
             JOIN collection c ON c.id = r.collection WHERE c.name IS NOT NULL ORDER BY r.row",
        )?;
        let mut rows = statement.query([])?;
        let mut expected = 0_i64;
        let mut at = 0_u64;
        while let Some(row) = rows.next()? {
            at += 1;
            if found.is_full() || (at.is_multiple_of(64) && deadline.passed()) {
                return Ok(());
            }
            let (number, collection): (i64, i64) = (row.get(0)?, row.get(1)?);
            let id = row.get_ref(2)?.as_str()?;
            let Some(metadata) = metadata_of(row.get_ref(3)?.as_str()?) else {
                found.add(format!("the metadata of {id:?} (row {number}) is not canonical JSON"));
                continue;
            };
            for (name, of_type, scalar) in entries(&metadata) {
                expected += 1;
                if !has_field(db, params![collection, name, of_type, AsValue(&scalar), number])? {
                    found.add(format!("{id:?} (row {number}) lacks the field {name:?}"));
                }
            }
        }
        let there: i64 = db.query_row(
            "SELECT count(*) FROM field f JOIN field_key k ON k.id = f.key \
             JOIN collection c ON c.id = k.collection WHERE c.name IS NOT NULL",
            [],
            |row| row.get(0),
        )?;
        if there > expected {
            found.add(format!("surplus metadata fields: {}", there - expected));
        }
        Ok(())
    };
    read().during(db, "check fields")?;
    deadline.check("check fields")
}

/// Checks that chunks and file hashes can be decoded.
pub(super) fn chunks(
    db: &dyn Connection,
    deadline: &Deadline,
    found: &mut ProblemList,
) -> Result<(), StoreError> {
    let mut read = || {
        let mut statement =
            db.prepare("SELECT row, kind, symbols, start_line, end_line FROM chunk ORDER BY row")?;
        let mut rows = statement.query([])?;
        let mut at = 0_u64;
        while let Some(row) = rows.next()? {
            at += 1;
            if found.is_full() || (at.is_multiple_of(256) && deadline.passed()) {
                return Ok(());
            }
            if !makes_sense(&row, 1)? {
                found.add(format!("the chunk of row {} is malformed", row.get::<_, i64>(0)?));
            }
        }
        let mut statement = db.prepare("SELECT path FROM file WHERE length(hash) <> 32")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            found.add(format!("the hash of file {:?} is malformed", row.get::<_, String>(0)?));
        }
        Ok(())
    };
    read().during(db, "check chunks")?;
    deadline.check("check chunks")
}

fn has_field(db: &dyn Connection, field: impl Params) -> isolith_sql::Result<bool> {
    db.prepare_cached(
        "SELECT 1 FROM field_key k JOIN field f ON f.key = k.id \
         WHERE k.collection = ?1 AND k.name = ?2 AND k.type = ?3 AND f.value = ?4 AND f.row = ?5",
    )?
    .exists(field)
}

/// The filter fields that metadata must have; equal list elements share one.
fn entries(metadata: &Metadata) -> Vec<(String, u8, Scalar)> {
    let mut fields = Vec::new();
    for (name, value) in metadata.entries() {
        match value {
            Value::One(scalar) => fields.push((name, type_of(&scalar), scalar)),
            Value::Many(scalars) => {
                for (at, scalar) in scalars.iter().enumerate() {
                    if !scalars[..at].iter().any(|before| are_equal(before, scalar)) {
                        let of_type = type_of(scalar) + IN_A_LIST;
                        fields.push((name.clone(), of_type, scalar.clone()));
                    }
                }
            }
        }
    }
    fields
}

/// Compares like SQLite: integers and floats by their exact value.
fn are_equal(one: &Scalar, other: &Scalar) -> bool {
    match (one, other) {
        (Scalar::Integer(whole), Scalar::Float(number))
        | (Scalar::Float(number), Scalar::Integer(whole)) => {
            number.trunc() == *number && *number as i128 == i128::from(*whole)
        }
        (one, other) => one == other,
    }
}

/// Whether all numbers of a stored vector are finite.
pub(crate) fn is_finite(vector: &[u8]) -> bool {
    vector.as_chunks::<4>().0.iter().all(|number| f32::from_le_bytes(*number).is_finite())
}
