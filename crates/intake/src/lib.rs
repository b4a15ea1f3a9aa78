//! Reads files to be imported, in bounded memory: [`records`] with ready vectors, and
//! [`transcript`]s of conversations. Both split their files into lines and JSON values with
//! [`feed`].
//!
//! Nothing here starts a process, prints, or depends on the store.

#![forbid(unsafe_code)]

pub mod feed;
pub mod records;
pub mod transcript;
