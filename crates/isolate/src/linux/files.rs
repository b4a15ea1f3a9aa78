//! Restricts a worker's access to files with Landlock.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};

use crate::role::Refusal;
use crate::sandbox::{Enforcement, Files};

/// The newest set of rights requested; older kernels enforce those they know.
const RIGHTS: ABI = ABI::V5;

/// Restricts this thread and all it will start. A kernel without support is not an error.
///
/// Connections and signals are forbidden in the same ruleset: a second one would forbid every
/// rename between folders, because each ruleset must allow it by itself. A role with
/// unrestricted files gets none of this.
pub(super) fn restrict(
    files: &Files,
    no_connections: bool,
    no_signals: bool,
) -> Result<Landlocked, Refusal> {
    let (grants, writes, folder) = match files {
        Files::All => return Ok(Landlocked::default()),
        Files::Below { read, write } => (grants(read, write)?, !write.is_empty(), None),
        Files::Folder { path, create, read } => {
            let folder = RuledFolder::open(path, *create)?;
            (folder.grants(read)?, true, Some(folder))
        }
    };
    // The first version of Landlock denies every rename between folders, even if both are
    // writable. A role that writes could not work with it.
    if writes && !can(|rules| rules.handle_access(AccessFs::Refer)) {
        return Ok(Landlocked {
            files: Enforcement::NotAvailable,
            folder,
            ..Landlocked::default()
        });
    }
    let rules = all_files(Ruleset::default());
    let rules = if no_connections { rules.and_then(without_connections) } else { rules };
    let rules = if no_signals { rules.and_then(without_signals) } else { rules };
    let mut rules = rules.and_then(Ruleset::create).map_err(refusal)?;
    for grant in &grants {
        let rule = PathBeneath::new(grant.place.as_fd(), grant.rights);
        rules = rules.add_rule(rule).map_err(refusal)?;
    }
    let status = rules.restrict_self().map_err(refusal)?.ruleset;
    let there = status != RulesetStatus::NotEnforced;
    Ok(Landlocked {
        files: match (there, can(all_files)) {
            (true, true) => Enforcement::Enforced,
            (true, false) => Enforcement::Partial,
            (false, _) => Enforcement::NotAvailable,
        },
        connections: there && no_connections && can(without_connections),
        signals: there && no_signals && can(without_signals),
        folder,
    })
}

/// What Landlock restricts.
#[derive(Debug)]
pub(super) struct Landlocked {
    pub(super) files: Enforcement,
    /// No connections over TCP or to abstract sockets.
    pub(super) connections: bool,
    /// No signals to processes that are less restricted.
    pub(super) signals: bool,
    /// Set for [`Files::Folder`].
    pub(super) folder: Option<RuledFolder>,
}

impl Default for Landlocked {
    fn default() -> Self {
        let files = Enforcement::NotAsked;
        Self { files, connections: false, signals: false, folder: None }
    }
}

type Rules = Result<Ruleset, RulesetError>;

fn all_files(rules: Ruleset) -> Rules {
    rules.handle_access(AccessFs::from_all(RIGHTS))
}

fn without_connections(rules: Ruleset) -> Rules {
    rules.handle_access(AccessNet::from_all(ABI::V4))?.scope(Scope::AbstractUnixSocket)
}

fn without_signals(rules: Ruleset) -> Rules {
    rules.scope(Scope::Signal)
}

/// Whether this kernel enforces all of these rules.
fn can(rules: impl FnOnce(Ruleset) -> Rules) -> bool {
    rules(Ruleset::default().set_compatibility(CompatLevel::HardRequirement)).is_ok()
}

/// Whether this kernel enforces all rules about files.
#[cfg(feature = "misbehave")]
pub(crate) fn has_landlock() -> bool {
    can(all_files)
}

fn grants(read: &[PathBuf], write: &[PathBuf]) -> Result<Vec<Grant>, Refusal> {
    let roots = read.iter().map(|root| (root, reading()));
    let roots = roots.chain(write.iter().map(|root| (root, writing())));
    let grants = roots.map(|(root, rights)| {
        let granted = open(root, OFlags::empty()).and_then(|place| Grant::new(place, rights));
        granted.map_err(|error| refusal(format!("cannot open {}: {error}", root.display())))
    });
    grants.collect()
}

/// The folder of a [`Files::Folder`] sandbox, as it was when the rules were created.
#[derive(Debug)]
pub(crate) struct RuledFolder {
    path: PathBuf,
    /// Kept open, so that its inode number is not reused. `None` if the folder did not exist.
    handle: Option<OwnedFd>,
    id: Option<(u64, u64)>,
}

impl RuledFolder {
    fn open(path: &Path, create: bool) -> Result<Self, Refusal> {
        let cannot = |error: &dyn std::fmt::Display| {
            refusal(format!("cannot open the folder {}: {error}", path.display()))
        };
        let flags = OFlags::NOFOLLOW | OFlags::DIRECTORY;
        let mut opened = open(path, flags);
        if create && matches!(&opened, Err(error) if error.kind() == io::ErrorKind::NotFound) {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(|error| cannot(&error))?;
            opened = open(path, flags);
        }
        let handle = match opened {
            Ok(handle) => Some(handle),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) if is_link(path) => return Err(cannot(&"it is a symbolic link")),
            Err(error) => return Err(cannot(&error)),
        };
        let id = match &handle {
            Some(handle) => Some(id(&rustix::fs::fstat(handle).map_err(|error| cannot(&error))?)),
            None => None,
        };
        Ok(Self { path: path.to_owned(), handle, id })
    }

    /// Access to the whole folder, and to those of the files that exist.
    fn grants(&self, read: &[PathBuf]) -> Result<Vec<Grant>, Refusal> {
        let folder = self.handle.as_ref().map(|handle| (handle.try_clone(), writing()));
        let files = read.iter().filter_map(|path| open(path, OFlags::empty()).ok());
        let places = folder.into_iter().chain(files.map(|file| (Ok(file), reading())));
        places
            .map(|(place, rights)| Grant::new(place?, rights))
            .collect::<io::Result<_>>()
            .map_err(refusal)
    }

    /// Whether the path now names another folder, no folder, or one that did not exist before.
    pub(crate) fn is_replaced(&self) -> bool {
        let now = rustix::fs::statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW);
        now.ok().map(|now| id(&now)) != self.id
    }
}

fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink())
}

/// Opens a path without the right to read or write it.
fn open(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC | flags, Mode::empty())?)
}

fn reading() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::ReadDir
}

/// Files and folders only: a link, device, pipe or socket could mislead others who trust the
/// folder.
fn writing() -> BitFlags<AccessFs> {
    reading()
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::RemoveFile
        | AccessFs::RemoveDir
        | AccessFs::Refer
}

struct Grant {
    place: OwnedFd,
    rights: BitFlags<AccessFs>,
}

impl Grant {
    /// Landlock rejects rights for folders in a rule for a file.
    fn new(place: OwnedFd, rights: BitFlags<AccessFs>) -> io::Result<Self> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&place)?.st_mode);
        let rights = if kind.is_dir() { rights } else { rights & AccessFs::from_file(RIGHTS) };
        Ok(Self { place, rights })
    }
}

fn refusal(error: impl std::fmt::Display) -> Refusal {
    Refusal::new("sandbox", error.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_replaced_folder_is_detected() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("folder");
        let missing = RuledFolder::open(&path, false).unwrap();
        assert!(!missing.is_replaced());
        let first = RuledFolder::open(&path, true).unwrap();
        assert!(missing.is_replaced() && !first.is_replaced());
        fs::write(path.join("file"), "").unwrap();
        assert!(!first.is_replaced());
        fs::remove_dir_all(&path).unwrap();
        assert!(first.is_replaced());
        fs::create_dir(&path).unwrap();
        assert!(first.is_replaced(), "the inode number is not reused while the folder is open");
    }

    #[test]
    fn a_link_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("link");
        let link = |target: &str| {
            let _ = fs::remove_file(&path);
            std::os::unix::fs::symlink(target, &path).unwrap();
            RuledFolder::open(&path, true).unwrap_err().message
        };
        for target in ["/", "/nowhere/at/all"] {
            assert!(link(target).contains("symbolic link"), "{target}");
        }
    }
}
