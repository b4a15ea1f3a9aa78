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
    /// The file, relative to the folder that was asked for, with slashes.
    pub path: String,
    /// The author's name as the commit has it.
    pub author: String,
    /// When it was committed, in milliseconds since 1970.
    pub changed_at: i64,
}

/// What is known of the files of the newest commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// Their last changes, by path.
    pub changes: Vec<FileChange>,
    /// Whether all commits were looked at that had to be; false if the budget was spent
    /// before, so that another try with more would find more.
    pub complete: bool,
    /// How many commits were looked at.
    pub commits: u64,
    /// Files, and folders that cannot be read, of which nothing can be told because
    /// commits or trees are missing (as in a shallow clone) or damaged.
    pub gaps: u64,
}

/// Tells who changed each file of the newest commit last, as `git log -1` would.
///
/// Each file is followed from `HEAD` to the commit that made it what it is. A merge
/// passes a file on to the first parent that has it unchanged, and counts as its change
/// only if no parent has. A renamed file begins with its new name.
///
/// `below` is the folder asked for, as [`Repository::below`] gives it. Paths that are
/// not UTF-8 and submodules are left out. A repository without commits has no changes.
/// Whatever was found when the budget is spent is the answer.
///
/// # Errors
/// If the repository cannot be opened, its newest commit cannot be read, or is too large.
pub fn last_changes(
    repository: &Repository,
    below: &str,
    budget: Duration,
    cancelled: &dyn Fn() -> bool,
    _token: InWorker,
) -> Result<History, HistoryError> {
    let below = parts(below)?;
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
    Ok(Walk::new(&comparison).run(newest))
}

/// The names of the folders on the way to `below`.
fn parts(below: &str) -> Result<Vec<&str>, HistoryError> {
    let parts: Vec<_> = below.split('/').filter(|part| !part.is_empty()).collect();
    let strange = below.starts_with('/') || parts.iter().any(|part| matches!(*part, "." | ".."));
    if strange { Err(HistoryError::Below { below: below.to_owned() }) } else { Ok(parts) }
}

/// Follows files into the past.
///
/// Each file is with one commit at a time, and in that commit it is as in the newest
/// one. So however many branches there are, all lists of files together are no longer
/// than the listing. The order of commits changes nothing in the answer, but newest
/// first brings the files of different branches together again where these begin.
struct Walk<'a> {
    comparison: &'a Comparison<'a>,
    waiting: BTreeMap<(i64, ObjectId), Waiting>,
    history: History,
}

struct Waiting {
    commit: Commit,
    /// In rising order.
    files: Vec<u32>,
}

impl<'a> Walk<'a> {
    fn new(comparison: &'a Comparison<'a>) -> Self {
        let history = History { gaps: comparison.listing.gaps, ..History::default() };
        Self { comparison, waiting: BTreeMap::new(), history }
    }

    fn run(mut self, newest: Commit) -> History {
        self.hand_over(newest, (0..self.comparison.listing.len() as u32).collect());
        self.history.complete = self.follow().is_ok();
        self.history.changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        self.history
    }

    fn follow(&mut self) -> Result<(), TimeUp> {
        while let Some((_, next)) = self.waiting.pop_last() {
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
            leave_out(&mut files, &found.differing);
            leave_out(&mut files, &found.unknown);
            self.hand_over(parent, files);
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

    fn hand_over(&mut self, commit: Commit, files: Vec<u32>) {
        if files.is_empty() {
            return;
        }
        let key = (commit.seconds, commit.id);
        let waiting =
            self.waiting.entry(key).or_insert_with(|| Waiting { commit, files: Vec::new() });
        if waiting.files.is_empty() {
            waiting.files = files;
        } else {
            waiting.files.extend(files);
            waiting.files.sort();
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

/// Takes some files out of a list; both are in rising order.
fn leave_out(files: &mut Vec<u32>, some: &[u32]) {
    let Some(first) = some.first() else { return };
    let mut some = some.iter().peekable();
    // What comes before stays where it is.
    let start = files.partition_point(|file| file < first);
    let mut kept = start;
    for place in start..files.len() {
        let file = files[place];
        while some.next_if(|it| **it < file).is_some() {}
        if some.peek() != Some(&&file) {
            files[kept] = file;
            kept += 1;
        }
    }
    files.truncate(kept);
}
