//! Shared helpers: a store in a temporary folder, and shortcuts for using it.

use std::sync::atomic::{AtomicU64, Ordering};

use isolate::InWorker;
use isolith_pages::Checking;
use isolith_protocol::{
    Action, AddRoot, CollectionState, CreateCollection, Done, Key, PutFiles, PutMode, PutRecords,
    Records, RecordsPut, StoreError, Write, WriteOperation, WriteReply, code_spec,
};
use isolith_store::{Durability, Reader, StoreFolder, Truth, Writer, WriterOptions};
use isolith_types::{
    Chunk, ChunkKind, CollectionSpec, FileGraph, FileVersion, Metadata, Metric, ParsedFile, Symbol,
    SymbolKind,
};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

pub(crate) const CREATE: WriterOptions =
    WriterOptions { durability: Durability::Normal, create: true };
pub(crate) const OPEN: WriterOptions =
    WriterOptions { durability: Durability::Normal, create: false };

pub(crate) struct TestStore {
    pub(crate) place: TempDir,
    pub(crate) folder: StoreFolder,
    pub(crate) writer: Writer,
}

impl TestStore {
    /// An empty store with the collection "c": two numbers, squared distance.
    pub(crate) fn new() -> Self {
        let mut store = Self::empty();
        store.create("c", Metric::L2);
        store
    }

    pub(crate) fn empty() -> Self {
        let place = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(place.path().join("störe with spaces"));
        let writer = writer(&folder).unwrap();
        Self { place, folder, writer }
    }

    pub(crate) fn create(&mut self, name: &str, metric: Metric) {
        let spec =
            CollectionSpec { name: name.to_owned(), dimension: Some(2), metric, model: None };
        self.one(CreateCollection { spec, if_missing: false }).unwrap();
    }

    pub(crate) fn one<O: WriteOperation>(
        &mut self,
        operation: O,
    ) -> Result<Written<O::Reply>, StoreError> {
        one(&mut self.writer, operation)
    }

    /// Applies an operation under the given key.
    pub(crate) fn keyed<O: WriteOperation>(
        &mut self,
        key: Key,
        operation: O,
    ) -> Result<Written<O::Reply>, StoreError> {
        self.writer.apply_one(key, operation).map(Written::from)
    }

    /// Applies an operation of any type.
    pub(crate) fn any(&mut self, action: Action) -> Result<Done<WriteReply>, StoreError> {
        let write = Write { key: key(), keep: false, action };
        self.writer.apply(&[write], &[])?.remove(0)
    }

    pub(crate) fn upsert(&mut self, records: Records) -> Written<RecordsPut> {
        self.one(put("c", records, PutMode::Upsert)).unwrap()
    }

    pub(crate) fn reader(&self) -> Reader {
        Truth::open_reader(&self.folder, token()).unwrap()
    }
}

pub(crate) fn token() -> InWorker {
    InWorker::in_process()
}

pub(crate) fn writer(folder: &StoreFolder) -> Result<Writer, StoreError> {
    Truth::open_writer(folder, CREATE, token())
}

pub(crate) fn key() -> Key {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let number = u128::from(NEXT.fetch_add(1, Ordering::Relaxed));
    Key((number << 64 | u128::from(std::process::id())).to_be_bytes())
}

pub(crate) fn write(operation: impl WriteOperation) -> Write {
    Write { key: key(), keep: false, action: operation.into() }
}

/// The result of a write; derefs to its reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Written<R> {
    pub(crate) reply: R,
    pub(crate) repeated: bool,
    pub(crate) collection: Option<CollectionState>,
    pub(crate) fold_due: bool,
    /// The number of records in the collection after the write.
    pub(crate) count_after: u64,
}

impl<R> std::ops::Deref for Written<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.reply
    }
}

impl<R> From<Done<R>> for Written<R> {
    fn from(done: Done<R>) -> Self {
        let Done { reply, repeated, collection, fold_due, .. } = done;
        let count_after = collection.as_ref().map_or(0, |state| state.records);
        Self { reply, repeated, collection, fold_due, count_after }
    }
}

pub(crate) fn one<O: WriteOperation>(
    writer: &mut Writer,
    operation: O,
) -> Result<Written<O::Reply>, StoreError> {
    writer.apply_one(key(), operation).map(Written::from)
}

pub(crate) fn put(collection: &str, records: Records, mode: PutMode) -> PutRecords {
    PutRecords { collection: collection.to_owned(), records, mode, load: None }
}

/// Records with an id, a text, metadata and two numbers each.
pub(crate) fn records(rows: &[(&str, &str, &str, [f32; 2])]) -> Records {
    Records {
        ids: rows.iter().map(|row| row.0.to_owned()).collect(),
        documents: rows.iter().map(|row| Some(row.1.to_owned())).collect(),
        metadatas: rows.iter().map(|row| Metadata::parse(row.2).unwrap()).collect(),
        dimension: 2,
        vectors: bytes(rows.iter().flat_map(|row| row.3)).into(),
    }
}

/// Records `id-<n>` for a range of numbers, with the number in everything.
pub(crate) fn numbered(numbers: std::ops::Range<u32>) -> Records {
    let each = || numbers.clone();
    Records {
        ids: each().map(|n| format!("id-{n}")).collect(),
        documents: each().map(|n| Some(format!("text {n}"))).collect(),
        metadatas: each()
            .map(|n| Metadata::parse(&format!(r#"{{"n":{n},"tenth":{}}}"#, n % 10)).unwrap())
            .collect(),
        dimension: 2,
        vectors: bytes(each().flat_map(|n| [n as f32, 1.0])).into(),
    }
}

pub(crate) fn bytes(numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
    numbers.into_iter().flat_map(f32::to_le_bytes).collect()
}

/// The model of the code index in tests, and the length of its vectors.
pub(crate) const MODEL: &str = "static";

/// A root with the code index that it needs. Returns its number.
pub(crate) fn add_root(store: &mut TestStore, path: &str) -> u64 {
    let spec = code_spec(2, MODEL);
    let outcome = store.one(AddRoot { path: path.to_owned(), spec, worktree: None }).unwrap();
    outcome.root.id
}

/// A file with a chunk for each text, a line each. The hash is of all texts.
pub(crate) fn file(path: &str, texts: &[&str]) -> ParsedFile {
    let chunk = |(line, text): (u32, &&str)| Chunk {
        start_line: line,
        end_line: line,
        kind: if text.starts_with("fn ") { ChunkKind::Function } else { ChunkKind::Module },
        symbols: text
            .strip_prefix("fn ")
            .map(|name| Symbol { name: name.to_owned(), kind: SymbolKind::Function, line })
            .into_iter()
            .collect(),
        parent: None,
        signature: text.starts_with("fn ").then(|| (*text).to_owned()),
        doc: None,
        text: (*text).to_owned(),
    };
    ParsedFile {
        path: path.to_owned(),
        version: version(texts),
        language: "rust".to_owned(),
        generated: false,
        problem: None,
        chunks: (1..).zip(texts).map(chunk).collect(),
        graph: FileGraph::default(),
        parser: 1,
    }
}

pub(crate) fn version(texts: &[&str]) -> FileVersion {
    let whole = texts.join("\n");
    let mut hash = [7_u8; 32];
    for (at, byte) in whole.bytes().enumerate() {
        hash[at % 32] = hash[at % 32].wrapping_mul(31).wrapping_add(byte);
    }
    FileVersion { hash, size: whole.len() as u64, modified: 1_000_000_000 }
}

/// A vector for each chunk, derived from its text and `mark`.
pub(crate) fn vectors_of(files: &[ParsedFile], mark: f32) -> Vec<u8> {
    let chunks = files.iter().flat_map(|file| &file.chunks);
    bytes(chunks.flat_map(|chunk| [chunk.text.len() as f32, mark]))
}

pub(crate) fn put_files(root: u64, files: &[ParsedFile], mark: f32) -> PutFiles {
    PutFiles {
        root,
        files: postcard::to_allocvec(files).unwrap().into(),
        ages: Vec::new(),
        dimension: 2,
        vectors: vectors_of(files, mark).into(),
        model: MODEL.to_owned(),
    }
}

/// Opens the database directly, to inject inconsistencies while page checksums stay valid.
pub(crate) fn database(folder: &StoreFolder) -> Connection {
    isolith_pages::open(&folder.truth(), OpenFlags::default(), Checking::Every).unwrap()
}
