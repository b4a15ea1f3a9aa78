use std::ops::Range;
use std::path::Path;

use isolate_types::InWorker;
use isolith_types::Metric;

use super::parameters::VectorParameters;
use super::rotation::Rotation;
use super::rows::Rows;
use crate::exact;
use crate::kernel::{CODES_PER_BLOCK, Kernel};
use crate::{Bits, Container, SegmentError, SegmentKind};

pub(super) const LAYOUT: u32 = 1;

/// An open vector segment.
#[derive(Debug)]
pub struct VectorSegment {
    pub(super) container: Container,
    pub(super) parameters: VectorParameters,
    pub(super) rotation: Option<Rotation>,
    pub(super) kernel: Kernel,
    pub(super) vectors: Range<usize>,
    pub(super) codes: Range<usize>,
    rows: Range<usize>,
    changes: Range<usize>,
}

impl VectorSegment {
    /// Opens a segment. `checksum` is the one recorded in the database. Blocks are verified on
    /// first use.
    ///
    /// # Errors
    /// If it cannot be mapped, is damaged, or has another checksum.
    pub fn open(path: &Path, checksum: Option<u32>, token: InWorker) -> Result<Self, SegmentError> {
        let container = Container::open(path, SegmentKind::Vector, checksum, token)?;
        if container.version() != LAYOUT {
            let (path, found) = (path.into(), container.version());
            return Err(SegmentError::UnsupportedVersion { path, found, known: LAYOUT });
        }
        let parameters =
            VectorParameters::decode(container.bytes(container.section("parameters")?)?)
                .ok_or_else(|| container.damaged("invalid parameters"))?;
        let blocks =
            if parameters.bits > 0 { parameters.rows.div_ceil(CODES_PER_BLOCK) } else { 0 };
        let section = |name: &str, count: usize, each: usize| {
            let range = container.section(name)?;
            if count.checked_mul(each) != Some(range.len()) {
                return Err(container.damaged(format!("section {name:?} has the wrong length")));
            }
            Ok(range)
        };
        let kernel = Kernel::detect();
        let bits = parameters.bits;
        Ok(Self {
            vectors: section("vectors", parameters.rows, parameters.stride())?,
            rows: section("rows", parameters.rows, 8)?,
            changes: section("changes", parameters.rows, 8)?,
            codes: section("codes", blocks, parameters.block())?,
            rotation: (bits > 0).then(|| Rotation::new(bits, parameters.seed, kernel)),
            container,
            parameters,
            kernel,
        })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.parameters.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of components of each vector.
    pub fn dimension(&self) -> usize {
        self.parameters.dimension
    }

    /// The distance metric.
    pub fn metric(&self) -> Metric {
        self.parameters.metric
    }

    /// The sum of all vectors (normalized for cosine), for the mean distance from a query. `None`
    /// for files written by earlier versions. Fails if the section is damaged.
    pub fn sum(&self) -> Result<Option<Vec<f32>>, SegmentError> {
        let Some((_, range)) = self.container.sections().find(|(name, _)| *name == "sum") else {
            return Ok(None);
        };
        let sum: Vec<f32> = exact::floats(self.container.bytes(range)?).collect();
        if sum.len() != self.dimension() {
            return Err(self.container.damaged("section \"sum\" has the wrong length"));
        }
        Ok(Some(sum))
    }

    /// The row at a position. Fails if the block is damaged or the position is out of range.
    pub fn row(&self, position: usize) -> Result<u64, SegmentError> {
        self.number(&self.rows, position)
    }

    /// The change number of the record at a position.
    /// Fails if the block is damaged or the position is out of range.
    pub fn change(&self, position: usize) -> Result<u64, SegmentError> {
        self.number(&self.changes, position)
    }

    /// The position of a row, if the segment contains it. Fails if the file is damaged.
    pub fn position_of(&self, row: u64) -> Result<Option<usize>, SegmentError> {
        Ok(self.all_rows()?.find(row).ok())
    }

    /// Adds the positions of rows to `bits`. Rows should ascend; those not in the segment are
    /// ignored. Fails if the file is damaged.
    pub fn positions_of(&self, rows: &[u64], bits: &mut Bits) -> Result<(), SegmentError> {
        let known = self.all_rows()?;
        known.find_all(rows, |position| bits.insert(position));
        Ok(())
    }

    /// Verifies the whole file, even blocks that were verified before. Fails if it is damaged.
    pub fn verify(&self) -> Result<(), SegmentError> {
        self.container.verify()
    }

    /// The byte range of the records at `positions`.
    pub(super) fn records(&self, positions: Range<usize>) -> Range<usize> {
        let stride = self.parameters.stride();
        self.vectors.start + positions.start * stride..self.vectors.start + positions.end * stride
    }

    pub(super) fn all_rows(&self) -> Result<Rows<'_>, SegmentError> {
        Ok(Rows::new(self.container.bytes(self.rows.clone())?))
    }

    pub(super) fn all_changes(&self) -> Result<Rows<'_>, SegmentError> {
        Ok(Rows::new(self.container.bytes(self.changes.clone())?))
    }

    fn number(&self, section: &Range<usize>, position: usize) -> Result<u64, SegmentError> {
        if position >= self.len() {
            let problem = format!("position {position} is out of range");
            return Err(SegmentError::invalid("read", self.container.path(), problem));
        }
        let start = section.start + 8 * position;
        Ok(Rows::new(self.container.bytes(start..start + 8)?).get(0))
    }
}
