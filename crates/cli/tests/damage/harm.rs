//! One damage to one file.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use anyhow::Result;
use fastrand::Rng;

const BLOCK: u64 = 4096;

/// How a file is damaged; it can be printed and repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Harm {
    Flip { at: u64, bit: u8 },
    Zero { at: u64, length: u64 },
    Truncate { to: u64 },
    Delete,
    Append { length: u64 },
    Swap { first: u64, second: u64 },
}

impl Harm {
    /// Chooses a damage for a file of this length.
    pub(crate) fn choose(random: &mut Rng, length: u64) -> Self {
        let any = |random: &mut Rng| random.u64(0..length.max(1));
        match random.u8(..12) {
            0..=4 => Self::Flip { at: any(random), bit: random.u8(..8) },
            5..=7 => Self::Zero {
                at: any(random),
                length: *random.choice(&[16, 512, BLOCK]).unwrap_or(&16),
            },
            8 => Self::Truncate { to: any(random) },
            9 => Self::Delete,
            10 => Self::Append { length: random.u64(1..2 * BLOCK) },
            _ => {
                let block = |random: &mut Rng| random.u64(0..length.div_ceil(BLOCK).max(1)) * BLOCK;
                Self::Swap { first: block(random), second: block(random) }
            }
        }
    }

    pub(crate) fn apply(self, path: &Path) -> Result<()> {
        let open = || File::options().read(true).write(true).open(path);
        match self {
            Self::Delete => fs::remove_file(path)?,
            Self::Truncate { to } => open()?.set_len(to)?,
            Self::Append { length } => {
                let file = open()?;
                let mut random = Rng::with_seed(length);
                let garbage: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
                file.write_all_at(&garbage, file.metadata()?.len())?;
            }
            Self::Flip { at, bit } => {
                let file = open()?;
                let mut byte = [0];
                if file.read_at(&mut byte, at)? == 1 {
                    file.write_all_at(&[byte[0] ^ (1 << bit)], at)?;
                }
            }
            Self::Zero { at, length } => {
                let file = open()?;
                let length = length.min(file.metadata()?.len().saturating_sub(at));
                file.write_all_at(&vec![0; usize::try_from(length)?], at)?;
            }
            Self::Swap { first, second } => {
                let file = open()?;
                let mut all = fs::read(path)?;
                let end = |at: u64| usize::try_from((at + BLOCK).min(all.len() as u64));
                let (a, b) =
                    (usize::try_from(first)?..end(first)?, usize::try_from(second)?..end(second)?);
                let (one, other) = (all[a.clone()].to_vec(), all[b.clone()].to_vec());
                if one.len() == other.len() {
                    all[a].copy_from_slice(&other);
                    all[b].copy_from_slice(&one);
                    file.write_all_at(&all, 0)?;
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flip { at, bit } => write!(f, "bit {bit} of byte {at} flipped"),
            Self::Zero { at, length } => write!(f, "{length} bytes from {at} zeroed"),
            Self::Truncate { to } => write!(f, "cut to {to} bytes"),
            Self::Delete => f.write_str("deleted"),
            Self::Append { length } => write!(f, "{length} bytes of garbage appended"),
            Self::Swap { first, second } => {
                write!(f, "the blocks at {first} and {second} exchanged")
            }
        }
    }
}
