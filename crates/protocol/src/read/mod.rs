//! Operations that only read a store.

mod code;
mod databases;
mod facts;
mod graph;
mod matches;
mod memory;
mod records;
mod segments;

use std::fmt::Debug;

use isolate_types::Bulk;
use isolith_types::{
    CollectionInfo, Database, DatabaseName, Drawer, Entity, Fact, FactStats, Predicate, Tenant,
    Wing,
};
use serde::{Deserialize, Serialize};

pub use code::{
    CodeFound, CodeScope, CountLines, EmbedMovedFile, FoundChunk, FoundPlace, GetChunks, ListFiles,
    ListRoots, LocateRoots, SearchCode,
};
pub use databases::{
    CountCollections, FindCollection, GetDatabase, GetTenant, ListCollections, ListDatabases,
    NearRecord, QueryRecords, RecordsQueried, WhichCollection,
};
pub use facts::{CountFacts, GetEntity, ListEntities, ListPredicates, ListTimeline, QueryFacts};
pub use graph::{CypherFound, RunCypher};
pub use matches::{
    EnclosingSymbol, FindMatches, FoundMatch, MAX_SPANS, MatchCounts, MatchesFound, Pattern,
    PatternSyntax,
};
pub use memory::{
    DrawerList, FindSimilarDrawers, GetDrawers, ListDrawers, ListRooms, MemoryFound, SearchMemory,
    SimilarFound,
};
pub use records::{
    CountValues, FindHybrid, FindKeywords, FindNearest, GetCollection, GetLoadProgress, GetRecords,
    Page, RecordsFound, Selection, Sort, ValueCounts,
};
pub use segments::{Damage, Searched, SegmentDamageKind, SegmentsOf, VerifySegments};

use crate::code::{FileState, RootPlace, RootState, StoredChunk};
use crate::graph::GraphState;
use crate::state::{CollectionState, LoadProgress, PoisonedJob, StoredRecord};

/// Gets what a front needs after opening a store.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetOverview;

/// The reply to [`GetOverview`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Overview {
    /// All collections.
    pub collections: Vec<CollectionState>,
    /// What names of collections begin with in databases other than the default one.
    pub databases: Vec<(String, DatabaseName)>,
    /// Jobs in quarantine.
    pub poisons: Vec<PoisonedJob>,
    /// Whether rows of deleted collections are still stored.
    pub purge_due: bool,
    /// The graph.
    pub graph: GraphState,
}

/// Computes the vectors of texts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EmbedTexts {
    /// The texts.
    pub texts: Vec<String>,
}

/// The reply to [`EmbedTexts`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TextsEmbedded {
    /// The vectors of the texts that have one, concatenated: f32, little-endian.
    pub vectors: Bulk,
    /// The positions of texts without words, which have no vector.
    pub without: Vec<u32>,
}

/// An operation that only reads a store.
pub trait ReadOperation: Debug + Clone + Into<ReadJob> {
    /// The type of its reply.
    type Reply: Debug;

    /// Its name in reports.
    const NAME: &'static str;

    /// Extracts its reply; `None` if `reply` belongs to another operation.
    fn reply_from(reply: ReadReply) -> Option<Self::Reply>;
}

/// The reply of a search, with the segments that it used.
pub trait SearchReply {
    /// Which segments the search used.
    fn searched(&self) -> &Searched;
}

/// Answers a read operation.
pub trait AnswersRead<O: ReadOperation> {
    /// The error type.
    type Error;

    /// Answers the operation.
    ///
    /// # Errors
    /// The answerer's error.
    fn answer(&mut self, operation: &O) -> Result<O::Reply, Self::Error>;
}

macro_rules! read_operations {
    (
        searches { $($search:ident($search_name:literal) => $found:ty,)* }
        lookups { $($lookup:ident($lookup_name:literal) => $reply:ty,)* }
    ) => {
        read_operations! {
            all { $($search($search_name) => $found,)* $($lookup($lookup_name) => $reply,)* }
        }

        impl ReadJob {
            /// The names of the searches.
            pub const SEARCHES: &[&str] = &[$($search_name),*];
        }

        impl ReadReply {
            /// Which segments a search used; `None` if this was not a search.
            pub fn searched(&self) -> Option<&Searched> {
                match self {
                    $(Self::$search(found) => Some(found.searched()),)*
                    $(Self::$lookup(_) => None,)*
                }
            }
        }
    };
    (all { $($operation:ident($name:literal) => $reply:ty,)* }) => {
        /// Any operation that only reads a store.
        #[derive(Debug, Clone, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "each variant is documented at its operation")]
        pub enum ReadJob {
            $($operation($operation),)*
        }

        /// The reply of any operation that only reads a store.
        #[derive(Debug, Clone, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "each variant is documented at its operation")]
        pub enum ReadReply {
            $($operation($reply),)*
        }

        impl ReadJob {
            /// The names of all operations.
            pub const NAMES: &[&str] = &[$($name),*];

            /// The operation's name in reports.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$operation(_) => $operation::NAME,)*
                }
            }

            /// Dispatches to the answerer.
            ///
            /// # Errors
            /// The answerer's error.
            pub fn answer_with<A, E>(&self, answerer: &mut A) -> Result<ReadReply, E>
            where
                $(A: AnswersRead<$operation, Error = E>,)*
            {
                match self {
                    $(Self::$operation(operation) => {
                        answerer.answer(operation).map(ReadReply::$operation)
                    })*
                }
            }
        }

        $(
            impl From<$operation> for ReadJob {
                fn from(operation: $operation) -> Self {
                    Self::$operation(operation)
                }
            }

            impl ReadOperation for $operation {
                type Reply = $reply;
                const NAME: &'static str = $name;

                fn reply_from(reply: ReadReply) -> Option<Self::Reply> {
                    match reply {
                        ReadReply::$operation(reply) => Some(reply),
                        _ => None,
                    }
                }
            }
        )*
    };
}

read_operations! {
    searches {
        FindNearest("nearest") => RecordsFound,
        FindKeywords("keywords") => RecordsFound,
        SearchCode("code") => CodeFound,
        SearchMemory("memory") => MemoryFound,
        FindSimilarDrawers("similar_drawers") => SimilarFound,
        FindMatches("matches") => MatchesFound,
        QueryRecords("query") => RecordsQueried,
        FindHybrid("hybrid") => RecordsFound,
    }
    lookups {
        GetOverview("overview") => Overview,
        GetCollection("collection") => CollectionState,
        GetRecords("get") => Vec<StoredRecord>,
        ListRoots("roots") => Vec<RootState>,
        LocateRoots("root_places") => Vec<RootPlace>,
        ListFiles("files") => Vec<FileState>,
        GetChunks("chunks") => Option<(FileState, Vec<StoredChunk>)>,
        GetDrawers("drawers") => Vec<Option<Drawer>>,
        ListDrawers("list_drawers") => DrawerList,
        ListRooms("taxonomy") => Vec<Wing>,
        EmbedTexts("embed") => TextsEmbedded,
        EmbedMovedFile("embed_again") => Bulk,
        QueryFacts("facts") => Vec<Fact>,
        ListTimeline("timeline") => Vec<Fact>,
        CountFacts("fact_stats") => FactStats,
        ListEntities("entities") => Vec<Entity>,
        GetEntity("entity") => Option<Entity>,
        RunCypher("cypher") => CypherFound,
        VerifySegments("verify") => Vec<(SegmentsOf, Searched)>,
        GetLoadProgress("load") => Option<LoadProgress>,
        GetTenant("tenant") => Option<Tenant>,
        GetDatabase("database") => Option<Database>,
        ListDatabases("databases") => Vec<Database>,
        ListCollections("collections") => Vec<CollectionInfo>,
        CountCollections("count_collections") => u64,
        FindCollection("find_collection") => Option<CollectionInfo>,
        CountValues("values") => ValueCounts,
        CountLines("lines") => Vec<(u64, u32)>,
        ListPredicates("predicates") => Vec<Predicate>,
    }
}
