//! From an empty store to one with all records in it.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use isolith_engine::{Engine, Life, PutMode, Records};

use super::{COLLECTION, create, open};
use crate::store::data::{Data, metadata, record_id};
use crate::store::report::{Filled, Spent, Stepped};
use crate::store::usage;

const BATCH: usize = 1000;
const STEP: usize = 100;

/// How long to leave a fold in the background alone before asking for the last one.
const FOLDING: Duration = Duration::from_millis(100);

pub(super) async fn fill(data: Data, store: &Path) -> Result<Filled> {
    let source = Source::load(&data)?;
    let meter = Meter::start()?;
    let engine = open(store, Life::OneShot)?;
    create(&engine, data.shape.dimension as u32).await?;
    source.put_all(&engine, BATCH).await?;
    let added = meter.spent(Some(&engine))?;
    engine.fold(COLLECTION, false, None).await?;
    let searchable = meter.spent(Some(&engine))?;
    engine.close().await;
    Ok(Filled {
        added,
        searchable,
        written_bytes: meter.written()?,
        disk_bytes: usage::disk_bytes(store)?,
    })
}

pub(super) async fn step(data: Data, store: &Path) -> Result<Stepped> {
    let source = Source::load(&data)?;
    let meter = Meter::start()?;
    let engine = open(store, Life::Server)?;
    create(&engine, data.shape.dimension as u32).await?;
    source.put_all(&engine, STEP).await?;
    // What is still in the tail is folded too, once the background is done.
    while engine.fold(COLLECTION, false, None).await?.busy {
        tokio::time::sleep(FOLDING).await;
    }
    let state = engine.collection(COLLECTION).await?;
    engine.close().await;
    Ok(Stepped {
        spent: meter.spent(None)?,
        written_bytes: meter.written()?,
        generations: state.generation.map_or(0, |generation| generation.number),
    })
}

/// All records, in memory, as the rival has them too.
struct Source {
    vectors: Vec<u8>,
    documents: Vec<String>,
    dimension: usize,
}

impl Source {
    fn load(data: &Data) -> Result<Self> {
        Ok(Self {
            vectors: data.vector_bytes()?,
            documents: data.documents()?,
            dimension: data.shape.dimension,
        })
    }

    async fn put_all(&self, engine: &Engine, batch: usize) -> Result<()> {
        let length = 4 * self.dimension;
        for start in (0..self.documents.len()).step_by(batch) {
            let rows = start..(start + batch).min(self.documents.len());
            let documents = self.documents[rows.clone()].iter().cloned().map(Some);
            let records = Records {
                ids: rows.clone().map(record_id).collect(),
                documents: documents.collect(),
                metadatas: rows.clone().map(metadata).collect::<Result<_>>()?,
                dimension: self.dimension as u32,
                vectors: self.vectors[rows.start * length..rows.end * length].to_vec().into(),
            };
            let mode = PutMode::Add { skip_existing: false };
            engine.put(COLLECTION, records, mode, None).await?;
        }
        Ok(())
    }
}

/// What has been used since it was started.
struct Meter {
    started: Instant,
    processor_before: Duration,
    written_before: u64,
}

impl Meter {
    fn start() -> Result<Self> {
        Ok(Self {
            started: Instant::now(),
            processor_before: usage::processor_time(None)?,
            written_before: usage::written_bytes()?,
        })
    }

    fn spent(&self, engine: Option<&Engine>) -> Result<Spent> {
        let processor = usage::processor_time(engine)? - self.processor_before;
        Ok(Spent {
            wall_seconds: self.started.elapsed().as_secs_f64(),
            cpu_seconds: processor.as_secs_f64(),
        })
    }

    /// Right once all workers are gone.
    fn written(&self) -> Result<u64> {
        Ok(usage::written_bytes()? - self.written_before)
    }
}
