use std::collections::BTreeMap;
use std::time::Duration;

use gix_hash::ObjectId;
use isolate_types::InWorker;
use serde::{Deserialize, Serialize};

use crate::clock::{Clock, TimeUp};
use crate::compare::Comparison;
use crate::listing::{Listing, NoListing};
use crate::objects::{Commit, Objects, head};
use crate::{HistoryError, Repository};

/// The last change of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// The file's path relative to the requested folder, with slashes.
    pub path: String,
    /// The author's name, as in the commit.
    pub author: String,
    /// When it was committed, in milliseconds since 1970.
    pub changed_at: i64,
}

/// The last changes of the files of the newest commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The last changes, sorted by path.
    pub changes: Vec<FileChange>,
    /// Whether all relevant commits were read; false if the budget ran out, so that a larger
    /// one would find more.
    pub complete: bool,
    /// The number of commits read.
    pub commits: u64,
    /// The number of files, and of unreadable folders, whose last change is unknown because
    /// commits or trees are missing (as in a shallow clone) or damaged.
    pub gaps: u64,
}

/// Finds who changed each file of the newest commit last, and when, as `git log -1` would.
///
/// Each file is followed from `HEAD` to the commit that changed it last. At a merge, a file is
/// followed to the first parent that has it unchanged; the merge counts as its change only if
/// there is none. Renames are not followed.
///
/// `below` is the requested folder, as returned by [`Repository::below`]. Submodules and paths
/// that are not UTF-8 are ignored. A repository without commits has no changes. When the budget
/// runs out, returns what was found so far.
///
/// # Errors
/// If the repository cannot be opened, or its newest commit cannot be read or is too large.
pub fn last_changes(
    repository: &Repository,
    below: &str,
    budget: Duration,
    cancelled: &dyn Fn() -> bool,
    _token: InWorker,
) -> Result<History, HistoryError> {
    let below = components(below)?;
    let clock = Clock::start(budget, cancelled);
    let Some(newest) = head(repository)? else {
        return Ok(History { complete: true, ..History::default() });
    };
    let objects = Objects::open(repository)?;
    let damaged = |what, id: &ObjectId| {
        let git_dir = repository.git_dir.clone();
        HistoryError::Damaged { git_dir, what, id: id.to_string() }
    };
    let newest = objects.commit(&newest).ok_or_else(|| damaged("commit", &newest))?;
    let listing = match Listing::of(&objects, &newest.tree, &below, &clock) {
        Ok(listing) => listing,
        Err(NoListing::TimeUp) => return Ok(History::default()),
        Err(NoListing::TooLarge) => return Err(HistoryError::TooLarge),
        Err(NoListing::Unreadable) => return Err(damaged("tree", &newest.tree)),
    };
    let comparison = Comparison { objects: &objects, listing: &listing, clock: &clock };
    Ok(HistoryWalk::new(&comparison).run(newest))
}

/// The components of `below`.
fn components(below: &str) -> Result<Vec<&str>, HistoryError> {
    let components: Vec<_> = below.split('/').filter(|part| !part.is_empty()).collect();
    let strange =
        below.starts_with('/') || components.iter().any(|part| matches!(*part, "." | ".."));
    if strange { Err(HistoryError::Below { below: below.to_owned() }) } else { Ok(components) }
}

/// Follows files into the past.
///
/// Each file is at one commit at a time, and has the same content there as in the newest one.
/// So all lists of files together are no longer than the listing, however many branches there
/// are. The order of commits does not affect the result, but going from new to old joins the
/// files of several branches where the branches start.
struct HistoryWalk<'a> {
    comparison: &'a Comparison<'a>,
    pending: BTreeMap<(i64, ObjectId), PendingCommit>,
    history: History,
}

struct PendingCommit {
    commit: Commit,
    /// Sorted.
    files: Vec<u32>,
}

impl<'a> HistoryWalk<'a> {
    fn new(comparison: &'a Comparison<'a>) -> Self {
        let history = History { gaps: comparison.listing.gaps, ..History::default() };
        Self { comparison, pending: BTreeMap::new(), history }
    }

    fn run(mut self, newest: Commit) -> History {
        self.add_pending(newest, (0..self.comparison.listing.len() as u32).collect());
        self.history.complete = self.follow().is_ok();
        self.history.changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        self.history
    }

    fn follow(&mut self) -> Result<(), TimeUp> {
        while let Some((_, next)) = self.pending.pop_last() {
            self.comparison.clock.check()?;
            self.step(&next.commit, next.files)?;
            self.history.commits += 1;
        }
        Ok(())
    }

    fn step(&mut self, commit: &Commit, mut files: Vec<u32>) -> Result<(), TimeUp> {
        let mut all_parents_known = true;
        for id in &commit.parents {
            if files.is_empty() {
                return Ok(());
            }
            let Some(parent) = self.comparison.objects.commit(id) else {
                all_parents_known = false;
                continue;
            };
            let found = self.comparison.run(&files, &commit.tree, &parent.tree)?;
            self.history.gaps += found.unknown.len() as u64;
            remove_sorted(&mut files, &found.differing);
            remove_sorted(&mut files, &found.unknown);
            self.add_pending(parent, files);
            files = found.differing;
        }
        if all_parents_known {
            self.attribute(commit, &files);
        } else {
            // The missing parent may have them unchanged.
            self.history.gaps += files.len() as u64;
        }
        Ok(())
    }

    fn add_pending(&mut self, commit: Commit, files: Vec<u32>) {
        if files.is_empty() {
            return;
        }
        let key = (commit.seconds, commit.id);
        let pending =
            self.pending.entry(key).or_insert_with(|| PendingCommit { commit, files: Vec::new() });
        if pending.files.is_empty() {
            pending.files = files;
        } else {
            pending.files.extend(files);
            pending.files.sort();
        }
    }

    fn attribute(&mut self, commit: &Commit, files: &[u32]) {
        self.history.changes.extend(files.iter().map(|file| FileChange {
            path: self.comparison.listing.path(*file),
            author: commit.author.clone(),
            changed_at: commit.seconds.saturating_mul(1_000),
        }));
    }
}

/// Removes some files from a list; both must be sorted.
fn remove_sorted(files: &mut Vec<u32>, some: &[u32]) {
    let Some(first) = some.first() else { return };
    let mut some = some.iter().peekable();
    // Files before the first one stay in place.
    let start = files.partition_point(|file| file < first);
    let mut kept = start;
    for index in start..files.len() {
        let file = files[index];
        while some.next_if(|it| **it < file).is_some() {}
        if some.peek() != Some(&&file) {
            files[kept] = file;
            kept += 1;
        }
    }
    files.truncate(kept);
}
