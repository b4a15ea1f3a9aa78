use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, fchown};
use std::path::{Path, PathBuf};

use isolith_types::{Code, Failure};
use tempfile::NamedTempFile;

use crate::transfer::unwritable;

/// Larger files are refused.
const MAX_BYTES: u64 = 64 << 20;

/// An agent's configuration file, as it was when read.
pub(super) struct ConfigFile {
    path: PathBuf,
    content: Option<Content>,
}

struct Content {
    /// The path with links resolved.
    target: PathBuf,
    metadata: Metadata,
    text: String,
}

impl ConfigFile {
    /// Reads the file. If it does not exist, there is no text.
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let content = match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable(path, &error)),
            Ok(_) => Some(Content::read(path)?),
        };
        Ok(Self { path: path.to_owned(), content })
    }

    pub(super) fn text(&self) -> Option<&str> {
        self.content.as_ref().map(|content| content.text.as_str())
    }

    /// Checks that the file itself is writable. Replacing it by a rename would not check that.
    pub(super) fn check_writable(&self) -> Result<(), Failure> {
        let Some(Content { target, metadata, .. }) = &self.content else { return Ok(()) };
        let refused = |reason: &str| {
            let message = format!("cannot write {}: {reason}", self.path.display());
            Err(Failure::new(Code::ReadOnly, message))
        };
        if metadata.permissions().readonly() {
            return refused("it is read-only");
        }
        if metadata.nlink() > 1 {
            return refused("it has other hard links, which would keep the old content");
        }
        match OpenOptions::new().append(true).open(target) {
            Ok(_) => Ok(()),
            Err(error) => refused(&error.to_string()),
        }
    }

    /// Replaces the file atomically. Links to it, its mode and its owner are kept.
    pub(super) fn write(&self, text: &str) -> Result<(), Failure> {
        let failed = |error: io::Error| unwritable(&self.path, &error);
        let target = self.content.as_ref().map_or(&self.path, |content| &content.target);
        let folder = target.parent().expect("a file is in a folder");
        if self.content.is_none() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
        let aside = self.write_aside(folder, text).map_err(failed)?;
        let now = Self::read(&self.path)?;
        if now.text() == Some(text) {
            // Two agents share the file through a link.
            return Ok(());
        }
        self.check_same(&now)?;
        match &self.content {
            Some(_) => aside.persist(target),
            None => aside.persist_noclobber(target),
        }
        .map_err(|error| failed(error.error))?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    fn write_aside(&self, folder: &Path, text: &str) -> io::Result<NamedTempFile> {
        let mut aside = tempfile::Builder::new().prefix(".isolith-").tempfile_in(folder)?;
        aside.write_all(text.as_bytes())?;
        if let Some(Content { metadata, .. }) = &self.content {
            let made = aside.as_file().metadata()?;
            if (made.uid(), made.gid()) != (metadata.uid(), metadata.gid()) {
                fchown(aside.as_file(), Some(metadata.uid()), Some(metadata.gid()))?;
            }
            aside.as_file().set_permissions(metadata.permissions())?;
        }
        aside.as_file().sync_all()?;
        Ok(aside)
    }

    /// Whether the file can be deleted without leaving a dangling link.
    pub(super) fn is_deletable(&self) -> bool {
        self.path.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
    }

    /// Deletes the file, or writes `text` if it cannot be deleted.
    pub(super) fn remove_or_write(&self, text: &str) -> Result<(), Failure> {
        if !self.is_deletable() {
            return self.write(text);
        }
        self.check_same(&Self::read(&self.path)?)?;
        fs::remove_file(&self.path).map_err(|error| unwritable(&self.path, &error))
    }

    /// Fails if the file has changed since it was shown: agents write to it too.
    fn check_same(&self, now: &Self) -> Result<(), Failure> {
        if now.text() == self.text() {
            return Ok(());
        }
        let message = format!("{} has changed since it was read", self.path.display());
        Err(Failure::new(Code::Failed, message).with_hint("run the command again"))
    }
}

impl Content {
    fn read(path: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| unreadable(path, &error);
        let target = fs::canonicalize(path).map_err(failed)?;
        let metadata = target.metadata().map_err(failed)?;
        let refused = |code, reason: String| {
            Failure::new(code, format!("cannot edit {}: {reason}", path.display()))
        };
        if !metadata.is_file() {
            return Err(refused(Code::BadInput, "it is not a file".to_owned()));
        }
        let mut bytes = Vec::new();
        let file = File::open(&target).map_err(failed)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MAX_BYTES {
            let reason = format!("it is larger than {} MB", MAX_BYTES >> 20);
            return Err(refused(Code::TooLarge, reason));
        }
        let text = String::from_utf8(bytes)
            .map_err(|error| refused(Code::BadInput, format!("it is not UTF-8 ({error})")))?;
        Ok(Self { target, metadata, text })
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::new(Code::Failed, format!("cannot read {}: {error}", path.display()));
    match path.is_symlink() && error.kind() == io::ErrorKind::NotFound {
        true => failure.with_hint("it is a link to a file that does not exist"),
        false => failure,
    }
}
