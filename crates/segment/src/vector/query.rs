use isolith_types::Metric;

use super::parameters::{RECORD_HEAD, VectorParameters};
use super::rotation::Rotation;
use crate::exact::{self, VectorProblem};
use crate::kernel::{CodeFilter, Kernel, MAX_QUERY_COMPONENT, MAX_TABLE_ENTRY};

/// Relative bound of accumulated f32 rounding errors.
const ROUNDING: f64 = 4e-6;

/// Memory that can be reused by the next search.
#[derive(Debug, Default)]
pub struct SearchBuffers {
    centered: Vec<f32>,
    pub(super) components: Vec<i16>,
    pub(super) tables: Vec<u8>,
}

/// The factors of a query for estimating distances; `docs/format.md` has the formulas.
#[derive(Debug, Clone, Copy)]
pub(super) struct PreparedQuery {
    /// The part of the distance that depends only on the query.
    own: f64,
    /// The weight of the inner product: 1, or 2 for L2.
    weight: f64,
    /// The length of the query minus the centroid.
    length: f64,
    /// The quantization step of its components.
    scale: f64,
    /// The length of the quantization error.
    residual: f64,
    query_length: f64,
    centroid_length: f64,
    metric: Metric,
    /// The quantization step of the tables, and the sum of entries that represents zero.
    step: f64,
    zero: f64,
}

/// An estimated distance from a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct DistanceEstimate {
    pub(super) distance: f64,
    /// Upper bound of the absolute error.
    pub(super) error: f64,
}

impl PreparedQuery {
    /// Prepares a query; writes its components to `buffers`.
    pub(super) fn new(
        parameters: &VectorParameters,
        query: &[f32],
        kernel: Kernel,
        buffers: &mut SearchBuffers,
    ) -> Result<Self, VectorProblem> {
        let (expected, found) = (parameters.dimension, query.len());
        if expected != found {
            return Err(VectorProblem::Dimension { expected, found });
        }
        let metric = parameters.metric;
        let length = exact::length(query)?;
        let unit = if metric == Metric::Cosine && length > 0.0 { length.recip() } else { 1.0 };
        let centroid = &parameters.centroid;
        buffers.centered.clear();
        let mut centroid_product = 0.0;
        for (x, c) in query.iter().zip(centroid) {
            let x = f64::from(*x) * unit;
            centroid_product += x * f64::from(*c);
            buffers.centered.push((x - f64::from(*c)) as f32);
        }
        let square = |vector: &[f32]| -> f64 { kernel.dot(vector, vector) };
        let (centered, central) = (square(&buffers.centered), square(centroid));
        let mut prepared = Self {
            own: if metric == Metric::L2 { centered } else { 1.0 - centroid_product + central },
            weight: if metric == Metric::L2 { 2.0 } else { 1.0 },
            length: centered.sqrt(),
            scale: 0.0,
            residual: 0.0,
            query_length: length * unit,
            centroid_length: central.sqrt(),
            metric,
            step: 0.0,
            zero: 0.0,
        };
        prepared.quantize(parameters.components(), buffers);
        Ok(prepared)
    }

    fn quantize(&mut self, components: usize, buffers: &mut SearchBuffers) {
        let largest = buffers.centered.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        let scale = f64::from(largest / MAX_QUERY_COMPONENT);
        buffers.components.clear();
        buffers.components.resize(components, 0);
        let mut rest = 0.0;
        for (x, component) in buffers.centered.iter().zip(&mut buffers.components) {
            let x = f64::from(*x);
            // Casts saturate. If the scale is zero, components have no effect.
            *component = (x / scale).round() as i16;
            rest += (x - scale * f64::from(*component)).powi(2);
        }
        self.scale = scale;
        self.residual = rest.sqrt();
    }

    /// Computes the lookup tables for codes.
    pub(super) fn tabulate(
        &mut self,
        rotation: &Rotation,
        bits: usize,
        buffers: &mut SearchBuffers,
    ) {
        let rotated = &mut buffers.centered;
        rotated.resize(bits, 0.0);
        rotation.apply(rotated);
        let reach = |four: &[f32]| four.iter().map(|x| f64::from(x.abs())).sum::<f64>();
        let largest = rotated.chunks_exact(4).map(reach).fold(0.0, f64::max);
        // If everything is zero, any step works.
        let step = (2.0 * largest / f64::from(MAX_TABLE_ENTRY)).max(f64::MIN_POSITIVE);
        buffers.tables.clear();
        for four in rotated.chunks_exact(4) {
            let reach = reach(four);
            for signs in 0..16 {
                let sign = |bit: usize| if signs >> bit & 1 == 1 { 1.0 } else { -1.0 };
                let sum: f64 = (0..4).map(|bit| sign(bit) * f64::from(four[bit])).sum();
                let entry = ((sum + reach) / step).round() as u8;
                buffers.tables.push(entry.min(MAX_TABLE_ENTRY));
            }
        }
        self.step = step;
        self.zero = rotated.chunks_exact(4).map(reach).sum();
    }

    #[inline]
    pub(super) fn estimate(
        &self,
        record: &[u8],
        components: &[i16],
        kernel: Kernel,
    ) -> DistanceEstimate {
        let (head, bytes) = record.split_at(RECORD_HEAD);
        let number = |at: usize| {
            f64::from(f32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]))
        };
        let (scale, residual, norm, addend) = (number(0), number(4), number(8), number(12));
        let product = kernel.dot_components(bytes, components) as f64 * scale * self.scale;
        let lost = self.length * residual + self.residual * (norm + residual);
        let size = match self.metric {
            Metric::L2 => self.own + addend,
            _ => 1.0 + self.query_length * (self.centroid_length + norm) + addend.abs(),
        };
        DistanceEstimate {
            distance: self.own + addend - self.weight * product,
            error: self.weight * lost + ROUNDING * size,
        }
    }

    /// A filter for codes whose distance may be at most `limit`, with a margin of `sigmas`
    /// standard errors.
    pub(super) fn code_filter(&self, limit: f64, sigmas: f64) -> CodeFilter {
        // Standard error of a code's product with the rotated query, relative to its length.
        const ERROR: f64 = 0.603;
        CodeFilter {
            step: (self.weight * self.step) as f32,
            shift: (self.weight * (sigmas * ERROR * self.length - self.zero)) as f32,
            limit: (limit - self.own) as f32,
        }
    }
}
