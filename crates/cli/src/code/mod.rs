//! The commands that deal with code: `index`, `watch`, `search`, `similar`.

mod index;
mod search;
mod show;
mod watch;

pub(crate) use index::{IndexPlan, run as index};
pub(crate) use search::{Asked, Listing, SearchPlan, run as search};
pub(crate) use watch::run as watch;
