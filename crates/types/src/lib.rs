//! The plain types that all crates share. Nothing here does input or output.
//!
//! Errors look the same everywhere (command line, MCP, HTTP, Python): a [`Failure`] with a
//! stable code, a message and a hint.

mod code;
mod code_graph;
mod collection;
mod counted;
mod database;
mod fact;
mod failure;
mod filter;
mod hash;
mod hint;
mod memory;
mod metadata;
mod moment;
mod period;

pub use code::{Chunk, ChunkKind, FileVersion, ParsedFile, Symbol, SymbolKind, trim_blank_ends};
pub use code_graph::{
    Certainty, CodeEdge, CodeNode, Definition, DefinitionKind, EdgeKind, FileGraph, Import,
    Imported, Manifest, Origin, Reference, ReferenceKind,
};
pub use collection::{
    Collection, CollectionKind, CollectionSpec, Hit, LONGEST_VECTOR, Metric, Record, Unknown,
};
pub use counted::counted;
pub use database::{
    CollectionInfo, DEFAULT_DATABASE, DEFAULT_TENANT, Database, DatabaseName, KeyType, Tenant,
    by_uuid,
};
pub use fact::{
    AddedFact, EndedFact, Entity, EntityPatch, EntityQuery, Fact, FactDirection, FactOutcome,
    FactQuery, FactState, FactStats, NewFact, Predicate, Provenance, RetractedFact, Source,
    Supersede, SupersededFact, WhichFact,
};
pub use failure::{Code, DeathNote, Failure, ShownFailure};
pub use filter::{Comparison, Filter, FilterError};
pub use hash::{FastHasher, FastMap, FastSet};
pub use hint::{Degraded, Hint, quoted};
pub use memory::{
    AddedDrawer, Drawer, DrawerFilter, DrawerHit, DrawerOrder, DrawerPage, DrawerPatch,
    DrawerPlace, LONGEST_DRAWER, NewDrawer, Room, SimilarDrawer, Wing,
};
pub use metadata::{Metadata, MetadataError, Scalar, Value};
pub use moment::{InvalidMoment, Moment};
pub use period::Period;
