//! Up-to-date results: changed files among the hits are indexed again before the answer is sent.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use isolith_engine::{CodeHits, Engine, FoldWhen, IndexOptions};
use isolith_types::Failure;

/// How long an answer may wait for changed files.
const PATIENCE: Duration = Duration::from_millis(700);

/// Searches again if files among the hits changed and could be indexed in time. Hits of the
/// others stay marked as stale.
pub(crate) async fn fresh<F>(engine: &Engine, ask: impl Fn() -> F) -> Result<CodeHits, Failure>
where
    F: Future<Output = Result<CodeHits, Failure>>,
{
    let found = ask().await?;
    let stale = found.hits.iter().filter(|hit| hit.stale);
    let stale: BTreeSet<(PathBuf, PathBuf)> =
        stale.map(|hit| (hit.root.clone().into(), Path::new(&hit.root).join(&hit.path))).collect();
    if stale.is_empty() {
        return Ok(found);
    }
    renew(engine, stale).await;
    // If the second search fails, the first answer still holds.
    Ok(ask().await.unwrap_or(found))
}

/// Indexes files again, each in its root, until time is up.
pub(crate) async fn renew(engine: &Engine, files: impl IntoIterator<Item = (PathBuf, PathBuf)>) {
    let work = async {
        for (root, file) in files {
            // The nearest existing folder shows that a file is gone.
            let Some(there) = file.ancestors().find(|path| path.exists()) else { continue };
            if !there.starts_with(&root) {
                continue;
            }
            let options = IndexOptions {
                of_root: Some(root),
                parsers: 1,
                fold: FoldWhen::Due,
                ..IndexOptions::new(there)
            };
            if let Err(failure) = engine.index(&options, Arc::new(|_| {})).await {
                tracing::debug!(%failure, file = %file.display(), "cannot update the index of a file");
            }
        }
    };
    if tokio::time::timeout(PATIENCE, work).await.is_err() {
        tracing::debug!("changed files take too long to index");
    }
}
