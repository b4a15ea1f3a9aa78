//! The records that both sides store and the queries that both answer, written to files so that
//! both read the same bytes.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use isolith_types::Metadata;
use serde::{Deserialize, Serialize};

use super::npy::{self, Matrix};

/// A folder with `vectors.f32`, `queries.f32`, `documents.txt` and `shape.json`.
pub(crate) struct Data {
    pub folder: PathBuf,
    pub shape: DatasetShape,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct DatasetShape {
    pub rows: usize,
    pub queries: usize,
    pub dimension: usize,
}

/// The records that a filter matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subset {
    All,
    Tenth,
    Thousandth,
}

const SEED: u64 = 4;

/// Number of clusters of synthetic vectors.
const CLUSTERS: usize = 500;
const DIMENSION: usize = 384;

/// Length of the noise that is added to a unit vector.
const NOISE: f32 = 0.25;

const WORDS: [&str; 16] = [
    "parser", "segment", "worker", "garden", "harbour", "index", "ledger", "signal", "mountain",
    "buffer", "kernel", "letter", "journey", "schema", "window", "thread",
];

impl Subset {
    pub(crate) const ALL: [Subset; 3] = [Subset::All, Subset::Tenth, Subset::Thousandth];

    /// The metadata key to filter by. The rivals' scripts use the same names.
    pub(crate) fn key(self) -> Option<&'static str> {
        match self {
            Self::All => None,
            Self::Tenth => Some("tenth"),
            Self::Thousandth => Some("thousandth"),
        }
    }

    /// The distance of rows with the same value of the key.
    pub(crate) fn stride(self) -> usize {
        match self {
            Self::All => 1,
            Self::Tenth => 10,
            Self::Thousandth => 1000,
        }
    }
}

impl Data {
    /// Writes the files. The last of the real vectors become queries; the others become records,
    /// with mixtures of two of them until there are enough. Without real vectors, both are
    /// synthetic.
    pub(crate) fn generate(
        folder: PathBuf,
        rows: usize,
        queries: usize,
        real: Option<&Path>,
    ) -> Result<Self> {
        fs::create_dir_all(&folder)?;
        let mut rng = Rng::with_seed(SEED);
        let known = match real {
            Some(path) => npy::read(path)?,
            None => clusters(&mut rng, CLUSTERS + queries),
        };
        ensure!(known.rows() > queries, "too few vectors for {queries} queries");
        let keep = known.rows() - queries;
        let shape = DatasetShape { rows, queries, dimension: known.columns };

        let mut file = BufWriter::new(fs::File::create(folder.join("vectors.f32"))?);
        for row in 0..rows {
            let vector = match real {
                Some(_) if row < keep => unit(known.row(row).to_vec()),
                Some(_) => mixed(&mut rng, &known, keep),
                None => blurred(&mut rng, known.row(row % keep)),
            };
            write_floats(&mut file, &vector)?;
        }
        file.flush()?;
        let mut file = BufWriter::new(fs::File::create(folder.join("queries.f32"))?);
        for row in keep..known.rows() {
            write_floats(&mut file, &unit(known.row(row).to_vec()))?;
        }
        file.flush()?;
        let documents: String = (0..rows).map(|row| document(row) + "\n").collect();
        fs::write(folder.join("documents.txt"), documents)?;
        fs::write(folder.join("shape.json"), serde_json::to_string(&shape)?)?;
        Ok(Self { folder, shape })
    }

    pub(crate) fn open(folder: PathBuf) -> Result<Self> {
        let shape = fs::read_to_string(folder.join("shape.json"))?;
        Ok(Self { shape: serde_json::from_str(&shape)?, folder })
    }

    /// All vectors as little-endian f32.
    pub(crate) fn vector_bytes(&self) -> Result<Vec<u8>> {
        Ok(fs::read(self.folder.join("vectors.f32"))?)
    }

    pub(crate) fn vectors(&self) -> Result<Matrix> {
        self.matrix("vectors.f32")
    }

    pub(crate) fn queries(&self) -> Result<Matrix> {
        self.matrix("queries.f32")
    }

    pub(crate) fn documents(&self) -> Result<Vec<String>> {
        let text = fs::read_to_string(self.folder.join("documents.txt"))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Total size of vectors, ids, documents and metadata.
    pub(crate) fn ingested_bytes(&self) -> Result<u64> {
        let vectors = 4 * self.shape.rows * self.shape.dimension;
        let documents: usize = self.documents()?.iter().map(String::len).sum();
        let others = (0..self.shape.rows).map(|row| {
            record_id(row).len() + metadata(row).map_or(0, |metadata| metadata.as_str().len())
        });
        Ok((vectors + documents + others.sum::<usize>()) as u64)
    }

    fn matrix(&self, name: &str) -> Result<Matrix> {
        let bytes = fs::read(self.folder.join(name))?;
        let four = |four: &[u8]| f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        let values = bytes.chunks_exact(4).map(four).collect();
        Ok(Matrix { columns: self.shape.dimension, values })
    }
}

pub(crate) fn record_id(row: usize) -> String {
    format!("record-{row}")
}

pub(crate) fn metadata(row: usize) -> Result<Metadata> {
    let text = format!(r#"{{"tenth":{},"thousandth":{}}}"#, row % 10, row % 1000);
    Metadata::parse(&text).context("invalid metadata")
}

fn document(row: usize) -> String {
    let word = |step: usize| WORDS[(row / step + row) % WORDS.len()];
    format!("record {row}: the {} of the {} by the {}", word(3), word(7), word(31))
}

/// A random mixture of two real vectors, with noise.
fn mixed(rng: &mut Rng, known: &Matrix, keep: usize) -> Vec<f32> {
    let (one, other) = (known.row(rng.usize(..keep)), known.row(rng.usize(..keep)));
    let part = 0.3 + 0.4 * rng.f32();
    let mix = one.iter().zip(other).map(|(a, b)| part * a + (1.0 - part) * b).collect();
    blurred(rng, &unit(mix))
}

fn blurred(rng: &mut Rng, centre: &[f32]) -> Vec<f32> {
    let noise = unit(centre.iter().map(|_| bell(rng)).collect());
    unit(centre.iter().zip(noise).map(|(value, noise)| value + NOISE * noise).collect())
}

/// Cluster centers and queries, both scattered around a few topics so that queries have neighbors.
fn clusters(rng: &mut Rng, count: usize) -> Matrix {
    let topics: Vec<Vec<f32>> =
        (0..20).map(|_| unit((0..DIMENSION).map(|_| bell(rng)).collect())).collect();
    let values = (0..count).flat_map(|at| {
        let beside = unit((0..DIMENSION).map(|_| bell(rng)).collect());
        unit(topics[at % topics.len()].iter().zip(beside).map(|(a, b)| a + b).collect())
    });
    Matrix { columns: DIMENSION, values: values.collect() }
}

/// Approximately normally distributed.
fn bell(rng: &mut Rng) -> f32 {
    (0..6).map(|_| rng.f32()).sum::<f32>() - 3.0
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.iter_mut().for_each(|value| *value /= length);
    vector
}

fn write_floats(file: &mut impl Write, vector: &[f32]) -> Result<()> {
    let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
    Ok(file.write_all(&bytes)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn synthetic_data_is_deterministic() {
        let scratch = tempfile::tempdir().unwrap();
        let make = |name: &str| Data::generate(scratch.path().join(name), 50, 5, None).unwrap();
        let (one, other) = (make("one"), make("other"));
        assert_eq!(one.vectors().unwrap(), other.vectors().unwrap());
        assert_eq!(one.queries().unwrap().rows(), 5);
        assert_eq!(one.documents().unwrap().len(), 50);
        assert!(one.ingested_bytes().unwrap() > 50 * 384 * 4);
        let again = Data::open(one.folder.clone()).unwrap();
        assert_eq!(again.shape.rows, 50);
        for row in 0..50 {
            let length: f32 =
                again.vectors().unwrap().row(row).iter().map(|value| value * value).sum();
            assert!((length - 1.0).abs() < 1e-4);
        }
    }
}
