//! Questions about facts.

use isolith_store::{Snapshot, StoreError};
use isolith_types::{Entity, EntityQuery, Fact, FactQuery, FactStats};
use serde::{Deserialize, Serialize};

/// What can be asked about facts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum FactQuestion {
    /// What is known, by entity, predicate and time.
    Query(FactQuery),
    /// Facts in the order in which they became true.
    Timeline {
        /// Of this entity only.
        entity: Option<String>,
        /// How many at most.
        limit: u32,
        /// How many to leave out.
        offset: u64,
    },
    /// How many there are.
    Stats,
    /// What facts are about.
    Entities(EntityQuery),
    /// One entity, by any of its names.
    Entity {
        /// The name.
        name: String,
    },
}

/// What is answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum FactAnswer {
    /// To [`FactQuestion::Query`] and [`FactQuestion::Timeline`].
    Facts(Vec<Fact>),
    /// To [`FactQuestion::Stats`].
    Stats(FactStats),
    /// To [`FactQuestion::Entities`].
    Entities(Vec<Entity>),
    /// To [`FactQuestion::Entity`].
    Entity(Option<Entity>),
}

impl FactQuestion {
    /// A short name, for reports.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Query(_) => "facts",
            Self::Timeline { .. } => "timeline",
            Self::Stats => "fact_stats",
            Self::Entities(_) => "entities",
            Self::Entity { .. } => "entity",
        }
    }
}

pub(super) fn answer(
    snapshot: &Snapshot<'_>,
    question: &FactQuestion,
) -> Result<FactAnswer, StoreError> {
    Ok(match question {
        FactQuestion::Query(query) => FactAnswer::Facts(snapshot.facts(query)?),
        FactQuestion::Timeline { entity, limit, offset } => {
            FactAnswer::Facts(snapshot.fact_timeline(entity.as_deref(), *limit, *offset)?)
        }
        FactQuestion::Stats => FactAnswer::Stats(snapshot.fact_stats()?),
        FactQuestion::Entities(query) => FactAnswer::Entities(snapshot.entities(query)?),
        FactQuestion::Entity { name } => FactAnswer::Entity(snapshot.entity(name)?),
    })
}
