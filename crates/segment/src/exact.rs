//! Exact distances, for searching the tail and rescoring candidates, and validation of vectors.

use isolith_types::{LONGEST_VECTOR, Metric};

use crate::kernel::Kernel;

/// Below this, squared lengths computed in f32 are too imprecise for a cosine.
const TINY: f64 = 1e-20;

/// Why a vector is not valid for its collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VectorProblem {
    /// The wrong number of components.
    #[error("{found} components instead of {expected}")]
    Dimension {
        /// The collection's dimension.
        expected: usize,
        /// The vector's dimension.
        found: usize,
    },
    /// The component at this index is infinite or NaN.
    #[error("component {0} is not finite")]
    NotFinite(usize),
    /// It is so long that distances would overflow.
    #[error("longer than 1e18")]
    TooLong,
    /// The zero vector has no direction, so no cosine distance.
    #[error("the zero vector has no cosine distance")]
    Zero,
}

/// Validates a vector for loading with this metric. Stored zero vectors have the cosine distance 1
/// from everything; a file that has them is probably wrong.
pub fn check(vector: &[f32], metric: Metric) -> Result<(), VectorProblem> {
    match length(vector)? {
        0.0 if metric == Metric::Cosine => Err(VectorProblem::Zero),
        _ => Ok(()),
    }
}

/// The length of a vector, if it is valid.
pub(crate) fn length(vector: &[f32]) -> Result<f64, VectorProblem> {
    // In f64, squares of f32 neither overflow nor underflow.
    let square: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    let length = square.sqrt();
    if !length.is_finite() {
        let at = vector.iter().position(|x| !x.is_finite()).unwrap_or_default();
        return Err(VectorProblem::NotFinite(at));
    }
    if length > LONGEST_VECTOR {
        return Err(VectorProblem::TooLong);
    }
    Ok(length)
}

/// A query vector, prepared for computing exact distances.
#[derive(Debug, Clone)]
pub struct ExactQuery {
    metric: Metric,
    vector: Vec<f32>,
    length: f64,
    kernel: Kernel,
}

impl ExactQuery {
    /// Prepares a query. Fails if it is not valid.
    pub fn new(metric: Metric, vector: &[f32]) -> Result<Self, VectorProblem> {
        let length = length(vector)?;
        Ok(Self { metric, vector: vector.to_vec(), length, kernel: Kernel::detect() })
    }

    /// The distance from a vector.
    ///
    /// # Errors
    /// If the vector has another dimension or the distance is not finite.
    pub fn distance(&self, other: &[f32]) -> Result<f32, VectorProblem> {
        self.same_dimension(other.len())?;
        let distance = match self.metric {
            Metric::L2 => self.kernel.distance(&self.vector, other),
            _ => self.product_distance(self.kernel.dot_and_square(&self.vector, other), || {
                self.precise_product(other.iter().copied())
            }),
        };
        finite(distance, other.iter().copied())
    }

    /// As [`distance`](Self::distance), for little-endian bytes of any alignment.
    pub fn distance_bytes(&self, other: &[u8]) -> Result<f32, VectorProblem> {
        if !other.len().is_multiple_of(4) {
            let (expected, found) = (self.vector.len(), other.len() / 4);
            return Err(VectorProblem::Dimension { expected, found });
        }
        self.same_dimension(other.len() / 4)?;
        let distance = match self.metric {
            Metric::L2 => self.kernel.distance_bytes(&self.vector, other),
            _ => self
                .product_distance(self.kernel.dot_and_square_bytes(&self.vector, other), || {
                    self.precise_product(floats(other))
                }),
        };
        finite(distance, floats(other))
    }

    fn same_dimension(&self, found: usize) -> Result<(), VectorProblem> {
        let expected = self.vector.len();
        if found == expected { Ok(()) } else { Err(VectorProblem::Dimension { expected, found }) }
    }

    /// Takes the inner product and the other vector's squared length. `precise` computes them in
    /// f64, for tiny vectors.
    fn product_distance(&self, fast: (f64, f64), precise: impl FnOnce() -> (f64, f64)) -> f64 {
        if self.metric != Metric::Cosine {
            return 1.0 - fast.0;
        }
        let tiny = fast.1 < TINY || self.length * self.length < TINY;
        let (product, square) = if tiny { precise() } else { fast };
        if square == 0.0 || self.length == 0.0 {
            return 1.0;
        }
        let distance = 1.0 - product / (self.length * square.sqrt());
        // Rounding must not give a negative distance. NaN stays NaN.
        if distance < 0.0 { 0.0 } else { distance }
    }

    fn precise_product(&self, other: impl Iterator<Item = f32>) -> (f64, f64) {
        let (mut product, mut square) = (0.0, 0.0);
        for (x, y) in self.vector.iter().zip(other) {
            product += f64::from(*x) * f64::from(y);
            square += f64::from(y) * f64::from(y);
        }
        (product, square)
    }
}

/// The components of a vector in little-endian bytes.
pub fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.chunks_exact(4).map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

fn finite(distance: f64, mut other: impl Iterator<Item = f32>) -> Result<f32, VectorProblem> {
    if distance.is_finite() {
        return Ok(distance as f32);
    }
    Err(other.position(|x| !x.is_finite()).map_or(VectorProblem::TooLong, VectorProblem::NotFinite))
}
