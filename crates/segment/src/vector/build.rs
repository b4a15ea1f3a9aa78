use isolate_types::InWorker;
use isolith_types::Metric;

use super::parameters::{MOST_DIMENSIONS, Parameters, RECORD_HEAD};
use super::rotation::Rotation;
use super::segment::LAYOUT;
use crate::exact::{self, VectorProblem};
use crate::kernel::{GROUP, Kernel};
use crate::storage::Storage;
use crate::{ContainerWriter, Kind, Published, SegmentError};

/// The centre is the mean of this many rows at most, and of this many bytes.
const SAMPLE_ROWS: usize = 1024;
const SAMPLE_BYTES: usize = 16 << 20;

/// What the vectors of a segment are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorSpec {
    /// How many components each has.
    pub dimension: u32,
    /// How their distances are measured.
    pub metric: Metric,
}

/// Builds a vector segment from rows in ascending order. Vectors go to the file as
/// they come; what stays in memory is about 80 bytes for each row of 384 dimensions.
#[derive(Debug)]
pub struct VectorBuilder<'a> {
    writer: ContainerWriter<'a>,
    name: String,
    spec: VectorSpec,
    pub(super) kernel: Kernel,
    last_row: Option<u64>,
    rows: Vec<u8>,
    changes: Vec<u8>,
    /// The first vectors wait here until they have a centre.
    sample: Vec<f32>,
    encoder: Option<Encoder>,
    vector: Vec<f32>,
    sum: VectorSum,
}

impl<'a> VectorBuilder<'a> {
    /// Starts a segment that is to have this name.
    ///
    /// # Errors
    /// If the dimension is none, or the file cannot be made.
    pub fn create(
        storage: &'a dyn Storage,
        name: &str,
        spec: VectorSpec,
        _token: InWorker,
    ) -> Result<Self, SegmentError> {
        if !(1..=MOST_DIMENSIONS).contains(&(spec.dimension as usize)) {
            let problem = format!("{} is not a dimension", spec.dimension);
            return Err(SegmentError::refused("build", storage.path(name), problem));
        }
        let mut writer = ContainerWriter::create(storage, name, Kind::Vector, LAYOUT)?;
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

    /// Appends a row, which must be higher than the one before.
    ///
    /// # Errors
    /// If it is not, if the vector is none, or writing fails. After a refusal the build
    /// can go on with the next row.
    pub fn push(&mut self, row: u64, change: u64, vector: &[f32]) -> Result<(), SegmentError> {
        self.vector.clear();
        self.vector.extend_from_slice(vector);
        self.push_vector(row, change)
    }

    /// As [`push`](Self::push), with the vector in little-endian bytes.
    ///
    /// # Errors
    /// As there.
    pub fn push_bytes(&mut self, row: u64, change: u64, bytes: &[u8]) -> Result<(), SegmentError> {
        if !bytes.len().is_multiple_of(4) {
            return Err(self.refused(row, "its bytes are not whole numbers"));
        }
        self.vector.clear();
        self.vector.extend(exact::floats(bytes));
        self.push_vector(row, change)
    }

    /// Publishes the segment. Returns how many rows it has, too.
    ///
    /// # Errors
    /// If it cannot be published.
    pub fn finish(mut self) -> Result<(Published, u64), SegmentError> {
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
            return Err(self.refused(row, VectorProblem::Dimension { expected, found }));
        }
        if self.last_row.is_some_and(|last| last >= row) {
            return Err(self.refused(row, "it does not come after the row before"));
        }
        if self.rows.len() / 8 >= u32::MAX as usize {
            return Err(self.refused(row, "the segment is full"));
        }
        as_stored(&mut self.vector, self.spec.metric)
            .map_err(|problem| self.refused(row, problem))?;
        self.sum.add_stored(&self.vector);
        self.last_row = Some(row);
        self.rows.extend(row.to_le_bytes());
        self.changes.extend(change.to_le_bytes());
        if let Some(encoder) = &mut self.encoder {
            return self.writer.write(encoder.encode(&self.vector));
        }
        self.sample.extend_from_slice(&self.vector);
        let enough = SAMPLE_ROWS * expected;
        if self.sample.len() >= enough || 4 * self.sample.len() >= SAMPLE_BYTES {
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

    fn refused(&self, row: u64, problem: impl ToString) -> SegmentError {
        let problem = format!("row {row}: {}", problem.to_string());
        SegmentError::refused("build", self.name.as_str(), problem)
    }
}

/// A vector as segments store it: of unit length for cosine.
fn as_stored(vector: &mut [f32], metric: Metric) -> Result<(), VectorProblem> {
    let length = exact::length(vector, metric)?;
    if metric == Metric::Cosine {
        let scale = length.recip();
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) * scale) as f32);
    }
    Ok(())
}

/// The sum that a segment of some vectors keeps; the same to the last bit if they are added
/// in the order of their rows.
#[derive(Debug)]
pub struct VectorSum {
    metric: Metric,
    sum: Vec<f64>,
    vector: Vec<f32>,
}

impl VectorSum {
    /// Of no vectors yet.
    pub fn new(spec: VectorSpec) -> Self {
        let sum = vec![0.0; spec.dimension as usize];
        Self { metric: spec.metric, sum, vector: Vec::new() }
    }

    /// Adds a vector, in little-endian bytes.
    ///
    /// # Errors
    /// If it is none of this dimension and metric.
    pub fn add_bytes(&mut self, bytes: &[u8]) -> Result<(), VectorProblem> {
        let (expected, found) = (self.sum.len(), bytes.len() / 4);
        if found != expected || !bytes.len().is_multiple_of(4) {
            return Err(VectorProblem::Dimension { expected, found });
        }
        let mut vector = std::mem::take(&mut self.vector);
        vector.clear();
        vector.extend(exact::floats(bytes));
        let added = as_stored(&mut vector, self.metric);
        if added.is_ok() {
            self.add_stored(&vector);
        }
        self.vector = vector;
        added
    }

    fn add_stored(&mut self, vector: &[f32]) {
        self.sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += f64::from(*x));
    }

    /// The sum as a segment keeps it.
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
    parameters: Parameters,
    rotation: Option<Rotation>,
    kernel: Kernel,
    codes: Vec<u8>,
    rows: usize,
    /// The vector from the centre, padded to a whole code.
    moved: Vec<f32>,
    signs: Vec<u8>,
    record: Vec<u8>,
}

impl Encoder {
    fn new(spec: VectorSpec, centre: Vec<f32>, kernel: Kernel) -> Self {
        let parameters = Parameters::new(spec.dimension as usize, spec.metric, centre);
        let bits = parameters.bits;
        Self {
            rotation: (bits > 0).then(|| Rotation::new(bits, parameters.seed, kernel)),
            kernel,
            codes: Vec::new(),
            rows: 0,
            moved: Vec::new(),
            signs: vec![0; bits / 8],
            record: vec![0; parameters.stride()],
            parameters,
        }
    }

    /// Adds the vector's code to the codes and returns its record.
    fn encode(&mut self, vector: &[f32]) -> &[u8] {
        let centre = &self.parameters.centre;
        self.moved.clear();
        self.moved.extend(vector.iter().zip(centre).map(|(x, c)| x - c));
        let addend = match self.parameters.metric {
            Metric::L2 => self.kernel.dot(&self.moved, &self.moved) as f32,
            _ => -self.kernel.dot(centre, vector) as f32,
        };
        let numbers = self.kernel.quantize(&self.moved, &mut self.record[RECORD_HEAD..]);
        let head = [numbers.scale, numbers.residual, numbers.norm, addend];
        for (place, value) in self.record.chunks_exact_mut(4).zip(head) {
            place.copy_from_slice(&value.to_le_bytes());
        }
        self.add_code(addend);
        self.rows += 1;
        &self.record
    }

    fn add_code(&mut self, addend: f32) {
        let Some(rotation) = &self.rotation else { return };
        self.moved.resize(self.parameters.bits, 0.0);
        rotation.apply(&mut self.moved);
        let magnitudes = self.kernel.signs(&self.moved, &mut self.signs);
        let square = self.kernel.dot(&self.moved, &self.moved);
        let slope = if magnitudes > 0.0 { (square / magnitudes) as f32 } else { 0.0 };

        let place = self.rows % GROUP;
        if place == 0 {
            self.codes.resize(self.codes.len() + self.parameters.block(), 0);
        }
        let start = self.codes.len() - self.parameters.block();
        let (bytes, factors) = self.codes[start..].split_at_mut(self.signs.len() * GROUP);
        for (column, byte) in bytes.chunks_exact_mut(GROUP).zip(&self.signs) {
            column[place] = *byte;
        }
        factors[4 * place..][..4].copy_from_slice(&addend.to_le_bytes());
        factors[4 * (GROUP + place)..][..4].copy_from_slice(&slope.to_le_bytes());
    }
}
