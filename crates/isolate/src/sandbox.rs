use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a role may access. The sandbox takes effect before `warm_up`, permanently, and also
/// applies to everything the worker starts. Descriptors that are already open, such as the
/// socket to the front, stay usable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// The files it may access.
    pub files: Files,
    /// Whether it may create sockets, to the network or to other processes.
    pub sockets: bool,
    /// Whether it may make system calls that ordinary roles never need: inspecting, controlling
    /// or signalling other processes, changing permissions or owners of files, starting
    /// programs, changing the system. It can always signal itself and its own process group.
    /// Without these calls, files are created with at most their mode (the umask is 077).
    pub system_calls: bool,
}

/// The files that a role may access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Files {
    /// Everything that the user may access.
    All,
    /// Only these folders with everything below them, or these files; if both lists are empty,
    /// no file at all. Nothing can be executed.
    Below {
        /// Read-only.
        read: Vec<PathBuf>,
        /// Readable and writable.
        write: Vec<PathBuf>,
    },
    /// Only one folder with everything below it, readable and writable, and a few more files.
    /// Nothing can be executed, and no link, device, pipe or socket can be created.
    ///
    /// The rules apply to the folder that is at the path when the worker starts, opened without
    /// following links. If another folder replaces it, the worker cannot access that one: see
    /// [`Context::folder_replaced`](crate::Context::folder_replaced).
    Folder {
        /// The folder. If it is missing, the worker starts without it.
        path: PathBuf,
        /// Whether to create the folder, accessible to this user only, if it is missing.
        create: bool,
        /// Other files that may be read. Those that do not exist are ignored.
        read: Vec<PathBuf>,
    },
}

impl Sandbox {
    /// No restriction.
    pub fn open() -> Self {
        Self { files: Files::All, sockets: true, system_calls: true }
    }

    /// No files, no sockets, no unusual system calls: for roles that only compute.
    pub fn sealed() -> Self {
        Self::read_only([])
    }

    /// Read and write access below `path`, read access to the files in `read`; no sockets and
    /// no unusual system calls. See [`Files::Folder`].
    pub fn folder(path: PathBuf, create: bool, read: impl IntoIterator<Item = PathBuf>) -> Self {
        let read = read.into_iter().collect();
        Self { files: Files::Folder { path, create, read }, ..Self::sealed() }
    }

    /// Read access to these folders or files; no sockets and no unusual system calls.
    pub fn read_only(roots: impl IntoIterator<Item = PathBuf>) -> Self {
        let read = roots.into_iter().collect();
        let files = Files::Below { read, write: Vec::new() };
        Self { files, sockets: false, system_calls: false }
    }
}

/// How far a worker's sandbox is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The restriction on files.
    pub files: Enforcement,
    /// The restriction on sockets.
    pub sockets: Enforcement,
    /// The restriction on system calls.
    #[serde(default)]
    pub system_calls: Enforcement,
}

/// Whether a restriction is enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// The role did not request it.
    #[default]
    NotAsked,
    /// It is enforced.
    Enforced,
    /// This kernel enforces only part of it.
    Partial,
    /// This kernel does not support it.
    NotAvailable,
}

impl Confinement {
    /// Whether a requested restriction is not fully enforced.
    pub(crate) fn is_incomplete(&self) -> bool {
        let lacking = [Enforcement::Partial, Enforcement::NotAvailable];
        [self.files, self.sockets, self.system_calls].iter().any(|it| lacking.contains(it))
    }
}
