//! What was typed.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use isolith_engine::{Key, OnError};

use super::code::{TypedIndex, TypedSearch, TypedSimilar, TypedWatch};
use super::facts::TypedFact;
use super::graph::TypedGraph;
use super::memory::TypedMemory;
use super::serve::{SERVE_EXAMPLES, TypedMcp, TypedServe};
use super::setup::TypedSetup;

#[derive(Parser)]
#[command(name = "isolith", version, about, max_term_width = 100)]
pub(super) struct Typed {
    #[command(subcommand)]
    pub(super) command: TypedCommand,
    #[command(flatten)]
    pub(super) common: TypedCommon,
}

/// Flags that every command takes.
#[derive(Args)]
pub(super) struct TypedCommon {
    /// The store's folder [default: ISOLITH_STORE, else the project's .isolith, else the user's
    /// store]
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) store: Option<PathBuf>,
    /// Print one JSON document on standard output, and nothing else there
    #[arg(long, global = true)]
    pub(super) json: bool,
    /// Show no progress
    #[arg(long, short, global = true)]
    pub(super) quiet: bool,
    /// Log to standard error: -v what went wrong, -vv every worker's life, -vvv all
    /// (ISOLITH_LOG takes filters such as isolate=debug)
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(super) verbose: u8,
}

#[derive(Subcommand)]
pub(super) enum TypedCommand {
    /// Index a folder of code, or renew its index
    ///
    /// Reads what .gitignore and .isolithignore leave, cuts it at functions, classes and
    /// headings, and stores words and vectors in the project's .isolith folder. Only
    /// changed files are read again. May be interrupted at any moment: what is finished
    /// stays, and the next run continues.
    Index(TypedIndex),
    /// Find code by a question, by words or by name
    ///
    /// Ranks by words and by meaning together, whole files first. Never indexes by
    /// itself: run `isolith index` first.
    Search(TypedSearch),
    /// Find code like the code at a line of a file
    Similar(TypedSimilar),
    /// Keep the index of a folder up to date until interrupted
    ///
    /// One watcher works on a folder; further ones wait until it ends.
    Watch(TypedWatch),
    /// Remember texts word for word, and find, show, change and delete them
    ///
    /// A text is a drawer in a room (a topic) of a wing (a person or project). Memory is the
    /// user's, one for all projects, unless --project or --store says otherwise.
    #[command(subcommand)]
    Memory(TypedMemory),
    /// Keep facts with the times at which they are true, and ask for them
    ///
    /// A fact is a subject, a predicate and an object: Max lives_in Berlin. Facts are the
    /// user's, the same for all projects, unless --project or --store says otherwise.
    #[command(subcommand)]
    Fact(TypedFact),
    /// Ask the graph of a store, and change what is yours in it
    ///
    /// The graph is the project's, or that of --store.
    #[command(subcommand)]
    Graph(TypedGraph),
    /// Make, list, read, query and delete vector collections
    #[command(subcommand)]
    Collection(TypedCollection),
    /// Load files of ready embeddings into a collection
    ///
    /// Takes Chroma-ready JSON ({"chromadb_ready": {"ids", "embeddings", "metadatas",
    /// "documents"}}, or the bare four lists) and JSONL of records ({"id",
    /// "embedding", "document", "metadata"}). The whole file is checked before anything
    /// is written. The same command continues an interrupted load; after a finished one
    /// it changes nothing.
    Ingest(TypedIngest),
    /// Write collections as JSONL, vectors included
    ///
    /// One collection goes to standard output or to a file; without a name, all of them
    /// go to a folder, each to a file of its own. `isolith import` brings them back.
    Export {
        /// The collection [default: all of them]
        collection: Option<String>,
        /// The file, or for all collections the folder
        #[arg(long, short, value_name = "PATH")]
        out: Option<PathBuf>,
        #[command(flatten)]
        place: TypedPlace,
    },
    /// Bring exported collections back
    Import {
        /// Exported files, or folders of them
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Import under another name
        #[arg(long, value_name = "NAME")]
        collection: Option<String>,
        #[command(flatten)]
        place: TypedPlace,
    },
    /// Examine a store, and repair it
    ///
    /// Each check runs in a process of its own, so that one that crashes or hangs is
    /// reported and the others go on. Exits with 74 if something is damaged, with 1 if
    /// something could not be checked.
    Doctor(TypedDoctor),
    /// Check a store that came from somewhere else, and make it yours
    ///
    /// A store that came with a clone or an archive, or that another user or machine made,
    /// is refused, since it could hold anything. This runs a full check on it, lists the
    /// folders outside of its project that it names, asks, drops what can be rebuilt, and
    /// seals the store. `isolith index --fresh` is the other way out: it indexes again.
    ///
    /// Example: isolith adopt --store project/.isolith
    Adopt {
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        place: TypedPlace,
    },
    /// Show a store, its collections, and the workers of the processes that have it open
    Status {
        #[command(flatten)]
        place: TypedPlace,
    },
    /// Serve an agent on standard input and output, by the Model Context Protocol
    ///
    /// An agent starts it by itself once it is told to: `isolith setup` does that. Code is
    /// that of the project around the working folder, memory is the user's. Any number of
    /// servers share them. Ends when its input does.
    Mcp(TypedMcp),
    /// Register the MCP server with the agents on this machine
    ///
    /// Writes an entry that starts `isolith mcp` into the configuration of each agent that is
    /// found. Every change is shown and asked for first; all else in those files stays byte
    /// for byte. Doing it again changes nothing, --undo takes the entry out.
    Setup(TypedSetup),
    /// Serve agents over HTTP, by the Model Context Protocol at /mcp
    ///
    /// Clients send a token, which is generated at the first start and shown on the terminal.
    /// Only this machine can connect unless --listen says otherwise. /health answers without
    /// a token.
    #[command(after_long_help = SERVE_EXAMPLES)]
    Serve(TypedServe),
    /// Crash, hang and corrupt real workers, and show that no job is lost
    ///
    /// Starts worker processes in a scratch folder and makes them fail in every way
    /// there is: SIGSEGV, SIGBUS, panic, hang, out of memory, garbage on the wire ...
    /// The faults are real and the supervisor is told nothing. Each job leaves a mark
    /// when it is done, so that lost and repeated jobs are counted, not guessed.
    /// Exits with 1 unless nothing was misclassified, lost, duplicated or left behind.
    Drill(TypedDrill),
    /// Print the completion script of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// Where the store is looked for.
#[derive(Args)]
pub(super) struct TypedPlace {
    /// Use the user's store, even inside a project that has one
    #[arg(long, conflicts_with = "store")]
    pub(super) user: bool,
}

/// Whose store is used for what is not of a project by itself.
#[derive(Args)]
pub(super) struct TypedPersonal {
    /// Use the project's store instead of the user's
    #[arg(long, conflicts_with = "store")]
    pub(super) project: bool,
}

/// What makes a repeated call happen once.
#[derive(Args)]
pub(super) struct TypedOnce {
    /// Any text that names this call: if it is repeated within a day, nothing happens twice
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
}

impl TypedOnce {
    pub(super) fn key(&self) -> Option<Key> {
        self.key.as_deref().map(Key::of_text)
    }
}

#[derive(Subcommand)]
pub(super) enum TypedCollection {
    /// List all collections
    List {
        #[command(flatten)]
        place: TypedPlace,
    },
    /// Make a collection
    Create {
        /// Its name, unique in the store
        name: String,
        /// The length of its vectors [default: that of the first one]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
        dimension: Option<u32>,
        /// How distances are measured
        #[arg(long, value_enum, default_value_t = TypedMetric::Cosine)]
        metric: TypedMetric,
        /// The id of the model that makes its vectors
        #[arg(long, value_name = "ID")]
        model: Option<String>,
        #[command(flatten)]
        place: TypedPlace,
    },
    /// Delete a collection, or, with --id or --where, records in it
    Delete {
        /// The collection
        name: String,
        #[command(flatten)]
        which: TypedWhich,
        #[command(flatten)]
        place: TypedPlace,
    },
    /// Give a collection another name
    Rename {
        /// The collection
        name: String,
        /// Its new name
        new_name: String,
        #[command(flatten)]
        place: TypedPlace,
    },
    /// Count the records of a collection
    Count {
        /// The collection
        name: String,
        #[command(flatten)]
        place: TypedPlace,
    },
    /// Show records: by id, by filter, or a page of all
    Get {
        /// The collection
        name: String,
        #[command(flatten)]
        which: TypedWhich,
        /// Show at most so many [default: 10, or all that --id names]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: Option<u32>,
        /// Skip so many
        #[arg(long, value_name = "N", default_value_t = 0)]
        offset: u64,
        /// Show vectors as well
        #[arg(long)]
        vectors: bool,
        #[command(flatten)]
        place: TypedPlace,
    },
    /// Find the records nearest to a vector, or whose documents fit some words
    Query {
        /// The collection
        name: String,
        #[command(flatten)]
        what: TypedQuery,
        /// Show at most so many hits
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: u32,
        #[command(flatten)]
        filter: TypedFilter,
        #[command(flatten)]
        place: TypedPlace,
    },
}

#[derive(Args)]
#[group(required = true, multiple = false)]
pub(super) struct TypedQuery {
    /// A file with the vector, a JSON list of numbers; - reads standard input
    #[arg(long, value_name = "FILE")]
    pub(super) vector: Option<PathBuf>,
    /// A text to be embedded, where the collection's model is built in
    #[arg(long, value_name = "TEXT")]
    pub(super) text: Option<String>,
    /// Words to be looked for in documents, ranked by BM25
    #[arg(long, value_name = "WORDS")]
    pub(super) keywords: Option<String>,
}

#[derive(Args)]
pub(super) struct TypedWhich {
    /// The record with this id; may be repeated
    #[arg(long = "id", value_name = "ID", conflicts_with_all = ["where", "where_document"])]
    pub(super) ids: Vec<String>,
    #[command(flatten)]
    pub(super) filter: TypedFilter,
}

#[derive(Args)]
pub(super) struct TypedFilter {
    /// Only records whose metadata matches: {"key": value}, {"key": {"$gt": 1}}, $and, $or, $not;
    /// $eq $ne $lt $lte $gt $gte $in $nin $contains $not_contains
    #[arg(long = "where", value_name = "JSON", id = "where")]
    pub(super) metadata: Option<String>,
    /// Only records whose document matches: {"$contains": "text"}, $not_contains, $regex, $not_regex
    #[arg(long = "where-document", value_name = "JSON", id = "where_document")]
    pub(super) document: Option<String>,
}

#[derive(Args)]
pub(super) struct TypedIngest {
    /// The files
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// The collection, made if it does not exist
    #[arg(long, value_name = "NAME")]
    pub(super) collection: String,
    /// Replace records whose ids exist (the default)
    #[arg(long, conflicts_with = "add")]
    pub(super) upsert: bool,
    /// Refuse records whose ids exist with other content
    #[arg(long)]
    pub(super) add: bool,
    /// What a bad row does: stop, before anything is written, or be skipped and reported
    #[arg(long, value_enum, default_value_t = TypedOnError::Stop)]
    pub(super) on_error: TypedOnError,
    /// Give up after so many seconds without progress
    #[arg(long, value_name = "S", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) timeout: u64,
    /// The metric of a collection that is made [default: cosine]
    #[arg(long, value_enum)]
    pub(super) metric: Option<TypedMetric>,
    /// The id of the model that made the vectors
    #[arg(long, value_name = "ID")]
    pub(super) model: Option<String>,
    #[command(flatten)]
    pub(super) place: TypedPlace,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum TypedOnError {
    Stop,
    Skip,
}

impl From<TypedOnError> for OnError {
    fn from(typed: TypedOnError) -> Self {
        match typed {
            TypedOnError::Stop => Self::Stop,
            TypedOnError::Skip => Self::Skip,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum TypedMetric {
    Cosine,
    L2,
    Dot,
}

#[derive(Args)]
pub(super) struct TypedDoctor {
    /// Mend what can be mended: damaged segments are made anew from the stored vectors, a
    /// damaged truth is saved into a new file as far as it can be read (the old one is
    /// kept), modes and counts are set right
    #[arg(long)]
    pub(super) repair: bool,
    /// Take the time to compare every index with its table
    #[arg(long)]
    pub(super) full: bool,
    /// Give each check so many seconds [default: 60, and more for a large store]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) timeout: Option<u64>,
    /// Jobs that are skipped because they killed workers: list, retry ID (try that one
    /// again), clear (forget all of them), clear ID
    #[arg(long, value_names = ["ACTION", "ID"], num_args = 1..=2, conflicts_with_all = ["repair", "full", "timeout"])]
    pub(super) quarantine: Option<Vec<String>>,
    #[command(flatten)]
    pub(super) place: TypedPlace,
}

#[derive(Args)]
pub(super) struct TypedDrill {
    /// How many faults to inject, evenly over all kinds
    #[arg(long, value_name = "N", default_value_t = 280, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) count: u32,
    /// The order of the faults; the same seed gives the same order [default: random]
    #[arg(long, value_name = "S")]
    pub(super) seed: Option<u64>,
}
