//! Phases that need our own code: this program started again, so that what they use can
//! be told from all else. Each prints one document of JSON.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use isolith_engine::{Engine, EngineOptions, IndexOptions, StorePlace};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;

use super::{in_process, parts, search};

/// The argument that makes this program a front; an [`Order`] in JSON follows.
pub(crate) const ARGUMENT: &str = "--code-front";

/// What a front is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Index as the product does.
    Index { code: PathBuf, store: PathBuf },
    /// The same work without a worker.
    IndexInProcess { code: PathBuf, store: PathBuf },
    /// Answer all questions, this many times over, with the measured program as workers.
    Ask { store: PathBuf, rounds: usize, program: PathBuf },
    /// Parse, cut and embed all files, one after the other; leave the chunks in a file.
    Parts { code: PathBuf, texts: PathBuf },
}

pub(crate) fn run(order: &str) -> Result<()> {
    match serde_json::from_str(order)? {
        // As the command does.
        Order::Index { code, store } => print(
            &Builder::new_current_thread().enable_all().build()?.block_on(index(&code, &store))?,
        ),
        Order::IndexInProcess { code, store } => print(&in_process::index(&code, &store)?),
        Order::Ask { store, rounds, program } => {
            let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            print(&runtime.block_on(search::ask(&store, rounds, program))?)
        }
        Order::Parts { code, texts } => print(&parts::take_apart(&code, &texts)?),
    }
}

fn print<T: Serialize>(report: &T) -> Result<()> {
    println!("{}", serde_json::to_string(report)?);
    Ok(())
}

async fn index(code: &Path, store: &Path) -> Result<()> {
    let options = EngineOptions { create: true, ..EngineOptions::default() };
    let engine = Engine::open(&StorePlace::unchecked(store), options)?;
    engine.index(&IndexOptions::new(code), Arc::new(|_| {})).await?;
    engine.settle().await;
    engine.close().await;
    Ok(())
}

/// What this process has used so far.
pub(super) fn own_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}
