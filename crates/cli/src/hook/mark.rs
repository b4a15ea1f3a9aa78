//! Up to where a transcript has been saved.
//!
//! A mark only saves work: without one the transcript is read from its start, and what is already
//! stored stays as it is. It counts only for the same file with the same content before it, and for
//! the same database.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use isolith_engine::TranscriptCursor;
use serde::{Deserialize, Serialize};

/// How much of the content before a mark is compared.
const COMPARED: u64 = 4 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    /// Device and inode of the transcript.
    file: (u64, u64),
    /// Device and inode of the database.
    truth: (u64, u64),
    /// Hash of the content before the mark.
    before: String,
    cursor: TranscriptCursor,
}

impl Mark {
    /// The mark at a position of a transcript; `None` if it is of no use.
    pub(super) fn at(cursor: &TranscriptCursor, transcript: &File, store: &Path) -> Option<Self> {
        let cursor = cursor.for_appended()?;
        let before = content_before(transcript, cursor.offset())?;
        Some(Self {
            file: identity(&transcript.metadata().ok()?),
            truth: identity(&truth(store)?),
            before,
            cursor,
        })
    }

    /// Where to continue, if the mark still fits.
    pub(super) fn cursor(self, transcript: &File, store: &Path) -> Option<TranscriptCursor> {
        let fits = self.file == identity(&transcript.metadata().ok()?)
            && self.truth == identity(&truth(store)?)
            && self.before == content_before(transcript, self.cursor.offset())?;
        fits.then_some(self.cursor)
    }
}

fn truth(store: &Path) -> Option<std::fs::Metadata> {
    store.join("truth.sqlite").metadata().ok()
}

fn identity(metadata: &std::fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// The hash of the last bytes before a position; `None` if the file is shorter.
fn content_before(file: &File, position: u64) -> Option<String> {
    let start = position.saturating_sub(COMPARED);
    let mut bytes = vec![0; usize::try_from(position - start).ok()?];
    file.read_exact_at(&mut bytes, start).ok()?;
    Some(blake3::hash(&bytes).to_hex().to_string())
}
