//! What a file is for, by its path alone.
//!
//! People of all languages name folders and files after what they are for: tests,
//! examples, copies of other projects. The path is relative to the folder that was
//! indexed, so that nothing above it counts.

mod conventions;

use std::fmt;

use serde::{Deserialize, Serialize};

use conventions::{file_roles, folder_roles};

/// What a file is for, besides being part of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Tests, and what only tests need.
    Test,
    /// Shows how something is used.
    Example,
    /// Measures something.
    Benchmark,
    /// For people to read.
    Docs,
    /// Data and settings.
    Data,
    /// Kept for those who need the old way.
    Compat,
    /// A copy of another project.
    Vendored,
    /// Written by a program.
    Generated,
    /// Passes on names of other files, as `__init__.py` does.
    Entry,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Test,
        Self::Example,
        Self::Benchmark,
        Self::Docs,
        Self::Data,
        Self::Compat,
        Self::Vendored,
        Self::Generated,
        Self::Entry,
    ];

    /// What a file of that role is called.
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
        }
    }

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of roles. Most files of a program have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct PathRoles(u16);

impl PathRoles {
    /// Whether a role is among them.
    pub fn has(self, role: Role) -> bool {
        self.0 & role.bit() != 0
    }

    /// Adds a role.
    pub fn insert(&mut self, role: Role) {
        self.0 |= role.bit();
    }

    /// Adds all roles of another set.
    pub fn extend(&mut self, roles: Self) {
        self.0 |= roles.0;
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The roles, in the order of [`Role::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |&role| self.has(role))
    }
}

impl FromIterator<Role> for PathRoles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        let mut all = Self::default();
        roles.into_iter().for_each(|role| all.insert(role));
        all
    }
}

/// What the file at a path is for. The path is relative, with slashes.
pub fn roles(path: &str) -> PathRoles {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut roles = file_roles(name);
    for folder in folders.split('/').filter(|folder| !folder.is_empty()) {
        roles.extend(folder_roles(folder));
    }
    roles
}

/// A file's name without its last extension. What starts with a dot keeps that.
pub fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

#[cfg(test)]
mod tests;
