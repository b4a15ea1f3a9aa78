//! Files that are read into a store, in bounded memory: [`records`] with ready vectors, and
//! [`transcript`]s of conversations. Both cut their files into lines and JSON values with
//! [`feed`].
//!
//! Nothing here starts a process, prints, or knows of the store.

#![forbid(unsafe_code)]

pub mod feed;
pub mod records;
pub mod transcript;
