//! Lists a root's files, page by page, in a worker.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use isolate::{CallError, CallOptions, Pool, PoolSettings, Supervised};
use isolith_folder::Folder;
use isolith_folder::git::{git_folder_around, shared_git_folder};
use isolith_roles::{Walk, WalkJob};
use isolith_source::walk::{RulesAbove, SkippedPath, WalkOptions, WalkPage, rules_above};
use isolith_types::Failure;

use super::place::RootLocation;
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

/// Git's `info/exclude` for a root whose repository is elsewhere: a linked worktree, or a
/// submodule.
fn exclude_outside(root: &Path) -> Option<PathBuf> {
    let git_folder = shared_git_folder(root)?;
    (git_folder != root.join(".git")).then(|| git_folder.join("info/exclude"))
}

/// What to list of a part of a root: files of any size and language, but neither the stores
/// nor the other repositories in it.
pub(crate) fn walk_options(engine: &Engine, folder: &Folder, under: &str) -> WalkOptions {
    let repository = git_folder_around(folder.path());
    WalkOptions {
        under: under.to_owned(),
        largest_file: u64::MAX,
        include_secrets: false,
        folders: false,
        except: engine.private_folders(folder),
        languages: Vec::new(),
        repository: repository.map(|path| path.to_string_lossy().into_owned()),
    }
}

/// Whether a walk of the root comes to the part of it that is to be indexed.
///
/// # Errors
/// Any error of reading the folder; `draining` if the program is stopping.
pub(super) async fn reaches(engine: &Engine, place: &RootLocation) -> Result<bool, Failure> {
    let folder = place.open(engine)?;
    let settings = engine.root_settings(place.folder())?;
    let is_file = folder.metadata(Path::new(place.under())).is_ok_and(|it| it.is_file());
    let what = WalkOptions { folders: !is_file, ..walk_options(engine, &folder, place.under()) };
    let mut listing = Listing::begin(engine, &folder, what, &settings.ignored)?;
    // Only the folders on the way are listed before the part itself.
    listing.job.limit = 1;
    while let Some(page) = listing.next().await? {
        let files = page.files.iter().map(|it| &it.path);
        let mut found = files.chain(&page.folders).chain(page.left_out.iter().map(|it| &it.path));
        if found.any(|path| path == place.under()) {
            return Ok(true);
        }
    }
    Ok(false)
}
