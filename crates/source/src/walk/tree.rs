//! The walk itself: one folder at a time, in the order of paths, from any place on.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use isolate_types::InWorker;
use rustix::fs::{AtFlags, Dir, FileType, OFlags, statat};

use super::ignoring::{RuleKind, Rules, RulesAbove};
use super::rules::is_binary;
use super::{FoundFile, LeftOut, Place, WalkPage, Walking, Why};
use crate::language::Language;
use crate::secrets::is_secret_name;
use isolith_folder::{Folder, open_beneath};

/// The most entries of one folder; one with more is left out, and listed.
const MOST_ENTRIES: usize = 1 << 21;

/// The longest path relative to the root: the system opens none that is longer.
const LONGEST_PATH: usize = 4_000;

/// A page ends after about so long, whatever was found.
const PAGE_TIME: Duration = Duration::from_secs(1);

/// A walk under way.
#[derive(Debug)]
pub struct Walker {
    root: Folder,
    what: Walking,
    /// The names that lead to the part that is walked through.
    way: Vec<String>,
    rules: Rules,
    /// The folders that the walk is in, the innermost last.
    open: Vec<Opened>,
    place: Place,
    /// Told with the next page.
    left_out: Vec<LeftOut>,
}

/// A folder that the walk is in.
#[derive(Debug)]
struct Opened {
    /// Its path, with a slash at the end unless it is the root.
    prefix: Vec<u8>,
    /// What is still to be visited, the first last.
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    name: Box<[u8]>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Folder,
    File { size: u64, modified: i64 },
    LeftOut(Why),
}

impl Entry {
    /// What orders it: everything in a folder begins with its name and a slash.
    fn key(&self) -> impl Iterator<Item = u8> + '_ {
        let slash = matches!(self.kind, Kind::Folder).then_some(b'/');
        self.name.iter().copied().chain(slash)
    }
}

/// Why there is no walk.
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
    /// Begins a walk through `root` as `what` says, after a place that an earlier one came
    /// to. `above` are the rules of the folders above.
    ///
    /// # Errors
    /// If the root cannot be read or is a store.
    pub fn begin(
        root: Folder,
        what: Walking,
        above: &[RulesAbove],
        after: Option<Place>,
        _token: InWorker,
    ) -> Result<Self, WalkError> {
        let (rules, problems) = Rules::above(above);
        let problem = |(path, why)| LeftOut { path, why };
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
            Entered::TooMany => return Err(io::Error::other("it has too many entries").into()),
        }
        if walker.place != Place::default() {
            // An earlier walk has told it.
            walker.left_out.clear();
        }
        Ok(walker)
    }

    /// Where the walk is: another one can go on from there.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What it was begun with.
    pub fn what(&self) -> &Walking {
        &self.what
    }

    /// The next files, or folders, up to about this many. `next` is empty on the last page,
    /// and also if `cancelled` says that nobody waits.
    pub fn page(&mut self, limit: usize, cancelled: &dyn Fn() -> bool) -> WalkPage {
        let until = Instant::now() + PAGE_TIME;
        let mut page =
            WalkPage { left_out: std::mem::take(&mut self.left_out), ..WalkPage::default() };
        // The root is a folder of its own walk.
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
            let is_folder = matches!(entry.kind, Kind::Folder);
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

    /// Takes note of an entry; goes into a folder. One that an earlier walk has been in
    /// already is not new.
    fn visit(&mut self, path: Vec<u8>, kind: Kind, is_new: bool, page: &mut WalkPage) {
        if is_new {
            self.place.0.clone_from(&path);
        }
        let shown = String::from_utf8_lossy(&path).into_owned();
        match kind {
            Kind::File { size, modified } => {
                page.files.push(FoundFile { path: shown, size, modified });
            }
            Kind::LeftOut(why) => page.left_out.push(LeftOut { path: shown, why }),
            Kind::Folder => {
                let shown = shown.trim_end_matches('/').to_owned();
                let why = match self.enter(path) {
                    Ok(Entered::Open) => {
                        if self.what.folders && is_new {
                            page.folders.push(shown.clone());
                        }
                        None
                    }
                    Ok(Entered::Store) => Some(Why::Store),
                    Ok(Entered::TooMany) => Some(Why::TooMany(MOST_ENTRIES as u64)),
                    Err(error) => why_not(&error),
                };
                match is_new {
                    true => page.left_out.append(&mut self.left_out),
                    false => self.left_out.clear(),
                }
                page.left_out.extend(why.map(|why| LeftOut { path: shown, why }));
            }
        }
    }

    /// Opens a folder and reads what is in it.
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
        let found = |(_, file): &(RuleKind, &str)| {
            let first = file.split('/').next().unwrap_or(file);
            names.iter().any(|(name, _)| **name == *first.as_bytes())
        };
        let files = RuleKind::FILES.into_iter().filter(found);
        let problems = self.rules.enter(&self.root, &path, files);
        for (file, why) in problems {
            let path = path.join(file).to_string_lossy().into_owned();
            self.left_out.push(LeftOut { path, why });
        }
        let only = self.way.get(self.open.len());
        let wanted = names
            .into_iter()
            .filter(|(name, _)| only.is_none_or(|only| **name == *only.as_bytes()));
        let mut entries: Vec<Entry> =
            wanted.filter_map(|(name, kind)| self.entry(&folder, &prefix, name, kind)).collect();
        entries.sort_unstable_by(|a, b| b.key().cmp(a.key()));
        self.open.push(Opened { prefix, entries });
        Ok(Entered::Open)
    }

    /// What is to be done with an entry of a folder; nothing if it is left out in silence.
    fn entry(&self, folder: &Dir, prefix: &[u8], name: Box<[u8]>, kind: FileType) -> Option<Entry> {
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
        let kind = if path.len() > LONGEST_PATH {
            Kind::LeftOut(Why::TooDeep)
        } else if secret && !self.what.include_secrets {
            Kind::LeftOut(Why::Secret)
        } else if std::str::from_utf8(&name).is_err() {
            Kind::LeftOut(Why::Name)
        } else if is_folder {
            Kind::Folder
        } else if !self.is_wanted(&shown) {
            return None;
        } else {
            self.file(folder, &name)?
        };
        Some(Entry { name, kind })
    }

    /// Whether files with this name can be in a language that is asked for.
    fn is_wanted(&self, name: &str) -> bool {
        let wanted = &self.what.languages;
        wanted.is_empty()
            || Language::of_name(name).iter().any(|it| wanted.iter().any(|name| name == it.name()))
    }

    fn file(&self, folder: &Dir, name: &[u8]) -> Option<Kind> {
        let seen = statat(folder.fd().ok()?, OsStr::from_bytes(name), AtFlags::SYMLINK_NOFOLLOW);
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => return why_not(&error.into()).map(Kind::LeftOut),
        };
        // It may have become something else since the folder was read.
        if !FileType::from_raw_mode(seen.st_mode).is_file() {
            return None;
        }
        let size = u64::try_from(seen.st_size).unwrap_or(0);
        if size > self.what.largest_file {
            return Some(Kind::LeftOut(Why::TooLarge(size)));
        }
        let seconds = seen.st_mtime;
        let nanoseconds = i64::try_from(seen.st_mtime_nsec).unwrap_or(0);
        // As `modified` has it: times before 1970 are none.
        let modified =
            seconds.checked_mul(1_000_000_000).and_then(|it| it.checked_add(nanoseconds));
        Some(Kind::File { size, modified: modified.unwrap_or(0).max(0) })
    }
}

enum Entered {
    Open,
    Store,
    TooMany,
}

type Names = Vec<(Box<[u8]>, FileType)>;

/// Everything in a folder; nothing if that is too much.
fn all_names(folder: &mut Dir) -> io::Result<Option<Names>> {
    let mut names = Names::new();
    for entry in folder {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if names.len() == MOST_ENTRIES {
            return Ok(None);
        }
        names.push((name.into(), entry.file_type()));
    }
    Ok(Some(names))
}

/// Of a folder on the way to the part that is wanted, what matters there.
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

/// What a store has in its folder.
const STORE_FILES: [&str; 6] =
    ["truth.sqlite", "seal", "segments", "lock", "quarantine", "truth.sqlite.salvaged"];

/// Whether a folder with these names in it is a store.
fn is_store(names: &Names) -> bool {
    super::looks_like_store(|wanted| names.iter().any(|(name, _)| **name == *wanted.as_bytes()))
}

/// What to say of something that cannot be looked at; nothing if it went away.
fn why_not(error: &io::Error) -> Option<Why> {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        // What went away in this moment, or became a link, is not there.
        Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
        Some(Errno::NAMETOOLONG) => Some(Why::TooDeep),
        _ => Some(Why::Unreadable(error.to_string())),
    }
}
