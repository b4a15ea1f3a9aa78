//! Verifies the model and creates the lookup tables over its vocabulary, so that the program
//! has nothing to do at startup.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use sha2::{Digest, Sha256};
use table::{CHECKSUM, KEY_BYTES, Key, Slot, UNKNOWN, VOCABULARY_START};

#[path = "src/table.rs"]
mod table;

const MODEL: &str = "model/static-code-256.stem";
const CONTINUATION: &str = "##";

fn main() -> Result<(), Box<dyn Error>> {
    for input in ["build.rs", "src/table.rs", MODEL] {
        println!("cargo::rerun-if-changed={input}");
    }
    let model = fs::read(MODEL).map_err(|error| format!("{MODEL}: {error}"))?;
    check(&model)?;
    let pieces = pieces(&model)?;
    let out = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    for (name, continuing) in [("beginnings.bin", false), ("continuations.bin", true)] {
        let pieces: Vec<_> = pieces.iter().filter(|piece| piece.continuing == continuing).collect();
        let slots = fill(&pieces, &model)?;
        fs::write(Path::new(&out).join(name), slots.as_flattened())?;
    }
    Ok(())
}

fn check(model: &[u8]) -> Result<(), String> {
    let sum: String = Sha256::digest(model).iter().map(|byte| format!("{byte:02x}")).collect();
    if sum != CHECKSUM {
        return Err(format!(
            "wrong checksum of {MODEL} ({} bytes): {sum}, expected {CHECKSUM}",
            model.len()
        ));
    }
    Ok(())
}

struct Piece {
    key: Key,
    offset: u32,
    row: u16,
    continuing: bool,
}

fn pieces(model: &[u8]) -> Result<Vec<Piece>, Box<dyn Error>> {
    let header = model.get(..VOCABULARY_START).ok_or("the model is too short")?;
    let length = u32::from_le_bytes(header[20..].try_into()?) as usize;
    let vocabulary = model.get(VOCABULARY_START..VOCABULARY_START + length);
    let vocabulary = str::from_utf8(vocabulary.ok_or("the vocabulary is truncated")?)?;
    let mut offset = VOCABULARY_START;
    let mut pieces = Vec::new();
    for (row, line) in vocabulary.split('\n').enumerate() {
        let piece = line.strip_prefix(CONTINUATION).unwrap_or(line);
        if piece.is_empty() || piece.len() > KEY_BYTES {
            return Err(format!("piece {row} has {} bytes", piece.len()).into());
        }
        if (line == "[UNK]") != (row == usize::from(UNKNOWN)) {
            return Err(format!("row {row} is {line}").into());
        }
        let start = offset + line.len() - piece.len();
        let bytes = model[start..].first_chunk().ok_or("the model is too short")?;
        pieces.push(Piece {
            key: Key::of(bytes, piece.len()),
            offset: u32::try_from(start)?,
            row: u16::try_from(row)?,
            continuing: piece.len() < line.len(),
        });
        offset += line.len() + 1;
    }
    Ok(pieces)
}

/// At least half of the slots stay free, so that lookups take few steps.
fn fill(pieces: &[&Piece], model: &[u8]) -> Result<Vec<Slot>, String> {
    let mut slots = vec![Slot::default(); (2 * pieces.len()).next_power_of_two()];
    for piece in pieces {
        let (slot, hash) = table::slot(piece.key, piece.offset, piece.row);
        let mut at = hash as usize & (slots.len() - 1);
        while slots[at] != Slot::default() {
            at = (at + 1) & (slots.len() - 1);
        }
        slots[at] = slot;
    }
    for piece in pieces {
        if table::find(&slots, model, piece.key) != Some(piece.row) {
            return Err(format!("the lookup of row {} by its piece fails", piece.row));
        }
    }
    Ok(slots)
}
