//! Phases that call our code directly, each run by this program in a process of its own so that its
//! usage can be measured. Each prints one JSON document.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use isolith_engine::{Engine, EngineOptions, IndexOptions, StorePlace};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;

use super::{in_process, parts, search};

/// Makes this program run a phase; a [`Phase`] in JSON follows.
pub(crate) const PHASE_FLAG: &str = "--code-front";

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Index with workers, as the product does.
    Index { code: PathBuf, store: PathBuf },
    /// Do the same work without workers.
    IndexInProcess { code: PathBuf, store: PathBuf },
    /// Answer all questions this many times, with `program` as workers.
    Ask { store: PathBuf, rounds: usize, program: PathBuf },
    /// Parse, chunk and embed all files sequentially, and write the chunks to a file.
    Parts { code: PathBuf, texts: PathBuf },
}

pub(crate) fn run(phase: &str) -> Result<()> {
    match serde_json::from_str(phase)? {
        // The same runtime as in the `isolith` command.
        Phase::Index { code, store } => print(
            &Builder::new_current_thread().enable_all().build()?.block_on(index(&code, &store))?,
        ),
        Phase::IndexInProcess { code, store } => print(&in_process::index(&code, &store)?),
        Phase::Ask { store, rounds, program } => {
            let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            print(&runtime.block_on(search::ask(&store, rounds, program))?)
        }
        Phase::Parts { code, texts } => print(&parts::measure_parts(&code, &texts)?),
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

/// The CPU time of this process so far.
pub(super) fn own_cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}
