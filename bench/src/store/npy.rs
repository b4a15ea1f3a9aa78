//! Reads arrays that numpy saved.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// A matrix in row-major order.
#[derive(Debug, PartialEq)]
pub(crate) struct Matrix {
    pub columns: usize,
    pub values: Vec<f32>,
}

impl Matrix {
    pub(crate) fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    pub(crate) fn row(&self, at: usize) -> &[f32] {
        &self.values[at * self.columns..][..self.columns]
    }
}

/// Reads a two-dimensional array of float16 or float32.
pub(crate) fn read(path: &Path) -> Result<Matrix> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    parse(&bytes).with_context(|| format!("{} is not a supported numpy array", path.display()))
}

fn parse(bytes: &[u8]) -> Result<Matrix> {
    ensure!(bytes.starts_with(b"\x93NUMPY"), "the magic bytes are missing");
    // The length of the header has two bytes in version 1 and four in later versions.
    let (length, start) = match bytes.get(6..12) {
        Some([1, _, low, high, ..]) => (usize::from(u16::from_le_bytes([*low, *high])), 10),
        Some([_, _, a, b, c, d]) => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, 12),
        _ => bail!("it is truncated"),
    };
    let header = bytes.get(start..start + length).context("the header is truncated")?;
    let header = std::str::from_utf8(header)?;
    ensure!(header.contains("'fortran_order': False"), "it is in column-major order");
    let shape = header.split_once("'shape': (").and_then(|(_, rest)| rest.split_once(')'));
    let (shape, _) = shape.context("there is no shape")?;
    let shape: Vec<usize> = shape
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let [rows, columns] = shape[..] else { bail!("it is not two-dimensional") };
    let data = &bytes[start + length..];
    let values: Vec<f32> = if header.contains("'<f2'") {
        data.chunks_exact(2).map(|two| from_half(u16::from_le_bytes([two[0], two[1]]))).collect()
    } else if header.contains("'<f4'") {
        let four = |four: &[u8]| f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        data.chunks_exact(4).map(four).collect()
    } else {
        bail!("it is neither float16 nor float32");
    };
    ensure!(columns > 0 && values.len() == rows * columns, "its length does not match its shape");
    Ok(Matrix { columns, values })
}

fn from_half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let exponent = i32::from(bits >> 10 & 31);
    let fraction = f32::from(bits & 1023) / 1024.0;
    sign * match exponent {
        0 => fraction * 2f32.powi(-14),
        31 if fraction == 0.0 => f32::INFINITY,
        31 => f32::NAN,
        _ => (1.0 + fraction) * 2f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(kind: &str, data: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': (2, 2), }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn float16_and_float32_are_read() {
        let halves = [0x3c00u16, 0xc000, 0x0001, 0x3555].map(u16::to_le_bytes).concat();
        let matrix = parse(&saved("<f2", &halves)).unwrap();
        assert_eq!(matrix.columns, 2);
        assert_eq!(matrix.row(0), [1.0, -2.0]);
        assert_eq!(matrix.row(1), [5.960_464_5e-8, 0.333_251_95]);

        let floats = [1.5f32, 0.0, -3.0, 4.0].map(f32::to_le_bytes).concat();
        assert_eq!(parse(&saved("<f4", &floats)).unwrap().values, [1.5, 0.0, -3.0, 4.0]);
    }

    #[test]
    fn truncated_files_are_refused() {
        let floats = [1.5f32, 0.0, -3.0].map(f32::to_le_bytes).concat();
        assert!(parse(&saved("<f4", &floats)).is_err());
        assert!(parse(b"\x93NUMPY").is_err());
        assert!(parse(b"something else").is_err());
    }
}
