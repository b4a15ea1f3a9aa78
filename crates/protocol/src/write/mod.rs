//! Operations that change a store.

mod code;
mod collections;
mod databases;
mod facts;
mod graph;
mod memory;
mod upkeep;

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use code::{
    AddRoot, ClearFiles, CodeModelSet, CopyFiles, FileMoved, FilesCleared, FilesCopied,
    FilesLinked, FilesNoted, FilesPut, FilesRemoved, FinishIndex, LinkFiles, MoveFile,
    NoteGitFacts, PutFiles, RemoveFiles, RemoveRoot, RootAdded, SetCodeModel, TouchFiles,
};
pub use collections::{
    CollectionCreated, CollectionDeleted, CreateCollection, DeleteCollection, DeleteRecords,
    LoadStep, Patch, PutMode, PutRecords, Records, RecordsDeleted, RecordsPut, RecordsUpdated,
    RenameCollection, UpdateRecords, Which,
};
pub use databases::{
    AddCollection, ChangeCollection, CollectionAdded, CreateDatabase, CreateTenant, DeleteDatabase,
    ResetDatabases, UpdateTenant,
};
pub use facts::{
    AddFact, AddFacts, DeclarePredicate, DescribeEntity, EntityDescribed, FactAdded, FactEnded,
    FactRetracted, FactSuperseded, FactsAdded, InvalidateFact, PredicateDeclared, RetractFact,
    SupersedeFact,
};
pub use graph::{ChangeGraph, GraphChanged, GraphImported, ImportGraph};
pub use memory::{
    AddDrawers, CheckpointSaved, DeleteDrawers, DrawerUpdated, DrawersAdded, DrawersDeleted,
    SaveCheckpoint, UpdateDrawer,
};
pub use upkeep::{
    ForgetPoison, Marked, Purge, Purged, QuarantineGraphSegment, QuarantineSegments, Recount,
    RememberPoison, SegmentsSwapped, SwapGraphSegment, SwapPlan, SwapSegments, Tidy,
};

use crate::state::{CODE_COLLECTION, CollectionState, MEMORY_COLLECTION};

/// The version of the encoding of operations. Raise it when a field of an operation is added,
/// removed or changes its type: receipts hold a hash of the encoded operation, and a retry
/// after an upgrade must not look like a different request under the same key.
pub const ENCODING: u32 = 5;

/// An idempotency key: a write with a known key is not applied again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// Derives a key from text that the caller chose.
    pub fn of_text(text: &str) -> Self {
        let mut key = [0; 16];
        key.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
        Self(key)
    }
}

/// One write with its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// A write with the same key and action is applied once.
    pub key: Key,
    /// Whether the caller chose the key. Then its receipt is kept for a day; otherwise until
    /// the front has confirmed the answer.
    pub keep: bool,
    /// The operation.
    pub action: Action,
}

/// An operation that changes a store.
pub trait WriteOperation: Handled + Debug + Clone + PartialEq + Serialize + Into<Action> {
    /// The type of its reply.
    type Reply: Debug + Clone + PartialEq + Serialize + DeserializeOwned;

    /// Its name in reports.
    const NAME: &'static str;

    /// Extracts its reply; `None` if `reply` belongs to another operation.
    fn reply_from(reply: WriteReply) -> Option<Self::Reply>;
}

/// An operation that describes itself to the queue of writes.
pub trait Handled {
    /// Its target, size and whether it can share a transaction.
    fn handling(&self) -> Handling<'_>;
}

/// What the queue of writes needs to know about an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handling<'a> {
    /// The collection that it changes, whose state is part of the reply.
    pub about: About<'a>,
    /// The approximate number of rows that it writes.
    pub rows: usize,
    /// The approximate number of bytes that it carries.
    pub bytes: usize,
    /// Whether it needs a transaction of its own: it may hold the lock for a long time, or is
    /// one step of a long operation.
    pub alone: bool,
}

/// The collection that an operation changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About<'a> {
    /// None, or several.
    Nothing,
    /// The collection with this name.
    Collection(&'a str),
    /// The collection with this number.
    Number(u64),
}

impl<'a> Handling<'a> {
    /// A small write to this collection.
    pub fn of(about: About<'a>) -> Self {
        Self { about, rows: 1, bytes: 0, alone: false }
    }

    /// A small write to no particular collection.
    pub fn of_nothing() -> Self {
        Self::of(About::Nothing)
    }

    /// A small write to the code index.
    pub fn of_code() -> Self {
        Self::of(About::Collection(CODE_COLLECTION))
    }

    /// A small write to agent memory.
    pub fn of_memory() -> Self {
        Self::of(About::Collection(MEMORY_COLLECTION))
    }

    /// Sets the size.
    #[must_use]
    pub fn sized(self, rows: usize, bytes: usize) -> Self {
        Self { rows, bytes, ..self }
    }

    /// Requires a transaction of its own.
    #[must_use]
    pub fn alone(self) -> Self {
        self.alone_if(true)
    }

    /// Requires a transaction of its own if `alone`.
    #[must_use]
    pub fn alone_if(self, alone: bool) -> Self {
        Self { alone, ..self }
    }
}

/// The result of a write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done<R> {
    /// The operation's reply.
    pub reply: R,
    /// Whether the write had been applied before, and this comes from its receipt.
    pub repeated: bool,
    /// The state of the collection after the write; its current state if the answer is
    /// repeated.
    pub collection: Option<CollectionState>,
    /// Whether that collection should be folded.
    pub fold_due: bool,
    /// Whether a new segment of the graph should be built.
    pub graph_due: bool,
}

impl<R> From<R> for Done<R> {
    fn from(reply: R) -> Self {
        Self { reply, repeated: false, collection: None, fold_due: false, graph_due: false }
    }
}

impl<R> Done<R> {
    /// Adds the state of the collection.
    #[must_use]
    pub fn with_collection(self, collection: Option<CollectionState>) -> Self {
        Self { collection, ..self }
    }

    /// Converts the reply.
    pub fn map<S>(self, reply: impl FnOnce(R) -> S) -> Done<S> {
        let Self { reply: old, repeated, collection, fold_due, graph_due } = self;
        Done { reply: reply(old), repeated, collection, fold_due, graph_due }
    }
}

/// Performs a write operation.
pub trait PerformsWrite<O: WriteOperation> {
    /// The error type.
    type Error;

    /// Performs the operation.
    ///
    /// # Errors
    /// The performer's error; nothing was changed then.
    fn perform(&mut self, operation: &O) -> Result<Done<O::Reply>, Self::Error>;
}

macro_rules! write_operations {
    ($($operation:ident($name:literal) => $reply:ty,)*) => {
        /// Any operation that changes a store.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "each variant is documented at its operation")]
        pub enum Action {
            $($operation($operation),)*
        }

        /// The reply of any operation that changes a store.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[expect(missing_docs, reason = "each variant is documented at its operation")]
        pub enum WriteReply {
            $($operation($reply),)*
        }

        impl Action {
            /// The names of all operations.
            pub const NAMES: &[&str] = &[$($name),*];

            /// The operation's name in reports.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$operation(_) => $operation::NAME,)*
                }
            }

            /// Its target, size and whether it can share a transaction.
            pub fn handling(&self) -> Handling<'_> {
                match self {
                    $(Self::$operation(operation) => operation.handling(),)*
                }
            }

            /// Dispatches to the performer.
            ///
            /// # Errors
            /// The performer's error.
            pub fn perform_with<P, E>(&self, performer: &mut P) -> Result<Done<WriteReply>, E>
            where
                $(P: PerformsWrite<$operation, Error = E>,)*
            {
                match self {
                    $(Self::$operation(operation) => performer
                        .perform(operation)
                        .map(|done| done.map(WriteReply::$operation)),)*
                }
            }
        }

        $(
            impl From<$operation> for Action {
                fn from(operation: $operation) -> Self {
                    Self::$operation(operation)
                }
            }

            impl WriteOperation for $operation {
                type Reply = $reply;
                const NAME: &'static str = $name;

                fn reply_from(reply: WriteReply) -> Option<Self::Reply> {
                    match reply {
                        WriteReply::$operation(reply) => Some(reply),
                        _ => None,
                    }
                }
            }
        )*
    };
}

// Order and fields are part of receipts: see `ENCODING`. Add new operations at the end.
write_operations! {
    CreateCollection("create_collection") => CollectionCreated,
    DeleteCollection("delete_collection") => CollectionDeleted,
    RenameCollection("rename_collection") => (),
    PutRecords("put") => RecordsPut,
    UpdateRecords("update") => RecordsUpdated,
    DeleteRecords("delete") => RecordsDeleted,
    AddRoot("add_root") => RootAdded,
    PutFiles("put_files") => FilesPut,
    TouchFiles("touch_files") => FilesNoted,
    MoveFile("move_file") => FileMoved,
    RemoveFiles("remove_files") => FilesRemoved,
    ClearFiles("clear_files") => FilesCleared,
    SetCodeModel("set_code_model") => CodeModelSet,
    RemoveRoot("remove_root") => (),
    FinishIndex("finish_index") => (),
    LinkFiles("link_files") => FilesLinked,
    NoteGitFacts("git_facts") => FilesNoted,
    AddDrawers("add_drawers") => DrawersAdded,
    UpdateDrawer("update_drawer") => DrawerUpdated,
    DeleteDrawers("delete_drawers") => DrawersDeleted,
    AddFact("add_fact") => FactAdded,
    InvalidateFact("invalidate_fact") => FactEnded,
    SupersedeFact("supersede_fact") => FactSuperseded,
    DescribeEntity("describe_entity") => EntityDescribed,
    ChangeGraph("cypher") => GraphChanged,
    ImportGraph("import_graph") => GraphImported,
    SwapSegments("swap") => SegmentsSwapped,
    QuarantineSegments("quarantine_segments") => Marked,
    SwapGraphSegment("swap_graph") => SegmentsSwapped,
    QuarantineGraphSegment("quarantine_graph") => Marked,
    Purge("purge") => Purged,
    RememberPoison("remember_poison") => (),
    ForgetPoison("forget_poison") => Marked,
    Tidy("tidy") => Purged,
    Recount("recount") => Marked,
    CopyFiles("copy_files") => FilesCopied,
    CreateTenant("create_tenant") => (),
    UpdateTenant("update_tenant") => (),
    CreateDatabase("create_database") => (),
    DeleteDatabase("delete_database") => CollectionDeleted,
    AddCollection("add_collection") => CollectionAdded,
    ChangeCollection("change_collection") => (),
    ResetDatabases("reset") => CollectionDeleted,
    SaveCheckpoint("save_checkpoint") => CheckpointSaved,
    AddFacts("add_facts") => FactsAdded,
    RetractFact("retract_fact") => FactRetracted,
    DeclarePredicate("declare_predicate") => PredicateDeclared,
}
