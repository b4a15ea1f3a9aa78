//! The order in which batches of files are stored.

use tokio::sync::{mpsc, oneshot};

use super::pipeline::File;

/// Batches in the order in which they are read, and stored: the rows of the index must not depend
/// on which parser is faster.
pub(super) struct Batches {
    pub(super) files: mpsc::Receiver<Vec<File>>,
    /// Ends when the batch before the next one is stored.
    before: oneshot::Receiver<()>,
}

/// The turn of a batch to be stored. It is over when this is dropped, whatever has happened.
pub(super) struct Turn {
    before: Option<oneshot::Receiver<()>>,
    _after: oneshot::Sender<()>,
}

impl Batches {
    pub(super) fn new(files: mpsc::Receiver<Vec<File>>) -> Self {
        let (_, before) = oneshot::channel();
        Self { files, before }
    }

    pub(super) async fn next(&mut self) -> Option<(Vec<File>, Turn)> {
        let files = self.files.recv().await?;
        let (after, next) = oneshot::channel();
        let before = std::mem::replace(&mut self.before, next);
        Some((files, Turn { before: Some(before), _after: after }))
    }
}

impl Turn {
    /// Waits until all batches before are stored, or have failed.
    pub(super) async fn comes(&mut self) {
        if let Some(before) = self.before.take() {
            // Nothing is sent: the turn before is dropped.
            let _ = before.await;
        }
    }
}
