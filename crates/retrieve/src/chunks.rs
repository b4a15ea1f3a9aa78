//! Chunks that a search found: what ranking needs to know about them, and their texts.
//!
//! Both come from source segments, which hold them by row, and from the database for files that
//! changed since, or while there are no usable segments. What is shown of a hit is read from the
//! database in either case.

use std::collections::BTreeMap;

use isolate::Context;
use isolith_protocol::{CollectionState, FoundPlace, Searched, StoreError, StoredChunk};
use isolith_segment::{SegmentError, SourceSegment};
use isolith_store::Snapshot;
use isolith_types::{FastMap, Symbol, trim_blank_ends};

use crate::segments::{LiveSegment, Segments};

/// Reads chunks by row.
pub(crate) struct ChunkReader<'a, 's> {
    snapshot: &'a Snapshot<'s>,
    live: Vec<LiveSegment<SourceSegment>>,
}

/// A chunk as ranking sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundFacts {
    /// The change number of its record.
    pub(crate) change: u64,
    /// Index of its file.
    pub(crate) file: u32,
    pub(crate) start_line: u32,
    pub(crate) end_line: u32,
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) parent: Option<String>,
}

/// A file with chunks that were found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundFile {
    pub(crate) id: u64,
    pub(crate) root: u64,
    pub(crate) path: String,
    pub(crate) generated: bool,
}

/// Chunks by row, and their files, by ascending number.
#[derive(Debug, Default)]
pub(crate) struct LoadedChunks {
    pub(crate) chunks: FastMap<u64, FoundFacts>,
    pub(crate) files: Vec<FoundFile>,
}

/// Chunks with the numbers of their files, and these.
#[derive(Default)]
struct Collected {
    chunks: Vec<(u64, u64, FoundFacts)>,
    files: BTreeMap<u64, FoundFile>,
}

impl<'a, 's> ChunkReader<'a, 's> {
    /// Uses the source segments of the collection, as far as there are any.
    pub(crate) fn open(
        snapshot: &'a Snapshot<'s>,
        segments: &mut Segments,
        state: &CollectionState,
        context: &Context<'_>,
        searched: &mut Searched,
    ) -> Result<Self, StoreError> {
        let live = match state.generation.is_none() || state.lacks_sources() {
            true => None,
            false => segments.sources(snapshot, state, context, searched)?,
        };
        Ok(Self { snapshot, live: live.unwrap_or_default() })
    }

    /// The chunks of these rows, as far as they exist.
    pub(crate) fn load(
        &mut self,
        rows: impl Iterator<Item = u64>,
        segments: &mut Segments,
        searched: &mut Searched,
    ) -> Result<LoadedChunks, StoreError> {
        let mut rows: Vec<u64> = rows.collect();
        rows.sort_unstable();
        rows.dedup();
        let mut collected = Collected::default();
        let mut others = Vec::new();
        for row in &rows {
            match self.add_from_segment(*row, &mut collected) {
                Ok(true) => {}
                Ok(false) => others.push(*row),
                Err((file, error)) => {
                    segments.fail(&file, &error, searched);
                    self.live.clear();
                    (collected, others) = (Collected::default(), rows.clone());
                    break;
                }
            }
        }
        self.add_from_database(&others, &mut collected)?;
        Ok(collected.finish())
    }

    /// Calls `each` with the texts of chunks, in this order, without the blank lines around them.
    pub(crate) fn for_each_text(
        &self,
        rows: &[u64],
        each: &mut dyn FnMut(u64, &str),
    ) -> Result<(), StoreError> {
        for row in rows {
            let found = self.position(*row);
            // A damaged segment is reported by the search that counts all matches, or by a check.
            match found.and_then(|(live, chunk, _)| live.segment.chunk_text(chunk).ok()) {
                Some(text) => each(*row, trim_blank_ends(text)),
                None => {
                    for chunk in self.snapshot.chunks(&[*row], true)?.into_iter().flatten() {
                        each(*row, chunk.text.as_deref().unwrap_or_default());
                    }
                }
            }
        }
        Ok(())
    }

    /// The segment that has the current version of a chunk, and the positions of the chunk and of
    /// its file there.
    fn position(&self, row: u64) -> Option<(&LiveSegment<SourceSegment>, usize, usize)> {
        self.live.iter().find_map(|live| {
            let chunk = live.segment.chunk_of(row)?;
            let file = live.segment.file_of(chunk);
            // Files are replaced as a whole.
            (!live.deleted.contains(file)).then_some((live, chunk, file))
        })
    }

    /// Whether a segment has the chunk.
    fn add_from_segment(
        &self,
        row: u64,
        collected: &mut Collected,
    ) -> Result<bool, (String, SegmentError)> {
        let Some((live, chunk, file)) = self.position(row) else { return Ok(false) };
        let segment = &live.segment;
        let mut add = || {
            let facts = segment.facts(chunk)?;
            let file = segment.file(file)?;
            collected.files.entry(file.id).or_insert_with(|| FoundFile {
                id: file.id,
                root: file.root,
                path: file.path.to_owned(),
                generated: file.generated,
            });
            let found = FoundFacts {
                change: facts.change,
                file: 0,
                start_line: facts.start_line,
                end_line: facts.end_line,
                symbols: facts.symbols,
                parent: facts.parent,
            };
            collected.chunks.push((row, file.id, found));
            Ok(true)
        };
        add().map_err(|error| (live.file.clone(), error))
    }

    fn add_from_database(&self, rows: &[u64], collected: &mut Collected) -> Result<(), StoreError> {
        let chunks = self.snapshot.chunks(rows, false)?;
        let mut ids: Vec<u64> = chunks.iter().flatten().map(|chunk| chunk.file).collect();
        ids.sort_unstable();
        ids.dedup();
        for file in self.snapshot.files_by_id(&ids)?.into_iter().flatten() {
            let (id, root, path, generated) = (file.id, file.root, file.path, file.generated);
            collected.files.insert(id, FoundFile { id, root, path, generated });
        }
        for chunk in chunks.into_iter().flatten() {
            let StoredChunk { row, change, file, start_line, end_line, symbols, parent, .. } =
                chunk;
            let found = FoundFacts { change, file: 0, start_line, end_line, symbols, parent };
            collected.chunks.push((row, file, found));
        }
        Ok(())
    }
}

impl Collected {
    fn finish(self) -> LoadedChunks {
        let indexes: FastMap<u64, u32> =
            self.files.keys().enumerate().map(|(index, id)| (*id, index as u32)).collect();
        let chunk = |(row, file, facts): (u64, u64, FoundFacts)| {
            Some((row, FoundFacts { file: *indexes.get(&file)?, ..facts }))
        };
        let chunks = self.chunks.into_iter().filter_map(chunk).collect();
        LoadedChunks { chunks, files: self.files.into_values().collect() }
    }
}

impl FoundFacts {
    /// Where it is.
    pub(crate) fn place(&self) -> FoundPlace {
        FoundPlace {
            start_line: self.start_line,
            end_line: self.end_line,
            symbol: self.symbols.first().map(|symbol| symbol.name.clone()),
        }
    }
}
