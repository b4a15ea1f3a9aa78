//! Adopting a store that came from elsewhere.

use std::time::Instant;

use isolate::InWorker;
use isolith_protocol::StoreError;
use rusqlite::TransactionBehavior;

use crate::deadline::Deadline;
use crate::folder::StoreFolder;
use crate::lock::Lock;
use crate::migrations::MIGRATIONS;
use crate::open::{Truth, WriterOptions, open_for_writing};
use crate::pragmas::Durability;
use crate::sqlite::SqliteDuring;

impl Truth {
    /// Removes everything from a truth that others could have prepared and that is not needed:
    /// references to derived files, receipts, loads and quarantined jobs. Also gives it the
    /// identity that `folder` specifies.
    ///
    /// # Errors
    /// [`StoreError::LockHeld`] while any process uses the store, or the reason why it cannot
    /// be opened or written.
    pub fn adopt(
        folder: &StoreFolder,
        deadline: Instant,
        _token: InWorker,
    ) -> Result<(), StoreError> {
        let deadline = Deadline::at(Some(deadline));
        // Nobody else may be using the store. Released at once, since opening takes the lock
        // shared.
        drop(Lock::exclusive_now(&folder.lock_file())?);
        let options = WriterOptions { durability: Durability::Full, create: false };
        let mut db = open_for_writing(folder, options, MIGRATIONS, &deadline)?;
        let clear = |db: &mut rusqlite::Connection| {
            let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            transaction.execute_batch(
                "DELETE FROM segment; DELETE FROM generation; DELETE FROM tombstone; \
                 DELETE FROM graph_segment; DELETE FROM receipt; DELETE FROM load; \
                 DELETE FROM quarantined_job; \
                 UPDATE collection SET unfolded = records WHERE name IS NOT NULL;",
            )?;
            transaction.commit()
        };
        clear(&mut db.connection).during(&db.connection, "adopt the store")
    }
}
