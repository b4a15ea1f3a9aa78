//! Facts, and the entities that they are about.

use isolith_types::{
    AddedFact, EndedFact, Entity, EntityPatch, Moment, NewFact, Supersede, WhichFact,
};
use serde::{Deserialize, Serialize};

use super::{Handled, Handling};

/// Adds a fact, or finds the one that says the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AddFact {
    /// The fact.
    pub fact: NewFact,
}

/// The reply to [`AddFact`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactAdded {
    /// The fact that says what was to be added.
    pub fact: AddedFact,
}

/// Ends a fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvalidateFact {
    /// Which one.
    pub which: WhichFact,
    /// When; now if not given.
    pub at: Option<Moment>,
}

/// The reply to [`InvalidateFact`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactEnded {
    /// The fact that was to end.
    pub ended_fact: EndedFact,
}

/// Ends a fact and puts another in its place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SupersedeFact {
    /// Which one, and by what.
    pub change: Supersede,
}

/// The reply to [`SupersedeFact`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactSuperseded {
    /// The new fact.
    pub fact: AddedFact,
    /// The fact that it replaces.
    pub ended_fact: EndedFact,
}

/// Records what is known of an entity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DescribeEntity {
    /// The entity, and what changes.
    pub patch: EntityPatch,
}

/// The reply to [`DescribeEntity`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EntityDescribed {
    /// Whether the entity is new.
    pub created: bool,
    /// How many of its names and types changed.
    pub updated: u64,
    /// Names that were to be removed and are not its own.
    pub missing: u64,
    /// The entity after the write, or as it is now if the answer is repeated.
    pub entity: Option<Entity>,
}

/// A fact and two entities, with names as they usually are.
fn usual() -> Handling<'static> {
    Handling::of_nothing().sized(3, 1_000)
}

impl Handled for AddFact {
    fn handling(&self) -> Handling<'_> {
        usual()
    }
}

impl Handled for InvalidateFact {
    fn handling(&self) -> Handling<'_> {
        usual()
    }
}

impl Handled for SupersedeFact {
    fn handling(&self) -> Handling<'_> {
        usual()
    }
}

impl Handled for DescribeEntity {
    fn handling(&self) -> Handling<'_> {
        usual()
    }
}
