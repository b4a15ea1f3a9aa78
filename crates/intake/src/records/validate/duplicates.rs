use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;

use crate::feed::{Blocks, BufferedFeed, Content, Fault, Feed, Taken, next_member, take_value};
use crate::records::error::Flaw;
use crate::records::layout::List;
use crate::records::record::{Parts, RecordReader};
use crate::records::row::read_id;
use crate::records::{Format, IntakeError, OnError, Progress};

use super::watched::Rereading;
use super::{Findings, Pass};

/// A hash of each id: 8 bytes per row, whatever the length of the ids.
#[derive(Debug, Default)]
pub(super) struct IdHashes {
    state: RandomState,
    hashes: Vec<u64>,
}

impl IdHashes {
    pub(super) fn add(&mut self, id: &str) {
        let hash = self.hash(id);
        self.hashes.push(hash);
    }

    fn hash(&self, id: &str) -> u64 {
        self.state.hash_one(id)
    }

    /// Returns the hashes that occur more than once, sorted, and drops the others.
    fn take_repeated(&mut self) -> Vec<u64> {
        let mut hashes = std::mem::take(&mut self.hashes);
        hashes.sort_unstable();
        let runs = hashes.chunk_by(|one, next| one == next);
        runs.filter(|run| run.len() > 1).map(|run| run[0]).collect()
    }
}

/// The maximum number of ids in memory for comparison; small in tests, which have few ids.
const SUSPECTS_AT_A_TIME: usize = if cfg!(test) { 3 } else { 200_000 };

/// Rejects every row that has the id of an earlier row that is not rejected.
///
/// Equal hashes only make ids suspect. Suspect ids are read again, in bounded portions, and
/// compared by 128 bits of BLAKE3, for which nobody can craft two ids that collide.
pub(super) fn reject<C: Content + ?Sized>(
    pass: &Pass<'_, C>,
    findings: &mut Findings,
    progress: &mut Progress<'_>,
) -> Result<(), IntakeError> {
    let suspects = findings.ids.take_repeated();
    for round in suspects.chunks(SUSPECTS_AT_A_TIME) {
        let mut first_rows: HashMap<[u8; 16], u64> = HashMap::new();
        let mut reader = IdReader::open(pass, findings, &mut *progress);
        while let Some((row, line, id)) = reader.next().map_err(changed)? {
            let Some(id) = id else { continue };
            if findings.rejections.rows.contains(row)
                || round.binary_search(&findings.ids.hash(&id)).is_err()
            {
                continue;
            }
            let mut key = [0; 16];
            key.copy_from_slice(&blake3::hash(id.as_bytes()).as_bytes()[..16]);
            match first_rows.entry(key) {
                Entry::Vacant(entry) => drop(entry.insert(row)),
                Entry::Occupied(entry) => {
                    let first = entry.get() + 1;
                    let id = id.chars().take(100).collect();
                    findings.rejections.add(row, line, Flaw::DuplicateId { id, first });
                }
            }
        }
        if findings.rejections.total > 0 && pass.rules.on_error == OnError::Stop {
            break;
        }
    }
    Ok(())
}

fn changed(fault: Fault) -> IntakeError {
    match fault {
        Fault::Io(_) | Fault::Cancelled => fault.into(),
        other => IntakeError::changed(IntakeError::from(other).to_string()),
    }
}

/// Iterates over the ids of a file.
enum IdReader<B> {
    List { source: BufferedFeed<B>, row: u64 },
    Records { reader: RecordReader<B>, row: u64 },
}

impl<'p, 'q, C: Content + ?Sized> IdReader<Rereading<'p, 'q, C>> {
    fn open(pass: &'p Pass<'_, C>, findings: &Findings, progress: &'p mut Progress<'q>) -> Self {
        let blocks = Rereading { content: pass.content, total: pass.bytes, progress };
        let start = findings.start;
        let source =
            BufferedFeed::new(blocks, start.offsets[List::Ids as usize], pass.buffer_bytes);
        match findings.format {
            Format::Lists => Self::List { source, row: 0 },
            format => {
                let reader = RecordReader::new(source, format, start.line, true);
                Self::Records { reader, row: 0 }
            }
        }
    }
}

impl<B: Blocks> IdReader<B> {
    /// The next row with its line and its id; the id is `None` if it cannot be read.
    #[expect(clippy::type_complexity, reason = "three plain values that are used at once")]
    fn next(&mut self) -> Result<Option<(u64, Option<u64>, Option<String>)>, Fault> {
        match self {
            Self::List { source, row } => {
                if !next_member(source, *row == 0, b']')? {
                    return Ok(None);
                }
                let mut id = None;
                if let Taken::Whole(length) = take_value(source, List::Ids.item_limit())? {
                    let read = read_id(&source.window()[..length], 0);
                    id = read.ok().map(|id| id.into_owned());
                    source.advance(length);
                }
                *row += 1;
                Ok(Some((*row - 1, None, id)))
            }
            Self::Records { reader, row } => {
                let Some(taken) = reader.take()? else { return Ok(None) };
                let mut id = None;
                if let Taken::Whole(length) = taken {
                    let parts = Parts::find(reader.bytes(length), 0).ok();
                    let part = parts.and_then(|parts| parts.id);
                    let read = part.and_then(|part| read_id(part.bytes, 0).ok());
                    id = read.map(|id| id.into_owned());
                    reader.consume(length);
                }
                *row += 1;
                Ok(Some((*row - 1, reader.current_line(), id)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use isolith_types::Metric;

    use super::*;
    use crate::records::Rules;
    use crate::records::validate::VectorSource;

    const LISTS: &[u8] = br#"{"ids":["a","b","c","a"],"embeddings":[[1],[1],[1],[1]]}"#;

    #[test]
    fn ids_with_equal_hashes_are_not_duplicates() {
        let rules = Rules { dimension: None, metric: Metric::Dot, on_error: OnError::Skip };
        let bytes = LISTS.len() as u64;
        let pass = Pass {
            content: LISTS,
            rules: &rules,
            source: VectorSource::Rows,
            bytes,
            buffer_bytes: 64,
        };
        let mut go_on = |_, _| ControlFlow::Continue(());
        let (mut findings, _) = pass.read(&mut go_on).unwrap();
        // Simulates another id with the same hash.
        findings.ids.add("b");
        reject(&pass, &mut findings, &mut go_on).unwrap();
        let problems = findings.rejections.into_problems();
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].to_string(), r#"row 4: id "a" is already used by row 1"#);
    }

    #[test]
    fn duplicate_ids_are_found_over_several_rounds() {
        let rules = Rules { dimension: None, metric: Metric::Dot, on_error: OnError::Skip };
        let line = |row: u64| format!("{{\"id\":\"{}\",\"vector\":[1]}}\n", row % 10);
        let content: String = (0..25).map(line).collect();
        let mut go_on = |_, _| ControlFlow::Continue(());
        let layout = crate::records::validate(content.as_bytes(), &rules, &mut go_on).unwrap();
        assert_eq!((layout.rows, layout.rejected), (25, 15));
        for problem in &layout.problems {
            let first = (problem.row - 1) % 10 + 1;
            let says = format!("is already used by row {first}");
            assert!(problem.reason.ends_with(&says), "{problem}");
            assert_eq!(problem.line, Some(problem.row));
        }
    }
}
