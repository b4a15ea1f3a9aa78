use gix_hash::{ObjectId, oid};
use gix_object::tree::{EntryKind, EntryRef};

use crate::clock::{Clock, TimeUp};
use crate::objects::Objects;
use crate::{MAX_DEPTH, MAX_FILES, MAX_PATH_BYTES};

/// The files of the newest commit below a folder, numbered in the order of git's trees, so that
/// the files below any folder have consecutive numbers.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    files: Vec<File>,
    folders: Vec<TreeFolder>,
    path_bytes: usize,
    /// The number of folders that could not be read.
    pub(crate) gaps: u64,
}

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) folder: usize,
    pub(crate) name: Box<str>,
    pub(crate) id: ObjectId,
    pub(crate) kind: EntryKind,
}

#[derive(Debug)]
pub(crate) struct TreeFolder {
    pub(crate) name: Box<str>,
    /// Its path in answers, with a trailing slash unless it is empty.
    path: String,
    /// One more than the number of its last file.
    pub(crate) end: u32,
    folders: Vec<usize>,
}

/// Why there is no listing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NoListing {
    TimeUp,
    TooLarge,
    Unreadable,
}

impl From<TimeUp> for NoListing {
    fn from(_: TimeUp) -> Self {
        Self::TimeUp
    }
}

/// The index of the top folder.
pub(crate) const ROOT: usize = 0;

impl Listing {
    /// Lists a tree below the folder `below`.
    pub(crate) fn of(
        objects: &Objects<'_>,
        tree: &oid,
        below: &[&str],
        clock: &Clock<'_>,
    ) -> Result<Self, NoListing> {
        let mut listing = Self::default();
        listing.begin_folder("", String::new());
        match listing.fill(objects, ROOT, tree, below, MAX_DEPTH, clock)? {
            true => Ok(listing),
            false => Err(NoListing::Unreadable),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn file(&self, number: u32) -> &File {
        &self.files[number as usize]
    }

    /// The path of a file, relative to the requested folder.
    pub(crate) fn path(&self, number: u32) -> String {
        let file = self.file(number);
        format!("{}{}", self.folders[file.folder].path, file.name)
    }

    /// The subfolder of `folder` that contains a file, directly or indirectly.
    pub(crate) fn folder_with(&self, folder: usize, file: u32) -> Option<(usize, &TreeFolder)> {
        let inside = &self.folders[folder].folders;
        let place = inside.partition_point(|number| self.folders[*number].end <= file);
        inside.get(place).map(|number| (*number, &self.folders[*number]))
    }

    /// Adds the entries of a tree; false if it cannot be read.
    fn fill(
        &mut self,
        objects: &Objects<'_>,
        folder: usize,
        tree: &oid,
        below: &[&str],
        depth: usize,
        clock: &Clock<'_>,
    ) -> Result<bool, NoListing> {
        clock.check()?;
        let mut buffer = Vec::new();
        let Some(entries) = objects.tree(tree, &mut buffer) else { return Ok(false) };
        for entry in entries {
            let Ok(entry) = entry else { return Ok(false) };
            let Some(name) = usable_name(&entry) else { continue };
            let (wanted, rest) =
                below.split_first().map_or((name, below), |(it, rest)| (*it, rest));
            if name != wanted {
                continue;
            }
            match entry.mode.kind() {
                EntryKind::Tree if depth > 0 => {
                    let path = match below {
                        [] => format!("{}{name}/", self.folders[folder].path),
                        _ => String::new(),
                    };
                    let inner = self.begin_folder(name, path);
                    if !self.fill(objects, inner, entry.oid, rest, depth - 1, clock)? {
                        self.gaps += 1;
                    }
                    self.end_folder(folder, inner);
                }
                EntryKind::Blob | EntryKind::BlobExecutable | EntryKind::Link
                    if below.is_empty() =>
                {
                    self.add_file(folder, name, &entry)?;
                }
                // Submodules have their own history.
                _ => {}
            }
        }
        Ok(true)
    }

    fn begin_folder(&mut self, name: &str, path: String) -> usize {
        self.folders.push(TreeFolder { name: name.into(), path, end: 0, folders: Vec::new() });
        self.folders.len() - 1
    }

    /// Drops a folder that has no file below it.
    fn end_folder(&mut self, outer: usize, inner: usize) {
        let end = self.files.len() as u32;
        if self.files.last().is_some_and(|file| file.folder >= inner) {
            self.folders[inner].end = end;
            self.folders[outer].folders.push(inner);
        } else {
            self.folders.truncate(inner);
        }
    }

    fn add_file(
        &mut self,
        folder: usize,
        name: &str,
        entry: &EntryRef<'_>,
    ) -> Result<(), NoListing> {
        self.path_bytes += self.folders[folder].path.len() + name.len();
        if self.files.len() >= MAX_FILES || self.path_bytes > MAX_PATH_BYTES {
            return Err(NoListing::TooLarge);
        }
        let (id, kind) = (entry.oid.to_owned(), entry.mode.kind());
        self.files.push(File { folder, name: name.into(), id, kind });
        Ok(())
    }
}

/// The name of an entry, if it is valid in a work tree and UTF-8.
fn usable_name<'a>(entry: &EntryRef<'a>) -> Option<&'a str> {
    let name = std::str::from_utf8(entry.filename).ok()?;
    (!matches!(name, "" | "." | "..") && !name.contains('/')).then_some(name)
}
