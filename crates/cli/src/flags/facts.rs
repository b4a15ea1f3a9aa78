//! Flags of the commands that deal with facts.

use clap::{Args, Subcommand, ValueEnum};
use isolith_engine::MOST_FACTS;
use isolith_types::{
    Code, Direction, EntityPatch, EntityQuery, FactQuery, Failure, Moment, NewFact, NoMoment,
    Provenance, Supersede, WhichFact,
};

use super::typed::{TypedOnce, TypedPersonal};
use crate::facts::FactCommand;

#[derive(Subcommand)]
pub(super) enum TypedFact {
    /// Add a fact: who or what, what is said, of whom or what
    ///
    /// It is true from --from until the moment before --to. If the same is known already,
    /// that fact is shown; what is new about it (an earlier start, another source, another
    /// confidence) is added to it. What overlaps a fact that says the same and ends at
    /// another time is refused.
    Add(TypedAddFact),
    /// Show what is known of an entity, what is true now first
    ///
    /// Facts that are no longer or not yet true are shown as well, and marked. --as-of
    /// shows only what was true then; a day means at any time of that day.
    Query(TypedQueryFacts),
    /// Note that a fact is no longer true; it stays in the history
    #[command(
        override_usage = "isolith fact invalidate [OPTIONS] <ID>\n       isolith fact invalidate [OPTIONS] <SUBJECT> <PREDICATE> [OBJECT]"
    )]
    Invalidate {
        /// The fact's id (f12), or what it says; its object may be left out if it is the only one
        #[arg(required = true, num_args = 1..=3, value_name = "FACT")]
        fact: Vec<String>,
        /// No longer true from then on [default: now]
        #[arg(long, value_name = "WHEN")]
        at: Option<String>,
        #[command(flatten)]
        once: TypedOnce,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Replace a fact: end it, and begin one with another object at the same moment
    #[command(
        override_usage = "isolith fact supersede [OPTIONS] <ID> <NEW>\n       isolith fact supersede [OPTIONS] <SUBJECT> <PREDICATE> [OLD] <NEW>"
    )]
    Supersede(TypedSupersede),
    /// Show facts in the order in which they became true
    Timeline {
        /// Only those of this entity
        entity: Option<String>,
        #[command(flatten)]
        page: TypedPage,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Count facts: true now, no longer, not yet
    Stats {
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// List what facts are about
    Entities {
        /// Only of this type
        #[arg(long = "type", value_name = "TYPE")]
        of_type: Option<String>,
        /// Only with this in one of their names
        #[arg(long, value_name = "TEXT")]
        like: Option<String>,
        #[command(flatten)]
        page: TypedPage,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Show an entity, or, with flags, give it a type and other names
    ///
    /// Facts can be added and asked for by any of its names.
    Entity(TypedEntity),
}

#[derive(Args)]
pub(super) struct TypedAddFact {
    /// Who or what it is about
    subject: String,
    /// What is said: works_at, lives_in, ...
    predicate: String,
    /// Of whom or what
    object: String,
    /// True from then on: a day (2026-01-31), or an instant with its zone
    /// (2026-01-31T09:30:00Z) [default: nobody knows]
    #[arg(long, value_name = "WHEN")]
    from: Option<String>,
    /// No longer true from then on [default: still true]
    ///
    /// The same day as --from means that day, the same instant that instant.
    #[arg(long, value_name = "WHEN")]
    to: Option<String>,
    #[command(flatten)]
    word: TypedWord,
    /// What the subject is: person, project, ...
    #[arg(long, value_name = "TYPE")]
    subject_type: Option<String>,
    /// What the object is
    #[arg(long, value_name = "TYPE")]
    object_type: Option<String>,
    #[command(flatten)]
    once: TypedOnce,
    #[command(flatten)]
    place: TypedPersonal,
}

/// Who says so, and how sure they are.
#[derive(Args)]
struct TypedWord {
    /// How sure it is, from 0 to 1 [default: 1]
    #[arg(long, value_name = "C", allow_negative_numbers = true)]
    confidence: Option<f64>,
    /// The drawer that it comes from
    #[arg(long, value_name = "ID")]
    drawer: Option<String>,
    /// The file that it comes from
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
    /// Who says so
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

#[derive(Args)]
pub(super) struct TypedQueryFacts {
    /// A person, a project, anything that facts are about, by any of its names
    #[arg(required_unless_present = "predicate")]
    entity: Option<String>,
    /// Only what was true then: on a day (2026-01-31), or at an instant
    /// (2026-01-31T09:30:00Z)
    #[arg(long, value_name = "WHEN")]
    as_of: Option<String>,
    /// Facts about it (out), facts that name it as their object (in), or both
    #[arg(long, value_enum, default_value_t = TypedDirection::Both)]
    direction: TypedDirection,
    /// Only with this predicate
    #[arg(long, value_name = "PREDICATE")]
    predicate: Option<String>,
    #[command(flatten)]
    page: TypedPage,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Args)]
pub(super) struct TypedSupersede {
    /// The fact's id (f12), or what it says; its object may be left out if it is the only one
    #[arg(required = true, num_args = 1..=3, value_name = "FACT")]
    fact: Vec<String>,
    /// Of whom or what it is said from then on
    new: String,
    /// When the one ends and the other begins [default: now]
    #[arg(long, value_name = "WHEN")]
    at: Option<String>,
    #[command(flatten)]
    word: TypedWord,
    /// What the new object is: person, project, ...
    #[arg(long, value_name = "TYPE")]
    object_type: Option<String>,
    #[command(flatten)]
    once: TypedOnce,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Args)]
pub(super) struct TypedEntity {
    /// Its name, or another name of it
    name: String,
    /// What it is: person, project, ...; an empty text takes that away
    #[arg(long = "type", value_name = "TYPE")]
    of_type: Option<String>,
    /// Another name of it; may be repeated
    #[arg(long = "alias", value_name = "NAME")]
    aliases: Vec<String>,
    /// A name that is not its own; may be repeated
    #[arg(long = "no-alias", value_name = "NAME")]
    no_aliases: Vec<String>,
    #[command(flatten)]
    once: TypedOnce,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Args)]
pub(super) struct TypedPage {
    /// Show at most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..i64::from(MOST_FACTS)))]
    limit: u32,
    /// Skip so many
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u64,
}

#[derive(Clone, Copy, ValueEnum)]
enum TypedDirection {
    Out,
    In,
    Both,
}

impl TypedFact {
    pub(super) fn place(&self) -> &TypedPersonal {
        match self {
            Self::Add(TypedAddFact { place, .. })
            | Self::Query(TypedQueryFacts { place, .. })
            | Self::Supersede(TypedSupersede { place, .. })
            | Self::Entity(TypedEntity { place, .. })
            | Self::Invalidate { place, .. }
            | Self::Timeline { place, .. }
            | Self::Stats { place }
            | Self::Entities { place, .. } => place,
        }
    }

    pub(super) fn command(self) -> Result<FactCommand, Failure> {
        Ok(match self {
            Self::Add(typed) => typed.command()?,
            Self::Query(typed) => FactCommand::Query(typed.query()?),
            Self::Invalidate { fact, at, once, .. } => {
                FactCommand::Invalidate { which: which(fact), at: moment(at)?, key: once.key() }
            }
            Self::Supersede(typed) => typed.command()?,
            Self::Timeline { entity, page, .. } => {
                FactCommand::Timeline { entity, limit: page.limit, offset: page.offset }
            }
            Self::Stats { .. } => FactCommand::Stats,
            Self::Entities { of_type, like, page, .. } => FactCommand::Entities(EntityQuery {
                r#type: of_type,
                like,
                limit: page.limit,
                offset: page.offset,
            }),
            Self::Entity(typed) => typed.command(),
        })
    }
}

impl TypedAddFact {
    fn command(self) -> Result<FactCommand, Failure> {
        let (confidence, provenance) = self.word.said();
        let fact = NewFact {
            subject: self.subject,
            predicate: self.predicate,
            object: self.object,
            valid_from: moment(self.from)?,
            valid_to: moment(self.to)?,
            confidence,
            provenance,
            subject_type: self.subject_type,
            object_type: self.object_type,
        };
        Ok(FactCommand::Add { fact: Box::new(fact), key: self.once.key() })
    }
}

impl TypedQueryFacts {
    fn query(self) -> Result<FactQuery, Failure> {
        Ok(FactQuery {
            entity: self.entity,
            direction: match self.direction {
                TypedDirection::Out => Direction::Out,
                TypedDirection::In => Direction::In,
                TypedDirection::Both => Direction::Both,
            },
            predicate: self.predicate,
            as_of: moment(self.as_of)?,
            limit: self.page.limit,
            offset: self.page.offset,
        })
    }
}

impl TypedSupersede {
    fn command(self) -> Result<FactCommand, Failure> {
        let (confidence, provenance) = self.word.said();
        let change = Supersede {
            old: which(self.fact),
            object: self.new,
            object_type: self.object_type,
            at: moment(self.at)?,
            confidence,
            provenance,
        };
        Ok(FactCommand::Supersede { change: Box::new(change), key: self.once.key() })
    }
}

impl TypedEntity {
    fn command(self) -> FactCommand {
        let Self { name, of_type, aliases, no_aliases, once, .. } = self;
        if of_type.is_none() && aliases.is_empty() && no_aliases.is_empty() {
            return FactCommand::Entity { name };
        }
        let patch =
            EntityPatch { name, r#type: of_type, add_aliases: aliases, remove_aliases: no_aliases };
        FactCommand::Describe { patch, key: once.key() }
    }
}

impl TypedWord {
    fn said(self) -> (Option<f64>, Provenance) {
        let Self { confidence, drawer, file, agent } = self;
        (confidence, Provenance { drawer, file, agent })
    }
}

/// One word is an id, more are what a fact says.
fn which(words: Vec<String>) -> WhichFact {
    let mut words = words.into_iter();
    let first = words.next().unwrap_or_default();
    match words.next() {
        None => WhichFact::Id(first),
        Some(predicate) => WhichFact::Said { subject: first, predicate, object: words.next() },
    }
}

fn moment(text: Option<String>) -> Result<Option<Moment>, Failure> {
    let parse = |text: String| {
        text.parse().map_err(|error: NoMoment| Failure::new(Code::BadInput, error.to_string()))
    };
    text.map(parse).transpose()
}
