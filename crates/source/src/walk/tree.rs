//! The walk itself: one folder at a time, in path order, resumable from any position.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use isolate_types::InWorker;
use rustix::fs::{AtFlags, Dir, FileType, OFlags, statat};

use super::ignore_rules::{RuleKind, Rules, RulesAbove};
use super::names::is_binary;
use super::{FoundFile, SkipReason, SkippedPath, WalkOptions, WalkPage, WalkPosition};
use crate::language::Language;
use crate::secrets::is_secret_name;
use isolith_folder::git::GitEntry;
use isolith_folder::{Folder, open_beneath};

/// Maximum number of entries in a folder; larger folders are skipped and reported.
const MAX_ENTRIES: usize = 1 << 21;

/// Maximum length of a path relative to the root: the system cannot open longer ones.
const MAX_PATH_BYTES: usize = 4_000;

/// A page ends after about this time, however little was found.
const PAGE_TIME: Duration = Duration::from_secs(1);

/// A walk in progress.
#[derive(Debug)]
pub struct Walker {
    root: Folder,
    what: WalkOptions,
    /// The remaining path components that lead to the part to walk.
    way: Vec<String>,
    rules: Rules,
    /// The open folders, the innermost last.
    open: Vec<OpenFolder>,
    place: WalkPosition,
    /// Reported with the next page.
    left_out: Vec<SkippedPath>,
}

/// A folder that the walk has entered.
#[derive(Debug)]
struct OpenFolder {
    /// Its path, with a trailing slash unless it is the root.
    prefix: Vec<u8>,
    /// Entries still to visit, in reverse order.
    entries: Vec<WalkEntry>,
    /// Where git keeps the repository that it is in.
    repository: Option<Arc<Path>>,
}

#[derive(Debug)]
struct WalkEntry {
    name: Box<[u8]>,
    kind: EntryKind,
}

#[derive(Debug)]
enum EntryKind {
    Folder,
    File { size: u64, modified: i64 },
    Skipped(SkipReason),
}

impl WalkEntry {
    /// Sort key: a folder sorts as its name and a slash, like everything in it.
    fn key(&self) -> impl Iterator<Item = u8> + '_ {
        let slash = matches!(self.kind, EntryKind::Folder).then_some(b'/');
        self.name.iter().copied().chain(slash)
    }
}

/// Why a walk could not start.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// The root cannot be read.
    #[error("cannot read the folder: {0}")]
    Root(#[from] io::Error),
    /// The root is a store.
    #[error("the folder is a store of Isolith, not source code")]
    Store,
}

impl Walker {
    /// Starts a walk of `root`, after the position of an earlier walk if given. `above` are
    /// the rules of the folders above.
    ///
    /// # Errors
    /// If the root cannot be read or is a store.
    pub fn begin(
        root: Folder,
        what: WalkOptions,
        above: &[RulesAbove],
        after: Option<WalkPosition>,
        _token: InWorker,
    ) -> Result<Self, WalkError> {
        let (rules, problems) = Rules::above(above);
        let problem = |(path, why)| SkippedPath { path, why };
        let way = what.under.split('/').filter(|name| !name.is_empty()).map(str::to_owned);
        let mut walker = Self {
            root,
            way: way.collect(),
            what,
            rules,
            open: Vec::new(),
            left_out: problems.into_iter().map(problem).collect(),
            place: after.unwrap_or_default(),
        };
        match walker.enter(Vec::new())? {
            Entered::Open => {}
            Entered::Store => return Err(WalkError::Store),
            // Only a folder below the root is skipped for being a repository.
            Entered::Repository => {}
            Entered::TooMany => return Err(io::Error::other("it has too many entries").into()),
        }
        if walker.place != WalkPosition::default() {
            // An earlier walk has reported it.
            walker.left_out.clear();
        }
        Ok(walker)
    }

    /// The current position, from which another walk can resume.
    pub fn place(&self) -> &WalkPosition {
        &self.place
    }

    /// The options it was started with.
    pub fn what(&self) -> &WalkOptions {
        &self.what
    }

    /// The next files or folders, about `limit` at most. `next` is `None` on the last page,
    /// and if `cancelled` returns true.
    pub fn page(&mut self, limit: usize, cancelled: &dyn Fn() -> bool) -> WalkPage {
        let until = Instant::now() + PAGE_TIME;
        let mut page =
            WalkPage { left_out: std::mem::take(&mut self.left_out), ..WalkPage::default() };
        // A walk lists its own root as a folder.
        if self.what.folders && self.place.0.is_empty() {
            page.folders.push(String::new());
        }
        while let Some(folder) = self.open.last_mut() {
            let Some(entry) = folder.entries.pop() else {
                self.open.pop();
                self.rules.leave();
                continue;
            };
            let mut path = [&folder.prefix[..], &entry.name].concat();
            let is_folder = matches!(entry.kind, EntryKind::Folder);
            if is_folder {
                path.push(b'/');
            }
            if self.place.is_after(&path, is_folder) {
                continue;
            }
            let is_new = !self.place.is_below(&path);
            self.visit(path, entry.kind, is_new, &mut page);
            if cancelled() {
                return page;
            }
            if page.len() >= limit || Instant::now() >= until {
                page.next = Some(self.place.clone());
                break;
            }
        }
        page
    }

    /// Adds an entry to the page, or enters a folder. `is_new` is false for a folder that an
    /// earlier walk had entered.
    fn visit(&mut self, path: Vec<u8>, kind: EntryKind, is_new: bool, page: &mut WalkPage) {
        if is_new {
            self.place.0.clone_from(&path);
        }
        let shown = String::from_utf8_lossy(&path).into_owned();
        match kind {
            EntryKind::File { size, modified } => {
                page.files.push(FoundFile { path: shown, size, modified });
            }
            EntryKind::Skipped(why) => page.left_out.push(SkippedPath { path: shown, why }),
            EntryKind::Folder => {
                let shown = shown.trim_end_matches('/').to_owned();
                let why = match self.enter(path) {
                    Ok(Entered::Open) => {
                        if self.what.folders && is_new {
                            page.folders.push(shown.clone());
                        }
                        None
                    }
                    Ok(Entered::Store) => Some(SkipReason::Store),
                    Ok(Entered::Repository) => Some(SkipReason::Repository),
                    Ok(Entered::TooMany) => Some(SkipReason::TooMany(MAX_ENTRIES as u64)),
                    Err(error) => why_not(&error),
                };
                match is_new {
                    true => page.left_out.append(&mut self.left_out),
                    false => self.left_out.clear(),
                }
                page.left_out.extend(why.map(|why| SkippedPath { path: shown, why }));
            }
        }
    }

    /// Opens a folder and reads its entries.
    fn enter(&mut self, prefix: Vec<u8>) -> io::Result<Entered> {
        let path = PathBuf::from(std::ffi::OsString::from_vec(prefix.clone()));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder = Dir::new(open_beneath(&self.root, &path, flags)?)?;
        let names = match self.way.get(self.open.len()) {
            Some(name) => names_on_the_way(&folder, name)?,
            None => match all_names(&mut folder)? {
                Some(names) => names,
                None => return Ok(Entered::TooMany),
            },
        };
        if is_store(&names) {
            return Ok(Entered::Store);
        }
        let Some(repository) = self.repository_of(&path, &names) else {
            return Ok(Entered::Repository);
        };
        let found = |(_, file): &(RuleKind, &str)| {
            let first = file.split('/').next().unwrap_or(file);
            names.iter().any(|(name, _)| **name == *first.as_bytes())
        };
        let files = RuleKind::FILES.into_iter().filter(found);
        let problems = self.rules.enter(&self.root, &path, files);
        for (file, why) in problems {
            let path = path.join(file).to_string_lossy().into_owned();
            self.left_out.push(SkippedPath { path, why });
        }
        let only = self.way.get(self.open.len());
        let wanted = names
            .into_iter()
            .filter(|(name, _)| only.is_none_or(|only| **name == *only.as_bytes()));
        let mut entries: Vec<WalkEntry> =
            wanted.filter_map(|(name, kind)| self.entry(&folder, &prefix, name, kind)).collect();
        entries.sort_unstable_by(|a, b| b.key().cmp(a.key()));
        self.open.push(OpenFolder { prefix, entries, repository });
        Ok(Entered::Open)
    }

    /// Where git keeps the repository of a folder with these entries, if any; `None` if that is
    /// another one than the root's, and not a submodule of it.
    fn repository_of(&self, path: &Path, names: &Names) -> Option<Option<Arc<Path>>> {
        let Some(around) = self.open.last() else {
            return Some(self.what.repository.as_deref().map(|it| Path::new(it).into()));
        };
        if !names.iter().any(|(name, _)| **name == *b".git") {
            return Some(around.repository.clone());
        }
        match GitEntry::read(&self.root, path) {
            GitEntry::Absent => Some(around.repository.clone()),
            entry if entry.is_own(around.repository.as_deref()) => None,
            entry => Some(entry.git_folder(&self.root.path().join(path)).map(Arc::from)),
        }
    }

    /// Classifies an entry of a folder; `None` if it is skipped without a report.
    fn entry(
        &self,
        folder: &Dir,
        prefix: &[u8],
        name: Box<[u8]>,
        kind: FileType,
    ) -> Option<WalkEntry> {
        let kind = match kind {
            FileType::Unknown => kind_of(folder, &name)?,
            known => known,
        };
        let (is_folder, is_file) = (kind.is_dir(), kind.is_file());
        let shown = String::from_utf8_lossy(&name);
        let secret = is_file && is_secret_name(&shown);
        let unwanted = name.starts_with(b".") || is_file && is_binary(&shown);
        if !(is_folder || is_file && !self.what.folders) || unwanted && !secret {
            return None;
        }
        let path = [prefix, &name].concat();
        let is_excepted = |it: &String| is_folder && it.as_bytes() == path;
        if self.what.except.iter().any(is_excepted)
            || self.rules.ignore(Path::new(OsStr::from_bytes(&path)), is_folder)
        {
            return None;
        }
        let kind = if path.len() > MAX_PATH_BYTES {
            EntryKind::Skipped(SkipReason::TooDeep)
        } else if secret && !self.what.include_secrets {
            EntryKind::Skipped(SkipReason::Secret)
        } else if std::str::from_utf8(&name).is_err() {
            EntryKind::Skipped(SkipReason::Name)
        } else if is_folder {
            EntryKind::Folder
        } else if !self.is_wanted(&shown) {
            return None;
        } else {
            self.file(folder, &name)?
        };
        Some(WalkEntry { name, kind })
    }

    /// Whether a file with this name can be in one of the requested languages.
    fn is_wanted(&self, name: &str) -> bool {
        let wanted = &self.what.languages;
        wanted.is_empty()
            || Language::of_name(name).iter().any(|it| wanted.iter().any(|name| name == it.name()))
    }

    fn file(&self, folder: &Dir, name: &[u8]) -> Option<EntryKind> {
        let seen = statat(folder.fd().ok()?, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW);
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => return why_not(&error.into()).map(EntryKind::Skipped),
        };
        // It may have been replaced since the folder was read.
        if !FileType::from_raw_mode(seen.st_mode).is_file() {
            return None;
        }
        let size = u64::try_from(seen.st_size).unwrap_or(0);
        if size > self.what.largest_file {
            return Some(EntryKind::Skipped(SkipReason::TooLarge(size)));
        }
        let seconds = seen.st_mtime;
        let nanoseconds = i64::try_from(seen.st_mtime_nsec).unwrap_or(0);
        // Same as `modified`: times before 1970 become 0.
        let modified =
            seconds.checked_mul(1_000_000_000).and_then(|it| it.checked_add(nanoseconds));
        Some(EntryKind::File { size, modified: modified.unwrap_or(0).max(0) })
    }
}

enum Entered {
    Open,
    Store,
    Repository,
    TooMany,
}

type Names = Vec<(Box<[u8]>, FileType)>;

/// All entries of a folder; `None` if there are too many.
fn all_names(folder: &mut Dir) -> io::Result<Option<Names>> {
    let mut names = Names::new();
    for entry in folder {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if names.len() == MAX_ENTRIES {
            return Ok(None);
        }
        names.push((name.into(), entry.file_type()));
    }
    Ok(Some(names))
}

/// The relevant entries of a folder that only leads to the requested part.
fn names_on_the_way(folder: &Dir, next: &str) -> io::Result<Names> {
    let rules = RuleKind::FILES.map(|(_, file)| file.split('/').next().unwrap_or(file));
    let names = rules.into_iter().chain(STORE_FILES).chain([next]);
    Ok(names
        .filter_map(|name| Some((name.as_bytes().into(), kind_of(folder, name.as_bytes())?)))
        .collect())
}

fn kind_of(folder: &Dir, name: &[u8]) -> Option<FileType> {
    let seen = statat(folder.fd().ok()?, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW);
    Some(FileType::from_raw_mode(seen.ok()?.st_mode))
}

/// Files by which a store's folder is recognised.
const STORE_FILES: [&str; 6] =
    ["truth.sqlite", "seal", "segments", "lock", "quarantine", "truth.sqlite.salvaged"];

/// Whether a folder with these names in it is a store.
fn is_store(names: &Names) -> bool {
    super::looks_like_store(|wanted| names.iter().any(|(name, _)| **name == *wanted.as_bytes()))
}

/// The reason to report for an entry that cannot be read; `None` if it no longer exists.
fn why_not(error: &io::Error) -> Option<SkipReason> {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        // Entries that were just removed or replaced by a link are ignored.
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
        Some(Errno::NAMETOOLONG) => Some(SkipReason::TooDeep),
        _ => Some(SkipReason::Unreadable(error.to_string())),
    }
}
