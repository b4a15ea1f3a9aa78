//! Reindexes changed files among the hits before an answer is sent.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use isolith_engine::{CodeHits, Engine, FoldWhen, IndexOptions, Matches};
use isolith_types::Failure;

/// How long an answer may wait for changed files.
const MAX_WAIT: Duration = Duration::from_millis(700);

/// Searches, reindexes files of stale hits, and searches again. Hits of files that could not be
/// reindexed in time stay marked as stale.
pub(crate) async fn search_fresh<H: MaybeStale, F>(
    engine: &Engine,
    search: impl Fn() -> F,
) -> Result<H, Failure>
where
    F: Future<Output = Result<H, Failure>>,
{
    let found = search().await?;
    let stale = found.stale().into_iter();
    let stale: BTreeSet<(PathBuf, PathBuf)> =
        stale.map(|(root, path)| (root.into(), Path::new(root).join(path))).collect();
    if stale.is_empty() {
        return Ok(found);
    }
    reindex(engine, stale).await;
    // If the second search fails, return the first answer.
    Ok(search().await.unwrap_or(found))
}

/// Hits that may be stale.
pub(crate) trait MaybeStale {
    /// Root and path of each stale hit.
    fn stale(&self) -> Vec<(&str, &str)>;
}

impl MaybeStale for CodeHits {
    fn stale(&self) -> Vec<(&str, &str)> {
        let stale = self.hits.iter().filter(|hit| hit.stale);
        stale.map(|hit| (&*hit.root, &*hit.path)).collect()
    }
}

impl MaybeStale for Matches {
    fn stale(&self) -> Vec<(&str, &str)> {
        let stale = self.hits.iter().filter(|hit| hit.stale);
        stale.map(|hit| (&*hit.root, &*hit.path)).collect()
    }
}

/// Reindexes files, given as pairs of root and file, for at most [`MAX_WAIT`].
pub(crate) async fn reindex(engine: &Engine, files: impl IntoIterator<Item = (PathBuf, PathBuf)>) {
    let work = async {
        for (root, file) in files {
            // If the file was deleted, indexing the nearest existing folder removes it.
            let Some(nearest) = file.ancestors().find(|path| path.exists()) else { continue };
            if !nearest.starts_with(&root) {
                continue;
            }
            let options = IndexOptions {
                of_root: Some(root),
                parsers: 1,
                fold: FoldWhen::Due,
                ..IndexOptions::new(nearest)
            };
            if let Err(failure) = engine.index(&options, Arc::new(|_| {})).await {
                tracing::debug!(%failure, file = %file.display(), "cannot reindex a changed file");
            }
        }
    };
    if tokio::time::timeout(MAX_WAIT, work).await.is_err() {
        tracing::debug!("timed out reindexing changed files");
    }
}
