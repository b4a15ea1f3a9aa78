//! The code index: roots, files, and their chunks as records of one collection.

mod chunks;
mod copy;
mod file_cache;
mod files;
mod folders;
mod graph;
mod link;
mod roots;

pub(crate) use file_cache::FileCache;
pub(crate) use link::outline;
