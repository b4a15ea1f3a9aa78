//! `isolith index --merge`.

use std::path::PathBuf;
use std::process::ExitCode;

use isolith_config::Layers;
use isolith_engine::{EngineOptions, IndexOptions, IndexReport, StorePlace, move_aside};
use isolith_types::{Code, Failure, counted};

use super::index::{describe, gather_history, index_one};
use crate::output::Output;
use crate::session::{Session, interrupted};

/// Indexes the code of a folder's own store in the store above it, and moves the folder's own
/// store aside.
pub(super) fn run(
    store: &StorePlace,
    inner: &StorePlace,
    options: &IndexOptions,
    settings: Layers,
    output: &Output,
) -> Result<ExitCode, Failure> {
    let mut folders = code_of(inner)?;
    if folders.is_empty() {
        folders.push(options.path.clone());
    }
    let how = EngineOptions { create: true, settings, ..EngineOptions::default() };
    let mut session = Session::open(store, how)?;
    let _status = session.serve_status();
    let mut report = IndexReport::default();
    for path in folders {
        let options = IndexOptions { path, ..options.clone() };
        let (indexed, signal) = index_one(&mut session, &options, output)?;
        if let Some(signal) = signal.filter(|_| indexed.interrupted) {
            session.close();
            return Err(interrupted(signal));
        }
        if indexed.history_due {
            gather_history(&mut session, &options.path, output)?;
        }
        report.add(indexed);
    }
    let aside = move_aside(inner)?;
    output.note(&format!("moved the store of the folder to {}", aside.display()));
    output.result(&report, &describe(&report, &options.path))?;
    session.settle()?;
    Ok(ExitCode::SUCCESS)
}

/// The folders that are indexed in a store, which must hold nothing else.
fn code_of(store: &StorePlace) -> Result<Vec<PathBuf>, Failure> {
    let mut session = Session::open(store, EngineOptions::default())?;
    let (roots, other) =
        session.run(async |engine| Ok((engine.roots().await?, engine.other_than_code().await?)))?;
    session.close();
    if !other.is_empty() {
        let held: Vec<String> = other.iter().map(|(count, what)| counted(*count, what)).collect();
        let message = format!("{} also holds {}", store.path().display(), held.join(", "));
        return Err(Failure::new(Code::BadInput, message)
            .with_hint("export and delete them first (docs/stores.md), or keep both stores"));
    }
    Ok(roots.into_iter().map(|root| root.folder).filter(|folder| folder.is_dir()).collect())
}
