//! Ranks search results.
//!
//! The store finds candidate chunks by keywords and by vectors. This crate ranks files by the
//! combined scores of their chunks, by file name and by the symbols they define. It returns the
//! best chunk of each file with an explanation of its score. Drawers of the memory are ranked too,
//! and the two rankings of a hybrid query over a collection are fused.
//!
//! All functions are pure and deterministic. [`CodeWeights`] and [`MemoryWeights`] hold the
//! ranking constants, so that an evaluation can change one or turn a signal off. Retrieving and
//! scoring candidates is not done here.

mod explanation;
mod fit;
mod fusion;
mod identifiers;
mod memory;
pub mod paths;
mod phrase;
mod query;
mod quoted;
mod rank;
mod symbol;
mod weights;

pub use explanation::{DefinitionBoost, Explanation, Penalty};
pub use fit::Fit;
pub use fusion::{FusedRow, Placed, fuse};
pub use identifiers::Stemmer;
pub use memory::{DrawerCandidate, MemoryFit, MemoryWeights, RankedDrawer, rank_drawers};
pub use paths::{FileRole, FileRoles, file_roles};
pub use phrase::Phrase;
pub use query::{CodeQuery, SimilarNames};
pub use quoted::QuotedQuery;
pub use rank::{
    CandidateFile, ChunkCandidate, IdentifierDefinition, RankedChunk, is_exact_match, rank_chunks,
};
pub use weights::{CodeWeights, SearchMode};
