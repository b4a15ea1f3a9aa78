//! The role that answers everything that only reads.

mod best;
mod keywords;
mod segments;
mod tail;
mod vectors;
mod verify;

use std::io;
use std::time::Instant;

use isolate::{Bulk, Context, InWorker, Refusal, Role, Sandbox};
use isolith_segment::SegmentError;
use isolith_store::{
    CollectionState, LoadProgress, Page, PoisonedJob, Reader, Selection, StoreError, StoreFolder,
    StoredRecord, Truth,
};
use isolith_types::{Failure, Filter, Hit};
use serde::{Deserialize, Serialize};

use crate::fault;
use crate::settings::{StoreSettings, store_sandbox};
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
}

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
    /// To [`ReadJob::Overview`]: all collections, and the jobs in quarantine.
    Overview {
        /// All collections.
        collections: Vec<CollectionState>,
        /// Jobs in quarantine.
        poisons: Vec<PoisonedJob>,
        /// Whether rows of deleted collections are still there.
        purge_due: bool,
    },
    /// To [`ReadJob::Collection`].
    Collection(CollectionState),
    /// To [`ReadJob::Get`].
    Records(Vec<StoredRecord>),
    /// To [`ReadJob::Nearest`] and [`ReadJob::Keywords`].
    Found(Found),
    /// To [`ReadJob::Verify`]: collections with damaged segments, by name.
    Damaged(Vec<(String, Searched)>),
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

/// What a search went through.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Searched {
    /// The collection's number.
    pub collection: u64,
    /// Its generation; 0 if it has none.
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
        let why = if !self.damaged.is_empty() {
            "a segment cannot be used"
        } else if self.quarantined {
            "a segment is in quarantine until it is rebuilt"
        } else if !self.avoided.is_empty() {
            "a worker died over this search"
        } else {
            return None;
        };
        let how = if self.unranked { "keyword ranking is missing" } else { "exact scan used" };
        Some(format!("{why}: {how}"))
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

impl Role for StoreReader {
    const NAME: &'static str = "store-reader";
    type Settings = StoreSettings;
    type Request = ReadJob;
    type Reply = Result<ReadReply, Failure>;

    fn warm_up(settings: StoreSettings, token: InWorker) -> Result<Self, Refusal> {
        let segments = Segments::in_folder(&settings.folder, token);
        let mut worker = Self { settings, token, reader: None, segments, tails: Tails::default() };
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
            ReadJob::Verify => "verify",
            ReadJob::Load { .. } => "load",
        }
    }

    fn sandbox(_settings: &StoreSettings) -> Sandbox {
        store_sandbox()
    }
}

impl StoreReader {
    fn open(&mut self) -> Result<(), StoreError> {
        if self.reader.as_ref().is_some_and(Reader::has_moved) {
            // Another store is there now, with its own rows and numbers.
            self.reader = None;
            self.segments.forget();
            self.tails.forget();
        }
        if self.reader.is_none() {
            let folder = StoreFolder::new(&self.settings.folder);
            self.reader = Some(Truth::open_reader(&folder, self.token)?);
        }
        Ok(())
    }

    fn answer(&mut self, job: &ReadJob, context: &Context<'_>) -> Result<ReadReply, StoreError> {
        self.open()?;
        let mut reply = self.answer_once(job, context)?;
        // A fold may have replaced a segment between reading its name and opening it.
        // Then the generation is another one now.
        while let ReadReply::Found(found) = &reply
            && found.searched.came_too_late()
        {
            let generation = found.searched.generation;
            let again = self.answer_once(job, context)?;
            let moved_on = matches!(&again, ReadReply::Found(found) if found.searched.generation != generation);
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
        let Self { settings, token, reader, segments, tails } = self;
        let reader = reader.as_mut().expect("the caller has opened it");
        reader.set_deadline(Instant::now() + context.remaining().mul_f32(0.9));
        let snapshot = reader.snapshot()?;
        fault::point("read", context);
        Ok(match job {
            ReadJob::Overview => ReadReply::Overview {
                collections: snapshot.collections()?,
                poisons: snapshot.poisons()?,
                purge_due: snapshot.purge_due()?,
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
            ReadJob::Verify => {
                let folder = StoreFolder::new(&settings.folder).segments();
                ReadReply::Damaged(verify::verify(&snapshot, &folder, *token, context)?)
            }
            ReadJob::Load { source } => ReadReply::Load(snapshot.load_progress(source)?),
        })
    }
}
