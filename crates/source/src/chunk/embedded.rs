use std::ops::Range;

use super::outline::Outline;
use crate::Language;

/// A file with code in another language in it.
pub(super) struct Embedded {
    /// The language of the code.
    pub(super) language: Language,
    /// Where the code is: whole lines where it can be, in order.
    pub(super) code: Vec<Range<usize>>,
    /// What is around the code.
    pub(super) outline: Outline,
}
