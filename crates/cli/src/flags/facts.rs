//! Flags of the commands that deal with facts.

use clap::{Args, Subcommand, ValueEnum};
use isolith_engine::MOST_FACTS;
use isolith_types::{
    Code, EntityPatch, EntityQuery, FactDirection, FactQuery, FactState, Failure, InvalidMoment,
    Moment, NewFact, Provenance, Supersede, WhichFact,
};

use super::examples;
use super::settings::Context;
use super::typed::{TypedOnce, TypedPersonal};
use crate::facts::{FactCommand, FactRead, FactWrite};

/// Facts and entities that are listed by default.
const DEFAULT_ROWS: u32 = 100;

#[derive(Subcommand)]
pub(super) enum TypedFact {
    /// Add a fact: subject, predicate, object
    ///
    /// It is true from --from until just before --to. If the fact exists, it is shown, and
    /// what is new about it (an earlier start, another source or confidence) is added. A fact
    /// that overlaps the same fact with a different end is refused.
    #[command(after_long_help = examples::FACT_ADD)]
    Add(TypedAddFact),
    /// Show the facts about an entity, current facts first
    ///
    /// Past and future facts are shown too, and marked. --as-of shows only what was true at
    /// that time; a day means any time of that day.
    #[command(after_long_help = examples::FACT_QUERY)]
    Query(TypedQueryFacts),
    /// Mark a fact as no longer true; it stays in the history
    #[command(
        after_long_help = examples::FACT_INVALIDATE,
        override_usage = "isolith fact invalidate [OPTIONS] <ID>\n       isolith fact invalidate [OPTIONS] <SUBJECT> <PREDICATE> [OBJECT]"
    )]
    Invalidate {
        /// Id of the fact (f12), or its subject, predicate and object
        #[arg(required = true, num_args = 1..=3, value_name = "FACT")]
        fact: Vec<String>,
        /// When the fact ends [default: now]
        #[arg(long, value_name = "WHEN")]
        at: Option<String>,
        #[command(flatten)]
        once: TypedOnce,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Mark a fact as never true; it is kept as retracted
    ///
    /// Retracted facts are shown by `fact timeline` and `fact list --state retracted` only. To
    /// end a fact that was true, use `fact invalidate`.
    #[command(
        after_long_help = examples::FACT_RETRACT,
        override_usage = "isolith fact retract [OPTIONS] <ID>\n       isolith fact retract [OPTIONS] <SUBJECT> <PREDICATE> [OBJECT]"
    )]
    Retract {
        /// Id of the fact (f12), or its subject, predicate and object
        #[arg(required = true, num_args = 1..=3, value_name = "FACT")]
        fact: Vec<String>,
        #[command(flatten)]
        once: TypedOnce,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// List facts, current facts first
    #[command(after_long_help = examples::FACT_LIST)]
    List {
        #[command(flatten)]
        filter: TypedFactFilter,
        #[command(flatten)]
        page: TypedPage,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Find facts by words in their subject, predicate or object
    ///
    /// Every word must occur, as a part of any name of the subject or object, or of the
    /// predicate.
    #[command(after_long_help = examples::FACT_SEARCH)]
    Search {
        /// Words to look for
        text: String,
        #[command(flatten)]
        filter: TypedFactFilter,
        #[command(flatten)]
        page: TypedPage,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Import facts from a file with one JSON object per line
    ///
    /// Keys: subject, predicate, object, valid_from, valid_to, confidence, subject_type,
    /// object_type, drawer, file, agent; the first three are required. Importing a file again
    /// changes nothing. If a row cannot be read, nothing is imported; facts that others
    /// exclude are left out and listed with their row.
    #[command(after_long_help = examples::FACT_IMPORT)]
    Import {
        /// File to import; - for standard input
        file: std::path::PathBuf,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// List predicates, and which of them have one object at a time
    #[command(after_long_help = examples::FACT_PREDICATES)]
    Predicates {
        #[command(flatten)]
        page: TypedPage,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Declare whether a subject can have several objects of a predicate at the same time
    ///
    /// With --single, a fact is refused if the subject has another object at the same time.
    #[command(after_long_help = examples::FACT_PREDICATE)]
    Predicate {
        /// Predicate: works_at, lives_in, …
        predicate: String,
        /// One object at a time
        #[arg(long, required_unless_present = "multiple")]
        single: bool,
        /// Any number of objects
        #[arg(long, conflicts_with = "single")]
        multiple: bool,
        #[command(flatten)]
        once: TypedOnce,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Replace a fact: end it and start one with a new object at the same time
    #[command(
        after_long_help = examples::FACT_SUPERSEDE,
        override_usage = "isolith fact supersede [OPTIONS] <ID> <NEW>\n       isolith fact supersede [OPTIONS] <SUBJECT> <PREDICATE> [OLD] <NEW>"
    )]
    Supersede(TypedSupersede),
    /// Show facts in the order in which they became true
    #[command(after_long_help = examples::FACT_TIMELINE)]
    Timeline {
        /// Only facts about this entity
        entity: Option<String>,
        /// Only facts that had become true by then, in their state at that time
        #[arg(help_heading = "Filters", long, value_name = "WHEN")]
        as_of: Option<String>,
        #[command(flatten)]
        page: TypedPage,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Count current, past and future facts
    #[command(after_long_help = examples::FACT_STATS)]
    Stats {
        /// Count the facts that are current, past and future at that time [default: now]
        #[arg(long, value_name = "WHEN")]
        as_of: Option<String>,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// List the entities that facts are about
    #[command(after_long_help = examples::FACT_ENTITIES)]
    Entities {
        /// Only entities of this type
        #[arg(help_heading = "Filters", long = "type", value_name = "TYPE")]
        of_type: Option<String>,
        /// Only entities with this text in one of their names
        #[arg(help_heading = "Filters", long, value_name = "TEXT")]
        like: Option<String>,
        #[command(flatten)]
        page: TypedPage,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Show an entity, or set its type and aliases
    ///
    /// Facts can be added and queried by any of an entity's names.
    #[command(after_long_help = examples::FACT_ENTITY)]
    Entity(TypedEntity),
}

#[derive(Args)]
pub(super) struct TypedAddFact {
    /// Subject: who or what the fact is about
    subject: String,
    /// Predicate: works_at, lives_in, …
    predicate: String,
    /// Object: whom or what it relates to
    object: String,
    /// When the fact starts: 2026-01-31 or 2026-01-31T09:30:00Z [default: unknown]
    #[arg(long, value_name = "WHEN")]
    from: Option<String>,
    /// When the fact ends [default: still true]
    ///
    /// The same day as --from means only that day; the same time means only that instant.
    #[arg(long, value_name = "WHEN")]
    to: Option<String>,
    /// Type of the subject: person, project, …
    #[arg(long, value_name = "TYPE")]
    subject_type: Option<String>,
    /// Type of the object
    #[arg(long, value_name = "TYPE")]
    object_type: Option<String>,
    #[command(flatten)]
    once: TypedOnce,
    #[command(flatten)]
    word: TypedProvenance,
    #[command(flatten)]
    place: TypedPersonal,
}

/// Confidence and provenance of a fact.
#[derive(Args)]
#[command(next_help_heading = "Source")]
struct TypedProvenance {
    /// Confidence from 0 to 1 [default: 1]
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    confidence: Option<f64>,
    /// Id of the drawer that the fact comes from
    #[arg(long, value_name = "ID")]
    drawer: Option<String>,
    /// File that the fact comes from
    #[arg(long, value_name = "FILE")]
    file: Option<String>,
    /// Agent that adds the fact
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

#[derive(Args)]
pub(super) struct TypedQueryFacts {
    /// Entity, by any of its names [default: with --predicate, all entities]
    #[arg(required_unless_present = "predicate")]
    entity: Option<String>,
    /// Only facts true at that time: 2026-01-31 or 2026-01-31T09:30:00Z
    #[arg(help_heading = "Filters", long, value_name = "WHEN")]
    as_of: Option<String>,
    /// Facts with the entity as subject (out), as object (in), or both
    #[arg(help_heading = "Filters", long, value_enum, default_value_t = TypedDirection::Both)]
    direction: TypedDirection,
    /// Only facts with this predicate
    #[arg(help_heading = "Filters", long, value_name = "PREDICATE")]
    predicate: Option<String>,
    #[command(flatten)]
    page: TypedPage,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Args)]
#[command(next_help_heading = "Filters")]
pub(super) struct TypedFactFilter {
    /// Only facts with this predicate
    #[arg(long, value_name = "PREDICATE")]
    predicate: Option<String>,
    /// Only facts in this state, at the time of --as-of or now [default: all but retracted]
    #[arg(long, value_enum, value_name = "STATE")]
    state: Option<TypedState>,
    /// Only facts true at that time, unless --state is given: 2026-01-31 or 2026-01-31T09:30:00Z
    #[arg(long, value_name = "WHEN")]
    as_of: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum TypedState {
    Current,
    Past,
    Future,
    Retracted,
}

#[derive(Args)]
pub(super) struct TypedSupersede {
    /// Id of the fact (f12), or its subject, predicate and object
    #[arg(required = true, num_args = 1..=3, value_name = "FACT")]
    fact: Vec<String>,
    /// New object
    new: String,
    /// When the old fact ends and the new one starts [default: now]
    #[arg(long, value_name = "WHEN")]
    at: Option<String>,
    /// Type of the new object: person, project, …
    #[arg(long, value_name = "TYPE")]
    object_type: Option<String>,
    #[command(flatten)]
    once: TypedOnce,
    #[command(flatten)]
    word: TypedProvenance,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Args)]
pub(super) struct TypedEntity {
    /// Name or alias of the entity
    name: String,
    /// Type of the entity: person, project, …; "" removes it
    #[arg(long = "type", value_name = "TYPE")]
    of_type: Option<String>,
    /// Add an alias; may be repeated
    #[arg(long = "alias", value_name = "NAME")]
    aliases: Vec<String>,
    /// Remove an alias; may be repeated
    #[arg(long = "no-alias", value_name = "NAME")]
    no_aliases: Vec<String>,
    #[command(flatten)]
    once: TypedOnce,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Args)]
#[command(next_help_heading = "Output")]
pub(super) struct TypedPage {
    /// Maximum number of rows [default: limits.rows, or 100]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..i64::from(MOST_FACTS)))]
    limit: Option<u32>,
    /// Number of rows to skip
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
            | Self::Retract { place, .. }
            | Self::List { place, .. }
            | Self::Search { place, .. }
            | Self::Import { place, .. }
            | Self::Predicates { place, .. }
            | Self::Predicate { place, .. }
            | Self::Timeline { place, .. }
            | Self::Stats { place, .. }
            | Self::Entities { place, .. } => place,
        }
    }

    pub(super) fn command(self, context: &Context<'_>) -> Result<FactCommand, Failure> {
        Ok(match self {
            Self::Add(typed) => typed.command()?,
            Self::Query(typed) => FactRead::Query(typed.query(context)?).into(),
            Self::Invalidate { fact, at, once, .. } => {
                FactWrite::Invalidate { which: which(fact), at: moment(at)?, key: once.key() }
                    .into()
            }
            Self::Supersede(typed) => typed.command()?,
            Self::Retract { fact, once, .. } => {
                FactWrite::Retract { which: which(fact), key: once.key() }.into()
            }
            Self::List { filter, page, .. } => {
                FactRead::Query(filter.query(None, &page, context)?).into()
            }
            Self::Search { text, filter, page, .. } => {
                FactRead::Query(filter.query(Some(text), &page, context)?).into()
            }
            Self::Import { file, .. } => FactCommand::Import(file),
            Self::Predicates { page, .. } => {
                FactRead::Predicates { limit: page.limit(context)?, offset: page.offset }.into()
            }
            Self::Predicate { predicate, single, once, .. } => {
                FactWrite::Declare { predicate, single_valued: single, key: once.key() }.into()
            }
            Self::Timeline { entity, as_of, page, .. } => FactRead::Timeline {
                entity,
                as_of: moment(as_of)?,
                limit: page.limit(context)?,
                offset: page.offset,
            }
            .into(),
            Self::Stats { as_of, .. } => FactRead::Stats { as_of: moment(as_of)? }.into(),
            Self::Entities { of_type, like, page, .. } => FactRead::Entities(EntityQuery {
                r#type: of_type,
                like,
                limit: page.limit(context)?,
                offset: page.offset,
            })
            .into(),
            Self::Entity(typed) => typed.command(),
        })
    }
}

impl TypedPage {
    fn limit(&self, context: &Context<'_>) -> Result<u32, Failure> {
        context.rows(self.limit, DEFAULT_ROWS)
    }
}

impl TypedAddFact {
    fn command(self) -> Result<FactCommand, Failure> {
        let (confidence, provenance) = self.word.provenance();
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
        Ok(FactWrite::Add { fact: Box::new(fact), key: self.once.key() }.into())
    }
}

impl TypedQueryFacts {
    fn query(self, context: &Context<'_>) -> Result<FactQuery, Failure> {
        Ok(FactQuery {
            entity: self.entity,
            direction: match self.direction {
                TypedDirection::Out => FactDirection::Out,
                TypedDirection::In => FactDirection::In,
                TypedDirection::Both => FactDirection::Both,
            },
            predicate: self.predicate,
            as_of: moment(self.as_of)?,
            limit: self.page.limit(context)?,
            offset: self.page.offset,
            ..FactQuery::default()
        })
    }
}

impl TypedFactFilter {
    fn query(
        self,
        text: Option<String>,
        page: &TypedPage,
        context: &Context<'_>,
    ) -> Result<FactQuery, Failure> {
        Ok(FactQuery {
            text,
            predicate: self.predicate,
            state: self.state.map(|state| match state {
                TypedState::Current => FactState::Current,
                TypedState::Past => FactState::Past,
                TypedState::Future => FactState::Future,
                TypedState::Retracted => FactState::Retracted,
            }),
            as_of: moment(self.as_of)?,
            limit: page.limit(context)?,
            offset: page.offset,
            ..FactQuery::default()
        })
    }
}

impl TypedSupersede {
    fn command(self) -> Result<FactCommand, Failure> {
        let (confidence, provenance) = self.word.provenance();
        let change = Supersede {
            old: which(self.fact),
            object: self.new,
            object_type: self.object_type,
            at: moment(self.at)?,
            confidence,
            provenance,
        };
        Ok(FactWrite::Supersede { change: Box::new(change), key: self.once.key() }.into())
    }
}

impl TypedEntity {
    fn command(self) -> FactCommand {
        let Self { name, of_type, aliases, no_aliases, once, .. } = self;
        if of_type.is_none() && aliases.is_empty() && no_aliases.is_empty() {
            return FactRead::Entity { name }.into();
        }
        let patch =
            EntityPatch { name, r#type: of_type, add_aliases: aliases, remove_aliases: no_aliases };
        FactWrite::Describe { patch, key: once.key() }.into()
    }
}

impl TypedProvenance {
    fn provenance(self) -> (Option<f64>, Provenance) {
        let Self { confidence, drawer, file, agent } = self;
        (confidence, Provenance { drawer, file, agent })
    }
}

/// One word is an id; otherwise subject, predicate and object.
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
        text.parse().map_err(|error: InvalidMoment| Failure::new(Code::BadInput, error.to_string()))
    };
    text.map(parse).transpose()
}
