//! Operations that change a store.

mod code;
mod collections;
mod facts;
mod graph;
mod memory;
mod upkeep;

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use code::{
    AddRoot, ClearFiles, CodeModelSet, FileMoved, FilesCleared, FilesLinked, FilesNoted, FilesPut,
    FilesRemoved, FinishIndex, LinkFiles, MoveFile, NoteGitFacts, PutFiles, RemoveFiles,
    RemoveRoot, RootAdded, SetCodeModel, TouchFiles,
};
pub use collections::{
    CollectionCreated, CollectionDeleted, CreateCollection, DeleteCollection, DeleteRecords,
    LoadStep, Patch, PutMode, PutRecords, Records, RecordsDeleted, RecordsPut, RecordsUpdated,
    RenameCollection, UpdateRecords, Which,
};
pub use facts::{
    AddFact, DescribeEntity, EntityDescribed, FactAdded, FactEnded, FactSuperseded, InvalidateFact,
    SupersedeFact,
};
pub use graph::{ChangeGraph, GraphChanged, GraphImported, ImportGraph};
pub use memory::{
    AddDrawers, DeleteDrawers, DrawerUpdated, DrawersAdded, DrawersDeleted, UpdateDrawer,
};
pub use upkeep::{
    ForgetPoison, Marked, Purge, Purged, QuarantineGraphSegment, QuarantineSegments, Recount,
    RememberPoison, SegmentsSwapped, SwapGraphSegment, SwapPlan, SwapSegments, Tidy,
};

use crate::state::{CODE_COLLECTION, CollectionState, MEMORY_COLLECTION};

/// The version of how operations are encoded. Raise it when a field of an operation is added,
/// removed or changes its type: receipts hold a hash of the encoded operation, and a retry
/// after an upgrade must not be taken for another request under the same key.
pub const ENCODING: u32 = 2;

/// Names one write for ever, so that it happens once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The key for a text that the caller chose.
    pub fn of_text(text: &str) -> Self {
        let mut key = [0; 16];
        key.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
        Self(key)
    }
}

/// One write with its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// The same key with the same action is done once.
    pub key: Key,
    /// Whether the caller chose the key: then it is kept for a day. Otherwise it is removed
    /// when the front has confirmed the answer.
    pub keep: bool,
    /// What to do.
    pub action: Action,
}

/// An operation that changes a store.
pub trait WriteOperation: Handled + Debug + Clone + PartialEq + Serialize + Into<Action> {
    /// What it answers.
    type Reply: Debug + Clone + PartialEq + Serialize + DeserializeOwned;

    /// Its name in reports.
    const NAME: &'static str;

    /// Its own reply; none if it belongs to another operation.
    fn reply_from(reply: WriteReply) -> Option<Self::Reply>;
}

/// An operation that says how it is to be sent.
pub trait Handled {
    /// What must be known to send it.
    fn handling(&self) -> Handling<'_>;
}

/// What must be known of an operation to send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handling<'a> {
    /// The collection that it is about, whose state comes with the reply.
    pub about: About<'a>,
    /// How many rows it writes, about.
    pub rows: usize,
    /// How many bytes it carries, about.
    pub bytes: usize,
    /// Whether it must not share a transaction: it may hold the lock for long, or is one step
    /// of something long.
    pub alone: bool,
}

/// The collection that an operation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About<'a> {
    /// None, or several.
    Nothing,
    /// The one of this name.
    Collection(&'a str),
    /// The one of this number.
    Number(u64),
}

impl<'a> Handling<'a> {
    /// A small write about this collection.
    pub fn of(about: About<'a>) -> Self {
        Self { about, rows: 1, bytes: 0, alone: false }
    }

    /// A small write about no collection.
    pub fn of_nothing() -> Self {
        Self::of(About::Nothing)
    }

    /// A small write about the code index.
    pub fn of_code() -> Self {
        Self::of(About::Collection(CODE_COLLECTION))
    }

    /// A small write about memory.
    pub fn of_memory() -> Self {
        Self::of(About::Collection(MEMORY_COLLECTION))
    }

    /// A write of this size.
    #[must_use]
    pub fn sized(self, rows: usize, bytes: usize) -> Self {
        Self { rows, bytes, ..self }
    }

    /// A write that does not share its transaction.
    #[must_use]
    pub fn alone(self) -> Self {
        self.alone_if(true)
    }

    /// A write that does not share its transaction under a condition.
    #[must_use]
    pub fn alone_if(self, alone: bool) -> Self {
        Self { alone, ..self }
    }
}

/// What a write did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done<R> {
    /// What the operation answers.
    pub reply: R,
    /// Whether this was answered from the receipt of an earlier time.
    pub repeated: bool,
    /// The collection that the operation is about, after it; or as it is now if the answer is
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
    /// The same with the state of the collection.
    #[must_use]
    pub fn with_collection(self, collection: Option<CollectionState>) -> Self {
        Self { collection, ..self }
    }

    /// The same with another reply.
    pub fn map<S>(self, reply: impl FnOnce(R) -> S) -> Done<S> {
        let Self { reply: old, repeated, collection, fold_due, graph_due } = self;
        Done { reply: reply(old), repeated, collection, fold_due, graph_due }
    }
}

/// Who carries an operation out.
pub trait PerformsWrite<O: WriteOperation> {
    /// What can go wrong.
    type Error;

    /// Carries it out.
    ///
    /// # Errors
    /// What went wrong; then nothing was changed.
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

            /// What must be known to send it.
            pub fn handling(&self) -> Handling<'_> {
                match self {
                    $(Self::$operation(operation) => operation.handling(),)*
                }
            }

            /// Has it carried out.
            ///
            /// # Errors
            /// What went wrong.
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

// The order matters to receipts, as does every field: see `ENCODING`. Add at the end.
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
}
