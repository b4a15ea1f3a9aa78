//! Our side: each phase is a front of its own, this program started again, with real
//! workers. It prints one document of JSON.

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

/// The argument that makes this program a front; an [`Order`] in JSON follows.
pub(crate) const ARGUMENT: &str = "--front";

/// What a front is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Add all records in batches, then fold.
    Fill { data: PathBuf, store: PathBuf },
    /// Add all records in small steps, with folding in the background.
    Step { data: PathBuf, store: PathBuf },
    /// Answer all queries, this many times over.
    Query { data: PathBuf, store: PathBuf, rounds: usize },
    /// Answer one query.
    QueryOnce { data: PathBuf, store: PathBuf },
    /// Make an empty store for small records.
    Prepare { store: PathBuf },
    /// Write small records one at a time, so many at once.
    Write { store: PathBuf, front: usize, callers: usize, seconds: f64 },
}

/// The collection of all phases.
pub(crate) const COLLECTION: &str = "bench";

/// The length of the vectors of small records.
pub(crate) const SMALL_DIMENSION: u32 = 8;

pub(crate) fn run(order: &str) -> Result<()> {
    match serde_json::from_str(order)? {
        Order::Fill { data, store } => print(2, fill::fill(Data::open(data)?, &store)),
        Order::Step { data, store } => print(2, fill::step(Data::open(data)?, &store)),
        Order::Query { data, store, rounds } => {
            print(2, query::query(Data::open(data)?, &store, rounds))
        }
        // As a command does that asks once.
        Order::QueryOnce { data, store } => print(1, query::query_once(Data::open(data)?, &store)),
        Order::Prepare { store } => print(1, async move {
            let engine = open(&store, Life::OneShot)?;
            create(&engine, SMALL_DIMENSION).await?;
            engine.close().await;
            Ok(())
        }),
        Order::Write { store, front, callers, seconds } => {
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
    // Durability is FULL unless asked otherwise; a benchmark of ours does not ask.
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
