//! Facts, and the entities that they are about.

use isolith_types::{
    AddedFact, EndedFact, Entity, EntityPatch, FactOutcome, Moment, NewFact, Predicate,
    RetractedFact, Supersede, WhichFact,
};
use serde::{Deserialize, Serialize};

use super::{Handled, Handling};

/// Adds a fact, or updates the existing one that says the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AddFact {
    /// The fact.
    pub fact: NewFact,
}

/// The reply to [`AddFact`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactAdded {
    /// The new or existing fact.
    pub fact: AddedFact,
}

/// Ends a fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InvalidateFact {
    /// The fact to end.
    pub which: WhichFact,
    /// When it ended; now if not given.
    pub at: Option<Moment>,
}

/// The reply to [`InvalidateFact`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactEnded {
    /// The fact and its end.
    pub ended_fact: EndedFact,
}

/// Ends a fact and replaces it with another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SupersedeFact {
    /// The old and the new fact.
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

/// Adds several facts, each as [`AddFact`] does. One that is refused does not affect the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AddFacts {
    /// The facts.
    pub facts: Vec<NewFact>,
}

/// The reply to [`AddFacts`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FactsAdded {
    /// The number of new facts.
    pub created: u64,
    /// The number of facts that existed already and were updated.
    pub updated: u64,
    /// The number of refused facts.
    pub refused: u64,
    /// What became of each fact; empty if the answer is repeated and was too long to keep.
    pub facts: Vec<FactOutcome>,
}

/// Marks a fact as never true.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetractFact {
    /// The fact.
    pub which: WhichFact,
}

/// The reply to [`RetractFact`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactRetracted {
    /// The fact, and when it was retracted.
    pub retracted_fact: RetractedFact,
}

/// Declares whether a subject can have only one object of a predicate at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeclarePredicate {
    /// The predicate, which is created if it does not exist.
    pub name: String,
    /// Whether one object excludes all others.
    pub single_valued: bool,
}

/// The reply to [`DeclarePredicate`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PredicateDeclared {
    /// The predicate after the write.
    pub predicate: Predicate,
}

/// Sets the type and aliases of an entity.
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
    /// The number of its names and types that changed.
    pub updated: u64,
    /// Names in the request to remove that the entity does not have.
    pub missing: u64,
    /// The entity after the write; its current state if the answer is repeated.
    pub entity: Option<Entity>,
}

/// An estimate: one fact and two entities with names of common length.
fn typical_handling() -> Handling<'static> {
    Handling::of_nothing().sized(3, 1_000)
}

impl Handled for AddFact {
    fn handling(&self) -> Handling<'_> {
        typical_handling()
    }
}

impl Handled for AddFacts {
    fn handling(&self) -> Handling<'_> {
        Handling::of_nothing().sized(3 * self.facts.len(), 1_000 * self.facts.len())
    }
}

impl Handled for RetractFact {
    fn handling(&self) -> Handling<'_> {
        typical_handling()
    }
}

impl Handled for DeclarePredicate {
    fn handling(&self) -> Handling<'_> {
        typical_handling()
    }
}

impl Handled for InvalidateFact {
    fn handling(&self) -> Handling<'_> {
        typical_handling()
    }
}

impl Handled for SupersedeFact {
    fn handling(&self) -> Handling<'_> {
        typical_handling()
    }
}

impl Handled for DescribeEntity {
    fn handling(&self) -> Handling<'_> {
        typical_handling()
    }
}
