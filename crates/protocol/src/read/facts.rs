//! Reading facts.

use isolith_types::{EntityQuery, FactQuery, Moment};
use serde::{Deserialize, Serialize};

/// Finds facts by entity, predicate and time.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QueryFacts {
    /// Which facts.
    pub query: FactQuery,
}

/// Lists facts in the order in which they became true.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListTimeline {
    /// Only facts about this entity.
    pub entity: Option<String>,
    /// Only facts that had become true by then.
    pub as_of: Option<Moment>,
    /// The maximum number of facts.
    pub limit: u32,
    /// How many to skip.
    pub offset: u64,
}

/// Counts facts and entities.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CountFacts {
    /// The time for which they are counted; now if not given.
    pub as_of: Option<Moment>,
}

/// Lists predicates by name.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListPredicates {
    /// The maximum number of predicates.
    pub limit: u32,
    /// How many to skip.
    pub offset: u64,
}

/// Lists entities.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListEntities {
    /// Which entities.
    pub query: EntityQuery,
}

/// Finds one entity, by any of its names.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GetEntity {
    /// The name.
    pub name: String,
}
