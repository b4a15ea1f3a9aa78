//! Answers that are true now: files of hits that have changed are indexed again before
//! the answer goes out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use isolith_engine::{CodeHits, Engine, FoldWhen, IndexOptions};
use isolith_types::Failure;

/// How long an answer may wait for changed files.
const PATIENCE: Duration = Duration::from_millis(700);

/// Asks again if files of the answer have changed and could be indexed in time. What
/// could not stays marked as stale.
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
    // The old answer is still one if the new one does not come about.
    Ok(ask().await.unwrap_or(found))
}

/// Indexes files again, each with its root, as far as there is time.
pub(crate) async fn renew(engine: &Engine, files: impl IntoIterator<Item = (PathBuf, PathBuf)>) {
    let work = async {
        for (root, file) in files {
            // What is gone is seen from the folder that it was in.
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
