//! The commands for code: `index`, `watch`, `search`, `similar`.

mod index;
mod matches;
mod merge;
mod search;
mod show;
mod watch;

pub(crate) use index::{IndexCommand, run as index};
pub(crate) use matches::MatchPlan;
pub(crate) use search::{Listing, SearchInput, SearchPlan, run as search};
pub(crate) use watch::{WatchPlan, run as watch};
