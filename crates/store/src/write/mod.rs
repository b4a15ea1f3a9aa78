mod change;
mod checkpoint;
mod code;
mod collections;
mod databases;
mod facts;
mod fields;
mod generations;
mod jobs;
mod load;
mod memory;
mod purge;
mod put;
mod receipts;
mod recount;
mod remove;
mod update;
mod validate;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use isolith_protocol::{Action, Done, Key, StoreError, Write, WriteOperation, WriteReply};
use isolith_sql::{Connection, Transaction};
use rusqlite::wal::CheckpointMode;
use serde::{Deserialize, Serialize};

pub(crate) use code::{FileCache, outline};
pub(crate) use fields::{AsValue, Fields, IN_A_LIST, type_of};
pub(crate) use load::progress_of;

use crate::acknowledged::{self, MarkFile, Progress};
use crate::create::now;
use crate::deadline::{Canceller, Deadline};
use crate::folder::io_failure;
use crate::identity::with_suffix;
use crate::log;
use crate::open::Db;
use crate::pragmas::{self, Durability};
use crate::sqlite::During;

/// The truth, open for writing.
#[derive(Debug)]
pub struct Writer {
    pub(crate) db: Db,
    durability: Durability,
    /// Records acknowledged commits outside the truth.
    mark: RefCell<MarkFile>,
    /// When truncating a log that readers hold may be tried again.
    next_truncate: Instant,
    file_cache: FileCache,
}

/// The context of a write, inside its transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) db: &'a dyn Connection,
    pub(crate) deadline: &'a Deadline,
    pub(crate) now: i64,
    /// Files that linking has read before.
    pub(crate) file_cache: &'a FileCache,
}

/// Do not wait for readers of a long log at every commit.
const TRUNCATE_PAUSE: Duration = Duration::from_secs(1);

impl Writer {
    pub(crate) fn new(db: Db, mark: MarkFile, durability: Durability) -> Self {
        db.deadline.set(None);
        let mark = RefCell::new(mark);
        Self {
            db,
            durability,
            mark,
            next_truncate: Instant::now(),
            file_cache: FileCache::default(),
        }
    }

    /// Sets the deadline of the following operations. Without one they wait forever.
    pub fn set_deadline(&self, deadline: impl Into<Option<Instant>>) {
        self.db.deadline.set(deadline.into());
    }

    /// Cancels operations from another thread.
    pub fn canceller(&self) -> Canceller {
        self.db.canceller()
    }

    /// Whether the store was deleted or replaced.
    pub fn has_moved(&self) -> bool {
        self.db.has_moved()
    }

    /// Applies the writes in one transaction, each with its own result: an invalid one fails
    /// alone and leaves no receipt. Receipts of `confirmed` keys are removed.
    ///
    /// # Errors
    /// On error, none of the writes was applied.
    pub fn apply(
        &mut self,
        group: &[Write],
        confirmed: &[Key],
    ) -> Result<Vec<Result<Done<WriteReply>, StoreError>>, StoreError> {
        if group.is_empty() && confirmed.is_empty() {
            return Ok(Vec::new());
        }
        self.db.refuse_if_moved()?;
        let applied = self.together_or_alone(group, confirmed);
        // Folds and clearing follow large writes and are often the last writes: whoever opens
        // the store next finds a short log to read.
        let last =
            |write: &Write| matches!(write.action, Action::SwapSegments(_) | Action::Tidy(_));
        let last = group.iter().any(last);
        self.cut_log(if last { 0 } else { pragmas::LOG_LIMIT });
        applied
    }

    /// Applies a single write.
    ///
    /// # Errors
    /// On error, nothing was changed.
    pub fn apply_one<O: WriteOperation>(
        &mut self,
        key: Key,
        operation: O,
    ) -> Result<Done<O::Reply>, StoreError> {
        let write = Write { key, keep: false, action: operation.into() };
        let done = self.apply(&[write], &[])?.pop().expect("one write has one result")?;
        Ok(done.map(|reply| O::reply_from(reply).expect("an operation has its own reply")))
    }

    /// Copies the log into the file.
    ///
    /// # Errors
    /// If SQLite fails; being blocked by other connections is not an error.
    pub fn checkpoint(&mut self, kind: Checkpoint) -> Result<CheckpointResult, StoreError> {
        let mode = match kind {
            Checkpoint::Passive => CheckpointMode::PASSIVE,
            Checkpoint::Truncate => CheckpointMode::TRUNCATE,
        };
        let connection = &self.db.connection;
        let moved = connection
            .wal_checkpoint_v2(Some(rusqlite::MAIN_DB), mode)
            .map_err(isolith_sql::Error::from)
            .during(connection, "copy the log into the file");
        match moved {
            Ok((all, moved)) => Ok(CheckpointResult { complete: moved >= all }),
            Err(StoreError::Busy { .. }) => Ok(CheckpointResult { complete: false }),
            Err(error) => Err(error),
        }
    }

    /// Whether these writes must be on disk before they are answered. A swap always must,
    /// because the old files are deleted after it.
    fn must_sync(&self, group: &[Write]) -> bool {
        let swaps = |write: &Write| matches!(write.action, Action::SwapSegments(_));
        self.durability == Durability::Full || group.iter().any(swaps)
    }

    /// Syncs the log, and with it all commits so far. SQLite would do that while holding the
    /// write lock, one process after the other; here, concurrent writers wait for the disk
    /// together. Closing the log drops no locks: those are on the other two files.
    fn sync_log(&self) -> Result<(), StoreError> {
        let log = with_suffix(&self.db.path, "-wal");
        let synced = std::fs::File::open(&log).and_then(|file| file.sync_data());
        // If the store was moved away meanwhile, its log was not synced, perhaps that of another.
        self.db.refuse_if_moved()?;
        synced.map_err(|error| io_failure(&log, "sync", &error))
    }

    fn together_or_alone(
        &self,
        group: &[Write],
        confirmed: &[Key],
    ) -> Result<Vec<Result<Done<WriteReply>, StoreError>>, StoreError> {
        match self.attempt(group, confirmed)? {
            Attempt::Committed(results) => Ok(results),
            Attempt::Ended(error) => match group {
                // There was nothing to do but confirm.
                [] => Err(error),
                [_] => {
                    // Confirmations do not have to wait for a successful write. If this fails,
                    // too, the receipts expire.
                    if !confirmed.is_empty() && !error.ends_connection() {
                        let _ = self.attempt(&[], confirmed);
                    }
                    Ok(vec![Err(error)])
                }
                // From here on each write has its own result, since some may be committed
                // before others fail.
                many => Ok(many
                    .chunks(1)
                    .map(|one| self.together_or_alone(one, confirmed)?.remove(0))
                    .collect()),
            },
        }
    }

    /// Runs one transaction. An error is not caused by a single write: nothing was tried, or
    /// the outcome is unknown.
    fn attempt(&self, group: &[Write], confirmed: &[Key]) -> Result<Attempt, StoreError> {
        let links = matches!(group, [Write { action: Action::LinkFiles(_), .. }]);
        if !links {
            self.file_cache.forget();
        }
        let attempt = self.transact(group, confirmed);
        if !links || !matches!(attempt, Ok(Attempt::Committed(_))) {
            self.file_cache.forget();
        }
        attempt
    }

    fn transact(&self, group: &[Write], confirmed: &[Key]) -> Result<Attempt, StoreError> {
        let db = &self.db;
        begin(db)?;
        let open = OpenTransaction(db);
        db.refuse_newer()?;
        let changed = db.connection.total_changes();
        let file_cache = &self.file_cache;
        let work = Work { db: db.sql(), deadline: &db.deadline, now: now(), file_cache };
        receipts::remove(work, confirmed)?;
        let mut results = Vec::with_capacity(group.len());
        for write in group {
            let result = match group {
                [_] => receipts::once(work, write),
                _ => in_savepoint(db, work, write),
            };
            match result {
                Err(error) if group.len() == 1 || !db.sql().is_in_transaction() => {
                    return Ok(Attempt::Ended(error));
                }
                result => results.push(result),
            }
        }
        db.refuse_if_moved()?;
        let is_new = db.connection.total_changes() > changed;
        let reached = match count_commit(db, is_new) {
            Ok(reached) => reached,
            Err(error) => return Ok(Attempt::Ended(error)),
        };
        // This commit itself does not make up for a missing one.
        let commits = reached.commits - u64::from(is_new);
        self.refuse_if_behind(Progress { commits, ..reached })?;
        if let Err(error) = control(db, Transaction::Commit) {
            return Ok(Attempt::Ended(error));
        }
        drop(open);
        let durable = self.must_sync(group);
        if durable {
            self.sync_log()?;
        }
        db.refuse_if_moved()?;
        self.note_acknowledged(reached, durable);
        Ok(Attempt::Committed(results))
    }

    /// A truth that is behind what was acknowledged must not be written to: what is missing may
    /// still be in the log.
    fn refuse_if_behind(&self, reached: Progress) -> Result<(), StoreError> {
        acknowledged::compare(&self.db.path, self.mark.borrow_mut().expected(), reached)
    }

    /// Raises the mark to what is about to be acknowledged. Includes writes answered from their
    /// receipts: the first answer may never have arrived.
    fn note_acknowledged(&self, reached: Progress, durable: bool) {
        if let Err(error) = self.mark.borrow_mut().raise(reached, durable) {
            // The write is stored anyway; only its loss would go unnoticed.
            tracing::warn!(%error, "cannot update the mark of acknowledged commits");
        }
    }

    /// Truncates the log, so that little is stored only there. Call this when idle. Parts that
    /// readers use stay.
    pub fn rest(&mut self) {
        if self.log_length() == 0 || self.db.has_moved() || log::is_broken(&self.db.path) {
            return;
        }
        // Most of the work is done while others may write.
        let _ = self.checkpoint(Checkpoint::Passive);
        self.next_truncate = Instant::now();
        self.cut_log(0);
    }

    fn log_length(&self) -> u64 {
        let log = with_suffix(&self.db.path, "-wal");
        std::fs::metadata(log).map_or(0, |metadata| metadata.len())
    }

    /// Truncates a log that is longer than `limit`, unless readers use it, so that it cannot
    /// grow forever.
    fn cut_log(&mut self, limit: u64) {
        let length = self.log_length();
        if length <= limit || Instant::now() < self.next_truncate {
            return;
        }
        // The damage would get into the file, and the commits after it would be lost.
        if log::is_broken(&self.db.path) {
            tracing::warn!("the log is damaged and was not truncated; run `isolith doctor`");
            self.next_truncate = Instant::now() + TRUNCATE_PAUSE;
            return;
        }
        let deadline = self.db.deadline.clone();
        let cut = deadline.within(pragmas::TRUNCATE_WAIT, || self.checkpoint(Checkpoint::Truncate));
        if !matches!(cut, Ok(CheckpointResult { complete: true })) {
            tracing::debug!(length, "readers prevent truncating the log");
            self.next_truncate = Instant::now() + TRUNCATE_PAUSE;
        }
    }
}

/// How much of the log to copy into the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Checkpoint {
    /// As much as possible without waiting.
    Passive,
    /// All of it, and truncate the log; waits for readers until the deadline.
    Truncate,
}

/// The result of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointResult {
    /// Whether all of the log is in the file now.
    pub complete: bool,
}

enum Attempt {
    Committed(Vec<Result<Done<WriteReply>, StoreError>>),
    /// None of the group was applied.
    Ended(StoreError),
}

/// Rolls back on drop, so that no transaction stays open.
struct OpenTransaction<'a>(&'a Db);

impl Drop for OpenTransaction<'_> {
    fn drop(&mut self) {
        if self.0.sql().is_in_transaction() {
            // Fails only if SQLite has already rolled back.
            let _ = control(self.0, Transaction::RollBack);
        }
    }
}

/// Numbers a commit that changes something. Returns the store's progress including it.
fn count_commit(db: &Db, is_new: bool) -> Result<Progress, StoreError> {
    let statement = match is_new {
        true => "UPDATE store SET commits = commits + 1 RETURNING commits, last_change",
        false => "SELECT commits, last_change FROM store",
    };
    let count = || {
        db.sql()
            .prepare_cached(statement)?
            .query_row([], |row| Ok(Progress { commits: row.get(0)?, change: row.get(1)? }))
    };
    db.deadline.uninterrupted(count).during(db.sql(), "count the commit")
}

fn begin(db: &Db) -> Result<(), StoreError> {
    db.deadline.check("begin to write")?;
    loop {
        match control(db, Transaction::BeginWriting) {
            // Some conflicts bypass the busy handler.
            Err(StoreError::Busy { .. }) if db.deadline.wait_a_moment() => {}
            begun => return begun,
        }
    }
}

fn in_savepoint(db: &Db, work: Work<'_>, write: &Write) -> Result<Done<WriteReply>, StoreError> {
    control(db, Transaction::Save)?;
    let result = receipts::once(work, write);
    if !work.db.is_in_transaction() {
        return result;
    }
    let taken_back =
        if result.is_err() { control(db, Transaction::RollBackToSaved) } else { Ok(()) };
    if let Err(error) = taken_back.and_then(|()| control(db, Transaction::Release)) {
        // The state of the transaction is unknown: nothing of it may be committed.
        drop(OpenTransaction(db));
        return Err(error);
    }
    result
}

/// Begins and ends transactions, ignoring the deadline: a commit that is interrupted after the
/// fact would be reported as failed.
fn control(db: &Db, step: Transaction) -> Result<(), StoreError> {
    let run = || db.sql().transact(step);
    db.deadline.uninterrupted(run).during(db.sql(), step.name())
}

/// How the truth executes an operation.
pub(crate) trait Perform: WriteOperation {
    /// Executes the operation, regardless of receipts.
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError>;

    /// Removes something from a reply that is too long for a receipt; false if nothing can be
    /// removed.
    fn shorten(_reply: &mut Self::Reply) -> bool {
        false
    }

    /// Completes a reply that was read from a receipt.
    fn complete(&self, _work: Work<'_>, _reply: &mut Self::Reply) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Keeps the first half of the rejected rows; false if there are none left.
pub(crate) fn shorten(rejected: &mut Vec<(u64, String)>) -> bool {
    let was_empty = rejected.is_empty();
    rejected.truncate(rejected.len() / 2);
    !was_empty
}

#[cfg(test)]
mod tests;
