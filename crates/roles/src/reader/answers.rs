//! The implementation of each read operation.

use isolate::{Bulk, Context, InWorker};
use isolith_embed::{ChunkWeights, DIMENSION, Model};
use isolith_protocol::{
    AnswersRead, CodeFound, CollectionState, CountCollections, CountFacts, CountLines, CountValues,
    CypherFound, DrawerList, EmbedMovedFile, EmbedTexts, FileState, FindCollection, FindHybrid,
    FindKeywords, FindMatches, FindNearest, FindSimilarDrawers, GetChunks, GetCollection,
    GetDatabase, GetDrawers, GetEntity, GetLoadProgress, GetOverview, GetRecords, GetTenant,
    ListCollections, ListDatabases, ListDrawers, ListEntities, ListFiles, ListPredicates,
    ListRooms, ListRoots, ListTimeline, LoadProgress, LocateRoots, MatchesFound, MemoryFound,
    Overview, QueryFacts, QueryRecords, RecordsFound, RecordsQueried, RootPlace, RootState,
    RunCypher, SearchCode, SearchMemory, Searched, SegmentsOf, SimilarFound, StoreError,
    StoredChunk, StoredRecord, TextsEmbedded, ValueCounts, VerifySegments,
};
use isolith_retrieve::{Searcher, Segments, Tails};
use isolith_store::Snapshot;
use isolith_types::{
    CollectionInfo, Database, Drawer, Entity, Fact, FactStats, Predicate, Tenant, Wing,
};

use super::{graph, verify};
use crate::settings::StoreSettings;

/// Maximum total length of the texts on a page of drawers.
const PAGE_BYTES: usize = 8 << 20;

/// Answers operations from one snapshot of the store.
pub(super) struct Answerer<'a, 's> {
    pub(super) settings: &'a StoreSettings,
    pub(super) token: InWorker,
    pub(super) snapshot: &'a Snapshot<'s>,
    pub(super) segments: &'a mut Segments,
    pub(super) tails: &'a mut Tails,
    pub(super) model: Model,
    pub(super) context: &'a Context<'a>,
}

/// Operations that need only the snapshot.
macro_rules! from_snapshot {
    ($($operation:ident => $reply:ty: |$snapshot:ident, $asked:ident| $answer:expr;)*) => {
        $(
            impl AnswersRead<$operation> for Answerer<'_, '_> {
                type Error = StoreError;

                fn answer(&mut self, $asked: &$operation) -> Result<$reply, StoreError> {
                    let $snapshot = self.snapshot;
                    $answer
                }
            }
        )*
    };
}

from_snapshot! {
    GetCollection => CollectionState: |snapshot, asked| snapshot.collection(&asked.name);
    ListRoots => Vec<RootState>: |snapshot, _asked| snapshot.roots();
    LocateRoots => Vec<RootPlace>: |snapshot, _asked| snapshot.root_places();
    ListFiles => Vec<FileState>: |snapshot, asked| {
        let (under, after) = (asked.under.as_deref(), asked.after.as_deref());
        snapshot.files(asked.root, under, after, u64::from(asked.limit))
    };
    CountLines => Vec<(u64, u32)>: |snapshot, asked| snapshot.lines_of_files(asked.root);
    GetChunks => Option<(FileState, Vec<StoredChunk>)>: |snapshot, asked| {
        snapshot.chunks_of_file(asked.root, &asked.path)
    };
    GetDrawers => Vec<Option<Drawer>>: |snapshot, asked| snapshot.drawers_by_id(&asked.ids);
    ListRooms => Vec<Wing>: |snapshot, _asked| snapshot.taxonomy();
    QueryFacts => Vec<Fact>: |snapshot, asked| snapshot.facts(&asked.query);
    ListTimeline => Vec<Fact>: |snapshot, asked| {
        snapshot.fact_timeline(asked.entity.as_deref(), asked.as_of, asked.limit, asked.offset)
    };
    CountFacts => FactStats: |snapshot, asked| snapshot.fact_stats(asked.as_of);
    ListPredicates => Vec<Predicate>: |snapshot, asked| {
        snapshot.predicates(asked.limit, asked.offset)
    };
    ListEntities => Vec<Entity>: |snapshot, asked| snapshot.entities(&asked.query);
    GetEntity => Option<Entity>: |snapshot, asked| snapshot.entity(&asked.name);
    GetLoadProgress => Option<LoadProgress>: |snapshot, asked| {
        snapshot.load_progress(&asked.source)
    };
    GetTenant => Option<Tenant>: |snapshot, asked| snapshot.tenant(&asked.name);
    GetDatabase => Option<Database>: |snapshot, asked| snapshot.database(&asked.database);
    ListDatabases => Vec<Database>: |snapshot, asked| {
        snapshot.databases(&asked.tenant, asked.offset, asked.limit)
    };
    ListCollections => Vec<CollectionInfo>: |snapshot, asked| {
        snapshot.collections_in(&asked.database, asked.offset, asked.limit)
    };
    CountCollections => u64: |snapshot, asked| snapshot.count_collections(&asked.database);
    FindCollection => Option<CollectionInfo>: |snapshot, asked| {
        snapshot.find_collection(&asked.which)
    };
    GetOverview => Overview: |snapshot, _asked| {
        Ok(Overview {
            collections: snapshot.collections()?,
            databases: snapshot.prefixes()?,
            poisons: snapshot.poisons()?,
            purge_due: snapshot.purge_due()?,
            graph: snapshot.graph_state()?,
        })
    };
    GetRecords => Vec<StoredRecord>: |snapshot, asked| {
        let state = snapshot.collection(&asked.collection)?;
        let GetRecords { which, sort, page, vectors, .. } = asked;
        snapshot.get_sorted(state.id, which, sort.as_ref(), *page, *vectors)
    };
    CountValues => ValueCounts: |snapshot, asked| {
        let state = snapshot.collection(&asked.collection)?;
        snapshot.count_values(state.id, &asked.key, asked.filter.as_ref(), asked.limit)
    };
    ListDrawers => DrawerList: |snapshot, asked| {
        let (drawers, total) = snapshot.drawers(&asked.filter, &asked.page, PAGE_BYTES)?;
        Ok(DrawerList { drawers, total })
    };
}

/// Operations that search.
macro_rules! by_searching {
    ($($operation:ident => $reply:ty: $search:ident;)*) => {
        $(
            impl AnswersRead<$operation> for Answerer<'_, '_> {
                type Error = StoreError;

                fn answer(&mut self, asked: &$operation) -> Result<$reply, StoreError> {
                    self.searcher().$search(asked)
                }
            }
        )*
    };
}

by_searching! {
    FindNearest => RecordsFound: find_nearest;
    FindKeywords => RecordsFound: find_keywords;
    SearchCode => CodeFound: search_code;
    SearchMemory => MemoryFound: search_memory;
    FindSimilarDrawers => SimilarFound: similar_drawers;
    FindMatches => MatchesFound: find_matches;
    QueryRecords => RecordsQueried: query_records;
    FindHybrid => RecordsFound: find_hybrid;
}

impl AnswersRead<EmbedTexts> for Answerer<'_, '_> {
    type Error = StoreError;

    fn answer(&mut self, asked: &EmbedTexts) -> Result<TextsEmbedded, StoreError> {
        let mut vectors = Vec::with_capacity(asked.texts.len() * DIMENSION * 4);
        let mut without = Vec::new();
        for (at, text) in (0..).zip(&asked.texts) {
            match self.model.embed(text) {
                Some(vector) => vectors.extend(vector.into_iter().flat_map(f32::to_le_bytes)),
                None => without.push(at),
            }
        }
        Ok(TextsEmbedded { vectors: vectors.into(), without })
    }
}

impl AnswersRead<EmbedMovedFile> for Answerer<'_, '_> {
    type Error = StoreError;

    fn answer(&mut self, asked: &EmbedMovedFile) -> Result<Bulk, StoreError> {
        let EmbedMovedFile { root, path, as_path } = asked;
        embed_moved_file(self.snapshot, self.model, *root, path, as_path)
    }
}

impl AnswersRead<RunCypher> for Answerer<'_, '_> {
    type Error = StoreError;

    fn answer(&mut self, asked: &RunCypher) -> Result<CypherFound, StoreError> {
        graph::cypher(self.snapshot, self.segments, &asked.query, self.context)
    }
}

impl AnswersRead<VerifySegments> for Answerer<'_, '_> {
    type Error = StoreError;

    fn answer(&mut self, _: &VerifySegments) -> Result<Vec<(SegmentsOf, Searched)>, StoreError> {
        let folder = self.settings.folder().segments();
        verify::verify(self.snapshot, &folder, self.token, self.context)
    }
}

impl<'s> Answerer<'_, 's> {
    fn searcher(&mut self) -> Searcher<'_, 's> {
        let Self { snapshot, segments, tails, model, context, .. } = self;
        Searcher { snapshot, segments, tails, model: *model, context }
    }
}

/// Embeds the stored chunks of a file for another path.
fn embed_moved_file(
    snapshot: &Snapshot<'_>,
    model: Model,
    root: u64,
    path: &str,
    as_path: &str,
) -> Result<Bulk, StoreError> {
    let mut vectors = Vec::new();
    let (_, chunks) = snapshot
        .chunks_of_file(root, path)?
        .ok_or_else(|| StoreError::Invalid(format!("{path:?} is not in the index")))?;
    let path_vector = model.embed_path(as_path);
    for chunk in chunks {
        let names = chunk.symbols.iter().map(|symbol| symbol.name.as_str());
        let text = chunk.text.as_deref().unwrap_or_default();
        let vector = model.embed_chunk(text, &path_vector, names, ChunkWeights::default());
        let vector = vector
            .ok_or_else(|| StoreError::Invalid(format!("a chunk of {path:?} has no words")))?;
        vectors.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
    }
    Ok(Bulk::from(vectors))
}
