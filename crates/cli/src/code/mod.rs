//! The commands for code: `index`, `watch`, `search`, `similar`.

mod index;
mod merge;
mod search;
mod show;
mod watch;

pub(crate) use index::{IndexPlan, run as index};
pub(crate) use search::{Asked, Listing, SearchPlan, run as search};
pub(crate) use watch::{WatchPlan, run as watch};
