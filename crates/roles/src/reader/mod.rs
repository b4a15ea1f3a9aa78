//! The role that answers everything that only reads.

mod best;
mod code;
mod drawers;
mod facts;
mod graph;
mod keywords;
mod memory;
mod segments;
mod tail;
mod vectors;
mod verify;

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use isolate::{Bulk, Context, InWorker, Refusal, Role, Sandbox};
use isolith_embed::{ChunkWeights, Model};
use isolith_segment::SegmentError;
use isolith_store::{
    CollectionState, CypherQuery, FileState, GraphState, LoadProgress, Page, PoisonedJob, Reader,
    RootPlace, RootState, Selection, Snapshot, StoreError, StoredChunk, StoredRecord, Truth,
    WriterOptions,
};
use isolith_types::{Drawer, DrawerFilter, DrawerPage, Failure, Filter, Hit, Wing};
use serde::{Deserialize, Serialize};

use crate::fault;
use crate::settings::{StoreSettings, must_pass_on, passed_on, store_sandbox};
pub use code::{CodeFilter, CodeFound, CodeQuery, FoundChunk};
pub use drawers::{Likeness, SimilarFound};
pub use facts::{FactAnswer, FactQuestion};
pub use graph::CypherFound;
pub use memory::{MemoryFound, MemoryQuery};
use segments::Segments;
use tail::Tails;

/// A process that reads a store: records from the truth, hits with the help of
/// segments.
pub struct StoreReader {
    settings: StoreSettings,
    token: InWorker,
    reader: Option<Reader>,
    segments: Segments,
    tails: Tails,
    model: Model,
}

/// A page of drawers ends when its texts are longer than this together.
const PAGE_BYTES: usize = 8 << 20;

/// What can be asked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ReadJob {
    /// What the front wants to know first.
    Overview,
    /// One collection.
    Collection {
        /// Its name.
        name: String,
    },
    /// Records as they are stored, in pages.
    Get {
        /// The collection's name.
        collection: String,
        /// Which of them.
        which: Selection,
        /// Where and how many.
        page: Page,
        /// Whether their vectors come along.
        vectors: bool,
    },
    /// The records nearest to a vector.
    Nearest {
        /// The collection's name.
        collection: String,
        /// The vector: f32, little-endian.
        vector: Bulk,
        /// How many.
        limit: u32,
        /// Only records that match.
        filter: Option<Filter>,
    },
    /// The records whose documents fit some words best.
    Keywords {
        /// The collection's name.
        collection: String,
        /// The words.
        text: String,
        /// How many.
        limit: u32,
        /// Only records that match.
        filter: Option<Filter>,
    },
    /// The code that answers a question.
    Code(Box<CodeQuery>),
    /// The drawers that answer a question.
    Memory(Box<MemoryQuery>),
    /// The folders whose code is indexed.
    Roots,
    /// Where they are, without counting what they have.
    RootPlaces,
    /// The files of a root, in pages.
    Files {
        /// The root's number.
        root: u64,
        /// Below this folder only.
        under: Option<String>,
        /// After this path.
        after: Option<String>,
        /// How many.
        limit: u32,
    },
    /// Drawers by their ids.
    Drawers {
        /// The ids.
        ids: Vec<String>,
    },
    /// Drawers that a filter allows, in pages.
    ListDrawers {
        /// Which.
        filter: DrawerFilter,
        /// In what order, where and how many.
        page: DrawerPage,
    },
    /// Drawers that are nearly the same as a text.
    SimilarDrawers(Box<Likeness>),
    /// Wings and rooms.
    Taxonomy,
    /// The chunks of a file.
    Chunks {
        /// The root's number.
        root: u64,
        /// The file's path, relative to the root.
        path: String,
    },
    /// The vector of a text; an empty one if it has no words.
    Embed {
        /// The text.
        text: String,
    },
    /// New vectors for the chunks of a file that gets another path.
    EmbedAgain {
        /// The root's number.
        root: u64,
        /// The file's path.
        path: String,
        /// The path to be.
        as_path: String,
    },
    /// What is known, and when it was true.
    Facts(FactQuestion),
    /// What a query finds in the graph.
    Cypher {
        /// The query.
        query: Box<CypherQuery>,
        /// How long it may take. The job has longer, as stopping takes a moment, too.
        time: Duration,
    },
    /// Which segments are damaged, all of them read and checked.
    Verify,
    /// How far an ingest has got.
    Load {
        /// Its source.
        source: String,
    },
}

/// What is answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ReadReply {
    /// To [`ReadJob::Overview`]: all collections, the jobs in quarantine, the graph.
    Overview {
        /// All collections.
        collections: Vec<CollectionState>,
        /// Jobs in quarantine.
        poisons: Vec<PoisonedJob>,
        /// Whether rows of deleted collections are still there.
        purge_due: bool,
        /// The graph.
        graph: GraphState,
    },
    /// To [`ReadJob::Collection`].
    Collection(CollectionState),
    /// To [`ReadJob::Get`].
    Records(Vec<StoredRecord>),
    /// To [`ReadJob::Nearest`] and [`ReadJob::Keywords`].
    Found(Found),
    /// To [`ReadJob::Code`].
    Code(CodeFound),
    /// To [`ReadJob::Memory`].
    Memory(MemoryFound),
    /// To [`ReadJob::Roots`].
    Roots(Vec<RootState>),
    /// To [`ReadJob::RootPlaces`].
    RootPlaces(Vec<RootPlace>),
    /// To [`ReadJob::Files`].
    Files(Vec<FileState>),
    /// To [`ReadJob::Drawers`], in the order of the ids; none where one is not there.
    Drawers(Vec<Option<Drawer>>),
    /// To [`ReadJob::ListDrawers`].
    DrawerList {
        /// Those of the page; fewer than it may have if they are large.
        drawers: Vec<Drawer>,
        /// How many the filter allows.
        total: u64,
    },
    /// To [`ReadJob::SimilarDrawers`].
    SimilarDrawers(SimilarFound),
    /// To [`ReadJob::Taxonomy`].
    Taxonomy(Vec<Wing>),
    /// To [`ReadJob::Chunks`]: nothing if the file is not in the index.
    Chunks(Option<(FileState, Vec<StoredChunk>)>),
    /// To [`ReadJob::Embed`] and [`ReadJob::EmbedAgain`]: f32, little-endian.
    Vectors(Bulk),
    /// To [`ReadJob::Facts`].
    Facts(FactAnswer),
    /// To [`ReadJob::Cypher`].
    Cypher(Box<CypherFound>),
    /// To [`ReadJob::Verify`]: where there are damaged segments.
    Damaged(Vec<(SegmentsOf, Searched)>),
    /// To [`ReadJob::Load`].
    Load(Option<LoadProgress>),
}

/// Hits, and what they were found with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The best first.
    pub hits: Vec<Hit>,
    /// How the answer is less than it should be.
    pub degraded: Option<String>,
    /// What the search went through.
    pub searched: Searched,
}

/// What segments are made from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SegmentsOf {
    /// A collection, by name.
    Collection(String),
    /// The graph.
    Graph,
}

impl fmt::Display for SegmentsOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collection(name) => f.write_str(name),
            // No collection of people's own begins like that.
            Self::Graph => f.write_str("@graph"),
        }
    }
}

/// What a search went through.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Searched {
    /// The collection's number; 0 for the graph.
    pub collection: u64,
    /// Its generation, or the graph's change; 0 if it has none.
    pub generation: u64,
    /// Segment files that were left out because a worker died before.
    pub avoided: Vec<String>,
    /// Segment files that could not be used.
    pub damaged: Vec<Damage>,
    /// Whether a segment is in quarantine already.
    pub quarantined: bool,
    /// Whether there was no time to rank by keywords.
    pub unranked: bool,
}

impl Searched {
    /// What to say of a search that had to do without segments.
    fn degraded(&self) -> Option<String> {
        let how = if self.unranked { "keyword ranking is missing" } else { "exact scan used" };
        self.trouble().map(|why| format!("{why}: {how}"))
    }

    /// Why segments were not used.
    fn trouble(&self) -> Option<&'static str> {
        if !self.damaged.is_empty() {
            Some("a segment cannot be used")
        } else if self.quarantined {
            Some("a segment is in quarantine until it is rebuilt")
        } else if !self.avoided.is_empty() {
            Some("a worker died over this search")
        } else {
            None
        }
    }

    /// Whether a file was gone when it was to be opened.
    fn came_too_late(&self) -> bool {
        self.damaged.iter().any(|damage| damage.kind == DamageKind::Missing)
    }
}

/// A segment that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// Its file.
    pub file: String,
    /// What is wrong with it.
    pub reason: String,
    /// Whose fault that is.
    pub kind: DamageKind,
}

/// Why a segment cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DamageKind {
    /// The file is not as it was written.
    Damaged,
    /// The file is gone.
    Missing,
    /// The system refuses to read it; the file may be sound.
    Unreadable,
}

impl DamageKind {
    pub(crate) fn of(error: &SegmentError) -> Self {
        match error {
            SegmentError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Self::Missing
            }
            error if error.is_damage() => Self::Damaged,
            _ => Self::Unreadable,
        }
    }
}

impl ReadReply {
    /// What a search was done with.
    fn searched(&self) -> Option<&Searched> {
        match self {
            Self::Found(found) => Some(&found.searched),
            Self::Code(found) => Some(&found.searched),
            Self::Memory(found) => Some(&found.searched),
            Self::SimilarDrawers(found) => Some(&found.searched),
            _ => None,
        }
    }
}

impl Role for StoreReader {
    const NAME: &'static str = "store-reader";
    type Settings = StoreSettings;
    type Request = ReadJob;
    type Reply = Result<ReadReply, Failure>;

    fn warm_up(settings: StoreSettings, token: InWorker) -> Result<Self, Refusal> {
        fault::point_at_start("read.start");
        let segments = Segments::in_folder(&settings.folder, token);
        let (model, tails) = (Model::embedded(token), Tails::default());
        let mut worker = Self { settings, token, reader: None, segments, tails, model };
        // If it cannot be opened, the first job says so, with a code.
        let _ = worker.open();
        Ok(worker)
    }

    fn handle(&mut self, job: ReadJob, context: &Context<'_>) -> Self::Reply {
        self.answer(&job, context).map_err(|error| error.to_failure())
    }

    fn kind(job: &ReadJob) -> &'static str {
        match job {
            ReadJob::Overview => "overview",
            ReadJob::Collection { .. } => "collection",
            ReadJob::Get { .. } => "get",
            ReadJob::Nearest { .. } => "nearest",
            ReadJob::Keywords { .. } => "keywords",
            ReadJob::Code(_) => "code",
            ReadJob::Memory(_) => "memory",
            ReadJob::Roots => "roots",
            ReadJob::RootPlaces => "root_places",
            ReadJob::Files { .. } => "files",
            ReadJob::Drawers { .. } => "drawers",
            ReadJob::ListDrawers { .. } => "list_drawers",
            ReadJob::SimilarDrawers(_) => "similar_drawers",
            ReadJob::Taxonomy => "taxonomy",
            ReadJob::Chunks { .. } => "chunks",
            ReadJob::Embed { .. } => "embed",
            ReadJob::EmbedAgain { .. } => "embed_again",
            ReadJob::Facts(question) => question.kind(),
            ReadJob::Cypher { .. } => "cypher",
            ReadJob::Verify => "verify",
            ReadJob::Load { .. } => "load",
        }
    }

    fn sandbox(settings: &StoreSettings) -> Sandbox {
        store_sandbox(settings, &[])
    }
}

impl StoreReader {
    fn open(&mut self) -> Result<(), StoreError> {
        if self.reader.is_none() {
            self.reader = Some(self.open_or_make()?);
        }
        Ok(())
    }

    /// A store that is made where there is none has nothing in it to be read, which is no
    /// error.
    fn open_or_make(&self) -> Result<Reader, StoreError> {
        let StoreSettings { durability, create, .. } = &self.settings;
        let folder = self.settings.folder();
        let opened = Truth::open_reader(&folder, self.token);
        if *create && matches!(opened, Err(StoreError::Missing { .. })) {
            let options = WriterOptions { durability: *durability, create: true };
            drop(Truth::open_writer(&folder, options, self.token)?);
            return Truth::open_reader(&folder, self.token);
        }
        opened
    }

    fn answer(&mut self, job: &ReadJob, context: &Context<'_>) -> Result<ReadReply, StoreError> {
        if self.reader.is_none() && must_pass_on(context) {
            return Err(passed_on(&self.settings));
        }
        self.open()?;
        let mut reply = match self.answer_once(job, context) {
            Err(error @ StoreError::Replaced { .. }) => {
                // Another store is there now, with its own rows and numbers.
                self.reader = None;
                self.segments.forget();
                self.tails.forget();
                if must_pass_on(context) {
                    return Err(error);
                }
                self.open()?;
                self.answer_once(job, context)?
            }
            answered => answered?,
        };
        // A fold may have replaced a segment between reading its name and opening it.
        // Then the generation is another one now.
        while let Some(searched) = reply.searched()
            && searched.came_too_late()
        {
            let generation = searched.generation;
            let again = self.answer_once(job, context)?;
            let moved_on = again.searched().is_some_and(|it| it.generation != generation);
            reply = again;
            if !moved_on {
                break;
            }
        }
        Ok(reply)
    }

    fn answer_once(
        &mut self,
        job: &ReadJob,
        context: &Context<'_>,
    ) -> Result<ReadReply, StoreError> {
        let Self { settings, token, reader, segments, tails, model } = self;
        let reader = reader.as_mut().expect("the caller has opened it");
        let remaining = context.remaining().mul_f32(0.9);
        reader.set_deadline(match job {
            ReadJob::Cypher { time, .. } => Instant::now() + remaining.min(*time),
            _ => Instant::now() + remaining,
        });
        let snapshot = reader.snapshot()?;
        fault::point("read", context);
        fault::point_of("read", Self::kind(job), context);
        Ok(match job {
            ReadJob::Overview => ReadReply::Overview {
                collections: snapshot.collections()?,
                poisons: snapshot.poisons()?,
                purge_due: snapshot.purge_due()?,
                graph: snapshot.graph_state()?,
            },
            ReadJob::Collection { name } => ReadReply::Collection(snapshot.collection(name)?),
            ReadJob::Get { collection, which, page, vectors } => {
                let state = snapshot.collection(collection)?;
                ReadReply::Records(snapshot.get(state.id, which, *page, *vectors)?)
            }
            ReadJob::Nearest { collection, vector, limit, filter } => {
                let state = snapshot.collection(collection)?;
                let mut search = vectors::Nearest { snapshot: &snapshot, segments, tails, context };
                ReadReply::Found(search.run(&state, vector, *limit, filter.as_ref())?)
            }
            ReadJob::Keywords { collection, text, limit, filter } => {
                let state = snapshot.collection(collection)?;
                let mut search =
                    keywords::Keywords { snapshot: &snapshot, segments, tails, context };
                ReadReply::Found(search.run(&state, text, *limit, filter.as_ref())?)
            }
            ReadJob::Code(query) => {
                let (snapshot, model) = (&snapshot, *model);
                let mut search = code::CodeSearch { snapshot, segments, tails, model, context };
                ReadReply::Code(search.run(query)?)
            }
            ReadJob::Memory(query) => {
                let (snapshot, model) = (&snapshot, *model);
                let mut search = memory::MemorySearch { snapshot, segments, tails, model, context };
                ReadReply::Memory(search.run(query)?)
            }
            ReadJob::Roots => ReadReply::Roots(snapshot.roots()?),
            ReadJob::RootPlaces => ReadReply::RootPlaces(snapshot.root_places()?),
            ReadJob::Files { root, under, after, limit } => {
                let (under, after) = (under.as_deref(), after.as_deref());
                ReadReply::Files(snapshot.files(*root, under, after, u64::from(*limit))?)
            }
            ReadJob::Drawers { ids } => ReadReply::Drawers(snapshot.drawers_by_id(ids)?),
            ReadJob::ListDrawers { filter, page } => {
                let (drawers, total) = snapshot.drawers(filter, page, PAGE_BYTES)?;
                ReadReply::DrawerList { drawers, total }
            }
            ReadJob::SimilarDrawers(likeness) => {
                let search = vectors::Nearest { snapshot: &snapshot, segments, tails, context };
                ReadReply::SimilarDrawers(drawers::similar(search, *model, likeness)?)
            }
            ReadJob::Taxonomy => ReadReply::Taxonomy(snapshot.taxonomy()?),
            ReadJob::Chunks { root, path } => {
                ReadReply::Chunks(snapshot.chunks_of_file(*root, path)?)
            }
            ReadJob::Embed { text } => {
                let vector = model.embed(text).into_iter().flatten();
                let bytes: Vec<u8> = vector.flat_map(f32::to_le_bytes).collect();
                ReadReply::Vectors(Bulk::from(bytes))
            }
            ReadJob::EmbedAgain { root, path, as_path } => {
                ReadReply::Vectors(embed_again(&snapshot, *model, *root, path, as_path)?)
            }
            ReadJob::Facts(question) => ReadReply::Facts(facts::answer(&snapshot, question)?),
            ReadJob::Cypher { query, .. } => {
                ReadReply::Cypher(Box::new(graph::cypher(&snapshot, segments, query, context)?))
            }
            ReadJob::Verify => {
                let folder = settings.folder().segments();
                ReadReply::Damaged(verify::verify(&snapshot, &folder, *token, context)?)
            }
            ReadJob::Load { source } => ReadReply::Load(snapshot.load_progress(source)?),
        })
    }
}

/// Vectors for the chunks of a file under another path, from the stored texts.
fn embed_again(
    snapshot: &Snapshot<'_>,
    model: Model,
    root: u64,
    path: &str,
    as_path: &str,
) -> Result<Bulk, StoreError> {
    let mut vectors = Vec::new();
    let (_, chunks) = snapshot
        .chunks_of_file(root, path)?
        .ok_or_else(|| StoreError::Invalid(format!("{path:?} is not in the index")))?;
    let path_vector = model.embed_path(as_path);
    for chunk in chunks {
        let names = chunk.symbols.iter().map(|symbol| symbol.name.as_str());
        let text = chunk.text.as_deref().unwrap_or_default();
        let vector = model.embed_chunk(text, &path_vector, names, ChunkWeights::default());
        // It had words when it was indexed.
        let vector = vector
            .ok_or_else(|| StoreError::Invalid(format!("a chunk of {path:?} has no words")))?;
        vectors.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
    }
    Ok(Bulk::from(vectors))
}
