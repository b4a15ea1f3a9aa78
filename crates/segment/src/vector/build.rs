use isolate_types::InWorker;
use isolith_types::Metric;

use super::parameters::{MAX_DIMENSION, RECORD_HEAD, VectorParameters};
use super::rotation::Rotation;
use super::segment::LAYOUT;
use crate::exact::{self, VectorProblem};
use crate::kernel::{CODES_PER_BLOCK, Kernel};
use crate::storage::Storage;
use crate::{ContainerWriter, PublishedSegment, SegmentError, SegmentKind};

/// The centroid is the mean of the first rows, up to these limits.
const SAMPLE_ROWS: usize = 1024;
const SAMPLE_BYTES: usize = 16 << 20;

/// Dimension and metric of a collection's vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorSpec {
    /// Number of components.
    pub dimension: u32,
    /// The distance metric.
    pub metric: Metric,
}

/// Builds a vector segment from rows in ascending order. Vectors are written immediately; about
/// 80 bytes per row of 384 dimensions stay in memory.
#[derive(Debug)]
pub struct VectorBuilder<'a> {
    writer: ContainerWriter<'a>,
    name: String,
    spec: VectorSpec,
    pub(super) kernel: Kernel,
    last_row: Option<u64>,
    rows: Vec<u8>,
    changes: Vec<u8>,
    /// The first vectors, until there are enough to compute the centroid.
    sample: Vec<f32>,
    encoder: Option<Encoder>,
    vector: Vec<f32>,
    sum: VectorSum,
}

impl<'a> VectorBuilder<'a> {
    /// Starts a segment to be published as `name`.
    ///
    /// # Errors
    /// If the dimension is out of range, or the file cannot be created.
    pub fn create(
        storage: &'a dyn Storage,
        name: &str,
        spec: VectorSpec,
        _token: InWorker,
    ) -> Result<Self, SegmentError> {
        if !(1..=MAX_DIMENSION).contains(&(spec.dimension as usize)) {
            let problem = format!("dimension {} is out of range", spec.dimension);
            return Err(SegmentError::invalid("build", storage.path(name), problem));
        }
        let mut writer = ContainerWriter::create(storage, name, SegmentKind::Vector, LAYOUT)?;
        writer.begin_section("vectors")?;
        Ok(Self {
            writer,
            name: name.to_owned(),
            spec,
            kernel: Kernel::detect(),
            last_row: None,
            rows: Vec::new(),
            changes: Vec::new(),
            sample: Vec::new(),
            encoder: None,
            vector: Vec::new(),
            sum: VectorSum::new(spec),
        })
    }

    /// Adds a row. Rows must be in ascending order.
    ///
    /// # Errors
    /// If the row is out of order, the vector is not valid, or writing fails. After
    /// [`SegmentError::Invalid`] the build can continue with the next row.
    pub fn push(&mut self, row: u64, change: u64, vector: &[f32]) -> Result<(), SegmentError> {
        self.vector.clear();
        self.vector.extend_from_slice(vector);
        self.push_vector(row, change)
    }

    /// As [`push`](Self::push), with the vector in little-endian bytes.
    pub fn push_bytes(&mut self, row: u64, change: u64, bytes: &[u8]) -> Result<(), SegmentError> {
        if !bytes.len().is_multiple_of(4) {
            return Err(self.invalid(row, "length is not a multiple of 4 bytes"));
        }
        self.vector.clear();
        self.vector.extend(exact::floats(bytes));
        self.push_vector(row, change)
    }

    /// Publishes the segment. Also returns its number of rows.
    pub fn finish(mut self) -> Result<(PublishedSegment, u64), SegmentError> {
        self.end_sample()?;
        let mut encoder = self.encoder.take().unwrap_or_else(|| {
            Encoder::new(self.spec, vec![0.0; self.spec.dimension as usize], self.kernel)
        });
        encoder.parameters.rows = self.rows.len() / 8;
        let sum: Vec<u8> = self.sum.total().flat_map(f32::to_le_bytes).collect();
        for (name, bytes) in [
            ("rows", &self.rows),
            ("changes", &self.changes),
            ("codes", &encoder.codes),
            ("parameters", &encoder.parameters.encode()),
            ("sum", &sum),
        ] {
            self.writer.begin_section(name)?;
            self.writer.write(bytes)?;
        }
        Ok((self.writer.finish()?, encoder.parameters.rows as u64))
    }

    fn push_vector(&mut self, row: u64, change: u64) -> Result<(), SegmentError> {
        let (expected, found) = (self.spec.dimension as usize, self.vector.len());
        if found != expected {
            return Err(self.invalid(row, VectorProblem::Dimension { expected, found }));
        }
        if self.last_row.is_some_and(|last| last >= row) {
            return Err(self.invalid(row, "rows are not in ascending order"));
        }
        if self.rows.len() / 8 >= u32::MAX as usize {
            return Err(self.invalid(row, "the segment is full"));
        }
        normalize(&mut self.vector, self.spec.metric)
            .map_err(|problem| self.invalid(row, problem))?;
        self.sum.add_normalized(&self.vector);
        self.last_row = Some(row);
        self.rows.extend(row.to_le_bytes());
        self.changes.extend(change.to_le_bytes());
        if let Some(encoder) = &mut self.encoder {
            return self.writer.write(encoder.encode(&self.vector));
        }
        self.sample.extend_from_slice(&self.vector);
        let values = self.sample.len();
        if values >= SAMPLE_ROWS * expected || 4 * values >= SAMPLE_BYTES {
            self.end_sample()?;
        }
        Ok(())
    }

    fn end_sample(&mut self) -> Result<(), SegmentError> {
        if self.sample.is_empty() {
            return Ok(());
        }
        let sample = std::mem::take(&mut self.sample);
        let dimension = self.spec.dimension as usize;
        let encoder =
            self.encoder.insert(Encoder::new(self.spec, mean(&sample, dimension), self.kernel));
        sample
            .chunks_exact(dimension)
            .try_for_each(|vector| self.writer.write(encoder.encode(vector)))
    }

    fn invalid(&self, row: u64, problem: impl ToString) -> SegmentError {
        let problem = format!("row {row}: {}", problem.to_string());
        SegmentError::invalid("build", self.name.as_str(), problem)
    }
}

/// Scales a vector to unit length if the metric is cosine.
fn normalize(vector: &mut [f32], metric: Metric) -> Result<(), VectorProblem> {
    let length = exact::length(vector)?;
    if metric == Metric::Cosine && length > 0.0 {
        let scale = length.recip();
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) * scale) as f32);
    }
    Ok(())
}

/// The sum of vectors, as stored in segments: bit-identical if vectors are added in row order.
#[derive(Debug)]
pub struct VectorSum {
    metric: Metric,
    sum: Vec<f64>,
    vector: Vec<f32>,
}

impl VectorSum {
    /// The sum of no vectors.
    pub fn new(spec: VectorSpec) -> Self {
        let sum = vec![0.0; spec.dimension as usize];
        Self { metric: spec.metric, sum, vector: Vec::new() }
    }

    /// Adds a vector, in little-endian bytes.
    ///
    /// # Errors
    /// If the vector is not valid for this dimension and metric.
    pub fn add_bytes(&mut self, bytes: &[u8]) -> Result<(), VectorProblem> {
        let (expected, found) = (self.sum.len(), bytes.len() / 4);
        if found != expected || !bytes.len().is_multiple_of(4) {
            return Err(VectorProblem::Dimension { expected, found });
        }
        let mut vector = std::mem::take(&mut self.vector);
        vector.clear();
        vector.extend(exact::floats(bytes));
        let normalized = normalize(&mut vector, self.metric);
        if normalized.is_ok() {
            self.add_normalized(&vector);
        }
        self.vector = vector;
        normalized
    }

    fn add_normalized(&mut self, vector: &[f32]) {
        self.sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += f64::from(*x));
    }

    /// The sum, rounded to f32.
    pub fn total(&self) -> impl Iterator<Item = f32> {
        self.sum.iter().map(|x| *x as f32)
    }
}

fn mean(vectors: &[f32], dimension: usize) -> Vec<f32> {
    let mut sums = vec![0.0f64; dimension];
    for vector in vectors.chunks_exact(dimension) {
        sums.iter_mut().zip(vector).for_each(|(sum, x)| *sum += f64::from(*x));
    }
    let rows = (vectors.len() / dimension) as f64;
    sums.into_iter().map(|sum| (sum / rows) as f32).collect()
}

/// Turns vectors into records and codes.
#[derive(Debug)]
struct Encoder {
    parameters: VectorParameters,
    rotation: Option<Rotation>,
    kernel: Kernel,
    codes: Vec<u8>,
    rows: usize,
    /// The vector minus the centroid, padded to the length of a code.
    centered: Vec<f32>,
    signs: Vec<u8>,
    record: Vec<u8>,
}

impl Encoder {
    fn new(spec: VectorSpec, centroid: Vec<f32>, kernel: Kernel) -> Self {
        let parameters = VectorParameters::new(spec.dimension as usize, spec.metric, centroid);
        let bits = parameters.bits;
        Self {
            rotation: (bits > 0).then(|| Rotation::new(bits, parameters.seed, kernel)),
            kernel,
            codes: Vec::new(),
            rows: 0,
            centered: Vec::new(),
            signs: vec![0; bits / 8],
            record: vec![0; parameters.stride()],
            parameters,
        }
    }

    /// Appends the vector's code and returns its record.
    fn encode(&mut self, vector: &[f32]) -> &[u8] {
        let centroid = &self.parameters.centroid;
        self.centered.clear();
        self.centered.extend(vector.iter().zip(centroid).map(|(x, c)| x - c));
        let addend = match self.parameters.metric {
            Metric::L2 => self.kernel.dot(&self.centered, &self.centered) as f32,
            _ => -self.kernel.dot(centroid, vector) as f32,
        };
        let quantized = self.kernel.quantize(&self.centered, &mut self.record[RECORD_HEAD..]);
        let head = [quantized.scale, quantized.residual, quantized.norm, addend];
        for (bytes, value) in self.record.chunks_exact_mut(4).zip(head) {
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        self.add_code(addend);
        self.rows += 1;
        &self.record
    }

    fn add_code(&mut self, addend: f32) {
        let Some(rotation) = &self.rotation else { return };
        self.centered.resize(self.parameters.bits, 0.0);
        rotation.apply(&mut self.centered);
        let magnitudes = self.kernel.signs(&self.centered, &mut self.signs);
        let square = self.kernel.dot(&self.centered, &self.centered);
        let slope = if magnitudes > 0.0 { (square / magnitudes) as f32 } else { 0.0 };

        let slot = self.rows % CODES_PER_BLOCK;
        if slot == 0 {
            self.codes.resize(self.codes.len() + self.parameters.block(), 0);
        }
        let start = self.codes.len() - self.parameters.block();
        let (bytes, factors) = self.codes[start..].split_at_mut(self.signs.len() * CODES_PER_BLOCK);
        for (column, byte) in bytes.chunks_exact_mut(CODES_PER_BLOCK).zip(&self.signs) {
            column[slot] = *byte;
        }
        factors[4 * slot..][..4].copy_from_slice(&addend.to_le_bytes());
        factors[4 * (CODES_PER_BLOCK + slot)..][..4].copy_from_slice(&slope.to_le_bytes());
    }
}
