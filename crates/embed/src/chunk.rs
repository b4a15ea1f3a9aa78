//! Vectors of chunks.

use crate::sum::normalize;
use crate::{DIMENSION, Model, Vector};

/// The weights of a chunk's path and of the names that it defines, relative to its text. This
/// is the only weight of a file's name at index time; those at query time are in `CodeWeights` of
/// `isolith-search`. If you change the defaults, change [`model_name`](crate::model_name), too,
/// so that stores embed their code again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkWeights {
    /// The weight of its file's path, including the name.
    pub path: f32,
    /// The weight of the names that it defines.
    pub names: f32,
}

impl Default for ChunkWeights {
    fn default() -> Self {
        Self { path: 0.5, names: 0.5 }
    }
}

/// The vector of a file's path, shared by all its chunks.
#[derive(Debug, Clone)]
pub struct PathVector(Vector);

impl Model {
    /// Embeds a path, for [`Model::embed_chunk`].
    pub fn embed_path(&self, path: &str) -> PathVector {
        let mut vector = [0.0; DIMENSION];
        self.embed_into(path, &mut vector);
        PathVector(vector)
    }

    /// The vector of a chunk: the weighted, normalised sum of the vectors of its text, its path
    /// and the names it defines. Parts without a vector are ignored; `None` if no part has one.
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
        normalize(&mut total).then_some(total)
    }
}

fn add(total: &mut Vector, part: &Vector, weight: f32) {
    for (sum, number) in total.iter_mut().zip(part) {
        *sum += number * weight;
    }
}
