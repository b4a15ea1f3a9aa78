//! SQLite files whose every page carries a checksum.
//!
//! A VFS shim over SQLite's default one seals each page as it is written to the database
//! file and verifies it as it is read. Pages in the write-ahead log are verified with the
//! checksums that SQLite keeps in the log anyway but compares during recovery only. A page
//! that does not match is never handed to SQLite: the read fails, and [`take_damage`]
//! says which page it was.
//!
//! docs/format.md has the layout. The checksum finds damage, not tampering, and a page
//! that was replaced by an older version of itself has a checksum that matches.
//!
//! Like `rusqlite` itself, this crate leaves it to its callers that SQLite runs in workers
//! only.

mod checksum;
mod damage;
mod file;
mod log;
mod scan;
mod shim;

pub use checksum::{RESERVED, is_sealed, seal, unseal};
pub use damage::{Damage, Fault, Part, take_damage};
pub use scan::scan;
pub use shim::{Checking, is_checked, open, reserve};
