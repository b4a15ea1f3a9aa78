//! Reads from git who changed which file last, after the index is usable.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use isolate::{CallOptions, Pool, PoolSettings, Supervised};
use isolith_folder::git::shared_git_folder;
use isolith_history::{FileChange, History, Repository, repository_of};
use isolith_protocol::NoteGitFacts;
use isolith_roles::{Intake, IntakeSettings, ReadHistory};
use isolith_types::{Code, Failure};

use super::place::RootLocation;
use crate::failure::of_call;
use crate::ingest::call_intake;
use crate::open::{Engine, pool_settings};

/// Maximum time for walking a history; the newest changes come first.
const BUDGET: Duration = Duration::from_secs(2);

/// Memory limit of the worker that reads a history, in bytes.
const MEMORY: u64 = 512 << 20;

/// Maximum number of files whose author and date are stored in one transaction.
const FILES_PER_WRITE: usize = 500;

impl Engine {
    /// Stores author and time of the last change of each file of a root; files outside of a
    /// repository have none. Returns the number of files.
    ///
    /// # Errors
    /// Any error of reading the repository or of a write.
    pub async fn gather_history(&self, path: &Path) -> Result<u64, Failure> {
        let place = RootLocation::find(self, path).await?;
        let Some(root) = place.known().map(|root| root.id) else { return Err(place.not_indexed()) };
        let Some(repository) = repository_of(place.folder()) else { return Ok(0) };
        // A file in the project must not make the program read a repository elsewhere.
        let confirmed = shared_git_folder(&repository.work_tree);
        if confirmed.as_ref() != Some(&repository.common_dir) {
            return Ok(0);
        }
        let Some(below) = repository.below(place.folder()) else { return Ok(0) };
        let History { changes, .. } = self.read_history(repository, below).await?;
        let fact = |it: &FileChange| (it.path.clone(), Some(it.author.clone()), it.changed_at);
        let mut noted = 0;
        for some in changes.chunks(FILES_PER_WRITE) {
            let facts = some.iter().map(fact).collect();
            noted += self.write(NoteGitFacts { root, facts }, None).await?.done.reply.files;
        }
        Ok(noted)
    }

    async fn read_history(
        &self,
        repository: Repository,
        below: String,
    ) -> Result<History, Failure> {
        let read = ReadHistory {
            input: format!("{} {:?}", repository.git_dir.display(), moved_at(&repository)),
            below,
            budget: BUDGET,
        };
        let settings = PoolSettings {
            memory_cap: Some(MEMORY),
            spares: 0,
            ..pool_settings(&self.inner.options, 1)
        };
        let source = IntakeSettings::Repository(repository);
        let intake = Pool::<Intake>::start(&source, settings, self.inner.hooks.clone())
            .map_err(|error| of_call(&error))?;
        let _shown = self.watch_pool(std::sync::Arc::new(intake.clone()));
        let answer = tokio::select! {
            answer = call_intake(&intake, read, CallOptions::default()) => answer,
            () = self.inner.readers.drained() => {
                Err(Failure::new(Code::Draining, "the program is stopping"))
            }
        };
        intake.kill();
        answer?.reply
    }
}

/// Whether there may be commits since a moment, in milliseconds since 1970.
pub(crate) fn has_moved_since(folder: &Path, moment: Option<i64>) -> bool {
    let Some(repository) = repository_of(folder) else { return false };
    match (moment, moved_at(&repository)) {
        (Some(moment), Some(moved)) => moved >= moment,
        _ => true,
    }
}

/// When the repository's HEAD last moved, according to its files.
fn moved_at(repository: &Repository) -> Option<i64> {
    let changed = |path: &Path| {
        let since = path.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(since.as_millis()).ok()
    };
    let of_tree = ["logs/HEAD", "HEAD"].map(|name| changed(&repository.git_dir.join(name)));
    let shared =
        ["packed-refs", "FETCH_HEAD"].map(|name| changed(&repository.common_dir.join(name)));
    of_tree.into_iter().chain(shared).flatten().max()
}
