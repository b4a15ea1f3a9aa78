use isolith_types::Metric;

use super::parameters::{Parameters, RECORD_HEAD};
use super::rotation::Rotation;
use crate::exact::{self, VectorProblem};
use crate::kernel::{Gate, Kernel, MOST_ENTRY, MOST_QUERY};

/// What roundings of f32 can add up to, relative to what is added.
const ROUNDING: f64 = 4e-6;

/// Memory that searches use again.
#[derive(Debug, Default)]
pub struct Scratch {
    moved: Vec<f32>,
    pub(super) components: Vec<i16>,
    pub(super) tables: Vec<u8>,
}

/// A query as numbers to hold records and codes against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    /// The part of distances that is the query's alone.
    own: f64,
    /// What products count: 1 or 2.
    weight: f64,
    /// The length of the query from the centre.
    length: f64,
    /// One step of its components.
    scale: f64,
    /// The length of what they leave out.
    residual: f64,
    /// Lengths for the bound of roundings: of the query and of the centre.
    reach: (f64, f64),
    metric: Metric,
    /// One step of the tables, and the sum that stands for zero.
    step: f64,
    zero: f64,
}

/// A distance from a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Estimate {
    pub(super) distance: f64,
    /// The true distance is no further from it.
    pub(super) error: f64,
}

impl Numbers {
    /// Prepares a search; `scratch` gets the query's components.
    pub(super) fn new(
        parameters: &Parameters,
        query: &[f32],
        kernel: Kernel,
        scratch: &mut Scratch,
    ) -> Result<Self, VectorProblem> {
        let (expected, found) = (parameters.dimension, query.len());
        if expected != found {
            return Err(VectorProblem::Dimension { expected, found });
        }
        let metric = parameters.metric;
        let length = exact::length(query, metric)?;
        let unit = if metric == Metric::Cosine { length.recip() } else { 1.0 };
        let centre = &parameters.centre;
        scratch.moved.clear();
        let mut with_centre = 0.0;
        for (x, c) in query.iter().zip(centre) {
            let x = f64::from(*x) * unit;
            with_centre += x * f64::from(*c);
            scratch.moved.push((x - f64::from(*c)) as f32);
        }
        let square = |vector: &[f32]| -> f64 { kernel.dot(vector, vector) };
        let (moved, central) = (square(&scratch.moved), square(centre));
        let mut numbers = Self {
            own: if metric == Metric::L2 { moved } else { 1.0 - with_centre + central },
            weight: if metric == Metric::L2 { 2.0 } else { 1.0 },
            length: moved.sqrt(),
            scale: 0.0,
            residual: 0.0,
            reach: (length * unit, central.sqrt()),
            metric,
            step: 0.0,
            zero: 0.0,
        };
        numbers.quantize(parameters.components(), scratch);
        Ok(numbers)
    }

    fn quantize(&mut self, components: usize, scratch: &mut Scratch) {
        let largest = scratch.moved.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        let scale = f64::from(largest / MOST_QUERY);
        scratch.components.clear();
        scratch.components.resize(components, 0);
        let mut rest = 0.0;
        for (x, component) in scratch.moved.iter().zip(&mut scratch.components) {
            let x = f64::from(*x);
            // Casts saturate. Where the scale is zero, components count for nothing.
            *component = (x / scale).round() as i16;
            rest += (x - scale * f64::from(*component)).powi(2);
        }
        self.scale = scale;
        self.residual = rest.sqrt();
    }

    /// Makes the tables for codes.
    pub(super) fn tabulate(&mut self, rotation: &Rotation, bits: usize, scratch: &mut Scratch) {
        let rotated = &mut scratch.moved;
        rotated.resize(bits, 0.0);
        rotation.apply(rotated);
        let reach = |four: &[f32]| four.iter().map(|x| f64::from(x.abs())).sum::<f64>();
        let largest = rotated.chunks_exact(4).map(reach).fold(0.0, f64::max);
        // With all at zero any step will do.
        let step = (2.0 * largest / f64::from(MOST_ENTRY)).max(f64::MIN_POSITIVE);
        scratch.tables.clear();
        for four in rotated.chunks_exact(4) {
            let reach = reach(four);
            for signs in 0..16 {
                let sign = |bit: usize| if signs >> bit & 1 == 1 { 1.0 } else { -1.0 };
                let sum: f64 = (0..4).map(|bit| sign(bit) * f64::from(four[bit])).sum();
                let entry = ((sum + reach) / step).round() as u8;
                scratch.tables.push(entry.min(MOST_ENTRY));
            }
        }
        self.step = step;
        self.zero = rotated.chunks_exact(4).map(reach).sum();
    }

    /// The distance of a record.
    #[inline]
    pub(super) fn estimate(&self, record: &[u8], components: &[i16], kernel: Kernel) -> Estimate {
        let (head, bytes) = record.split_at(RECORD_HEAD);
        let number = |at: usize| {
            f64::from(f32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]))
        };
        let (scale, residual, norm, addend) = (number(0), number(4), number(8), number(12));
        let product = kernel.dot_components(bytes, components) as f64 * scale * self.scale;
        let lost = self.length * residual + self.residual * (norm + residual);
        let size = match self.metric {
            Metric::L2 => self.own + addend,
            _ => 1.0 + self.reach.0 * (self.reach.1 + norm) + addend.abs(),
        };
        Estimate {
            distance: self.own + addend - self.weight * product,
            error: self.weight * lost + ROUNDING * size,
        }
    }

    /// Lets those codes pass whose distance may be at most `limit`, with `doubt`
    /// standard errors of a code's estimate to spare.
    pub(super) fn gate(&self, limit: f64, doubt: f64) -> Gate {
        // A code's product with the rotated query is off by about 0.6 of its length.
        const ERROR: f64 = 0.603;
        Gate {
            step: (self.weight * self.step) as f32,
            shift: (self.weight * (doubt * ERROR * self.length - self.zero)) as f32,
            limit: (limit - self.own) as f32,
        }
    }
}
