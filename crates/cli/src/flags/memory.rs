//! Flags of the commands that deal with memory.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use isolith_engine::{DiaryEntry, MemorySearch, WhichDrawers, project_names};
use isolith_serve::{WAKE_UP_BUDGET, read_checkpoint};
use isolith_types::{
    Code, DrawerFilter, DrawerOrder, DrawerPage, DrawerPatch, Failure, Metadata, Moment, NewDrawer,
};

use super::code::{DEFAULT_RESULTS, TypedMode};
use super::examples;
use super::memory_import::TypedImport;
use super::settings::{Context, working_folder};
use super::typed::{TypedOnce, TypedPersonal};
use crate::memory::{DrawerCommand, ListPlan, MemoryCommand, read_text};

/// Default wing and room.
const GENERAL: &str = "general";

/// Default number of drawers to list.
const DEFAULT_ROWS: u32 = 20;

#[derive(Subcommand)]
pub(super) enum TypedMemory {
    /// Store a text, word for word
    ///
    /// The same text in the same wing and room and from the same source is stored once:
    /// adding it again changes nothing and shows the existing drawer.
    #[command(after_long_help = examples::MEMORY_ADD)]
    Add(TypedAdd),
    /// Search memory by question or keywords
    ///
    /// Ranks by keywords and by meaning together. Neighbouring texts that resemble each other,
    /// such as the turns of a conversation, raise each other's rank.
    #[command(after_long_help = examples::MEMORY_SEARCH)]
    Search(TypedMemorySearch),
    /// Show drawers with their full texts
    #[command(after_long_help = examples::MEMORY_GET)]
    Get {
        /// Ids of the drawers
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// List drawers, newest first
    #[command(after_long_help = examples::MEMORY_LIST)]
    List(TypedList),
    /// Change a drawer
    ///
    /// The id stays the same, and so does everything that is not given. An empty value removes
    /// an optional field: --author "" removes the author, --date "" the date, --tag "" all tags.
    #[command(after_long_help = examples::MEMORY_UPDATE)]
    Update(TypedUpdate),
    /// Delete drawers by id, source, room or another filter
    #[command(after_long_help = examples::MEMORY_DELETE)]
    Delete(TypedDelete),
    /// Show all wings and rooms with their numbers of drawers
    #[command(after_long_help = examples::MEMORY_TAXONOMY)]
    Taxonomy {
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Write and read agents' diaries
    #[command(subcommand, after_long_help = examples::DIARY)]
    Diary(TypedDiary),
    /// Show what is worth knowing when a session begins
    ///
    /// What the project is, open ends, decisions, current facts and diary entries, within a budget
    /// of tokens. Hooks give the same to agents: see `isolith setup --hooks`.
    #[command(after_long_help = examples::MEMORY_WAKE_UP)]
    WakeUp(TypedWakeUp),
    /// Store drawers, facts and a diary entry of a session, all or nothing
    ///
    /// Takes one JSON object: {"wing": NAME, "drawers": [{"text", "room", "tags"}], "facts":
    /// [{"subject", "predicate", "object", "valid_from"}], "diary": TEXT, "agent": NAME}. All but
    /// the wing is optional.
    #[command(after_long_help = examples::MEMORY_CHECKPOINT)]
    Checkpoint {
        /// File with the checkpoint [default: standard input]
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        once: TypedOnce,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Import conversations and drawers from files
    ///
    /// Accepts exports of Claude and ChatGPT, sessions of Claude Code, chats and documents as
    /// text or Markdown, and JSONL of drawers. Each turn becomes a drawer, word for word. What
    /// is already stored stays unchanged: run the same command again to continue an interrupted
    /// import. What cannot be imported is skipped and reported.
    #[command(after_long_help = examples::MEMORY_IMPORT)]
    Import(TypedImport),
}

#[derive(Args)]
pub(super) struct TypedWakeUp {
    /// Person or project; may be repeated [default: that of the working folder]
    #[arg(long = "wing", value_name = "NAME")]
    wings: Vec<String>,
    /// Maximum length in tokens, estimated
    #[arg(long, value_name = "TOKENS", default_value_t = WAKE_UP_BUDGET, value_parser = clap::value_parser!(u32).range(100..=20_000))]
    budget: u32,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Args)]
pub(super) struct TypedText {
    /// The text; words are joined by spaces; - for standard input
    #[arg(value_name = "TEXT", conflicts_with = "file")]
    text: Vec<String>,
    /// File with the text
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct TypedAbout {
    /// Author of the text
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Date of the text: 2026-01-31 or 2026-01-31T09:30:00Z
    #[arg(long, value_name = "WHEN")]
    date: Option<String>,
    /// Date in any other form, found by searches
    #[arg(long, value_name = "WORDS")]
    date_text: Option<String>,
    /// Tag to find it by; may be repeated
    #[arg(long = "tag", value_name = "WORD")]
    tags: Vec<String>,
    /// Further properties, as a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
}

#[derive(Args)]
pub(super) struct TypedAdd {
    #[command(flatten)]
    text: TypedText,
    /// Person or project that it is about
    #[arg(long, value_name = "NAME", default_value = GENERAL)]
    wing: String,
    /// Topic
    #[arg(long, value_name = "NAME", default_value = GENERAL)]
    room: String,
    /// Source: a file, a conversation, a message [default: the path of --file]
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    #[command(flatten)]
    about: TypedAbout,
    /// Show existing drawers that are at least this similar, from 0 to 1
    #[arg(long, value_name = "SIMILARITY", value_parser = similarity)]
    near: Option<f32>,
    #[command(flatten)]
    once: TypedOnce,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Args)]
#[command(next_help_heading = "Filters")]
pub(super) struct TypedWhere {
    /// Only in this wing
    #[arg(long, value_name = "NAME")]
    wing: Option<String>,
    /// Only in this room
    #[arg(long, value_name = "NAME")]
    room: Option<String>,
    /// Only from this source
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// Only by this author
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Only with this tag; may be repeated
    #[arg(long = "tag", value_name = "WORD")]
    tags: Vec<String>,
    /// Only from this date on; a drawer without a date counts by when it was stored
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only up to this date, inclusive
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
}

#[derive(Args)]
pub(super) struct TypedMemorySearch {
    /// A question, or keywords
    #[arg(required = true, num_args = 1.., value_name = "QUERY")]
    query: Vec<String>,
    /// How to rank results
    #[arg(long, value_enum, default_value_t = TypedMode::Hybrid)]
    mode: TypedMode,
    #[command(flatten)]
    filter: TypedWhere,
    /// Ignore dates in the question
    ///
    /// Otherwise a question with "in May 2026", "last week" or "two months ago" finds drawers
    /// of that time, unless only others fit. --since and --until have the same effect.
    #[arg(help_heading = "Filters", long)]
    any_date: bool,
    /// Day from which dates such as "last week" count [default: today]
    #[arg(help_heading = "Filters", long, value_name = "WHEN", conflicts_with = "any_date")]
    now: Option<String>,
    /// Maximum number of results [default: limits.results, or 10]
    #[arg(long, short = 'n', help_heading = "Output", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: Option<u32>,
    /// Print one JSON document per line, one for each result
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    jsonl: bool,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Args)]
pub(super) struct TypedList {
    #[command(flatten)]
    filter: TypedWhere,
    /// Maximum number of drawers [default: limits.rows, or 20]
    #[arg(long, short = 'n', help_heading = "Output", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: Option<u32>,
    /// Number of drawers to skip
    #[arg(long, help_heading = "Output", value_name = "N", default_value_t = 0)]
    offset: u64,
    /// Sort by wing, room and time of storing
    #[arg(long, help_heading = "Output")]
    by_position: bool,
    /// Print one JSON document per line, one for each drawer
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    jsonl: bool,
    /// Print all drawers, in the format of `memory import --format drawers`
    #[arg(long, help_heading = "Output", requires = "jsonl", conflicts_with_all = ["json", "limit", "offset", "by_position"])]
    all: bool,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Args)]
pub(super) struct TypedUpdate {
    /// Id of the drawer
    id: String,
    #[command(flatten)]
    text: TypedText,
    /// Move it to this wing
    #[arg(long, value_name = "NAME")]
    wing: Option<String>,
    /// Move it to this room
    #[arg(long, value_name = "NAME")]
    room: Option<String>,
    /// Source: a file, a conversation, a message
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    #[command(flatten)]
    about: TypedAbout,
    #[command(flatten)]
    once: TypedOnce,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Args)]
pub(super) struct TypedDelete {
    /// Ids of the drawers
    #[arg(value_name = "ID", conflicts_with_all = ["wing", "room", "source", "author", "tags", "since", "until"])]
    ids: Vec<String>,
    /// Allow filters without a source or a room, which may match many drawers
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    once: TypedOnce,
    #[command(flatten)]
    filter: TypedWhere,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Subcommand)]
pub(super) enum TypedDiary {
    /// Add an entry to an agent's diary
    #[command(after_long_help = examples::DIARY_WRITE)]
    Write {
        /// Name of the agent
        #[arg(long, value_name = "NAME")]
        agent: String,
        #[command(flatten)]
        text: TypedText,
        /// Day of the entry [default: today, in UTC]
        #[arg(long, value_name = "DAY")]
        date: Option<String>,
        /// Topic of the entry
        #[arg(long, value_name = "WORD")]
        topic: Option<String>,
        #[command(flatten)]
        once: TypedOnce,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Show the last entries of an agent's diary, oldest first
    #[command(after_long_help = examples::DIARY_READ)]
    Read {
        /// Name of the agent
        #[arg(long, value_name = "NAME")]
        agent: String,
        /// Only entries of this day
        #[arg(long, value_name = "DAY")]
        date: Option<String>,
        /// Maximum number of entries
        #[arg(long, help_heading = "Output", value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        last: u32,
        #[command(flatten)]
        place: TypedPersonal,
    },
}

impl TypedMemory {
    pub(super) fn place(&self) -> &TypedPersonal {
        match self {
            Self::Get { place, .. }
            | Self::Taxonomy { place }
            | Self::WakeUp(TypedWakeUp { place, .. })
            | Self::Checkpoint { place, .. }
            | Self::Add(TypedAdd { place, .. })
            | Self::Search(TypedMemorySearch { place, .. })
            | Self::List(TypedList { place, .. })
            | Self::Update(TypedUpdate { place, .. })
            | Self::Delete(TypedDelete { place, .. })
            | Self::Import(TypedImport { place, .. })
            | Self::Diary(TypedDiary::Write { place, .. } | TypedDiary::Read { place, .. }) => {
                place
            }
        }
    }

    pub(super) fn command(self, context: &Context<'_>) -> Result<MemoryCommand, Failure> {
        Ok(MemoryCommand::Drawers(match self {
            Self::Import(typed) => return Ok(MemoryCommand::Import(typed.plan())),
            Self::Add(typed) => typed.command()?,
            Self::Search(typed) => typed.command(context)?,
            Self::Get { ids, .. } => DrawerCommand::Get { ids },
            Self::List(typed) => DrawerCommand::List(typed.plan(context)?),
            Self::Update(typed) => typed.command()?,
            Self::Delete(typed) => typed.command()?,
            Self::Taxonomy { .. } => DrawerCommand::Taxonomy,
            Self::WakeUp(TypedWakeUp { wings, budget, .. }) => {
                let names = match wings.is_empty() {
                    true => project_names(&working_folder()?),
                    false => wings,
                };
                DrawerCommand::WakeUp { names, budget }
            }
            Self::Checkpoint { file, once, .. } => {
                let file = file.filter(|file| file.as_os_str() != "-");
                let checkpoint = Box::new(read_checkpoint(&read_text(file.as_deref())?)?);
                DrawerCommand::Checkpoint { checkpoint, key: once.key() }
            }
            Self::Diary(typed) => typed.command()?,
        }))
    }
}

impl TypedAdd {
    fn command(self) -> Result<DrawerCommand, Failure> {
        let Self { text, wing, room, source, about, near, once, .. } = self;
        let of_file = text.file.as_ref().map(|file| file.display().to_string());
        let drawer = NewDrawer {
            wing,
            room,
            source: source.or(of_file),
            author: about.author,
            date: moment(about.date)?,
            date_text: about.date_text,
            tags: about.tags,
            metadata: metadata(about.metadata)?.unwrap_or_default(),
            text: text.required()?,
        };
        Ok(DrawerCommand::Add { drawer: Box::new(drawer), near, key: once.key() })
    }
}

impl TypedMemorySearch {
    fn command(self, context: &Context<'_>) -> Result<DrawerCommand, Failure> {
        let (text, filter) = (self.query.join(" "), self.filter.filter()?);
        let usual = MemorySearch::new(&text, context.results(self.limit, DEFAULT_RESULTS)?);
        let asked = match self.any_date {
            true => None,
            false => moment(self.now)?.or(usual.asked),
        };
        let search = MemorySearch { mode: self.mode.into(), filter, asked, ..usual };
        Ok(DrawerCommand::Search { search: Box::new(search), lines: self.jsonl })
    }
}

impl TypedUpdate {
    fn command(self) -> Result<DrawerCommand, Failure> {
        let Self { id, text, wing, room, source, about, once, .. } = self;
        let patch = DrawerPatch {
            wing,
            room,
            source,
            author: about.author,
            date: about
                .date
                .map(|date| moment(Some(date).filter(|it| !it.is_empty())))
                .transpose()?,
            date_text: about.date_text,
            tags: Some(about.tags).filter(|tags| !tags.is_empty()),
            metadata: metadata(about.metadata)?,
            text: text.given()?,
        };
        if patch == DrawerPatch::default() {
            return Err(Failure::new(Code::Usage, "nothing to change")
                .with_hint("give a text, --wing, --room, --source, --author, --date or --tag"));
        }
        Ok(DrawerCommand::Update { id, patch: Box::new(patch), key: once.key() })
    }
}

impl TypedList {
    fn plan(self, context: &Context<'_>) -> Result<ListPlan, Failure> {
        let filter = self.filter.filter()?;
        if self.all {
            return Ok(ListPlan::All { filter });
        }
        let order = if self.by_position { DrawerOrder::Position } else { DrawerOrder::Newest };
        let limit = context.rows(self.limit, DEFAULT_ROWS)?;
        let page = DrawerPage { order, after: None, offset: self.offset, limit };
        Ok(ListPlan::Page { filter, page, lines: self.jsonl })
    }
}

impl TypedDelete {
    fn command(self) -> Result<DrawerCommand, Failure> {
        let key = self.once.key();
        if !self.ids.is_empty() {
            let which = WhichDrawers::Ids(self.ids);
            return Ok(DrawerCommand::Delete { which, sure: true, key });
        }
        let filter = self.filter.filter()?;
        if filter.is_empty() {
            return Err(Failure::new(Code::Usage, "no drawers given")
                .with_hint("give their ids, or a filter such as --source, --wing or --room"));
        }
        let sure = self.yes || filter.source.is_some() || filter.room.is_some();
        Ok(DrawerCommand::Delete { which: WhichDrawers::Matching(filter), sure, key })
    }
}

impl TypedDiary {
    fn command(self) -> Result<DrawerCommand, Failure> {
        Ok(match self {
            Self::Write { agent, text, date, topic, once, .. } => {
                let (day, key) = (moment(date)?, once.key());
                let entry = DiaryEntry { agent, text: text.required()?, day, topic };
                DrawerCommand::WriteDiary { entry, key }
            }
            Self::Read { agent, date, last, .. } => {
                DrawerCommand::ReadDiary { agent, day: moment(date)?, last }
            }
        })
    }
}

impl TypedText {
    fn given(self) -> Result<Option<String>, Failure> {
        match (self.file, self.text.as_slice()) {
            (Some(file), _) => read_text(Some(&file)).map(Some),
            (None, [dash]) if dash == "-" => read_text(None).map(Some),
            (None, []) => Ok(None),
            (None, words) => Ok(Some(words.join(" "))),
        }
    }

    fn required(self) -> Result<String, Failure> {
        self.given()?.ok_or_else(|| {
            Failure::new(Code::Usage, "no text given")
                .with_hint("give a text, --file FILE, or - for standard input")
        })
    }
}

impl TypedWhere {
    fn filter(self) -> Result<DrawerFilter, Failure> {
        let Self { wing, room, source, author, tags, since, until } = self;
        let (since, until) = (moment(since)?, moment(until)?);
        Ok(DrawerFilter { wing, room, source, author, tags, since, until })
    }
}

fn moment(text: Option<String>) -> Result<Option<Moment>, Failure> {
    let parse = |text: String| {
        text.parse().map_err(|error: isolith_types::InvalidMoment| {
            Failure::new(Code::BadInput, error.to_string())
                .with_hint("for any other form of date, use --date-text")
        })
    };
    text.map(parse).transpose()
}

fn metadata(text: Option<String>) -> Result<Option<Metadata>, Failure> {
    let parse = |text: String| {
        Metadata::parse(&text)
            .map_err(|error| Failure::new(Code::BadInput, format!("--metadata: {error}")))
    };
    text.map(parse).transpose()
}

fn similarity(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err("expected a number from 0 to 1, for example 0.9".to_owned()),
    }
}
