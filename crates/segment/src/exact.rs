//! Exact distances: for the tail, for rescoring, and to tell what is no vector.

use isolith_types::{LONGEST_VECTOR, Metric};

use crate::kernel::Kernel;

/// Squares of f32 below this lose digits that a direction needs.
const TINY: f64 = 1e-20;

/// Why numbers are not a vector that distances can be taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VectorProblem {
    /// The wrong number of components.
    #[error("it has {found} components, not {expected}")]
    Dimension {
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// A component is infinite or not a number.
    #[error("its component {0} is not a finite number")]
    NotFinite(usize),
    /// It is so long that distances from it overflow.
    #[error("it is longer than 1e18")]
    TooLong,
    /// It is zero, which has no direction and so no cosine.
    #[error("it is zero, which has no cosine")]
    Zero,
}

/// Whether a vector can be stored or asked for under a metric.
///
/// # Errors
/// The problem with it.
pub fn check(vector: &[f32], metric: Metric) -> Result<(), VectorProblem> {
    length(vector, metric).map(drop)
}

/// The length of a vector that is sound.
pub(crate) fn length(vector: &[f32], metric: Metric) -> Result<f64, VectorProblem> {
    // Sums in f64 neither overflow nor vanish, whatever the f32 are.
    let square: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
    let length = square.sqrt();
    if !length.is_finite() {
        let at = vector.iter().position(|x| !x.is_finite()).unwrap_or_default();
        return Err(VectorProblem::NotFinite(at));
    }
    if length > LONGEST_VECTOR {
        return Err(VectorProblem::TooLong);
    }
    if length == 0.0 && metric == Metric::Cosine {
        return Err(VectorProblem::Zero);
    }
    Ok(length)
}

/// A query whose exact distances from vectors are wanted.
#[derive(Debug, Clone)]
pub struct Query {
    metric: Metric,
    vector: Vec<f32>,
    length: f64,
    kernel: Kernel,
}

impl Query {
    /// Takes a query's vector.
    ///
    /// # Errors
    /// The problem with it.
    pub fn new(metric: Metric, vector: &[f32]) -> Result<Self, VectorProblem> {
        let length = length(vector, metric)?;
        Ok(Self { metric, vector: vector.to_vec(), length, kernel: Kernel::detect() })
    }

    /// The distance of a vector.
    ///
    /// # Errors
    /// If that is no vector of this dimension.
    pub fn distance(&self, other: &[f32]) -> Result<f32, VectorProblem> {
        self.same_dimension(other.len())?;
        let distance = match self.metric {
            Metric::L2 => self.kernel.distance(&self.vector, other),
            _ => self.of_product(self.kernel.dot_and_square(&self.vector, other), || {
                self.careful_product(other.iter().copied())
            }),
        };
        finite(distance, other.iter().copied())
    }

    /// The distance of a vector in little-endian bytes, at any address.
    ///
    /// # Errors
    /// If that is no vector of this dimension.
    pub fn distance_bytes(&self, other: &[u8]) -> Result<f32, VectorProblem> {
        if !other.len().is_multiple_of(4) {
            let (expected, found) = (self.vector.len(), other.len() / 4);
            return Err(VectorProblem::Dimension { expected, found });
        }
        self.same_dimension(other.len() / 4)?;
        let distance = match self.metric {
            Metric::L2 => self.kernel.distance_bytes(&self.vector, other),
            _ => self.of_product(self.kernel.dot_and_square_bytes(&self.vector, other), || {
                self.careful_product(floats(other))
            }),
        };
        finite(distance, floats(other))
    }

    fn same_dimension(&self, found: usize) -> Result<(), VectorProblem> {
        let expected = self.vector.len();
        if found == expected { Ok(()) } else { Err(VectorProblem::Dimension { expected, found }) }
    }

    fn of_product(&self, fast: (f64, f64), careful: impl FnOnce() -> (f64, f64)) -> f64 {
        if self.metric != Metric::Cosine {
            return 1.0 - fast.0;
        }
        let tiny = fast.1 < TINY || self.length * self.length < TINY;
        let (product, square) = if tiny { careful() } else { fast };
        if square == 0.0 {
            return 1.0;
        }
        let distance = 1.0 - product / (self.length * square.sqrt());
        // Rounding must not make a vector nearer than itself; NaN stays NaN.
        if distance < 0.0 { 0.0 } else { distance }
    }

    fn careful_product(&self, other: impl Iterator<Item = f32>) -> (f64, f64) {
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
