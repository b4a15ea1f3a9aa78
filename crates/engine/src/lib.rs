//! Isolith's operations as typed calls. The engine owns the worker pools; it never opens the
//! database or a segment itself.

mod adopt;
mod chunks;
mod code;
mod code_map;
mod collections;
mod databases;
mod doctor;
mod facts;
mod failure;
mod fold;
mod graph;
mod index;
mod ingest;
mod location;
mod matches;
mod memory;
mod open;
mod opened;
mod other_data;
mod quarantine;
mod recall;
mod scope;
mod seal;
mod search;
mod secret;
mod status;
mod transfer;
mod trust;
mod upkeep;
mod watch;
mod within;
mod writes;

pub use adopt::{ForeignStore, adopt, examine_foreign, move_aside};
pub use chunks::{IndexedChunk, IndexedFile};
pub use code::{CodeFilter, CodeHit, CodeHits, CodeSearch};
pub use code_map::{CodeMap, MappedFile};
pub use databases::NO_SETTINGS;
pub use doctor::{CheckReport, Doctor, DoctorOptions, DoctorReport, QuarantinedJob};
pub use facts::MOST_FACTS;
pub use failure::of_call;
pub use graph::{
    EdgeCount, FileImport, GraphCursor, GraphImport, GraphImported, GraphPage, GraphRow, GraphSize,
    GraphWalk, HotBy, Hotspot, Impact, ImportCycle, LabelCount, Listed, Neighbours, PageSize,
    QueryCheck, Reached, Side, Symbol, SymbolPath, datum_text,
};
pub use index::{
    FileCounts, FoldWhen, IndexOptions, IndexProblem, IndexProgress, IndexReport, IndexStage,
    IndexWatcher, Root, Seconds, indexed_languages,
};
pub use ingest::{
    Attached, IngestListener, IngestOptions, IngestProgress, IngestStage, OnError, Receipt,
    Rejected,
};
pub use isolith_embed::model_name as built_in_model;
pub use isolith_folder::git::repository_top;
pub use isolith_graph::{Datum, NodeDatum, PathDatum, RelationshipDatum, Stats as GraphStats};
pub use isolith_protocol::{
    AddCollection, ChangeCollection, CollectionAdded, CollectionCreated, CollectionDeleted,
    CollectionState, CypherQuery, Done, FoundPlace, GraphAnswer, GraphTable, Key, NearRecord, Page,
    Patch, PutMode, Records, RecordsDeleted, RecordsPut, RecordsUpdated, Selection, Sort,
    StoredRecord, TableEnd, TableHolds, ValueCounts, Which, WhichCollection, WhichDrawers,
};
pub use isolith_roles::{
    Health, SkippedItems, TranscriptCursor, TranscriptFormat, TranscriptOptions,
    entries as worker_roles,
};
pub use isolith_search::{CodeWeights, MemoryFit, MemoryWeights, SearchMode};
pub use isolith_store::Durability;
pub use isolith_store::names::is_log;
pub use location::{StoreScope, Surroundings, find_store, project_store, store_above};
pub use matches::{MatchHit, MatchSearch, MatchTotals, Matches};
pub use memory::{
    Checkpoint, DIARY_ROOM, DeletedDrawers, DiaryEntry, DurableListener, ImportOptions,
    ImportProgress, ImportReceipt, ImportWatcher, LoadedDrawers, Recollection, SavedCheckpoint,
    UpdatedDrawer, project_names,
};
pub use open::{Engine, EngineOptions, Life};
pub use opened::OpenFile;
pub use recall::{MemoryHits, MemorySearch};
pub use search::{Hits, Like, is_built_in, named_model};
pub use secret::Secret;
pub use status::{
    ActivityCounts, BreakerStatus, CollectionStatus, DamageSeen, DiskSpace, FrontSnapshot,
    FrontStatus, GraphStatus, IndexCounts, MIN_DISK_FREE, MemoryStatus, PoolStatus, Problem,
    RecentJobs, SearchCounts, StatusReport, StatusSocket, StoreFigures, WatchedPool, WorkerStatus,
    is_job_failure,
};
pub use transfer::{Exported, exported_collection};
pub use trust::StorePlace;
pub use watch::{WatchEvent, WatchListener};
pub use within::{Within, real_path};
pub use writes::Written;
