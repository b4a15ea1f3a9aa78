mod code;
mod damaged;
mod databases;
mod facts;
mod graph;
mod graph_copy;
mod indexes;
mod memory;
mod nodes;
mod ranges;
mod rebuild;
mod record;
mod records;
mod report;
mod table;

use std::path::{Path, PathBuf};
use std::time::{Instant, UNIX_EPOCH};

use isolate::InWorker;
use isolith_protocol::StoreError;
pub use report::{Extent, Loss, SalvageReport, SavedReport};

use crate::acknowledged;
use crate::create::{self, Aside, remove_if_there, sync_folder};
use crate::deadline::Deadline;
use crate::folder::{StoreFolder, io_failure, is_missing};
use crate::identity::with_suffix;
use crate::lock::Lock;
use crate::log;
use crate::migrations::{MIGRATIONS, migrate};
use crate::open::Truth;

/// Recomputes vectors of passages where only those were lost.
pub struct Embedder<'a> {
    /// The model's name; memory of another model is left alone.
    pub model: &'a str,
    /// Returns the vector of a passage (f32, little-endian), or `None` if it has none.
    pub embed: &'a dyn Fn(&str) -> Option<Vec<u8>>,
}

impl Truth {
    /// Copies everything readable from a damaged truth to a new one, which replaces it. The
    /// damaged file is kept next to it. Segments must be rebuilt.
    ///
    /// # Errors
    /// [`StoreError::LockHeld`] while any process uses the store, [`StoreError::Missing`], or
    /// if nothing could be read or written. On error nothing has changed.
    pub fn salvage(
        folder: &StoreFolder,
        deadline: impl Into<Option<Instant>>,
        embedder: &Embedder<'_>,
        _token: InWorker,
    ) -> Result<SalvageReport, StoreError> {
        let deadline = Deadline::at(deadline.into());
        folder.check()?;
        if !folder.holds_store() {
            return Err(StoreError::Missing { folder: folder.path().to_path_buf() });
        }
        folder.create()?;
        let _alone = Lock::exclusive_now(&folder.lock_file())?;
        put_in_place(folder)?;
        for leftover in ["salvage", "model", "copy", "recover"] {
            Aside::clear_leftovers(&folder.run(), leftover);
        }
        let aside = Aside::new(&folder.run(), "salvage")?;
        let mut report = {
            let mut new = create::new_truth(aside.path(), &deadline)?;
            migrate(&mut new, MIGRATIONS)?;
            // Includes commits that SQLite does not see because its log is damaged.
            let copy = log::all_commits(folder)?;
            let source = copy.as_ref().map_or_else(|| folder.truth(), |it| it.path().to_owned());
            let damaged = damaged::Damaged::open(folder, &source, &deadline)?;
            let report = rebuild::rebuild(&damaged, &mut new, embedder, &deadline)?;
            create::take_identity(&new, folder.truth_id())?;
            acknowledged::outrank(folder, &new)?;
            create::close_completely(new, aside.path())?;
            report
        };
        let saved = SavedReport {
            at: create::now(),
            collections: report.collections,
            records: report.records,
            facts: report.facts,
            lost: report.lost.clone(),
        };
        saved.write(&report::beside(&folder.salvaged()))?;
        // The point of no return: whoever opens the store next would complete the salvage.
        aside.become_file(&folder.salvaged())?;
        sync_folder(folder.path())?;
        if let Some(kept_as) = put_in_place(folder)? {
            report.report = report::beside(&kept_as);
            report.kept_as = kept_as;
        }
        Ok(report)
    }
}

/// Completes a salvage that was killed after the point of no return.
pub(crate) fn finish(folder: &StoreFolder, deadline: &Deadline) -> Result<(), StoreError> {
    while folder.salvaged().exists() {
        let _alone = Lock::exclusive(&folder.lock_file(), deadline)?;
        put_in_place(folder)?;
    }
    Ok(())
}

/// Every step can be repeated: while the salvaged file exists, the truth is the damaged one.
/// Returns the new path of the damaged file.
pub(crate) fn put_in_place(folder: &StoreFolder) -> Result<Option<PathBuf>, StoreError> {
    let salvaged = folder.salvaged();
    let Some(kept_as) = name_for_damaged(folder, &salvaged)? else { return Ok(None) };
    let truth = folder.truth();
    // Move the log first: it must never be paired with the new file.
    move_if_there(&with_suffix(&truth, "-wal"), &with_suffix(&kept_as, "-wal"))?;
    remove_if_there(&with_suffix(&truth, "-shm"))?;
    move_if_there(&truth, &kept_as)?;
    move_if_there(&report::beside(&salvaged), &report::beside(&kept_as))?;
    sync_folder(folder.path())?;
    move_if_there(&salvaged, &truth)?;
    sync_folder(folder.path())?;
    Ok(Some(kept_as))
}

/// Named after the time of the salvage, so that a repeated step uses the same name.
fn name_for_damaged(folder: &StoreFolder, salvaged: &Path) -> Result<Option<PathBuf>, StoreError> {
    let modified = match salvaged.metadata().and_then(|metadata| metadata.modified()) {
        Ok(modified) => modified,
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(io_failure(salvaged, "look at", &error)),
    };
    let time = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let name = with_suffix(&folder.truth(), &format!(".damaged-{time}"));
    // Both exist: the step was done before, then another file was put in place.
    if name.exists() && folder.truth().exists() {
        return Ok(Some(with_suffix(&name, &format!("-{:04x}", fastrand::u16(..)))));
    }
    Ok(Some(name))
}

fn move_if_there(from: &Path, to: &Path) -> Result<(), StoreError> {
    match std::fs::rename(from, to) {
        Err(error) if !is_missing(&error) => Err(io_failure(from, "rename", &error)),
        _ => Ok(()),
    }
}
