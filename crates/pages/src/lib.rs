//! SQLite files with a checksum on every page.
//!
//! A VFS shim over SQLite's default one seals each page when it is written to the database file
//! and verifies it when it is read. Pages in the write-ahead log are verified with the
//! checksums that SQLite stores there but checks only during recovery. A page that does not
//! match is never passed to SQLite: the read fails, and [`take_damage`] returns the page.
//!
//! The layout is in docs/format.md. The checksum detects damage, not tampering, and cannot
//! detect that a page was replaced by an older version of itself.
//!
//! Like `rusqlite` itself, this crate relies on its callers to run SQLite in workers only.

mod checksum;
mod damage;
mod file;
mod log;
mod scan;
mod shim;

pub use checksum::{RESERVED, is_sealed, seal, unseal};
pub use damage::{DatabasePart, PageDamage, PageDamageKind, take_damage};
pub use scan::scan;
pub use shim::{Checking, is_checked, open, reserve};
