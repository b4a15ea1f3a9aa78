//! Facts, each true in a half-open period of time.

use serde::{Deserialize, Serialize};

use crate::{Failure, Moment};

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
    /// Its state at the time that the query asks about, which is now unless it says otherwise.
    pub state: FactState,
    /// When it was retracted as never true.
    pub retracted_at: Option<Moment>,
    /// The id of the fact that replaced it.
    pub superseded_by: Option<String>,
}

/// The state of a fact at some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactState {
    /// True at that time.
    Current,
    /// No longer true.
    Past,
    /// Not yet true.
    Future,
    /// Never true, although it was recorded.
    Retracted,
}

impl FactState {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Past => "past",
            Self::Future => "future",
            Self::Retracted => "retracted",
        }
    }
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
    /// With all of these words, or parts of words, in their subject, predicate or object.
    pub text: Option<String>,
    /// In this state at the time asked about. If not given: with a time, those true then;
    /// without one, all but retracted ones.
    pub state: Option<FactState>,
    /// The time asked about; now if not given.
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

/// The result of retracting a fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetractedFact {
    /// The fact's id.
    pub id: String,
    /// When it was retracted.
    pub retracted_at: Moment,
    /// Whether it was retracted just now.
    pub changed: bool,
}

/// What becomes of one of several facts that are added together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FactOutcome {
    /// It is stored.
    Stored(AddedFact),
    /// It was refused.
    Refused(Failure),
}

/// A relation between entities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predicate {
    /// Its name, as first written.
    pub name: String,
    /// Whether a subject can have only one object at a time.
    pub single_valued: bool,
    /// The number of facts with it that are not retracted.
    pub facts: u64,
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
    /// All facts but retracted ones.
    pub facts: u64,
    /// True now.
    pub current: u64,
    /// No longer true.
    pub past: u64,
    /// Not yet true.
    pub future: u64,
    /// Retracted as never true.
    pub retracted: u64,
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
