//! The flags as typed, before they are resolved.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use isolith_engine::{Key, OnError};
use isolith_types::DatabaseName;

use super::code::{TypedIndex, TypedSearch, TypedSimilar, TypedWatch};
use super::examples;
use super::facts::TypedFact;
use super::graph::TypedGraph;
use super::hook::TypedHook;
use super::memory::TypedMemory;
use super::serve::{TypedMcp, TypedServe, TypedUi};
use super::setup::TypedSetup;

#[derive(Parser)]
#[command(name = "isolith", version, about, max_term_width = 100, after_long_help = examples::TOP)]
pub(super) struct Typed {
    #[command(subcommand)]
    pub(super) command: TypedCommand,
    #[command(flatten)]
    pub(super) common: TypedCommon,
}

/// Flags that every command takes.
#[derive(Args)]
pub(super) struct TypedCommon {
    /// Folder of the store
    ///
    /// By default that of ISOLITH_STORE or the configuration file; otherwise the project's
    /// .isolith or the user's store, depending on the command.
    #[arg(long, global = true, value_name = "DIR", help_heading = "Store")]
    pub(super) store: Option<PathBuf>,
    /// Print the result as one JSON document
    #[arg(long, global = true, help_heading = "Output")]
    pub(super) json: bool,
    /// Do not show progress
    #[arg(long, short, global = true, help_heading = "Output")]
    pub(super) quiet: bool,
    /// Log to standard error; repeat for more detail
    ///
    /// -v logs warnings, -vv the life of every worker, -vvv everything. ISOLITH_LOG takes
    /// filters such as isolate=debug.
    #[arg(long, short, global = true, action = clap::ArgAction::Count, help_heading = "Output")]
    pub(super) verbose: u8,
}

#[derive(Subcommand)]
pub(super) enum TypedCommand {
    /// Index a folder of code, or update its index
    ///
    /// Skips what .gitignore and .isolithignore exclude, splits files at functions, classes
    /// and headings, and stores keywords and vectors in the project's .isolith folder. Only
    /// changed files are read again. You can interrupt it at any time: finished work is
    /// kept, and the next run continues.
    #[command(after_long_help = examples::INDEX)]
    Index(TypedIndex),
    /// Search code by question, keywords or name
    ///
    /// Ranks by keywords and by meaning together, or finds every match of a text (--mode exact) or
    /// a regular expression (--mode regex). Searches the existing index: run `isolith index`
    /// first.
    #[command(after_long_help = examples::SEARCH)]
    Search(TypedSearch),
    /// Find code similar to the code at a line of a file
    #[command(after_long_help = examples::SIMILAR)]
    Similar(TypedSimilar),
    /// Keep the index of a folder up to date until interrupted
    ///
    /// Only one watcher works on a folder at a time; others wait until it ends.
    #[command(after_long_help = examples::WATCH)]
    Watch(TypedWatch),
    /// Store, search, show, change and delete memories
    ///
    /// A memory is a text, kept word for word in a drawer. Drawers are in rooms (topics), rooms
    /// in wings (people or projects). Memory belongs to the user and is shared by all projects,
    /// unless --project or --store selects another store.
    #[command(subcommand, after_long_help = examples::MEMORY)]
    Memory(TypedMemory),
    /// Store and query facts and when they are true
    ///
    /// A fact has a subject, a predicate and an object: Max lives_in Berlin. Facts belong to the
    /// user and are shared by all projects, unless --project or --store selects another store.
    #[command(subcommand, after_long_help = examples::FACT)]
    Fact(TypedFact),
    /// Query the code graph, or a graph of your own, with Cypher and ready-made queries
    ///
    /// Uses the project's store unless --store selects another.
    #[command(subcommand, after_long_help = examples::GRAPH)]
    Graph(TypedGraph),
    /// Create, list, read, query and delete vector collections
    #[command(subcommand, after_long_help = examples::COLLECTION)]
    Collection(TypedCollection),
    /// Load files of records into a collection
    ///
    /// Accepts JSON for Chroma ({"chromadb_ready": {"ids", "embeddings", "metadatas",
    /// "documents"}}, or only the inner object) and JSONL with one record per line ({"id",
    /// "embedding", "document", "metadata"}). Documents without embeddings are embedded if the
    /// collection is new or uses the built-in model. The whole file is validated before anything is
    /// written. Run the same command again to continue an interrupted load; after a finished
    /// one it changes nothing.
    #[command(after_long_help = examples::INGEST)]
    Ingest(TypedIngest),
    /// Export collections as JSONL, including vectors
    ///
    /// Writes one collection to standard output or a file. Without a name, writes all
    /// collections to a folder, one file each. `isolith import` reads them again.
    #[command(after_long_help = examples::EXPORT)]
    Export {
        /// Name of the collection [default: all collections]
        collection: Option<String>,
        /// File to write, or folder for all collections
        #[arg(long, short, value_name = "PATH")]
        out: Option<PathBuf>,
        #[command(flatten)]
        place: TypedCollectionPlace,
    },
    /// Import collections that were exported
    #[command(after_long_help = examples::IMPORT)]
    Import {
        /// Exported files, or folders with exported files
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Name of the collection [default: the exported name]
        #[arg(long, value_name = "NAME")]
        collection: Option<String>,
        #[command(flatten)]
        place: TypedCollectionPlace,
    },
    /// Check a store, and repair it
    ///
    /// Each check runs in its own process. A check that crashes or hangs is reported, and the
    /// others continue.
    #[command(after_long_help = examples::DOCTOR)]
    Doctor(TypedDoctor),
    /// Check and trust a store that was created elsewhere
    ///
    /// A store that came with a clone or an archive, or was created by another user or on
    /// another machine, is refused because it could contain anything. This command checks it
    /// completely, lists the folders outside the project that it refers to, asks for
    /// confirmation, drops what can be rebuilt, and seals the store. Alternatively,
    /// `isolith index --fresh` starts a new store.
    #[command(after_long_help = examples::ADOPT)]
    Adopt {
        /// Do not ask for confirmation
        #[arg(long, short)]
        yes: bool,
        #[command(flatten)]
        place: TypedPlace,
    },
    /// Show a store, its collections and its running workers
    #[command(after_long_help = examples::STATUS)]
    Status {
        /// Print only what is wrong, and exit with a code that says so
        ///
        /// For cron and scripts: prints nothing and exits with 0 if all is well.
        #[arg(long)]
        check: bool,
        #[command(flatten)]
        place: TypedPlace,
    },
    /// Run an MCP server on standard input and output
    ///
    /// Agents start it themselves once it is registered: see `isolith setup`. It serves the
    /// code of the project around the working folder, and the user's memory. Any number of
    /// servers can share them. It ends when its input ends.
    #[command(after_long_help = examples::MCP)]
    Mcp(TypedMcp),
    /// Report an event of an agent's session: what its hooks call
    ///
    /// `isolith setup --hooks` registers it. Reads the client's JSON on standard input. When a
    /// session begins, answers with what is worth knowing (`isolith memory wake-up`); when it pauses
    /// or ends, saves its transcript in the user's memory, in a background process that ends within
    /// a minute. Never fails: errors are in the store's log, and the exit code is 0.
    #[command(after_long_help = examples::HOOK)]
    Hook(TypedHook),
    /// Register the MCP server or hooks with the agents on this machine
    ///
    /// Adds an entry that starts `isolith mcp` to the configuration of each agent found, or with
    /// --hooks entries that call `isolith hook`. Shows every change and asks before writing; the
    /// rest of the files stays unchanged. Running it again changes nothing, --undo removes the
    /// entries.
    #[command(after_long_help = examples::SETUP)]
    Setup(TypedSetup),
    /// Run a server over HTTP: MCP at /mcp, the API at /v1, pages for a browser at /
    ///
    /// Clients must send a token, which is generated at the first start and shown on the
    /// terminal. Only this machine can connect unless --listen says otherwise. /health needs
    /// no token.
    #[command(after_long_help = examples::SERVE)]
    Serve(TypedServe),
    /// Show status, workers, search, memory and the graph in a browser
    ///
    /// Starts a server for this machine only and opens its pages. The printed link signs a
    /// browser in, once and within five minutes. `isolith serve` has the same pages, and asks for
    /// the token.
    #[command(after_long_help = examples::UI)]
    Ui(TypedUi),
    /// Show the settings and where they come from
    #[command(subcommand, after_long_help = examples::CONFIG)]
    Config(TypedConfig),
    /// Crash real workers, and check that no job is lost
    ///
    /// Starts worker processes in a temporary folder and makes them fail in many ways:
    /// segmentation fault, bus error, panic, hang, out of memory, invalid messages and more.
    /// The faults are real, and the supervisor does not know about them in advance. Every
    /// finished job leaves a mark, so that lost and repeated jobs are counted.
    #[command(after_long_help = examples::DRILL)]
    Drill(TypedDrill),
    /// Print a completion script for a shell
    ///
    /// Source it, or save it where the shell looks for completions.
    #[command(after_long_help = examples::COMPLETIONS)]
    Completions {
        /// Shell to complete for
        shell: Shell,
    },
    /// Write the man pages, one for each command
    ///
    /// Creates the folder if needed and replaces pages that are already there.
    #[command(after_long_help = examples::MAN)]
    Man {
        /// Folder to write to, such as ~/.local/share/man/man1
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

#[derive(Subcommand)]
pub(super) enum TypedConfig {
    /// Show every setting, its value and where it comes from
    ///
    /// The settings are those of the working folder.
    #[command(after_long_help = examples::CONFIG_SHOW)]
    Show,
    /// Show which configuration files are read
    #[command(after_long_help = examples::CONFIG_PATH)]
    Path,
}

/// Where to look for the store.
#[derive(Args)]
pub(super) struct TypedPlace {
    /// Use the user's store, even inside a project
    #[arg(long, conflicts_with = "store", help_heading = "Store")]
    pub(super) user: bool,
}

/// Where to look for collections.
#[derive(Args)]
pub(super) struct TypedCollectionPlace {
    /// Use the user's store only, even inside a project
    #[arg(long, conflicts_with_all = ["store", "project"], help_heading = "Store")]
    pub(super) user: bool,
    /// Use the project's store only
    #[arg(long, conflicts_with = "store", help_heading = "Store")]
    pub(super) project: bool,
    /// Database that the collections belong to [default: default_database]
    #[arg(long, value_name = "[TENANT/]NAME", value_parser = database, help_heading = "Store")]
    pub(super) database: Option<DatabaseName>,
}

/// Reads the name of a database.
pub(super) fn database(text: &str) -> Result<DatabaseName, String> {
    DatabaseName::parse(text).ok_or_else(|| "expected NAME or TENANT/NAME".to_owned())
}

/// Whose store to use for data that does not belong to a project.
#[derive(Args)]
pub(super) struct TypedPersonal {
    /// Use the project's store instead of the user's
    #[arg(long, conflicts_with = "store", help_heading = "Store")]
    pub(super) project: bool,
}

/// Makes a repeated call take effect once.
#[derive(Args)]
pub(super) struct TypedOnce {
    /// Idempotency key: repeating a call with the same key within a day has no further effect
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
    /// List the collections, inside a project also the user's
    #[command(after_long_help = examples::COLLECTION_LIST)]
    List {
        #[command(flatten)]
        place: TypedCollectionPlace,
    },
    /// Create a collection
    #[command(after_long_help = examples::COLLECTION_CREATE)]
    Create {
        /// Name of the collection, unique in the store
        name: String,
        /// Length of the vectors [default: that of the first vector]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_536))]
        dimension: Option<u32>,
        /// Distance metric [default: collection.metric, or cosine]
        #[arg(long, value_enum)]
        metric: Option<TypedMetric>,
        /// Id of the model that produces the vectors; built-in to have documents embedded
        /// [default: collection.model]
        #[arg(long, value_name = "ID")]
        model: Option<String>,
        #[command(flatten)]
        place: TypedCollectionPlace,
    },
    /// Delete a collection, or with --id or --where, records in it
    ///
    /// Asks before a collection with records is deleted.
    #[command(after_long_help = examples::COLLECTION_DELETE)]
    Delete {
        /// Name of the collection
        name: String,
        #[command(flatten)]
        which: TypedWhich,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        place: TypedCollectionPlace,
    },
    /// Change metadata and documents of records
    #[command(after_long_help = examples::COLLECTION_UPDATE)]
    Update {
        /// Name of the collection
        name: String,
        #[command(flatten)]
        what: TypedChange,
        #[command(flatten)]
        place: TypedCollectionPlace,
    },
    /// Rename a collection
    #[command(after_long_help = examples::COLLECTION_RENAME)]
    Rename {
        /// Name of the collection
        name: String,
        /// New name
        new_name: String,
        #[command(flatten)]
        place: TypedCollectionPlace,
    },
    /// Count the records of a collection
    #[command(after_long_help = examples::COLLECTION_COUNT)]
    Count {
        /// Name of the collection
        name: String,
        #[command(flatten)]
        place: TypedCollectionPlace,
    },
    /// Show records by id or filter, or a page of all records
    #[command(after_long_help = examples::COLLECTION_GET)]
    Get {
        /// Name of the collection
        name: String,
        #[command(flatten)]
        which: TypedWhich,
        /// Sort by a metadata key; records without it come last
        ///
        /// Numbers, then strings, then false and true; equal values in the order of arrival.
        #[arg(long, value_name = "KEY", help_heading = "Output")]
        sort: Option<String>,
        /// Sort from the highest value to the lowest
        #[arg(long, requires = "sort", help_heading = "Output")]
        descending: bool,
        /// Maximum number of records [default: 10, or all given with --id]
        #[arg(long, value_name = "N", help_heading = "Output", value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: Option<u32>,
        /// Number of records to skip
        #[arg(long, value_name = "N", help_heading = "Output", default_value_t = 0)]
        offset: u64,
        /// Include vectors
        #[arg(long, help_heading = "Output")]
        vectors: bool,
        #[command(flatten)]
        place: TypedCollectionPlace,
    },
    /// Count the distinct values of a metadata key, most frequent first
    #[command(after_long_help = examples::COLLECTION_VALUES)]
    Values {
        /// Name of the collection
        name: String,
        /// Metadata key; each element of a list counts
        key: String,
        /// Maximum number of values [default: 10]
        #[arg(long, value_name = "N", help_heading = "Output", value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: Option<u32>,
        #[command(flatten)]
        filter: TypedFilter,
        #[command(flatten)]
        place: TypedCollectionPlace,
    },
    /// Find records by vector or text, by keywords, or by both
    ///
    /// With --keywords and one of --vector and --text, both rankings are fused.
    #[command(after_long_help = examples::COLLECTION_QUERY)]
    Query {
        /// Name of the collection
        name: String,
        #[command(flatten)]
        what: TypedQuery,
        /// Maximum number of results [default: limits.results, or 10]
        #[arg(long, value_name = "N", help_heading = "Output", value_parser = clap::value_parser!(u32).range(1..=10_000))]
        limit: Option<u32>,
        #[command(flatten)]
        filter: TypedFilter,
        #[command(flatten)]
        place: TypedCollectionPlace,
    },
}

/// What to change in records.
#[derive(Args)]
#[command(group = ArgGroup::new("change").required(true).multiple(true))]
pub(super) struct TypedChange {
    /// Id of a record; may be repeated
    #[arg(long = "id", value_name = "ID", required = true)]
    pub(super) ids: Vec<String>,
    /// Merged into the metadata; null removes a key
    #[arg(long, value_name = "JSON", group = "change")]
    pub(super) metadata: Option<String>,
    /// Replaces the document; embedded if the collection uses the built-in model
    #[arg(long, value_name = "TEXT", group = "change")]
    pub(super) document: Option<String>,
}

#[derive(Args)]
#[group(required = true, multiple = true)]
pub(super) struct TypedQuery {
    /// Vector as a JSON array of numbers, or a file that has it; - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    pub(super) vector: Option<PathBuf>,
    /// Text to embed, if the collection uses the built-in model
    #[arg(long, value_name = "TEXT")]
    pub(super) text: Option<String>,
    /// Keywords to search documents for, ranked by BM25
    #[arg(long, value_name = "WORDS")]
    pub(super) keywords: Option<String>,
}

#[derive(Args)]
pub(super) struct TypedWhich {
    /// Id of a record; may be repeated
    #[arg(long = "id", help_heading = "Filters", value_name = "ID", conflicts_with_all = ["where", "where_document"])]
    pub(super) ids: Vec<String>,
    #[command(flatten)]
    pub(super) filter: TypedFilter,
}

#[derive(Args)]
pub(super) struct TypedFilter {
    /// Only records whose metadata matches
    ///
    /// {"key": value} or {"key": {"$gt": 1}}, with $eq, $ne, $lt, $lte, $gt, $gte, $in, $nin,
    /// $contains and $not_contains, combined with $and, $or and $not.
    #[arg(long = "where", help_heading = "Filters", value_name = "JSON", id = "where")]
    pub(super) metadata: Option<String>,
    /// Only records whose document matches
    ///
    /// {"$contains": "text"}, or $not_contains, $regex, $not_regex.
    #[arg(
        long = "where-document",
        help_heading = "Filters",
        value_name = "JSON",
        id = "where_document"
    )]
    pub(super) document: Option<String>,
}

#[derive(Args)]
pub(super) struct TypedIngest {
    /// Files to load
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Name of the collection, created if it does not exist
    #[arg(long, value_name = "NAME")]
    pub(super) collection: String,
    /// Replace records with existing ids (the default)
    #[arg(long, conflicts_with = "add")]
    pub(super) upsert: bool,
    /// Reject records whose ids exist with different content
    #[arg(long)]
    pub(super) add: bool,
    /// What to do about invalid rows: stop before anything is written, or skip and report them
    #[arg(long, value_enum, default_value_t = TypedOnError::Stop)]
    pub(super) on_error: TypedOnError,
    /// Give up after this many seconds without progress
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) timeout: u64,
    /// Distance metric of a collection that is created [default: collection.metric, or cosine]
    #[arg(long, value_enum)]
    pub(super) metric: Option<TypedMetric>,
    /// Id of the model that produced the vectors; built-in also allows documents without vectors
    #[arg(long, value_name = "ID")]
    pub(super) model: Option<String>,
    #[command(flatten)]
    pub(super) place: TypedCollectionPlace,
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
    /// Repair what can be repaired
    ///
    /// Rebuilds damaged segments from the stored vectors, salvages a damaged database into a
    /// new file (the old one is kept), and corrects permissions and counts.
    #[arg(long)]
    pub(super) repair: bool,
    /// Also compare every index with its table, which takes longer
    #[arg(long)]
    pub(super) full: bool,
    /// Time limit of each check in seconds [default: 60, more for a large store]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) timeout: Option<u64>,
    /// Show or release jobs that are skipped because they crashed workers
    ///
    /// list shows them, retry ID tries one again, clear releases all of them, clear ID one.
    #[arg(long, value_names = ["ACTION", "ID"], num_args = 1..=2, conflicts_with_all = ["repair", "full", "timeout"])]
    pub(super) quarantine: Option<Vec<String>>,
    #[command(flatten)]
    pub(super) place: TypedPlace,
}

#[derive(Args)]
pub(super) struct TypedDrill {
    /// Number of faults to inject, spread evenly over all kinds
    #[arg(long, value_name = "N", default_value_t = 280, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) count: u32,
    /// Seed for the order of the faults [default: random]
    #[arg(long, value_name = "SEED")]
    pub(super) seed: Option<u64>,
    /// Print each fault when it has been handled, as a line of JSON, and the report as the last line
    #[arg(long, conflicts_with = "json")]
    pub(super) jsonl: bool,
}
