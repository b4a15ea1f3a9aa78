//! What a writer is asked and what it answers, as plain values.

use isolate::Bulk;
use isolith_types::{
    AddedDrawer, AddedFact, CollectionSpec, DrawerPatch, EndedFact, Entity, FileVersion, Filter,
    Metadata, NewDrawer,
};
use serde::{Deserialize, Serialize};

use crate::code::RootState;
use crate::facts::FactWrite;
use crate::graph::{CypherQuery, GraphAnswer, GraphSegmentEntry, GraphTable, TableTaken};
use crate::memory::{DrawerVectors, WhichDrawers};
use crate::state::{CollectionState, Level, LoadProgress, SegmentEntry};

/// Names one write for ever, so that it happens once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key(pub [u8; 16]);

impl Key {
    /// The key that a caller means by some text of theirs.
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
    /// Whether the caller chose the key: then it is kept for a day. Otherwise it goes
    /// when the front has confirmed the answer.
    pub keep: bool,
    /// What to do.
    pub action: Action,
}

/// What a write does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// Makes a collection.
    CreateCollection {
        /// What it is to be.
        spec: CollectionSpec,
        /// Whether one that is there already is fine, if it is like that.
        if_missing: bool,
    },
    /// Removes a collection at once; its rows go with [`Action::Purge`].
    DeleteCollection {
        /// Which one.
        name: String,
    },
    /// Gives a collection another name.
    RenameCollection {
        /// Its name.
        from: String,
        /// Its name to be.
        to: String,
    },
    /// Stores records.
    Put {
        /// Where.
        collection: String,
        /// What.
        records: Records,
        /// What to do about ids that are taken.
        mode: PutMode,
        /// How far this brings an ingest.
        load: Option<LoadStep>,
    },
    /// Changes parts of records. Ids that are not there are counted, not made.
    Update {
        /// Where.
        collection: String,
        /// What.
        patches: Vec<Patch>,
    },
    /// Removes records.
    Delete {
        /// Where.
        collection: String,
        /// Which.
        which: Which,
    },
    /// Adds a folder whose code is indexed, or finds it. Makes the code index if there is
    /// none.
    AddRoot {
        /// The folder.
        path: String,
        /// What the code index is to be: see [`code_spec`](crate::code_spec).
        spec: CollectionSpec,
    },
    /// Stores files with their chunks. Each takes the place of what is there under its
    /// path.
    PutFiles {
        /// The root's number.
        root: u64,
        /// A `Vec<ParsedFile>` in postcard.
        files: Bulk,
        /// When each file was changed, in nanoseconds; if not given, as the files say. They
        /// come apart, so that whoever parses knows contents alone.
        ages: Vec<i64>,
        /// The length of every vector.
        dimension: u32,
        /// A vector for each chunk of each file, in order: f32, little-endian.
        vectors: Bulk,
        /// The model that made them.
        model: String,
    },
    /// Notes the age of files whose content is as it was.
    TouchFiles {
        /// The root's number.
        root: u64,
        /// Path, time in nanoseconds, and size.
        files: Vec<(String, i64, u64)>,
    },
    /// Gives a file another path, or the same, and its chunks other vectors. A file that
    /// has the path already goes.
    MoveFile {
        /// The root's number.
        root: u64,
        /// Its path.
        from: String,
        /// Its path to be.
        to: String,
        /// Its age; the content is as it was.
        version: FileVersion,
        /// The length of every vector.
        dimension: u32,
        /// A vector for each of its chunks, in order: f32, little-endian.
        vectors: Bulk,
        /// The model that made them.
        model: String,
    },
    /// Removes files with their chunks.
    RemoveFiles {
        /// The root's number.
        root: u64,
        /// Their paths.
        paths: Vec<String>,
    },
    /// Removes all files, a slice at a time. Roots stay.
    ClearFiles {
        /// Of this root only, if given.
        root: Option<u64>,
        /// How many files at most.
        limit_files: u32,
    },
    /// Makes the code index anew for another model. It must have no chunks.
    SetCodeModel {
        /// What it is to be: see [`code_spec`](crate::code_spec).
        spec: CollectionSpec,
    },
    /// Removes a root, which must have no files.
    RemoveRoot {
        /// The root's number.
        root: u64,
    },
    /// Notes that a root has been indexed completely.
    FinishIndex {
        /// The root's number.
        root: u64,
    },
    /// Finds out what the names in files mean, of those that have to be looked at; a slice
    /// at a time.
    LinkFiles {
        /// The root's number.
        root: u64,
    },
    /// Notes what git says about files.
    GitFacts {
        /// The root's number.
        root: u64,
        /// Path, author and time in milliseconds of the last change.
        facts: Vec<(String, Option<String>, i64)>,
    },
    /// Puts texts into memory. One that is there already is left alone.
    AddDrawers {
        /// The texts, and what there is to say about them.
        drawers: Vec<NewDrawer>,
        /// Whether those that cannot be stored are rejected alone, or all with them.
        skip_bad: bool,
        /// Their vectors.
        #[serde(skip)]
        vectors: DrawerVectors,
    },
    /// Changes a drawer.
    UpdateDrawer {
        /// Which one.
        id: String,
        /// What is to be another.
        patch: Box<DrawerPatch>,
        /// The vectors of the new text, if there is one.
        #[serde(skip)]
        vectors: DrawerVectors,
    },
    /// Removes drawers; by filter a slice at a time.
    DeleteDrawers {
        /// Which.
        which: WhichDrawers,
    },
    /// Changes facts, or what is known of entities.
    Facts(FactWrite),
    /// Runs a query that changes the graph.
    Cypher(CypherQuery),
    /// Writes rows of a table to the graph.
    ImportGraph(GraphTable),
    /// Makes new segments current.
    Swap(SwapPlan),
    /// Marks segments that must not be opened.
    QuarantineSegments {
        /// The collection's number.
        collection: u64,
        /// The generation they belong to; nothing happens if it is no longer current.
        generation: u64,
        /// Their names.
        files: Vec<String>,
        /// What they did.
        reason: String,
    },
    /// Makes a new segment of the graph current, or lets it have none.
    SwapGraph(Option<GraphSegmentEntry>),
    /// Marks the segment of the graph as one that must not be opened.
    QuarantineGraph {
        /// Its name; nothing happens if it is no longer current.
        file: String,
        /// What it did.
        reason: String,
    },
    /// Removes rows of deleted collections, a slice at a time.
    Purge {
        /// How many rows at most.
        limit_rows: u32,
    },
    /// Remembers a job that kills workers.
    RememberPoison {
        /// The role it kills.
        role: String,
        /// The hash of its input.
        input: Vec<u8>,
        /// What happened.
        poison: String,
    },
    /// Forgets jobs that killed workers.
    ForgetPoison {
        /// Of this role only, if given.
        role: Option<String>,
        /// With this input only, if given.
        input: Option<Vec<u8>>,
    },
    /// Removes what has had its day, and gives a little space back.
    Tidy,
    /// Counts the records of all collections again.
    Recount,
}

/// What to do about ids that are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PutMode {
    /// A record with the same content is left alone. One with another content is
    /// rejected, alone if `skip_existing`, otherwise with the whole write.
    Add {
        /// Whether to go on without them.
        skip_existing: bool,
    },
    /// A record with another content is replaced as a whole.
    Upsert,
}

/// Records side by side.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Records {
    /// One for each record.
    pub ids: Vec<String>,
    /// One for each record, or none at all.
    pub documents: Vec<Option<String>>,
    /// One for each record, or none at all.
    pub metadatas: Vec<Metadata>,
    /// The length of every vector.
    pub dimension: u32,
    /// All vectors one after the other: f32, little-endian.
    pub vectors: Bulk,
}

/// How far a batch brings an ingest. A step that was done before changes nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadStep {
    /// Names file, collection and mode.
    pub source: String,
    /// The first row of the source in this batch, from 0.
    pub first_row: u64,
    /// How many rows of the source this batch stands for.
    pub rows_covered: u64,
    /// How many of these were left out before they came here.
    pub rejected: u64,
    /// Whether this is the end of the source.
    pub finished: bool,
}

/// A change of one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Patch {
    /// Which record.
    pub id: String,
    /// The new text, or that there is none; unchanged if not given.
    pub document: Option<Option<String>>,
    /// Laid over the old keys; a null takes a key away.
    pub metadata: Option<Metadata>,
    /// The new vector; unchanged if not given.
    pub vector: Option<Vec<f32>>,
}

/// Which records to remove.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Which {
    /// These. Ids that are not there are counted as missing.
    Ids(Vec<String>),
    /// All that match.
    Matching(Filter),
}

/// New segments, ready to become current.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapPlan {
    /// The collection's number.
    pub collection: u64,
    /// The generation that the fold started from; 0 if there was none.
    pub from_generation: u64,
    /// A new delta on the old base, or a new base alone.
    pub level: Level,
    /// The change number at which the fold read the truth.
    pub complete_to: u64,
    /// The new files of that level.
    pub segments: Vec<SegmentEntry>,
}

/// What a write did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Outcome {
    /// Whether a collection, a root, a fact or an entity was made.
    pub created: bool,
    /// Records that are new.
    pub inserted: u64,
    /// Records that were replaced or changed.
    pub updated: u64,
    /// Records that were like that already.
    pub unchanged: u64,
    /// Records that were removed.
    pub deleted: u64,
    /// Ids or files that were not there.
    pub missing: u64,
    /// Rows that were left out, with the reason. All of them in the first answer, the
    /// first ones in a repeated one.
    pub rejected: Vec<(u64, String)>,
    /// How many rows were left out.
    pub rejected_count: u64,
    /// Whether this was answered from the receipt of an earlier time.
    pub repeated: bool,
    /// Files that were stored, changed or removed.
    pub files: u64,
    /// The root after the write, if it was about one as such.
    pub root: Option<RootState>,
    /// What became of the drawers that were to be added, without the rejected ones.
    pub drawers: Vec<AddedDrawer>,
    /// The places, in the request, of those that were there already.
    pub known: Vec<u32>,
    /// Records in the collection before.
    pub count_before: u64,
    /// Records in the collection after.
    pub count_after: u64,
    /// The collection after the write, or as it is now if the answer is repeated.
    pub collection: Option<CollectionState>,
    /// The ingest so far, if this was a step of one.
    pub load: Option<LoadProgress>,
    /// Whether the collection should be folded.
    pub fold_due: bool,
    /// Whether a new segment of the graph should be made.
    pub graph_due: bool,
    /// Whether the plan's segments are current now.
    pub swapped: bool,
    /// Names in `segments/` that nothing refers to any more.
    pub obsolete_files: Vec<String>,
    /// Whether there is more to do of the same.
    pub more: bool,
    /// The fact that says what was to be added.
    pub fact: Option<AddedFact>,
    /// The fact that was to end.
    pub ended_fact: Option<EndedFact>,
    /// The entity after the write, or as it is now if the answer is repeated.
    pub entity: Option<Entity>,
    /// What a query answered; nothing if it changes nothing, and was not run.
    pub graph: Option<GraphAnswer>,
    /// How much of a table was written.
    pub table: Option<TableTaken>,
}
