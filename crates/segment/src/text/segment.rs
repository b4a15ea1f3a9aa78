//! Opens text segments; statistics and lookups.

use std::path::Path;
use std::sync::Arc;

use isolate_types::InWorker;
use isolith_text::Analyzer;
use tantivy::Term;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::{Index, InvertedIndexReader, SegmentId, SegmentReader};
use tantivy::postings::TermInfo;
use tantivy::schema::IndexRecordOption;

use super::directory::SegmentDirectory;
use super::fields::PerField;
use super::index::{fields, schema, settings};
use super::parameters::{Column, LAYOUT, TextParameters, section};
use super::ranking::{Keywords, Statistics, tokens_among};
use crate::{Bits, Container, SegmentError, SegmentKind};

/// An open text segment.
pub struct TextSegment {
    container: Arc<Container>,
    parameters: TextParameters,
    /// `None` if there are no rows.
    index: Option<PerField<FieldIndex>>,
}

/// The inverted index of one field.
pub(super) struct FieldIndex {
    pub(super) terms: Arc<InvertedIndexReader>,
    pub(super) lengths: FieldNormReader,
}

impl TextSegment {
    /// Opens a segment and verifies all of it. `expected_checksum` is the one recorded in the
    /// database.
    ///
    /// # Errors
    /// If the file cannot be mapped, is damaged, or has another checksum.
    pub fn open(
        path: &Path,
        expected_checksum: Option<u32>,
        token: InWorker,
    ) -> Result<Self, SegmentError> {
        let container =
            Arc::new(Container::open(path, SegmentKind::Text, expected_checksum, token)?);
        if container.version() != LAYOUT {
            let (found, known) = (container.version(), LAYOUT);
            return Err(SegmentError::UnsupportedVersion { path: path.into(), found, known });
        }
        container.verify()?;
        let bytes = container.bytes(container.section(section::PARAMETERS)?)?;
        let parameters =
            TextParameters::decode(bytes).ok_or_else(|| container.damaged("invalid parameters"))?;
        for name in [section::ROWS, section::CHANGES] {
            let expected = parameters.rows.checked_mul(size_of::<u64>() as u64);
            if expected != Some(container.section(name)?.len() as u64) {
                return Err(container.damaged(format!("section {name:?} has the wrong length")));
            }
        }
        let index = open_index(&container, parameters)?;
        Ok(Self { container, parameters, index })
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        // The section of rows has this many entries, so the number fits into a usize.
        self.parameters.rows as usize
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.parameters.rows == 0
    }

    /// The analyzer that its texts were tokenized with.
    pub fn analyzer(&self) -> Analyzer {
        self.parameters.analyzer
    }

    /// The checksum that identifies the segment in the database.
    pub fn checksum(&self) -> u32 {
        self.container.checksum()
    }

    /// Verifies the whole file again. Fails if it is damaged.
    pub fn verify(&self) -> Result<(), SegmentError> {
        self.container.verify()
    }

    /// The segment's statistics for a query. Fails if the index cannot be read.
    pub fn statistics(&self, keywords: &Keywords) -> Result<Statistics, SegmentError> {
        let mut statistics = Statistics::none(keywords);
        let Some(index) = &self.index else {
            return Ok(statistics);
        };
        statistics.records = self.parameters.rows;
        for (field, part) in index.iter().enumerate() {
            statistics.tokens[field] = part.terms.total_num_tokens();
            for (doc_freq, term) in statistics.doc_freqs.iter_mut().zip(&keywords.terms) {
                let info = self.find(field, part, term)?;
                doc_freq[field] = info.map_or(0, |info| u64::from(info.doc_freq));
            }
        }
        Ok(statistics)
    }

    /// As [`statistics`](Self::statistics), for the records at `positions` only. They are assumed
    /// to have the average length. Fails if the index cannot be read.
    pub fn statistics_among(
        &self,
        keywords: &Keywords,
        positions: &Bits,
    ) -> Result<Statistics, SegmentError> {
        let mut statistics = Statistics::none(keywords);
        let Some(index) = &self.index else {
            return Ok(statistics);
        };
        statistics.records = positions.count() as u64;
        let tokens = index.each_ref().map(|part| part.terms.total_num_tokens());
        statistics.tokens = tokens_among(tokens, statistics.records, self.len() as u64);
        for (field, part) in index.iter().enumerate() {
            for (doc_freq, term) in statistics.doc_freqs.iter_mut().zip(&keywords.terms) {
                let Some(info) = self.find(field, part, term)? else { continue };
                doc_freq[field] = self.count_among(part, &info, positions)?;
            }
        }
        Ok(statistics)
    }

    fn count_among(
        &self,
        part: &FieldIndex,
        info: &TermInfo,
        positions: &Bits,
    ) -> Result<u64, SegmentError> {
        let mut postings = part
            .terms
            .read_block_postings_from_terminfo(info, IndexRecordOption::Basic)
            .map_err(|error| self.unreadable(error))?;
        let mut count = 0;
        while !postings.docs().is_empty() {
            let inside = postings.docs().iter().filter(|doc| positions.contains(**doc as usize));
            count += inside.count() as u64;
            postings.advance();
        }
        Ok(count)
    }

    /// The position of a row, if the segment contains it. Fails if the file is damaged.
    pub fn position_of(&self, row: u64) -> Result<Option<usize>, SegmentError> {
        let rows = self.rows()?;
        let position = rows.seek(0, row);
        Ok((rows.get(position) == Some(row)).then_some(position))
    }

    /// Adds the positions of rows to `bits`. Rows must ascend; those not in the segment are
    /// ignored. Fails if the file is damaged.
    pub fn positions_of(&self, rows: &[u64], bits: &mut Bits) -> Result<(), SegmentError> {
        let column = self.rows()?;
        let mut position = 0;
        for &row in rows {
            position = column.seek(position, row);
            if column.get(position) == Some(row) {
                bits.insert(position);
            }
        }
        Ok(())
    }

    /// Adds the positions of versions (row and change number) to `bits`. Rows must ascend; versions
    /// not in the segment are ignored. Fails if the file is damaged.
    pub fn versions_of(
        &self,
        versions: &[(u64, u64)],
        bits: &mut Bits,
    ) -> Result<(), SegmentError> {
        let (rows, changes) = (self.rows()?, self.changes()?);
        let mut position = 0;
        for &(row, change) in versions {
            position = rows.seek(position, row);
            if rows.get(position) == Some(row) && changes.get(position) == Some(change) {
                bits.insert(position);
            }
        }
        Ok(())
    }

    pub(super) fn index(&self) -> Option<&PerField<FieldIndex>> {
        self.index.as_ref()
    }

    pub(super) fn rows(&self) -> Result<Column<'_>, SegmentError> {
        self.column(section::ROWS)
    }

    pub(super) fn changes(&self) -> Result<Column<'_>, SegmentError> {
        self.column(section::CHANGES)
    }

    pub(super) fn find(
        &self,
        field: usize,
        index: &FieldIndex,
        term: &str,
    ) -> Result<Option<TermInfo>, SegmentError> {
        let term = Term::from_field_text(fields()[field], term);
        index.terms.get_term_info(&term).map_err(|error| self.unreadable(error))
    }

    pub(super) fn unreadable(&self, error: impl std::fmt::Display) -> SegmentError {
        self.container.damaged(format!("cannot read its index: {error}"))
    }

    fn column(&self, name: &str) -> Result<Column<'_>, SegmentError> {
        Ok(Column::new(self.container.bytes(self.container.section(name)?)?))
    }
}

impl std::fmt::Debug for TextSegment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TextSegment")
            .field("path", &self.container.path())
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}

fn open_index(
    container: &Arc<Container>,
    parameters: TextParameters,
) -> Result<Option<PerField<FieldIndex>>, SegmentError> {
    if parameters.rows == 0 {
        return Ok(None);
    }
    let damaged = |error: &dyn std::fmt::Display| {
        container.damaged(format!("cannot open its index: {error}"))
    };
    let records = u32::try_from(parameters.rows).map_err(|error| damaged(&error))?;
    let open = || {
        let directory = SegmentDirectory::new(Arc::clone(container));
        let index = Index::create(directory, schema(), settings())?;
        let meta = index.new_segment_meta(SegmentId::generate_random(), records);
        let reader = SegmentReader::open(&index.segment(meta))?;
        let mut parts = Vec::with_capacity(fields().len());
        for field in fields() {
            let terms = reader.inverted_index(field)?;
            let lengths = reader.get_fieldnorms_reader(field)?;
            parts.push(FieldIndex { terms, lengths });
        }
        Ok(parts)
    };
    let parts: Vec<FieldIndex> = open().map_err(|error: tantivy::TantivyError| damaged(&error))?;
    if parts.iter().any(|part| part.lengths.num_docs() != records) {
        return Err(container.damaged("its index has a different number of rows"));
    }
    parts.try_into().map(Some).map_err(|_| container.damaged("its index has different fields"))
}
