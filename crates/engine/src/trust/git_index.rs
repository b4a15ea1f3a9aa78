//! Determines from git's index whether a path is tracked.
//!
//! The index is untrusted and may have any size, so it is streamed through a buffer of fixed size.
//! Git itself is never started, because a repository's configuration can run programs.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Maximum size of an index; that of a million files has about 100 MB.
const MAX_INDEX_BYTES: u64 = 1 << 29;

/// Maximum length of a path.
const MAX_PATH_BYTES: usize = 1 << 16;

/// Maximum size of a `.git` file that points to a repository.
const MAX_LINK_BYTES: u64 = 1 << 13;

/// Lengths of object ids: SHA-1, SHA-256. The index does not tell which it uses.
const HASH_LENGTHS: [usize; 2] = [20, 32];

/// The repository that tracks `folder` itself or anything in it. The path must be canonical.
///
/// # Errors
/// The path of an index that cannot be read, and why.
pub(super) fn tracking_repository(folder: &Path) -> Result<Option<PathBuf>, (PathBuf, io::Error)> {
    for work_tree in folder.ancestors() {
        let Some(repository) = repository_at(work_tree) else { continue };
        let path = folder.strip_prefix(work_tree).unwrap_or(folder).as_os_str().as_bytes();
        let index = repository.join("index");
        match lists(&index, path) {
            Ok(true) => return Ok(Some(work_tree.to_owned())),
            Ok(false) => {}
            Err(error) => return Err((index, error)),
        }
    }
    Ok(None)
}

/// The repository of a work tree: its folder `.git`, or the target of a `.git` file, as in
/// submodules and linked worktrees.
fn repository_at(work_tree: &Path) -> Option<PathBuf> {
    let git = work_tree.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let mut text = Vec::new();
    open(&git).ok()?.take(MAX_LINK_BYTES).read_to_end(&mut text).ok()?;
    let target = text.strip_prefix(b"gitdir:")?.trim_ascii();
    Some(work_tree.join(std::ffi::OsStr::from_bytes(target)))
}

/// Whether an index, or its shared index, lists `path` or anything below it.
fn lists(index: &Path, path: &[u8]) -> io::Result<bool> {
    let mut outcome = Err(malformed());
    for hash in HASH_LENGTHS {
        outcome = lists_with(index, path, hash);
        match &outcome {
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(_) => {}
        }
    }
    outcome
}

fn lists_with(index: &Path, path: &[u8], hash: usize) -> io::Result<bool> {
    let IndexLookup { found, shared } = scan(index, path, hash)?;
    let Some(name) = shared.filter(|_| !found) else { return Ok(found) };
    // Entries of the shared index that the split index deletes count as tracked, too.
    let shared = index.with_file_name(format!("sharedindex.{name}"));
    match scan(&shared, path, hash) {
        Err(error) if error.kind() == ErrorKind::NotFound => Err(malformed()),
        listed => Ok(listed?.found),
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct IndexLookup {
    found: bool,
    /// The hash of the shared index, if this one is split.
    shared: Option<String>,
}

fn scan(index: &Path, path: &[u8], hash: usize) -> io::Result<IndexLookup> {
    let file = open(index)?;
    let length = file.metadata()?.len();
    if length > MAX_INDEX_BYTES {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is too large"));
    }
    // The file ends with its hash.
    let content = length.checked_sub(hash as u64).ok_or_else(malformed)?;
    let input = BufReader::new(file).take(content);
    IndexScan { input, hash, name: Vec::new() }.run(path)
}

/// Opens a regular file, without blocking if it is a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(ErrorKind::InvalidData, "it is not a regular file")),
    }
}

struct IndexScan<R> {
    input: R,
    /// The length of object ids.
    hash: usize,
    /// The path of the previous entry.
    name: Vec<u8>,
}

impl<R: BufRead> IndexScan<R> {
    fn run(mut self, path: &[u8]) -> io::Result<IndexLookup> {
        let header = self.take::<12>()?;
        let version = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let count = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        if !header.starts_with(b"DIRC") || !(2..=4).contains(&version) {
            return Err(malformed());
        }
        for _ in 0..count {
            self.entry(version)?;
            if covers(path, &self.name) {
                return Ok(IndexLookup { found: true, shared: None });
            }
        }
        Ok(IndexLookup { found: false, shared: self.shared_index()? })
    }

    /// Reads the next entry: 40 bytes of file metadata, the object id, flags, the path.
    fn entry(&mut self, version: u32) -> io::Result<()> {
        const EXTENDED: u16 = 0x4000;
        const LONG: usize = 0xFFF;
        self.skip(40 + self.hash as u64)?;
        let flags = u16::from_be_bytes(self.take()?);
        let extended = flags & EXTENDED != 0 && version >= 3;
        if extended {
            self.skip(2)?;
        }
        // In version 4, a path shares a prefix with the previous one.
        let shared = if version == 4 {
            let cut = self.varint()?;
            self.name.len().checked_sub(cut).ok_or_else(malformed)?
        } else {
            0
        };
        self.name.truncate(shared);
        let added = self.rest_of_name()?;
        let length = usize::from(flags) & LONG;
        if length != self.name.len().min(LONG) {
            return Err(malformed());
        }
        if version < 4 {
            // Entries are padded with zeros to a multiple of 8; one was read.
            let length = 40 + self.hash + 2 + 2 * usize::from(extended) + added;
            self.skip((7 - length % 8) as u64)?;
        }
        Ok(())
    }

    /// Reads up to the zero that ends a path. Returns the number of bytes.
    fn rest_of_name(&mut self) -> io::Result<usize> {
        let before = self.name.len();
        let mut limited = (&mut self.input).take((MAX_PATH_BYTES + 1) as u64);
        limited.read_until(0, &mut self.name)?;
        match self.name.pop() {
            Some(0) if self.name.len() <= MAX_PATH_BYTES => Ok(self.name.len() - before),
            _ => Err(malformed()),
        }
    }

    /// Reads the extensions after the entries; `link` names a shared index.
    fn shared_index(&mut self) -> io::Result<Option<String>> {
        while !self.input.fill_buf()?.is_empty() {
            let [a, b, c, d, size @ ..] = self.take::<8>()?;
            if [a, b, c, d] != *b"link" {
                self.skip(u64::from(u32::from_be_bytes(size)))?;
                continue;
            }
            let mut name = vec![0; self.hash];
            self.input.read_exact(&mut name)?;
            let hex = name.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            // All zeros mean that there is no shared index.
            return Ok(Some(hex).filter(|hex| hex.bytes().any(|digit| digit != b'0')));
        }
        Ok(None)
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn skip(&mut self, bytes: u64) -> io::Result<()> {
        let skipped = io::copy(&mut (&mut self.input).take(bytes), &mut io::sink())?;
        if skipped == bytes { Ok(()) } else { Err(malformed()) }
    }

    /// Reads git's offset encoding: seven bits per byte, the highest first, each group but the last
    /// less one.
    fn varint(&mut self) -> io::Result<usize> {
        let [byte] = self.take::<1>()?;
        let mut value = usize::from(byte & 0x7F);
        let mut more = byte & 0x80 != 0;
        while more {
            let [byte] = self.take::<1>()?;
            value = ((value + 1) << 7) | usize::from(byte & 0x7F);
            if value > MAX_PATH_BYTES {
                return Err(malformed());
            }
            more = byte & 0x80 != 0;
        }
        Ok(value)
    }
}

/// Whether `name` is `path` or lies below it, ignoring case as some file systems do.
fn covers(path: &[u8], name: &[u8]) -> bool {
    if path.is_empty() {
        return !name.is_empty();
    }
    let Some(start) = name.get(..path.len()) else { return false };
    start.eq_ignore_ascii_case(path) && name.get(path.len()).is_none_or(|next| *next == b'/')
}

fn malformed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "it is not a git index of a known version")
}

#[cfg(test)]
mod tests;
