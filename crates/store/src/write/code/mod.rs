//! The code index: roots, files, and their chunks as records of one collection.

mod chunks;
mod files;
mod folders;
mod graph;
mod known;
mod link;
mod roots;

pub(crate) use known::KeptFiles;
