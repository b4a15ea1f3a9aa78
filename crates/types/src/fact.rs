//! What is known, and when it was true: facts with half-open validity.

use serde::{Deserialize, Serialize};

use crate::Moment;

/// A fact on its way into memory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NewFact {
    /// Who or what it is about.
    pub subject: String,
    /// What is said.
    pub predicate: String,
    /// Of whom or what it is said.
    pub object: String,
    /// True from then on; for as long as anybody knows if not given.
    pub valid_from: Option<Moment>,
    /// No longer true from then on; still true if not given.
    pub valid_to: Option<Moment>,
    /// From 0 to 1; 1 if not given.
    pub confidence: Option<f64>,
    /// Where it comes from.
    pub provenance: Provenance,
    /// What the subject is: `person`, `project` ...
    pub subject_type: Option<String>,
    /// What the object is.
    pub object_type: Option<String>,
}

/// Where a fact comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Provenance {
    /// The id of a drawer.
    pub drawer: Option<String>,
    /// A file.
    pub file: Option<String>,
    /// Who recorded it.
    pub agent: Option<String>,
}

/// Somebody's word for a fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The id of a drawer.
    pub drawer: Option<String>,
    /// A file.
    pub file: Option<String>,
    /// Who said it.
    pub agent: Option<String>,
    /// How sure they were, from 0 to 1.
    pub confidence: f64,
    /// When it was said.
    pub recorded_at: Moment,
}

/// A fact in memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Names it for ever.
    pub id: String,
    /// Who or what it is about.
    pub subject: String,
    /// What is said.
    pub predicate: String,
    /// Of whom or what it is said.
    pub object: String,
    /// True from then on.
    pub valid_from: Option<Moment>,
    /// No longer true from then on.
    pub valid_to: Option<Moment>,
    /// From 0 to 1: the last one that was given.
    pub confidence: f64,
    /// Who has said so: the first of them, and the last ones who said something new.
    pub sources: Vec<Source>,
    /// When it was first recorded.
    pub recorded_at: Moment,
    /// Whether it is true now, as far as is known.
    pub current: bool,
    /// The fact that took its place.
    pub superseded_by: Option<String>,
}

/// Which way from an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Facts about it.
    Out,
    /// Facts that name it as their object.
    In,
    /// All of them.
    #[default]
    Both,
}

/// Which facts are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FactQuery {
    /// The entity, by its name or another name of it; all if not given.
    pub entity: Option<String>,
    /// Which way.
    pub direction: Direction,
    /// With this predicate.
    pub predicate: Option<String>,
    /// True then; whether true or not if not given.
    pub as_of: Option<Moment>,
    /// How many at most.
    pub limit: u32,
    /// How many of these to leave out.
    pub offset: u64,
}

/// What became of a [`NewFact`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedFact {
    /// The fact that says so now.
    pub id: String,
    /// Whether it is new.
    pub created: bool,
    /// Whether one that was there has learnt something: an earlier start, another source
    /// or confidence.
    pub updated: bool,
}

/// One fact that is there already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhichFact {
    /// The one of this id.
    Id(String),
    /// The one that says this and has not ended.
    Said {
        /// Who or what it is about.
        subject: String,
        /// What is said.
        predicate: String,
        /// Of whom or what; may be left out where only one fact says such a thing.
        object: Option<String>,
    },
}

/// What became of a fact that was to end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedFact {
    /// Which one it was.
    pub id: String,
    /// No longer true from then on.
    pub valid_to: Moment,
    /// Whether that is new.
    pub changed: bool,
}

/// A fact that is to take the place of another: of the same subject, with the same
/// predicate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Supersede {
    /// The one that ends.
    pub old: WhichFact,
    /// Of whom or what it is said from then on.
    pub object: String,
    /// What that is: `person`, `project` ...
    pub object_type: Option<String>,
    /// When the one ends and the other begins; now if not given.
    pub at: Option<Moment>,
    /// From 0 to 1; 1 if not given.
    pub confidence: Option<f64>,
    /// Where it comes from.
    pub provenance: Provenance,
}

/// What became of a [`Supersede`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupersededFact {
    /// The one that has ended.
    pub old: String,
    /// The one in its place.
    pub id: String,
    /// Whether that one is new.
    pub created: bool,
    /// When the one ended and the other began.
    pub at: Moment,
}

/// How many facts there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FactStats {
    /// All of them.
    pub facts: u64,
    /// True now.
    pub current: u64,
    /// No longer true.
    pub past: u64,
    /// Not yet true.
    pub future: u64,
    /// Entities that they are about.
    pub entities: u64,
    /// Different predicates.
    pub predicates: u64,
}

/// Somebody or something that facts are about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// Its name.
    pub name: String,
    /// What it is: `person`, `project` ...
    pub r#type: Option<String>,
    /// Other names of it.
    pub aliases: Vec<String>,
    /// Facts that it is part of.
    pub facts: u64,
}

/// What is to be known of an entity, which is made if it is not there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EntityPatch {
    /// Its name, or another name of it.
    pub name: String,
    /// What it is; an empty text takes that away, none leaves it.
    pub r#type: Option<String>,
    /// More names of it.
    pub add_aliases: Vec<String>,
    /// Other names that are not its own.
    pub remove_aliases: Vec<String>,
}

/// Which entities are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EntityQuery {
    /// Of this type.
    pub r#type: Option<String>,
    /// With this in their name or in another name of theirs.
    pub like: Option<String>,
    /// How many at most.
    pub limit: u32,
    /// How many of these to leave out.
    pub offset: u64,
}
