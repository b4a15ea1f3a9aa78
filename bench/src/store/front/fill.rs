//! Fills an empty store with all records.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use isolith_engine::{Engine, Life, PutMode, Records};

use super::{COLLECTION, create, open};
use crate::store::data::{Data, metadata, record_id};
use crate::store::report::{FillReport, StepReport, TimeSpent};
use crate::store::usage;

const BATCH: usize = 1000;
const STEP: usize = 100;

/// Interval at which to check whether a fold in the background has finished.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(super) async fn fill(data: Data, store: &Path) -> Result<FillReport> {
    let source = Source::load(&data)?;
    let meter = Meter::start()?;
    let engine = open(store, Life::OneShot)?;
    create(&engine, data.shape.dimension as u32).await?;
    source.put_all(&engine, BATCH).await?;
    let added = meter.spent(Some(&engine))?;
    engine.fold(COLLECTION, false, None).await?;
    let searchable = meter.spent(Some(&engine))?;
    engine.close().await;
    Ok(FillReport {
        added,
        searchable,
        written_bytes: meter.written()?,
        disk_bytes: usage::disk_bytes(store)?,
    })
}

pub(super) async fn step(data: Data, store: &Path) -> Result<StepReport> {
    let source = Source::load(&data)?;
    let meter = Meter::start()?;
    let engine = open(store, Life::Server)?;
    create(&engine, data.shape.dimension as u32).await?;
    source.put_all(&engine, STEP).await?;
    // Fold the rest of the tail once folds in the background have finished.
    while engine.fold(COLLECTION, false, None).await?.busy {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let state = engine.collection(COLLECTION).await?;
    engine.close().await;
    Ok(StepReport {
        spent: meter.spent(None)?,
        written_bytes: meter.written()?,
        generations: state.generation.map_or(0, |generation| generation.number),
    })
}

/// All records in memory; the rival loads them too.
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

/// Measures usage from its start.
struct Meter {
    started: Instant,
    processor_before: Duration,
    written_before: u64,
}

impl Meter {
    fn start() -> Result<Self> {
        Ok(Self {
            started: Instant::now(),
            processor_before: usage::cpu_time(None)?,
            written_before: usage::written_bytes()?,
        })
    }

    fn spent(&self, engine: Option<&Engine>) -> Result<TimeSpent> {
        let processor = usage::cpu_time(engine)? - self.processor_before;
        Ok(TimeSpent {
            wall_seconds: self.started.elapsed().as_secs_f64(),
            cpu_seconds: processor.as_secs_f64(),
        })
    }

    /// Complete only after all workers have exited.
    fn written(&self) -> Result<u64> {
        Ok(usage::written_bytes()? - self.written_before)
    }
}
