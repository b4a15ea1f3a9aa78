//! Our side: each phase is run by this program in a process of its own, with real workers. It
//! prints one JSON document.

mod fill;
mod query;
mod write;

use std::future::Future;
use std::path::{Path, PathBuf};

use anyhow::Result;
use isolith_engine::{Engine, EngineOptions, Life, StorePlace};
use isolith_types::{CollectionSpec, Metric};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;

use super::data::Data;
pub(super) use write::{GO, READY};

/// Makes this program run a phase; a [`Phase`] in JSON follows.
pub(crate) const PHASE_FLAG: &str = "--front";

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Phase {
    /// Add all records in batches, then fold.
    Fill { data: PathBuf, store: PathBuf },
    /// Add all records in small steps, with folds in the background.
    Step { data: PathBuf, store: PathBuf },
    /// Run all queries this many times.
    Query { data: PathBuf, store: PathBuf, rounds: usize },
    /// Run one query.
    QueryOnce { data: PathBuf, store: PathBuf },
    /// Create an empty store for small records.
    Prepare { store: PathBuf },
    /// Write small records one at a time, with this many concurrent callers.
    Write { store: PathBuf, front: usize, callers: usize, seconds: f64 },
}

/// The collection that all phases use.
pub(crate) const COLLECTION: &str = "bench";

/// The dimension of small records.
pub(crate) const SMALL_DIMENSION: u32 = 8;

pub(crate) fn run(phase: &str) -> Result<()> {
    match serde_json::from_str(phase)? {
        Phase::Fill { data, store } => print(2, fill::fill(Data::open(data)?, &store)),
        Phase::Step { data, store } => print(2, fill::step(Data::open(data)?, &store)),
        Phase::Query { data, store, rounds } => {
            print(2, query::query(Data::open(data)?, &store, rounds))
        }
        // The same runtime as in the `isolith` command.
        Phase::QueryOnce { data, store } => print(1, query::query_once(Data::open(data)?, &store)),
        Phase::Prepare { store } => print(1, async move {
            let engine = open(&store, Life::OneShot)?;
            create(&engine, SMALL_DIMENSION).await?;
            engine.close().await;
            Ok(())
        }),
        Phase::Write { store, front, callers, seconds } => {
            print(2, write::write(&store, front, callers, seconds))
        }
    }
}

fn print<T: Serialize>(threads: usize, phase: impl Future<Output = Result<T>>) -> Result<()> {
    let runtime = match threads {
        1 => Builder::new_current_thread().enable_all().build()?,
        threads => Builder::new_multi_thread().worker_threads(threads).enable_all().build()?,
    };
    println!("{}", serde_json::to_string(&runtime.block_on(phase)?)?);
    Ok(())
}

fn open(store: &Path, life: Life) -> Result<Engine> {
    // With the default durability, FULL.
    Ok(Engine::open(
        &StorePlace::unchecked(store),
        EngineOptions { create: true, life, ..EngineOptions::default() },
    )?)
}

async fn create(engine: &Engine, dimension: u32) -> Result<()> {
    let spec = CollectionSpec {
        name: COLLECTION.to_owned(),
        dimension: Some(dimension),
        metric: Metric::Cosine,
        model: None,
    };
    engine.create_collection(spec, true).await?;
    Ok(())
}
