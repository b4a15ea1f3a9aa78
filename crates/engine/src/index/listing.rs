//! Lists a root's files, page by page, in a worker.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use isolate::{CallError, CallOptions, Pool, PoolSettings, Supervised};
use isolith_folder::Folder;
use isolith_history::repository_of;
use isolith_roles::{Walk, WalkJob};
use isolith_source::walk::{RulesAbove, SkippedPath, WalkOptions, WalkPage, rules_above};
use isolith_types::Failure;

use crate::failure::of_call;
use crate::open::{Engine, pool_settings};
use crate::status::WatchedPool;

/// Maximum number of files, folders and problems in a page; the front holds one page at a time.
const PAGE: u32 = 8_192;

/// Memory limit of the walking worker: the names in a folder with millions of entries, and the
/// maximum number of ignore patterns that apply to a folder.
const MEMORY: u64 = 512 << 20;

/// A page takes about a second, but longer over a slow network.
const DEADLINE: Duration = Duration::from_secs(120);

/// A walk in progress.
pub(crate) struct Listing {
    engine: Engine,
    folder: Folder,
    pool: Pool<Walk>,
    _shown: WatchedPool,
    job: WalkJob,
    /// Unusable rules outside of the root; reported with the first page.
    left_out: Vec<SkippedPath>,
    ended: bool,
}

impl Listing {
    /// Starts to list a root, without what settings ignore.
    pub(crate) fn begin(
        engine: &Engine,
        folder: &Folder,
        what: WalkOptions,
        ignored: &[RulesAbove],
    ) -> Result<Self, Failure> {
        let settings = PoolSettings {
            memory_cap: Some(MEMORY),
            job_deadline: DEADLINE,
            spares: 0,
            ..pool_settings(&engine.inner.options, 1)
        };
        let root = folder.path().to_owned();
        let pool = Pool::start(&root, settings, engine.inner.hooks.clone())
            .map_err(|error| of_call(&error))?;
        let (above, left_out) = rules_above(&root, exclude_outside(&root).as_deref());
        let above = [ignored, &above].concat();
        let job =
            WalkJob { input: identity(folder), options: what, above, after: None, limit: PAGE };
        Ok(Self {
            engine: engine.clone(),
            folder: folder.clone(),
            _shown: engine.watch_pool(Arc::new(pool.clone())),
            pool,
            job,
            left_out,
            ended: false,
        })
    }

    /// The next page; `None` at the end.
    ///
    /// # Errors
    /// Why the walk cannot continue; `draining` if the program is stopping.
    pub(crate) async fn next(&mut self) -> Result<Option<WalkPage>, Failure> {
        if self.ended {
            return Ok(None);
        }
        let options = CallOptions {
            idempotent: true,
            descriptors: vec![self.folder.handle()],
            ..CallOptions::default()
        };
        let answer = tokio::select! {
            answer = self.pool.call(&self.job, options) => answer,
            () = self.engine.inner.readers.drained() => {
                Err(CallError::Draining { role: "walk" })
            }
        };
        let mut page = answer.map_err(|error| self.explained(&error))?.reply?;
        page.left_out.append(&mut self.left_out);
        self.job.after.clone_from(&page.next);
        self.ended = page.next.is_none();
        Ok(Some(page))
    }

    /// Converts the failure of a walking worker.
    fn explained(&self, error: &CallError) -> Failure {
        let failure = of_call(error);
        match error {
            CallError::Died { .. } | CallError::Poisoned { .. } | CallError::Quarantined { .. } => {
                let folder = self.folder.path().display();
                let message = format!("cannot list the files of {folder}: {}", failure.message);
                Failure { message, ..failure }.with_hint(
                    "look for huge ignore files and folders there; .isolithignore leaves folders out",
                )
            }
            _ => failure,
        }
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        self.pool.kill();
    }
}

/// Identifies a walk for the quarantine. Only another walk shows whether the cause of a crash is
/// gone, so the result changes every hour and a quarantined walk is then tried again.
fn identity(folder: &Folder) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{} {}", folder.path().display(), since.as_secs() / 3_600)
}

/// Git's `info/exclude` for a root whose repository is elsewhere: a linked worktree.
fn exclude_outside(root: &std::path::Path) -> Option<std::path::PathBuf> {
    if root.join(".git").symlink_metadata().ok()?.is_dir() {
        return None;
    }
    Some(repository_of(root)?.common_dir.join("info/exclude"))
}
