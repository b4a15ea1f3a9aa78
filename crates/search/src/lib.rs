//! From a question and candidates to ranked hits.
//!
//! The store finds chunks by keywords and by vectors; here they become an order that
//! people find right. Files are ranked, each by what all its chunks say together, by its
//! name and by what it defines; of each the best chunk is shown, with the reasons.
//!
//! Everything is pure: values in, values out, no input or output, the same answer to the
//! same question. [`Weights`] holds every constant, so that an evaluation can change one
//! or switch a signal off. Finding candidates, and the scores they come with, is not
//! done here.

mod memory;
pub mod paths;
mod phrase;
mod question;
mod rank;
mod weights;
mod why;
mod words;

pub use memory::{DrawerCandidate, MemoryWeights, RankedDrawer, rank_drawers};
pub use paths::{PathRoles, Role, roles};
pub use phrase::Phrase;
pub use question::Question;
pub use rank::{Candidate, Definition, FileFacts, Ranked, rank};
pub use weights::{Mode, Weights};
pub use why::{Defined, Penalty, Why};
