//! The embedded static model: from text to vectors.
//!
//! The model is a table of word pieces with one row of numbers each. It is part of the
//! executable and used in place: nothing is read, unpacked or computed at startup. A text's
//! vector is the normalised sum of its pieces' rows. The same text has bit-identical vectors on
//! every machine.
//!
//! Any text is accepted: time is linear in the text, of which at most a mebibyte is read;
//! memory is a few kilobytes on the stack. `model/README.md` says where the numbers come from.

mod chunk;
mod likeness;
mod model;
mod pieces;
mod sum;
mod table;
mod tokenize;

use isolate_types::InWorker;

pub use chunk::{ChunkWeights, PathVector};
pub use likeness::Likeness;
pub use model::DIMENSION;
pub use sum::Vector;

use pieces::{Budget, each_piece};
use sum::Sum;

/// The model's name.
pub const MODEL_ID: &str = "static-code-256";

/// SHA-256 of the model's file, verified by the build.
pub const CHECKSUM: &str = table::CHECKSUM;

/// The name that a collection stores as its model: ID and start of the checksum. It also
/// implies the default [`ChunkWeights`], because other weights give other vectors of code. Does
/// not need the model, so fronts can call it.
pub fn model_name() -> &'static str {
    const NAME: &str = "static-code-256@ed6bbd2da213da9f";
    NAME
}

/// The model, ready to use. Free to create and copy.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    _token: InWorker,
}

impl Model {
    /// The model embedded in the executable. Reads and copies nothing.
    pub fn embedded(token: InWorker) -> Self {
        Self { _token: token }
    }

    /// The rows of a text's pieces, in order.
    pub fn pieces(&self, text: &str) -> Vec<u32> {
        let mut rows = Vec::new();
        each_piece(text, &mut Budget::default(), |row| rows.push(u32::from(row)));
        rows
    }

    /// The vector of a text; `None` if no piece of it has a meaning.
    pub fn embed(&self, text: &str) -> Option<Vector> {
        let mut vector = [0.0; DIMENSION];
        self.embed_into(text, &mut vector).then_some(vector)
    }

    /// Writes the vector of a text to `vector`. Returns false, and zeroes `vector`, if there is
    /// none.
    pub fn embed_into(&self, text: &str, vector: &mut Vector) -> bool {
        self.embed_all_into(std::iter::once(text), vector)
    }

    /// Embeds several texts as if they were one.
    fn embed_all_into<'t>(
        &self,
        texts: impl IntoIterator<Item = &'t str>,
        vector: &mut Vector,
    ) -> bool {
        let mut sum = Sum::in_place(vector);
        let mut budget = Budget::default();
        for text in texts {
            each_piece(text, &mut budget, |row| sum.add(row));
            if budget.is_spent() {
                break;
            }
        }
        sum.finish()
    }
}

#[cfg(test)]
mod tests;
