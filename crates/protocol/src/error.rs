use std::path::PathBuf;

use isolith_types::{Code, Failure, Hint};

use crate::state::{CODE_COLLECTION, MEMORY_COLLECTION};

/// Why the truth did not do what it was asked to.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// There is no store in the folder.
    #[error("there is no store in {}", folder.display())]
    Missing {
        /// The folder that was looked at.
        folder: PathBuf,
    },
    /// The file is something else than a store.
    #[error("{} is not a store: {reason}", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        reason: String,
    },
    /// The file is damaged.
    #[error("{} is damaged: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was seen, and during what.
        reason: String,
    },
    /// The truth has not come as far as was acknowledged.
    #[error(
        "{} is missing the last {} that {} acknowledged{}: its log is damaged or gone, or an older \
         copy was put in its place",
        path.display(), counted(*commits, "commit"), if *commits == 1 { "was" } else { "were" },
        with_changes(*changes)
    )]
    Behind {
        /// The truth.
        path: PathBuf,
        /// How many commits are missing.
        commits: u64,
        /// How many changes of records those were.
        changes: u64,
    },
    /// The file has a schema that this program does not know yet.
    #[error("the store has version {found}, this program knows up to {supported}")]
    Newer {
        /// The version in the file.
        found: u32,
        /// The newest version that is understood.
        supported: u32,
    },
    /// The file is not the one that the store's seal was made for.
    #[error("{} does not belong to this store: its id is not the one in the seal", path.display())]
    Foreign {
        /// The path of the truth.
        path: PathBuf,
    },
    /// The path no longer names the file that is open.
    #[error("{} was deleted or replaced while it was open", path.display())]
    Replaced {
        /// The path of the truth.
        path: PathBuf,
    },
    /// Another process holds the store's lock.
    #[error("{} is held by {}", path.display(), processes(holders))]
    LockHeld {
        /// The lock file.
        path: PathBuf,
        /// The processes that hold it, as far as they can be told.
        holders: Vec<u32>,
    },
    /// Another process wrote until this operation's deadline had passed.
    #[error("other processes kept the store busy until the deadline ({operation})")]
    Busy {
        /// What was waited for.
        operation: String,
    },
    /// The operation's deadline passed, or it was cancelled.
    #[error("the deadline passed ({operation})")]
    Deadline {
        /// What was being done.
        operation: String,
    },
    /// The folder belongs to another user.
    #[error("{} belongs to user {owner}, not to user {user}", path.display())]
    ForeignOwner {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The current user.
        user: u32,
    },
    /// The folder lies on a filesystem whose locks cannot be relied on.
    #[error("{} is on a network filesystem ({kind})", path.display())]
    NetworkFilesystem {
        /// The folder.
        path: PathBuf,
        /// What kind it is.
        kind: &'static str,
    },
    /// The file or folder may not be written, or not even read.
    #[error("{}: no permission, or a read-only filesystem ({reason})", path.display())]
    ReadOnly {
        /// What was to be used.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The disk or the quota is full.
    #[error("no space left for {} ({operation})", path.display())]
    DiskFull {
        /// What was written.
        path: PathBuf,
        /// What was being done.
        operation: String,
    },
    /// The system refused to read or write.
    #[error("cannot {operation} {}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was being done.
        operation: String,
        /// What the system said.
        reason: String,
    },
    /// Anything else that SQLite complained about.
    #[error("{}: cannot {operation}: {reason}", path.display())]
    Sqlite {
        /// The truth.
        path: PathBuf,
        /// What was being done.
        operation: String,
        /// What SQLite said.
        reason: String,
    },
    /// There is no such collection.
    #[error("there is no collection {name:?}")]
    NotFound {
        /// The name that was asked for.
        name: String,
        /// Names that look like it.
        similar: Vec<String>,
    },
    /// A collection of that name is there already.
    #[error("collection {name:?} already exists{}", because(difference))]
    CollectionExists {
        /// Its name.
        name: String,
        /// In what it differs from what was asked for; empty if in nothing.
        difference: String,
    },
    /// There is no such root.
    #[error("there is no indexed folder {root}")]
    NoRoot {
        /// Its number.
        root: u64,
    },
    /// There is no such drawer.
    #[error("there is no drawer {id:?}")]
    NoDrawer {
        /// Its id.
        id: String,
    },
    /// Another drawer has the same text, in the same place and from the same source.
    #[error("drawer {id} has this text already, in the same room and from the same source")]
    DrawerExists {
        /// The id of the other.
        id: String,
    },
    /// Something is longer than it may be.
    #[error("{what} has {bytes} bytes, {limit} at most are allowed")]
    TooLong {
        /// What it is.
        what: String,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        limit: usize,
    },
    /// There is no such fact.
    #[error("there is no fact {what}")]
    NoFact {
        /// What was asked for.
        what: String,
    },
    /// A fact that says the same is true at some of the same times.
    #[error("{id} says the same {there}, which overlaps what was to be added ({asked})")]
    FactOverlaps {
        /// Its id.
        id: String,
        /// When it is true.
        there: String,
        /// When the new one would be.
        asked: String,
        /// Whether the one that is there has not ended.
        is_open: bool,
    },
    /// A name belongs to another entity.
    #[error("{name:?} is a name of {owner:?} already")]
    NameTaken {
        /// The name.
        name: String,
        /// Whose it is.
        owner: String,
    },
    /// The vectors of the collection come from another model.
    #[error("collection {name:?} holds vectors of model {found:?}, not of {asked:?}")]
    ModelMismatch {
        /// The collection.
        name: String,
        /// Its model.
        found: String,
        /// The model that was asked for.
        asked: String,
    },
    /// Records were to be added under ids that are taken.
    #[error("{count} ids already exist with different content: {}", listed(ids))]
    IdsExist {
        /// How many.
        count: u64,
        /// The first of them.
        ids: Vec<String>,
    },
    /// The idempotency key belongs to another request.
    #[error("the idempotency key was used before, for another request")]
    KeyReused,
    /// A record cannot be stored as it is.
    #[error("row {row}{}: {reason}", named(id))]
    BadRecord {
        /// Its place in the request, from 0.
        row: u64,
        /// Its id, if it has a usable one.
        id: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The request makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The filter cannot be evaluated.
    #[error("bad filter: {0}")]
    BadFilter(String),
    /// A query of the graph was refused, or failed.
    #[error("{0}")]
    Query(Box<Failure>),
}

impl StoreError {
    /// The error as people, scripts and agents see it.
    pub fn to_failure(&self) -> Failure {
        if let Self::Query(failure) = self {
            return (**failure).clone();
        }
        let (code, hint) = self.code_and_hint();
        Failure::new(code, self.to_string()).with_hint(hint)
    }

    /// Whether nothing else can work either until the store is opened again.
    pub fn ends_connection(&self) -> bool {
        matches!(
            self,
            Self::Replaced { .. }
                | Self::Foreign { .. }
                | Self::Newer { .. }
                | Self::Corrupt { .. }
                | Self::Behind { .. }
        )
    }

    fn code_and_hint(&self) -> (Code, Hint) {
        let (code, hint) = match self {
            Self::Missing { .. } => {
                (Code::NoStore, "index or ingest something first, or name another store")
            }
            Self::NotAStore { .. } => (Code::StoreRefused, "name another folder as the store"),
            Self::Foreign { path } => {
                let store = path.parent().unwrap_or(path).display().to_string();
                return (Code::StoreForeign, Hint::AdoptStore { store, project: None });
            }
            Self::Corrupt { .. } => return (Code::Corrupt, Hint::RepairStore),
            Self::Behind { .. } => return (Code::Corrupt, Hint::RepairIdleStore),
            Self::Newer { .. } => {
                (Code::StoreNewer, "restart this process with the newer version of isolith")
            }
            Self::Replaced { .. } => (Code::StoreReplaced, "try again: another store is there now"),
            Self::LockHeld { .. } => {
                (Code::LockHeld, "stop the processes that use this store, then try again")
            }
            Self::Busy { .. } => (Code::Timeout, "try again, or with a longer timeout"),
            Self::Deadline { .. } => (Code::Timeout, "try again with a longer timeout"),
            Self::ForeignOwner { .. } => {
                let advice = "use a store of your own".to_owned();
                return (Code::StoreRefused, Hint::NameStore { advice });
            }
            Self::NetworkFilesystem { .. } => {
                let advice = "keep the store on a local disk".to_owned();
                return (Code::StoreRefused, Hint::NameStore { advice });
            }
            Self::ReadOnly { .. } => {
                (Code::ReadOnly, "check the permissions of the store's folder and its mount")
            }
            Self::DiskFull { .. } => {
                (Code::DiskFull, "free some space; nothing of this write was kept")
            }
            Self::Io { .. } | Self::Sqlite { .. } => return (Code::Failed, Hint::CheckStore),
            Self::NotFound { similar, .. } => return (Code::NotFound, similar_hint(similar)),
            Self::CollectionExists { .. } => {
                (Code::AlreadyExists, "choose another name, or delete it first")
            }
            Self::NoRoot { .. } => return (Code::NotFound, Hint::IndexProject),
            Self::NoFact { .. } => return (Code::NotFound, Hint::QueryFacts),
            Self::FactOverlaps { is_open: false, .. } => {
                (Code::AlreadyExists, "add only times at which it is not true")
            }
            Self::FactOverlaps { id, .. } => {
                return (Code::AlreadyExists, Hint::InvalidateFact { id: id.clone() });
            }
            Self::NameTaken { .. } => {
                (Code::AlreadyExists, "use that name, or take it away from the other first")
            }
            Self::ModelMismatch { name, .. } if name == CODE_COLLECTION => {
                return (Code::ModelMismatch, Hint::ReembedIndex);
            }
            Self::NoDrawer { .. } => return (Code::NotFound, Hint::ListDrawers),
            Self::DrawerExists { .. } => {
                (Code::AlreadyExists, "delete one of the two, or give it another source")
            }
            Self::TooLong { .. } => (Code::TooLarge, "split it into several"),
            Self::ModelMismatch { name, .. } if name == MEMORY_COLLECTION => {
                (Code::ModelMismatch, "use the version of isolith that has that model")
            }
            Self::ModelMismatch { .. } => {
                (Code::ModelMismatch, "use that model, or another collection")
            }
            Self::IdsExist { .. } => {
                (Code::AlreadyExists, "use upsert to replace them, or skip what exists")
            }
            Self::KeyReused => (Code::KeyReused, "use a new key for a new request"),
            Self::BadRecord { .. } | Self::Invalid(_) | Self::BadFilter(_) => (Code::BadInput, ""),
            Self::Query(failure) => (failure.code, ""),
        };
        (code, hint.into())
    }
}

fn similar_hint(similar: &[String]) -> Hint {
    match similar {
        [] => Hint::ListCollections,
        names => format!("did you mean {}?", listed(names)).into(),
    }
}

fn processes(holders: &[u32]) -> String {
    match holders {
        [] => "another process".to_owned(),
        [one] => format!("process {one}"),
        many => {
            let list: Vec<_> = many.iter().map(u32::to_string).collect();
            format!("processes {}", list.join(", "))
        }
    }
}

fn counted(count: u64, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

fn with_changes(changes: u64) -> String {
    match changes {
        0 => String::new(),
        changes => format!(" (with {} of records)", counted(changes, "change")),
    }
}

fn listed(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
    quoted.join(", ")
}

fn because(difference: &str) -> String {
    if difference.is_empty() { String::new() } else { format!(", with {difference}") }
}

fn named(id: &str) -> String {
    if id.is_empty() { String::new() } else { format!(" (id {id:?})") }
}
