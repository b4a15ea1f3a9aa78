//! Flags of the commands that deal with memory.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use isolith_engine::{DiaryEntry, MemorySearch, WhichDrawers};
use isolith_types::{
    Code, DrawerFilter, DrawerOrder, DrawerPage, DrawerPatch, Failure, Metadata, Moment, NewDrawer,
};

use super::code::TypedMode;
use super::memory_import::TypedImport;
use super::typed::{TypedOnce, TypedPersonal};
use crate::memory::{DrawerCommand, ListPlan, MemoryCommand, read_text};

/// Where a drawer goes that is put nowhere.
const GENERAL: &str = "general";

#[derive(Subcommand)]
pub(super) enum TypedMemory {
    /// Remember a text, word for word
    ///
    /// The same text in the same wing and room and from the same source is remembered
    /// once: adding it again changes nothing and shows the drawer that has it.
    Add(TypedAdd),
    /// Find drawers by a question or by words
    ///
    /// Ranks by words and by meaning together. Where texts are like those beside them, as
    /// turns of a conversation are, neighbours count for each other.
    Search(TypedSearch),
    /// Show drawers with their whole texts
    Get {
        /// Their ids
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// List drawers, the newest first
    List(TypedList),
    /// Change a drawer; its id stays
    ///
    /// What is not given stays as it is. An empty value takes away what a drawer may do
    /// without: --author "" is no author, --date "" no date, --tag "" no tags.
    Update(TypedUpdate),
    /// Delete drawers: by id, or all from a source or in a room
    Delete(TypedDelete),
    /// Show all wings and rooms, and how many drawers they have
    Taxonomy {
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Write and read the diaries of agents
    #[command(subcommand)]
    Diary(TypedDiary),
    /// Bring in conversations and ready drawers out of files
    ///
    /// Takes exports of Claude and ChatGPT, sessions of Claude Code, chats and documents as
    /// text or Markdown, and JSONL of ready drawers. Each turn becomes a drawer, word for
    /// word. What is remembered already is left alone: the same command continues an
    /// interrupted import, and changes nothing after a finished one. What cannot be used is
    /// left out and told; exits with 3 if that is all there is.
    Import(TypedImport),
}

#[derive(Args)]
pub(super) struct TypedText {
    /// The text, words joined by spaces; - reads standard input
    #[arg(value_name = "TEXT", conflicts_with = "file")]
    text: Vec<String>,
    /// A file with the text
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Args)]
pub(super) struct TypedAbout {
    /// Who wrote it
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
    /// Its date: a day (2026-01-31), or an instant with its zone (2026-01-31T09:30:00Z)
    #[arg(long, value_name = "WHEN")]
    date: Option<String>,
    /// Its date in any words, which can be searched for
    #[arg(long, value_name = "WORDS")]
    date_text: Option<String>,
    /// A word to find it by; may be repeated
    #[arg(long = "tag", value_name = "WORD")]
    tags: Vec<String>,
    /// Whatever else there is to say: a JSON object
    #[arg(long, value_name = "JSON")]
    metadata: Option<String>,
}

#[derive(Args)]
pub(super) struct TypedAdd {
    #[command(flatten)]
    text: TypedText,
    /// The person or project that it is about
    #[arg(long, value_name = "NAME", default_value = GENERAL)]
    wing: String,
    /// The topic
    #[arg(long, value_name = "NAME", default_value = GENERAL)]
    room: String,
    /// Where it comes from: a file, a conversation, a message [default: the path of --file]
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    #[command(flatten)]
    about: TypedAbout,
    /// Show drawers that say nearly the same, at least this similar, from 0 to 1
    #[arg(long, value_name = "SIMILARITY", value_parser = similarity)]
    near: Option<f32>,
    #[command(flatten)]
    once: TypedOnce,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Args)]
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
    /// Only dated then or later; drawers without a date go by when they were stored
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only dated then or earlier; a day is included
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
}

#[derive(Args)]
pub(super) struct TypedSearch {
    /// What is looked for: a question, or some words
    #[arg(required = true, num_args = 1.., value_name = "QUERY")]
    query: Vec<String>,
    /// What ranks hits
    #[arg(long, value_enum, default_value_t = TypedMode::Hybrid)]
    mode: TypedMode,
    #[command(flatten)]
    filter: TypedWhere,
    /// Show at most so many hits
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    /// Print a JSON document for each hit, one a line
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Args)]
pub(super) struct TypedList {
    #[command(flatten)]
    filter: TypedWhere,
    /// Show at most so many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Skip so many
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u64,
    /// List in the order of wings, rooms and arrival
    #[arg(long)]
    by_position: bool,
    /// Print a JSON document for each drawer, one a line
    #[arg(long, conflicts_with = "json")]
    jsonl: bool,
    /// Print all of them, as `memory import --format drawers` takes them
    #[arg(long, requires = "jsonl", conflicts_with_all = ["json", "limit", "offset", "by_position"])]
    all: bool,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Args)]
pub(super) struct TypedUpdate {
    /// The drawer's id
    id: String,
    #[command(flatten)]
    text: TypedText,
    /// Move it into this wing
    #[arg(long, value_name = "NAME")]
    wing: Option<String>,
    /// Move it into this room
    #[arg(long, value_name = "NAME")]
    room: Option<String>,
    /// Where it comes from: a file, a conversation, a message
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
    /// Their ids
    #[arg(value_name = "ID", conflicts_with_all = ["wing", "room", "source", "author", "tags", "since", "until"])]
    ids: Vec<String>,
    #[command(flatten)]
    filter: TypedWhere,
    /// Delete also where neither a source nor a room narrows it down
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    once: TypedOnce,
    #[command(flatten)]
    place: TypedPersonal,
}

#[derive(Subcommand)]
pub(super) enum TypedDiary {
    /// Add an entry to an agent's diary
    Write {
        /// Whose diary
        #[arg(long, value_name = "NAME")]
        agent: String,
        #[command(flatten)]
        text: TypedText,
        /// The day of the entry [default: today, in UTC]
        #[arg(long, value_name = "DAY")]
        date: Option<String>,
        /// What it is about
        #[arg(long, value_name = "WORD")]
        topic: Option<String>,
        #[command(flatten)]
        once: TypedOnce,
        #[command(flatten)]
        place: TypedPersonal,
    },
    /// Show the last entries of an agent's diary, in the order of time
    Read {
        /// Whose diary
        #[arg(long, value_name = "NAME")]
        agent: String,
        /// Of this day only
        #[arg(long, value_name = "DAY")]
        date: Option<String>,
        /// Show at most so many
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
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
            | Self::Add(TypedAdd { place, .. })
            | Self::Search(TypedSearch { place, .. })
            | Self::List(TypedList { place, .. })
            | Self::Update(TypedUpdate { place, .. })
            | Self::Delete(TypedDelete { place, .. })
            | Self::Import(TypedImport { place, .. })
            | Self::Diary(TypedDiary::Write { place, .. } | TypedDiary::Read { place, .. }) => {
                place
            }
        }
    }

    pub(super) fn command(self) -> Result<MemoryCommand, Failure> {
        Ok(MemoryCommand::Drawers(match self {
            Self::Import(typed) => return Ok(MemoryCommand::Import(typed.plan())),
            Self::Add(typed) => typed.command()?,
            Self::Search(typed) => typed.command()?,
            Self::Get { ids, .. } => DrawerCommand::Get { ids },
            Self::List(typed) => DrawerCommand::List(typed.plan()?),
            Self::Update(typed) => typed.command()?,
            Self::Delete(typed) => typed.command()?,
            Self::Taxonomy { .. } => DrawerCommand::Taxonomy,
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

impl TypedSearch {
    fn command(self) -> Result<DrawerCommand, Failure> {
        let (text, filter) = (self.query.join(" "), self.filter.filter()?);
        let usual = MemorySearch::new(&text, self.limit);
        let search = MemorySearch { mode: self.mode.into(), filter, ..usual };
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
            return Err(Failure::new(Code::Usage, "say what is to be another about the drawer")
                .with_hint(
                    "give a text, or --wing, --room, --source, --author, --date, --tag ...",
                ));
        }
        Ok(DrawerCommand::Update { id, patch: Box::new(patch), key: once.key() })
    }
}

impl TypedList {
    fn plan(self) -> Result<ListPlan, Failure> {
        let filter = self.filter.filter()?;
        if self.all {
            return Ok(ListPlan::All { filter });
        }
        let order = if self.by_position { DrawerOrder::Position } else { DrawerOrder::Newest };
        let page = DrawerPage { order, after: None, offset: self.offset, limit: self.limit };
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
            return Err(Failure::new(Code::Usage, "say which drawers are to go")
                .with_hint("by their ids, or with --source, --wing, --room ..."));
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
            Failure::new(Code::Usage, "there is no text to be remembered")
                .with_hint("give it as an argument, with --file, or with - on standard input")
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
        text.parse().map_err(|error: isolith_types::NoMoment| {
            Failure::new(Code::BadInput, error.to_string())
                .with_hint("a date in any other words goes to --date-text")
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
        _ => Err("a number from 0 to 1, for example 0.9".to_owned()),
    }
}
