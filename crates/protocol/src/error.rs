use std::path::PathBuf;

use isolith_types::{Code, Failure, Hint, counted};

use crate::state::{CODE_COLLECTION, MEMORY_COLLECTION};

/// Why an operation on a store failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StoreError {
    /// There is no store in the folder.
    #[error("there is no store in {}", folder.display())]
    Missing {
        /// The folder that was expected to hold one.
        folder: PathBuf,
    },
    /// The file is not a store.
    #[error("{} is not a store: {reason}", path.display())]
    NotAStore {
        /// The file.
        path: PathBuf,
        /// How that was recognized.
        reason: String,
    },
    /// The file is damaged.
    #[error("{} is damaged: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found, and during which operation.
        reason: String,
    },
    /// The database lacks commits that were acknowledged.
    #[error(
        "{} is missing the last {} that {} acknowledged{}: its log is damaged or gone, or an older \
         copy was put in its place",
        path.display(), counted(*commits, "commit"), if *commits == 1 { "was" } else { "were" },
        changes_suffix(*changes)
    )]
    Behind {
        /// The database file.
        path: PathBuf,
        /// The number of missing commits.
        commits: u64,
        /// The number of record changes in them.
        changes: u64,
    },
    /// A newer version of Isolith wrote the store.
    #[error("the store has version {found}, this program knows up to {supported}")]
    Newer {
        /// The schema version of the file.
        found: u32,
        /// The newest schema version that this program supports.
        supported: u32,
    },
    /// The id in the database is not the one in the store's seal.
    #[error("{} does not belong to this store: its id is not the one in the seal", path.display())]
    Foreign {
        /// The database file.
        path: PathBuf,
    },
    /// The path no longer names the file that is open.
    #[error("{} was deleted or replaced while it was open", path.display())]
    Replaced {
        /// The database file.
        path: PathBuf,
    },
    /// Another process holds the store's lock.
    #[error("{} is held by {}", path.display(), processes(holders))]
    LockHeld {
        /// The lock file.
        path: PathBuf,
        /// The processes that hold it, as far as known.
        holders: Vec<u32>,
    },
    /// Other processes held the write lock until this operation's deadline.
    #[error("other processes kept the store busy until the deadline ({operation})")]
    Busy {
        /// The operation that had to wait.
        operation: String,
    },
    /// The operation's deadline passed, or it was cancelled.
    #[error("the deadline passed ({operation})")]
    Deadline {
        /// The operation that failed.
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
    /// The folder is on a network filesystem, whose locks are not reliable.
    #[error("{} is on a network filesystem ({kind})", path.display())]
    NetworkFilesystem {
        /// The folder.
        path: PathBuf,
        /// The filesystem type.
        kind: &'static str,
    },
    /// The file or folder is not writable, or not even readable.
    #[error("{}: no permission, or a read-only filesystem ({reason})", path.display())]
    ReadOnly {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        reason: String,
    },
    /// The disk or the quota is full.
    #[error("no space left for {} ({operation})", path.display())]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
        /// The operation that failed.
        operation: String,
    },
    /// Reading or writing failed.
    #[error("cannot {operation} {}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operation that failed.
        operation: String,
        /// The operating system's error.
        reason: String,
    },
    /// Any other SQLite error.
    #[error("{}: cannot {operation}: {reason}", path.display())]
    Sqlite {
        /// The database file.
        path: PathBuf,
        /// The operation that failed.
        operation: String,
        /// SQLite's message.
        reason: String,
    },
    /// There is no such collection.
    #[error("there is no collection {name:?}")]
    NotFound {
        /// The name in the request.
        name: String,
        /// Existing names that are similar.
        similar: Vec<String>,
    },
    /// A collection with this name already exists.
    #[error("collection {name:?} already exists{}", difference_suffix(difference))]
    CollectionExists {
        /// Its name.
        name: String,
        /// How it differs from the request; empty if it does not.
        difference: String,
    },
    /// There is no such tenant.
    #[error("there is no tenant {name:?}")]
    NoTenant {
        /// The name in the request.
        name: String,
    },
    /// There is no such database.
    #[error("there is no database {name:?}")]
    NoDatabase {
        /// The name in the request.
        name: String,
    },
    /// A tenant or a database with this name already exists.
    #[error("{what} {name:?} already exists")]
    NameExists {
        /// "tenant" or "database".
        what: String,
        /// The name in the request.
        name: String,
    },
    /// A record that a request needs does not exist.
    #[error("there is no record {id:?} in the collection")]
    NoRecord {
        /// Its id.
        id: String,
    },
    /// There is no such root.
    #[error("there is no indexed folder {root}")]
    NoRoot {
        /// The root's number.
        root: u64,
    },
    /// There is no such drawer.
    #[error("there is no drawer {id:?}")]
    NoDrawer {
        /// Its id.
        id: String,
    },
    /// Another drawer has the same text, wing, room and source.
    #[error("drawer {id} already has this text, in the same room and from the same source")]
    DrawerExists {
        /// The id of the existing drawer.
        id: String,
    },
    /// A value is too long.
    #[error("{what} has {bytes} bytes; the limit is {limit}")]
    TooLong {
        /// The value, as a noun phrase.
        what: String,
        /// Its length.
        bytes: usize,
        /// The maximum length.
        limit: usize,
    },
    /// There is no such fact.
    #[error("there is no fact {what}")]
    NoFact {
        /// The fact in the request: its id or what it says.
        what: String,
    },
    /// An existing fact says the same, for a period that overlaps.
    #[error("{id} already says the same {there}, which overlaps the new period ({asked})")]
    FactOverlaps {
        /// The id of the existing fact.
        id: String,
        /// The period in which it is true.
        there: String,
        /// The period of the new fact.
        asked: String,
        /// Whether the existing fact has no end.
        is_open: bool,
    },
    /// The predicate has one object at a time, and the subject has another one at that time.
    #[error("{rule}: {id} says {there}, which overlaps the new period ({asked})")]
    FactContradicts {
        /// The id of the existing fact.
        id: String,
        /// The subject and the predicate, of which it has one at a time.
        rule: String,
        /// The object of the existing fact, and the period in which it is true.
        there: String,
        /// The period of the new fact.
        asked: String,
    },
    /// A name belongs to another entity.
    #[error("{name:?} is already a name of {owner:?}")]
    NameTaken {
        /// The name.
        name: String,
        /// The entity that has it.
        owner: String,
    },
    /// The collection's vectors come from another model.
    #[error("collection {name:?} holds vectors of model {found:?}, not of {asked:?}")]
    ModelMismatch {
        /// The collection.
        name: String,
        /// Its model.
        found: String,
        /// The model in the request.
        asked: String,
    },
    /// Records with these ids already exist, with different content.
    #[error("{} already in use with different content: {}", counted(*count, "id"), listed(ids))]
    IdsExist {
        /// The number of such ids.
        count: u64,
        /// The first of these ids.
        ids: Vec<String>,
    },
    /// The idempotency key was used for a different request.
    #[error("the idempotency key was already used for another request")]
    KeyReused,
    /// A record is invalid.
    #[error("row {row}{}: {reason}", id_suffix(id))]
    BadRecord {
        /// Its index in the request, from 0.
        row: u64,
        /// Its id, if it has a usable one.
        id: String,
        /// Why it is invalid.
        reason: String,
    },
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// The filter cannot be evaluated.
    #[error("bad filter: {0}")]
    BadFilter(String),
    /// A regular expression cannot be used.
    #[error("invalid regex: {reason}")]
    BadPattern {
        /// Why not.
        reason: String,
    },
    /// A graph query was refused or failed.
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

    /// Whether every further operation fails until the store is reopened.
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
            Self::NoTenant { .. } | Self::NoDatabase { .. } => (Code::NotFound, "create it first"),
            Self::NoRecord { .. } => (Code::NotFound, "leave the id out, or add the record"),
            Self::NameExists { .. } => (Code::AlreadyExists, "choose another name"),
            Self::NoRoot { .. } => return (Code::NotFound, Hint::IndexProject),
            Self::NoFact { .. } => return (Code::NotFound, Hint::QueryFacts),
            Self::FactOverlaps { is_open: false, .. } => {
                (Code::AlreadyExists, "add only times at which it is not true")
            }
            Self::FactOverlaps { id, .. } => {
                return (Code::AlreadyExists, Hint::InvalidateFact { id: id.clone() });
            }
            Self::FactContradicts { id, .. } => {
                return (Code::AlreadyExists, Hint::SupersedeFact { id: id.clone() });
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
            Self::BadPattern { .. } => return (Code::BadInput, Hint::SearchExact),
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

fn changes_suffix(changes: u64) -> String {
    match changes {
        0 => String::new(),
        changes => format!(" (with {} of records)", counted(changes, "change")),
    }
}

fn listed(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
    quoted.join(", ")
}

fn difference_suffix(difference: &str) -> String {
    if difference.is_empty() { String::new() } else { format!(", with {difference}") }
}

fn id_suffix(id: &str) -> String {
    if id.is_empty() { String::new() } else { format!(" (id {id:?})") }
}
