use std::ops::Range;
use std::path::Path;

use isolate_types::InWorker;
use isolith_types::Metric;

use super::parameters::Parameters;
use super::rotation::Rotation;
use super::rows::Rows;
use crate::exact;
use crate::kernel::{GROUP, Kernel};
use crate::{Bits, Container, Kind, SegmentError};

/// The version of this layout.
pub(super) const LAYOUT: u32 = 1;

/// A vector segment that is open for searching. Share it behind an `Arc`.
#[derive(Debug)]
pub struct VectorSegment {
    pub(super) container: Container,
    pub(super) parameters: Parameters,
    pub(super) rotation: Option<Rotation>,
    pub(super) kernel: Kernel,
    pub(super) vectors: Range<usize>,
    pub(super) codes: Range<usize>,
    rows: Range<usize>,
    changes: Range<usize>,
}

impl VectorSegment {
    /// Opens a segment; `checksum` is the truth's. Blocks are checked when they are
    /// first used, here and everywhere below.
    ///
    /// # Errors
    /// If it cannot be mapped, is damaged, or is another file.
    pub fn open(path: &Path, checksum: Option<u32>, token: InWorker) -> Result<Self, SegmentError> {
        let container = Container::open(path, Kind::Vector, checksum, token)?;
        if container.version() != LAYOUT {
            let (path, found) = (path.into(), container.version());
            return Err(SegmentError::Version { path, found, known: LAYOUT });
        }
        let parameters = Parameters::decode(container.bytes(container.section("parameters")?)?)
            .ok_or_else(|| container.damaged("parameters make no sense"))?;
        let blocks = if parameters.bits > 0 { parameters.rows.div_ceil(GROUP) } else { 0 };
        let section = |name: &str, count: usize, each: usize| {
            let range = container.section(name)?;
            if count.checked_mul(each) != Some(range.len()) {
                return Err(container.damaged(format!("section {name:?} has a wrong length")));
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

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.parameters.rows
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many components its vectors have.
    pub fn dimension(&self) -> usize {
        self.parameters.dimension
    }

    /// How their distances are measured.
    pub fn metric(&self) -> Metric {
        self.parameters.metric
    }

    /// The sum of its vectors as they are stored: of unit length for cosine. With the
    /// number of rows it gives the mean distance of a query from all of them. None in
    /// files of earlier builds.
    ///
    /// # Errors
    /// If the file is damaged there.
    pub fn sum(&self) -> Result<Option<Vec<f32>>, SegmentError> {
        let Some((_, range)) = self.container.sections().find(|(name, _)| *name == "sum") else {
            return Ok(None);
        };
        let sum: Vec<f32> = exact::floats(self.container.bytes(range)?).collect();
        if sum.len() != self.dimension() {
            return Err(self.container.damaged("section \"sum\" has a wrong length"));
        }
        Ok(Some(sum))
    }

    /// The row at a position.
    ///
    /// # Errors
    /// If the file is damaged there, or the position is none.
    pub fn row(&self, position: usize) -> Result<u64, SegmentError> {
        self.number(&self.rows, position)
    }

    /// The change number of the record at a position.
    ///
    /// # Errors
    /// If the file is damaged there, or the position is none.
    pub fn change(&self, position: usize) -> Result<u64, SegmentError> {
        self.number(&self.changes, position)
    }

    /// Where a row is, if it is here.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn position_of(&self, row: u64) -> Result<Option<usize>, SegmentError> {
        Ok(Rows::new(self.container.bytes(self.rows.clone())?).find(row).ok())
    }

    /// Puts the positions of those of these ascending rows that are here into `bits`.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn positions_of(&self, rows: &[u64], bits: &mut Bits) -> Result<(), SegmentError> {
        let here = Rows::new(self.container.bytes(self.rows.clone())?);
        here.merge(rows, |position| bits.insert(position));
        Ok(())
    }

    /// Checks the whole file, whether it was checked before or not.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn verify(&self) -> Result<(), SegmentError> {
        self.container.verify()
    }

    /// Where the records of some positions are.
    pub(super) fn records(&self, positions: Range<usize>) -> Range<usize> {
        let stride = self.parameters.stride();
        self.vectors.start + positions.start * stride..self.vectors.start + positions.end * stride
    }

    fn number(&self, section: &Range<usize>, position: usize) -> Result<u64, SegmentError> {
        if position >= self.len() {
            let problem = format!("there is no position {position}");
            return Err(SegmentError::refused("read", self.container.path(), problem));
        }
        let start = section.start + 8 * position;
        Ok(Rows::new(self.container.bytes(start..start + 8)?).get(0))
    }
}
