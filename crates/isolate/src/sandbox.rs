use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a role may touch. It is put in force before `warm_up`, for good, and for
/// everything that the worker starts. Descriptors that are open already, such as
/// the socket to the front, stay usable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// Which files.
    pub files: Files,
    /// Whether it may make sockets, to the network or to other processes.
    pub sockets: bool,
    /// Whether it may make system calls that a role with plain work never needs: to
    /// look into, steer or signal other processes, to change permissions or owners of
    /// files, to start programs, to change the system. It can signal itself and its own
    /// process group in any case. Without them, files are created with their mode or
    /// with less (the umask is 077).
    pub system_calls: bool,
}

/// The files that a role may touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Files {
    /// All that the user may.
    All,
    /// Only what is below these folders (or these files themselves); with none, no
    /// file at all. Nothing can be executed.
    Below {
        /// To be read.
        read: Vec<PathBuf>,
        /// To be read and written.
        write: Vec<PathBuf>,
    },
    /// Only what is below one folder, to be read and written, and a few files besides.
    /// Nothing can be executed, and no link, device, pipe or socket can be created.
    ///
    /// The rules are for the folder that is at the path when the worker starts, opened
    /// without following a link there. If another one takes its place, the worker
    /// cannot reach it: see [`Context::folder_replaced`](crate::Context::folder_replaced).
    Folder {
        /// The folder. If it is missing, the worker starts without it.
        path: PathBuf,
        /// Whether to create the folder, for this user alone, if it is missing.
        create: bool,
        /// Other files that may be read. Those that do not exist are left out.
        read: Vec<PathBuf>,
    },
}

impl Sandbox {
    /// No restriction.
    pub fn open() -> Self {
        Self { files: Files::All, sockets: true, system_calls: true }
    }

    /// No files, no sockets, no unusual system calls: for roles that turn bytes into bytes.
    pub fn sealed() -> Self {
        Self::read_only([])
    }

    /// Only what is below `path`, and the files in `read`; no sockets
    /// and no unusual system calls. See [`Files::Folder`].
    pub fn folder(path: PathBuf, create: bool, read: impl IntoIterator<Item = PathBuf>) -> Self {
        let read = read.into_iter().collect();
        Self { files: Files::Folder { path, create, read }, ..Self::sealed() }
    }

    /// Only these folders or files, to be read; no sockets and no unusual system calls.
    pub fn read_only(roots: impl IntoIterator<Item = PathBuf>) -> Self {
        let read = roots.into_iter().collect();
        let files = Files::Below { read, write: Vec::new() };
        Self { files, sockets: false, system_calls: false }
    }
}

/// How far a worker's sandbox is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The restriction of files.
    pub files: Enforcement,
    /// The restriction of sockets.
    pub sockets: Enforcement,
    /// The restriction of system calls.
    #[serde(default)]
    pub system_calls: Enforcement,
}

/// Whether a restriction is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// The role did not ask for it.
    #[default]
    NotAsked,
    /// It is in force.
    Enforced,
    /// This kernel enforces only part of it.
    Partial,
    /// This kernel has no means for it.
    NotAvailable,
}

impl Confinement {
    /// Whether something that was asked for is missing.
    pub(crate) fn is_lacking(&self) -> bool {
        let lacking = [Enforcement::Partial, Enforcement::NotAvailable];
        [self.files, self.sockets, self.system_calls].iter().any(|it| lacking.contains(it))
    }
}
