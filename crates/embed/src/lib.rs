//! The embedded static model: from text to vectors.
//!
//! The model is a table of word pieces with a row of numbers each, part of the program's
//! own file and looked up in place: nothing is read, unpacked or made at start. A text's
//! vector is the sum of its pieces' rows, made unit. The same text has the same vector,
//! to the bit, on every machine.
//!
//! Any text will do: time is linear in at most a mebibyte of it, memory is a few
//! kilobytes on the stack. `model/README.md` says where the numbers come from.

mod chunk;
mod likeness;
mod model;
mod pieces;
mod sum;
mod table;
mod words;

use isolate_types::InWorker;

pub use chunk::{ChunkWeights, PathVector};
pub use likeness::Likeness;
pub use model::DIMENSION;
pub use sum::Vector;

use pieces::{Budget, each_piece};
use sum::Sum;

/// The model's name.
pub const MODEL_ID: &str = "static-code-256";

/// SHA-256 of the model's file. The build has checked it.
pub const CHECKSUM: &str = table::CHECKSUM;

/// What a collection stores as its model: the name and the beginning of the checksum. It
/// stands for the default [`ChunkWeights`], too: other weights make other vectors of code.
/// Needs no model, so that fronts can ask for it.
pub fn model_name() -> &'static str {
    const NAME: &str = "static-code-256@ed6bbd2da213da9f";
    NAME
}

/// The model, ready for use. Costs nothing to have or to copy.
#[derive(Debug, Clone, Copy)]
pub struct Model {
    _token: InWorker,
}

impl Model {
    /// The model in the program. No input or output, nothing is copied.
    pub fn embedded(token: InWorker) -> Self {
        Self { _token: token }
    }

    /// The rows of a text's pieces, in order.
    pub fn pieces(&self, text: &str) -> Vec<u32> {
        let mut rows = Vec::new();
        each_piece(text, &mut Budget::default(), |row| rows.push(u32::from(row)));
        rows
    }

    /// The vector of a text, unless nothing in it has a meaning.
    pub fn embed(&self, text: &str) -> Option<Vector> {
        let mut vector = [0.0; DIMENSION];
        self.embed_into(text, &mut vector).then_some(vector)
    }

    /// The same, written over `vector`. False if there is none; `vector` is zero then.
    pub fn embed_into(&self, text: &str, vector: &mut Vector) -> bool {
        self.embed_all_into(std::iter::once(text), vector)
    }

    /// The vector of several texts as if they were words of one.
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
