//! The code index: roots, files, and their chunks as records of one collection.

mod chunks;
mod files;
mod folders;
mod graph;
mod known;
mod link;
mod roots;

pub(super) use files::{
    Move, Vectors, clear_files, git_facts, move_file, put_files, remove_files, touch_files,
};
pub(super) use graph::link_files;
pub(crate) use known::KeptFiles;
pub(super) use roots::{add_root, finish_index, remove_root, set_model};
