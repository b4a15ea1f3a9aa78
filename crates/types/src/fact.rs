//! Facts, each true in a half-open period of time.

use serde::{Deserialize, Serialize};

use crate::Moment;

/// A fact to be added.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NewFact {
    /// The entity that the fact is about.
    pub subject: String,
    /// The relation, such as `works_for`.
    pub predicate: String,
    /// The entity that the subject is related to.
    pub object: String,
    /// True from this time on; no known start if not given.
    pub valid_from: Option<Moment>,
    /// No longer true from this time on; still true if not given.
    pub valid_to: Option<Moment>,
    /// From 0 to 1; 1 if not given.
    pub confidence: Option<f64>,
    /// Its origin.
    pub provenance: Provenance,
    /// The subject's type, such as `person` or `project`.
    pub subject_type: Option<String>,
    /// The object's type.
    pub object_type: Option<String>,
}

/// The origin of a fact.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Provenance {
    /// The id of a drawer.
    pub drawer: Option<String>,
    /// A file.
    pub file: Option<String>,
    /// Who recorded it.
    pub agent: Option<String>,
}

/// A statement of a fact: who recorded it, when and from what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// The id of a drawer.
    pub drawer: Option<String>,
    /// A file.
    pub file: Option<String>,
    /// Who recorded it.
    pub agent: Option<String>,
    /// From 0 to 1.
    pub confidence: f64,
    /// When it was recorded.
    pub recorded_at: Moment,
}

/// A stored fact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fact {
    /// Its id, never reused.
    pub id: String,
    /// The entity that the fact is about.
    pub subject: String,
    /// The relation, such as `works_for`.
    pub predicate: String,
    /// The entity that the subject is related to.
    pub object: String,
    /// True from this time on.
    pub valid_from: Option<Moment>,
    /// No longer true from this time on.
    pub valid_to: Option<Moment>,
    /// From 0 to 1; the last one recorded.
    pub confidence: f64,
    /// Its sources: the first, and the most recent ones that added something.
    pub sources: Vec<Source>,
    /// When it was first recorded.
    pub recorded_at: Moment,
    /// Whether it is true now.
    pub current: bool,
    /// The id of the fact that replaced it.
    pub superseded_by: Option<String>,
}

/// The role of an entity in the facts that a query returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactDirection {
    /// The entity is the subject.
    Out,
    /// The entity is the object.
    In,
    /// Either.
    #[default]
    Both,
}

/// Selects facts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FactQuery {
    /// The entity, by name or alias; any if not given.
    pub entity: Option<String>,
    /// The entity's role.
    pub direction: FactDirection,
    /// With this predicate.
    pub predicate: Option<String>,
    /// Only facts that are true at this time.
    pub as_of: Option<Moment>,
    /// The maximum number of results.
    pub limit: u32,
    /// The number of results to skip.
    pub offset: u64,
}

/// The result of adding a [`NewFact`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedFact {
    /// The id of the new or existing fact.
    pub id: String,
    /// Whether it is new.
    pub created: bool,
    /// Whether an existing fact was updated: an earlier start, another source or confidence.
    pub updated: bool,
}

/// Selects an existing fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhichFact {
    /// The fact with this id.
    Id(String),
    /// The fact that says this and has not ended.
    Said {
        /// The entity that the fact is about.
        subject: String,
        /// The relation.
        predicate: String,
        /// The object; optional if only one fact has this subject and predicate.
        object: Option<String>,
    },
}

/// The result of ending a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedFact {
    /// The fact's id.
    pub id: String,
    /// No longer true from this time on.
    pub valid_to: Moment,
    /// Whether this changed its end.
    pub changed: bool,
}

/// A fact that replaces another one with the same subject and predicate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Supersede {
    /// The fact that ends.
    pub old: WhichFact,
    /// The new object.
    pub object: String,
    /// The object's type, such as `person` or `project`.
    pub object_type: Option<String>,
    /// When the old fact ends and the new one starts; now if not given.
    pub at: Option<Moment>,
    /// From 0 to 1; 1 if not given.
    pub confidence: Option<f64>,
    /// Its origin.
    pub provenance: Provenance,
}

/// The result of a [`Supersede`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupersededFact {
    /// The id of the fact that ended.
    pub old: String,
    /// The id of the fact that replaces it.
    pub id: String,
    /// Whether the replacing fact is new.
    pub created: bool,
    /// When the old fact ended and the new one started.
    pub at: Moment,
}

/// Counts of facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FactStats {
    /// All facts.
    pub facts: u64,
    /// True now.
    pub current: u64,
    /// No longer true.
    pub past: u64,
    /// Not yet true.
    pub future: u64,
    /// Entities that occur in facts.
    pub entities: u64,
    /// Different predicates.
    pub predicates: u64,
}

/// A subject or object of facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entity {
    /// Its name.
    pub name: String,
    /// Its type, such as `person` or `project`.
    pub r#type: Option<String>,
    /// Its other names.
    pub aliases: Vec<String>,
    /// The number of facts in which it occurs.
    pub facts: u64,
}

/// A change of an entity, which is created if it does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EntityPatch {
    /// Its name or an alias.
    pub name: String,
    /// Its type; an empty string removes it, `None` leaves it unchanged.
    pub r#type: Option<String>,
    /// Aliases to add.
    pub add_aliases: Vec<String>,
    /// Aliases to remove.
    pub remove_aliases: Vec<String>,
}

/// Selects entities.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EntityQuery {
    /// Of this type.
    pub r#type: Option<String>,
    /// With this text in their name or an alias.
    pub like: Option<String>,
    /// The maximum number of results.
    pub limit: u32,
    /// The number of results to skip.
    pub offset: u64,
}
