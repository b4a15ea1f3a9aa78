//! Vectors of chunks.

use crate::sum::make_unit;
use crate::{DIMENSION, Model, Vector};

/// How much a chunk's path and the names that it defines count beside its text. This is the
/// only weight of a file's name at index time; those at query time are in `Weights` of
/// `isolith-search`. Vectors depend on it: whoever changes the default changes
/// [`model_name`](crate::model_name), too, so that stores embed their code again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkWeights {
    /// The path of its file, with its name.
    pub path: f32,
    /// The names that it defines.
    pub names: f32,
}

impl Default for ChunkWeights {
    fn default() -> Self {
        Self { path: 0.5, names: 0.5 }
    }
}

/// The vector of a file's path, which all its chunks share.
#[derive(Debug, Clone)]
pub struct PathVector(Vector);

impl Model {
    /// The vector of a path, for [`Model::embed_chunk`].
    pub fn embed_path(&self, path: &str) -> PathVector {
        let mut vector = [0.0; DIMENSION];
        self.embed_into(path, &mut vector);
        PathVector(vector)
    }

    /// The vector of a chunk: those of its text, its path and the names it defines,
    /// weighted, added and made unit. Parts without a vector are left out; there is none
    /// if all are.
    pub fn embed_chunk<'t>(
        &self,
        body: &str,
        path: &PathVector,
        names: impl IntoIterator<Item = &'t str>,
        weights: ChunkWeights,
    ) -> Option<Vector> {
        let mut total = [0.0; DIMENSION];
        self.embed_into(body, &mut total);
        add(&mut total, &path.0, weights.path);
        let mut part = [0.0; DIMENSION];
        self.embed_all_into(names, &mut part);
        add(&mut total, &part, weights.names);
        make_unit(&mut total).then_some(total)
    }
}

fn add(total: &mut Vector, part: &Vector, weight: f32) {
    for (sum, number) in total.iter_mut().zip(part) {
        *sum += number * weight;
    }
}
