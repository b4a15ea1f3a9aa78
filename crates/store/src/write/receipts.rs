//! Exactly-once writes: a write and its receipt are committed together.

use std::io::BufWriter;

use isolith_protocol::{About, Done, ENCODING, Key, PerformsWrite, StoreError, Write, WriteReply};
use isolith_sql::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Perform, Work};
use crate::read::collections;
use crate::sqlite::During;

/// Maximum length of a stored reply.
const MAX_RESULT_LEN: usize = 4096;

/// Performs the write, or returns the reply of the first time.
pub(super) fn once(work: Work<'_>, write: &Write) -> Result<Done<WriteReply>, StoreError> {
    write.action.perform_with(&mut Once { work, write })
}

/// One write in its transaction.
struct Once<'a> {
    work: Work<'a>,
    write: &'a Write,
}

/// The reply as stored in a receipt.
#[derive(Deserialize, Serialize)]
struct StoredReply<R> {
    /// The [`ENCODING`] of the request whose hash is stored next to it.
    encoding: u32,
    reply: R,
}

/// The encoding of receipts from before encodings were numbered; those contain the reply itself.
const UNNUMBERED: u32 = 1;

impl<O: Perform> PerformsWrite<O> for Once<'_> {
    type Error = StoreError;

    fn perform(&mut self, operation: &O) -> Result<Done<O::Reply>, StoreError> {
        let Self { work, write } = *self;
        let request = hash(operation)?;
        let known: Option<([u8; 16], String)> = work
            .db
            .prepare_cached("SELECT request, result FROM receipt WHERE key = ?1")
            .and_then(|mut statement| {
                statement.query_row([write.key.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()
            })
            .during(work.db, "look for a receipt")?;
        let Some((of, result)) = known else {
            let done = operation.perform(work)?;
            write_receipt::<O>(work, write, &request, done.reply.clone())?;
            return Ok(done);
        };
        let (encoding, stored) = opened(work, &result)?;
        // Hashes of different encodings cannot be compared: the key must suffice.
        if encoding == ENCODING && of != request {
            return Err(StoreError::KeyReused);
        }
        let mut reply: O::Reply = match serde_json::from_value(stored) {
            Ok(reply) => reply,
            Err(_) if encoding != ENCODING => return Err(StoreError::KeyReused),
            Err(error) => return Err(unreadable(work, &error)),
        };
        operation.complete(work, &mut reply)?;
        let collection = match operation.handling().about {
            About::Nothing => None,
            About::Collection(name) => collections::by_name(work.db, name)?,
            About::Number(id) => collections::by_id(work.db, id)?,
        };
        Ok(Done { repeated: true, ..Done::from(reply).with_collection(collection) })
    }
}

/// Removes receipts whose replies have arrived. Keys chosen by the caller stay.
pub(super) fn remove(work: Work<'_>, confirmed: &[Key]) -> Result<(), StoreError> {
    let remove_all = || {
        let mut remove =
            work.db.prepare_cached("DELETE FROM receipt WHERE key = ?1 AND keep = 0")?;
        confirmed.iter().try_for_each(|key| remove.execute([key.0]).map(|_| ()))
    };
    remove_all().during(work.db, "remove receipts")
}

/// The hash of a request, including the name of its operation.
fn hash<O: Perform>(operation: &O) -> Result<[u8; 16], StoreError> {
    let failed = |error: &dyn std::fmt::Display| {
        StoreError::Invalid(format!("the request cannot be encoded: {error}"))
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(O::NAME.as_bytes());
    let buffered = BufWriter::with_capacity(16 << 10, hasher);
    let buffered = postcard::to_io(operation, buffered).map_err(|error| failed(&error))?;
    let hasher = buffered.into_inner().map_err(|error| failed(&error))?;
    let mut short = [0; 16];
    short.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    Ok(short)
}

fn write_receipt<O: Perform>(
    work: Work<'_>,
    write: &Write,
    request: &[u8; 16],
    reply: O::Reply,
) -> Result<(), StoreError> {
    let result = short::<O>(reply);
    work.db
        .prepare_cached(
            "INSERT INTO receipt (key, request, result, keep, at) VALUES (?1, ?2, ?3, ?4, ?5)",
        )
        .and_then(|mut statement| {
            statement.execute(params![write.key.0, request, result, write.keep, work.now])
        })
        .during(work.db, "write a receipt")?;
    Ok(())
}

/// Encodes the reply, without what does not fit.
fn short<O: Perform>(reply: O::Reply) -> String {
    let mut stored = StoredReply { encoding: ENCODING, reply };
    loop {
        let text = serde_json::to_string(&stored).unwrap_or_default();
        if text.len() <= MAX_RESULT_LEN || !O::shorten(&mut stored.reply) {
            return text;
        }
    }
}

/// Decodes a receipt to its encoding and reply.
fn opened(work: Work<'_>, result: &str) -> Result<(u32, Value), StoreError> {
    let stored: Value = serde_json::from_str(result).map_err(|error| unreadable(work, &error))?;
    Ok(match StoredReply::deserialize(&stored) {
        Ok(StoredReply { encoding, reply }) => (encoding, reply),
        Err(_) => (UNNUMBERED, stored),
    })
}

fn unreadable(work: Work<'_>, error: &serde_json::Error) -> StoreError {
    StoreError::Corrupt {
        path: work.db.path().unwrap_or_default().into(),
        reason: format!("a receipt cannot be read: {error}"),
    }
}
