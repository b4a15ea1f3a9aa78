//! Linked worktrees that are gone.

use isolith_types::Failure;

use super::lock::{RootLock, lock_file};
use super::report::{IndexProblem, IndexReport};
use crate::open::Engine;

impl Engine {
    /// Removes the index of linked worktrees that have been removed, and lists them. Any other
    /// root that is missing stays, because it may be on a disk that is not mounted.
    pub(super) async fn drop_removed_worktrees(
        &self,
        report: &mut IndexReport,
    ) -> Result<(), Failure> {
        for path in self.removed_worktrees().await? {
            let message = "the worktree has been removed, and its index with it".to_owned();
            report.problems.push(IndexProblem { path, code: "worktree_removed", message });
        }
        Ok(())
    }

    /// The same for `doctor` and `watch`: returns the folders of those that were removed.
    ///
    /// # Errors
    /// Any error of a write.
    pub(crate) async fn removed_worktrees(&self) -> Result<Vec<String>, Failure> {
        let mut removed = Vec::new();
        for root in self.roots().await?.into_iter().filter(|it| it.is_removed_worktree()) {
            // Somebody else is at it, or indexes a new worktree in the same place.
            let Some(_lock) = RootLock::try_take(&lock_file(self, &root.folder, "index"))? else {
                continue;
            };
            self.drop_root(root.id).await?;
            removed.push(root.folder.to_string_lossy().into_owned());
        }
        Ok(removed)
    }
}
