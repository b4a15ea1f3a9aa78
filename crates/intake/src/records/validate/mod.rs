mod duplicates;
mod lists;
mod origin;
mod records;
mod watched;

use std::ops::ControlFlow;

use isolith_types::Metric;

use crate::feed::{BufferedFeed, Content, Fault, Feed, peek};
use crate::records::error::ErrorLocation;
use crate::records::layout::Rejections;
use crate::records::{Cursor, Format, IntakeError, Layout};
use duplicates::IdHashes;
use lists::TopObject;
pub use origin::VectorSource;
use watched::Watched;

/// The requirements on the rows of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The dimension of the vectors; if not given, that of the first one.
    pub dimension: Option<u32>,
    /// The metric of the collection: zero vectors are refused for cosine, except in exports.
    pub metric: Metric,
    /// How to handle unusable rows.
    pub on_error: OnError,
}

/// How to handle unusable rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// Refuse the whole file.
    Stop,
    /// Skip the row. A file without usable rows is refused.
    Skip,
}

/// Called with the bytes read and the total for every block, also while duplicate ids are looked
/// up after the last byte; may stop the pass.
pub type Progress<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// The first pass: reads and checks the whole file, whose rows have vectors.
///
/// If ids repeat, all ids are read again to find the rows.
///
/// # Errors
/// An [`IntakeError`] if the file does not contain records, if rows are unusable and the rules do
/// not allow skipping them, or if no row is left.
pub fn validate<C: Content + ?Sized>(
    content: &C,
    rules: &Rules,
    progress: &mut Progress<'_>,
) -> Result<Layout, IntakeError> {
    validate_from(content, rules, VectorSource::Rows, progress)
}

/// The first pass over a file whose documents may have to be embedded.
///
/// # Errors
/// As [`validate`].
pub fn validate_from<C: Content + ?Sized>(
    content: &C,
    rules: &Rules,
    source: VectorSource<'_>,
    progress: &mut Progress<'_>,
) -> Result<Layout, IntakeError> {
    const BUFFER_BYTES: usize = 1 << 20;
    validate_with(content, rules, source, progress, BUFFER_BYTES)
}

pub(crate) fn validate_with<C: Content + ?Sized>(
    content: &C,
    rules: &Rules,
    source: VectorSource<'_>,
    progress: &mut Progress<'_>,
    buffer_bytes: usize,
) -> Result<Layout, IntakeError> {
    let bytes = content.size().map_err(IntakeError::Io)?;
    let pass = Pass { content, rules, source, bytes, buffer_bytes };
    let (findings, hash) = pass.read(progress)?;
    pass.conclude(findings, hash, progress)
}

struct Pass<'c, C: ?Sized> {
    content: &'c C,
    rules: &'c Rules,
    source: VectorSource<'c>,
    bytes: u64,
    buffer_bytes: usize,
}

/// The result of reading a file once, in any form.
struct Findings {
    format: Format,
    rows: u64,
    dimension: Option<u32>,
    /// Whether the documents are to be embedded.
    embedded: bool,
    start: Cursor,
    header: Option<String>,
    rejections: Rejections,
    ids: IdHashes,
}

impl<C: Content + ?Sized> Pass<'_, C> {
    fn read(&self, progress: &mut Progress<'_>) -> Result<(Findings, [u8; 32]), IntakeError> {
        let mut source = self.open(&mut *progress)?;
        let (findings, source) = match peek(&mut source)? {
            None => return Err(IntakeError::Empty),
            Some(b'{') => {
                source.advance(1);
                let mut top = TopObject::new(self.rules, self.source);
                let outcome = top.read(&mut source);
                if !stopped(&outcome) && top.is_a_record() {
                    drop(source);
                    records::read_lines(self.open(progress)?, self.rules, self.source)?
                } else {
                    outcome?;
                    let findings = top.conclude()?;
                    expect_end(&mut source)?;
                    (findings, source)
                }
            }
            Some(b'[') => {
                source.advance(1);
                let (findings, mut source) = records::read_array(source, self.rules, self.source)?;
                expect_end(&mut source)?;
                (findings, source)
            }
            Some(_) => return Err(IntakeError::Unrecognized { found: describe(source.window()) }),
        };
        let hash = source.into_blocks().finish()?;
        Ok((findings, hash))
    }

    /// Opens the file after its byte order mark, if it has one.
    fn open<'p, 'q>(
        &'p self,
        progress: &'p mut Progress<'q>,
    ) -> Result<BufferedFeed<Watched<'p, 'q, C>>, Fault> {
        const MARK: &[u8] = b"\xEF\xBB\xBF";
        let watched = Watched::new(self.content, self.bytes, progress);
        let mut source = BufferedFeed::new(watched, 0, self.buffer_bytes);
        while source.window().len() < MARK.len() && source.more()? {}
        if source.window().starts_with(MARK) {
            source.advance(MARK.len());
        }
        Ok(source)
    }

    fn conclude(
        &self,
        mut findings: Findings,
        hash: [u8; 32],
        progress: &mut Progress<'_>,
    ) -> Result<Layout, IntakeError> {
        duplicates::reject(self, &mut findings, progress)?;
        let (rejected, rows) = (findings.rejections.total, findings.rows);
        let rejected_rows = std::mem::take(&mut findings.rejections.rows);
        let problems = findings.rejections.into_problems();
        let none_left = rejected == rows;
        if rejected > 0 && (none_left || self.rules.on_error == OnError::Stop) {
            return Err(IntakeError::BadRows { problems, total: rejected, rows });
        }
        Ok(Layout {
            format: findings.format,
            rows,
            dimension: findings.dimension,
            embedded: findings.embedded,
            bytes: self.bytes,
            hash,
            header: findings.header,
            rejected,
            problems,
            start: findings.start,
            rejected_rows,
        })
    }
}

/// Whether reading ended for a reason other than the bytes.
fn stopped<T>(outcome: &Result<T, IntakeError>) -> bool {
    matches!(outcome, Err(IntakeError::Cancelled | IntakeError::Io(_)))
}

fn expect_end<F: Feed>(feed: &mut F) -> Result<(), IntakeError> {
    match peek(feed)? {
        None => Ok(()),
        Some(found) => {
            let expected = "the end of the file";
            let fault = Fault::Syntax { offset: feed.offset(), expected, found };
            Err(IntakeError::from_fault(fault, ErrorLocation::default()))
        }
    }
}

/// Describes a file that begins with neither a JSON list nor an object.
fn describe(start: &[u8]) -> String {
    const KNOWN: [(&[u8], &str); 9] = [
        (b"\x1F\x8B", "gzip data (unpack it first)"),
        (b"\x28\xB5\x2F\xFD", "zstd data (unpack it first)"),
        (b"PK\x03\x04", "a zip archive (unpack it first)"),
        (b"SQLite format 3\0", "an SQLite database"),
        (b"PAR1", "a Parquet file"),
        (b"\x93NUMPY", "a NumPy array"),
        (b"\xFF\xFE", "UTF-16 text (convert it to UTF-8)"),
        (b"\xFE\xFF", "UTF-16 text (convert it to UTF-8)"),
        (b"\"", "one JSON text"),
    ];
    let known = KNOWN.iter().find(|(mark, _)| start.starts_with(mark));
    if let Some((_, name)) = known {
        return (*name).to_owned();
    }
    let sample = &start[..start.len().min(1_000)];
    if sample.iter().any(|byte| matches!(byte, 0..=8 | 14..=31 | 127)) {
        "binary data".to_owned()
    } else {
        "text that is neither a JSON object nor a JSON list".to_owned()
    }
}
