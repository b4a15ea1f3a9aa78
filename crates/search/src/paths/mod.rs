//! Classifies files by path: tests, examples, vendored code and so on.
//!
//! Paths are relative to the indexed folder, so the names of its parents do not count.

mod conventions;
mod platforms;
mod versions;

use std::fmt;

use isolith_types::FastMap;
use serde::{Deserialize, Serialize};

use conventions::{folder_roles, name_roles};
pub(crate) use platforms::{PlatformVariant, platform_variant};
pub(crate) use versions::superseded;

/// The purpose of a file that is not ordinary source code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileRole {
    /// Tests and their fixtures.
    Test,
    /// Example code.
    Example,
    /// Benchmark code.
    Benchmark,
    /// Documentation.
    Docs,
    /// Data and configuration.
    Data,
    /// Deprecated and compatibility code.
    Compat,
    /// Third-party code copied into the project.
    Vendored,
    /// Generated code.
    Generated,
    /// A file that mainly re-exports others, such as `__init__.py`.
    Entry,
    /// A file in the folder of an older version, such as `v1beta1/` beside `v1/`. Other paths
    /// decide this, so [`file_roles`] does not know it.
    Superseded,
    /// A variant for another platform of a file that ranks higher, such as `windows/pipe.rs` after
    /// `unix/pipe.rs`. Other files decide this, so [`file_roles`] does not know it.
    Variant,
}

impl FileRole {
    /// All roles.
    pub const ALL: [Self; 11] = [
        Self::Test,
        Self::Example,
        Self::Benchmark,
        Self::Docs,
        Self::Data,
        Self::Compat,
        Self::Vendored,
        Self::Generated,
        Self::Entry,
        Self::Superseded,
        Self::Variant,
    ];

    /// The display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Test => "test file",
            Self::Example => "example",
            Self::Benchmark => "benchmark",
            Self::Docs => "document",
            Self::Data => "data file",
            Self::Compat => "legacy folder",
            Self::Vendored => "vendored",
            Self::Generated => "generated",
            Self::Entry => "entry file",
            Self::Superseded => "older version",
            Self::Variant => "platform variant",
        }
    }

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for FileRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The set of roles of a file; empty for ordinary source code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct FileRoles(u16);

impl FileRoles {
    /// Whether the set contains a role.
    pub fn contains(self, role: FileRole) -> bool {
        self.0 & role.bit() != 0
    }

    /// Adds a role.
    pub fn insert(&mut self, role: FileRole) {
        self.0 |= role.bit();
    }

    /// Adds all roles of another set.
    pub fn extend(&mut self, roles: Self) {
        self.0 |= roles.0;
    }

    /// Whether the file has no role.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The roles, in the order of [`FileRole::ALL`].
    pub fn iter(self) -> impl Iterator<Item = FileRole> {
        FileRole::ALL.into_iter().filter(move |&role| self.contains(role))
    }
}

impl FromIterator<FileRole> for FileRoles {
    fn from_iter<I: IntoIterator<Item = FileRole>>(roles: I) -> Self {
        let mut all = Self::default();
        roles.into_iter().for_each(|role| all.insert(role));
        all
    }
}

/// The roles of a file by its path, which is relative and uses slashes.
pub fn file_roles(path: &str) -> FileRoles {
    PathRoles::default().of(path)
}

/// The roles of several files. Those of their folders are found once.
#[derive(Default)]
pub(crate) struct PathRoles<'p> {
    folders: FastMap<&'p str, FileRoles>,
}

impl<'p> PathRoles<'p> {
    /// As [`file_roles`].
    pub(crate) fn of(&mut self, path: &'p str) -> FileRoles {
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut roles = name_roles(name);
        roles.extend(self.of_folders(folders));
        roles
    }

    fn of_folders(&mut self, folders: &'p str) -> FileRoles {
        if let Some(known) = self.folders.get(folders) {
            return *known;
        }
        let mut roles = FileRoles::default();
        for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
            roles.extend(folder_roles(folder));
        }
        self.folders.insert(folders, roles);
        roles
    }
}

/// The file name without its last extension; `.gitignore` has none.
pub fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests;
