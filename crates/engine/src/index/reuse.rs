//! Files that another worktree of the repository has in the same state are not parsed again.

use isolith_protocol::{CopyFiles, FilesCopied};
use isolith_source::PARSER_VERSION;
use isolith_types::{Failure, FileVersion};

use super::batches::Turn;
use super::pipeline::{File, Pipeline, Stored};

/// With this many changed files in a batch, they may be those of another worktree: git has
/// checked out another commit. Fewer are edits.
const MANY_CHANGES: usize = 8;

impl Pipeline {
    /// Copies what other roots have, when it is the batch's turn; returns the files that are left
    /// to be parsed.
    pub(super) async fn reuse(
        &self,
        batch: Vec<File>,
        turn: &mut Turn,
        stored: &mut Stored,
    ) -> Result<Vec<File>, Failure> {
        let many = batch.len() >= MANY_CHANGES;
        let may_be_known = |file: &File| !file.again && (file.is_new || many);
        if self.siblings.is_empty() || !batch.iter().any(may_be_known) {
            return Ok(batch);
        }
        let (asked, mut left): (Vec<File>, Vec<File>) = batch.into_iter().partition(may_be_known);
        let version = |it: &File| {
            let version =
                FileVersion { hash: it.note.hash, size: it.note.length, modified: it.modified };
            (it.note.path.clone(), version)
        };
        let copy = CopyFiles {
            root: self.root,
            from: self.siblings.clone(),
            parser: PARSER_VERSION,
            files: asked.iter().map(version).collect(),
        };
        turn.comes().await;
        let FilesCopied { copied, inserted, deleted } =
            self.engine.write(copy, None).await?.done.reply;
        stored.reused += copied.len() as u64;
        stored.indexed += copied.len() as u64;
        stored.count_chunks(inserted, deleted);
        let is_left = |at: &u32| !copied.contains(at);
        left.extend((0..).zip(asked).filter(|(at, _)| is_left(at)).map(|(_, file)| file));
        Ok(left)
    }
}
