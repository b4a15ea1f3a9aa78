use std::fs;

use super::super::*;
use super::corpus::{random_records, token, write_segment};
use crate::storage::Disk;
use crate::{ContainerWriter, SegmentError, SegmentKind};

#[test]
fn detects_flipped_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_segment(folder.path(), "s.txt", Analyzer::Code, &random_records(40, 7));
    let sound = fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged");
    let edges = (0..200).chain(sound.len() - 200..sound.len());
    for at in edges.chain((0..sound.len()).step_by(97)) {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&damaged, &bytes).unwrap();
        let error = TextSegment::open(&damaged, None, token()).unwrap_err();
        assert!(error.is_damage(), "byte {at}: {error}");
    }
}

#[test]
fn rejects_truncated_extended_and_foreign_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_segment(folder.path(), "s.txt", Analyzer::Code, &random_records(40, 7));
    let sound = fs::read(&path).unwrap();
    let damaged = folder.path().join("damaged");
    let mut files: Vec<Vec<u8>> =
        (0..sound.len()).step_by(211).map(|end| sound[..end].to_vec()).collect();
    files.push([sound.as_slice(), b"x"].concat());
    files.push(b"SQLite format 3\0".repeat(100));
    files.push(vec![0; 100_000]);
    for bytes in files {
        fs::write(&damaged, &bytes).unwrap();
        let error = TextSegment::open(&damaged, None, token()).unwrap_err();
        // An empty file cannot be mapped.
        assert!(error.is_damage() || bytes.is_empty(), "{} bytes: {error}", bytes.len());
    }
}

#[test]
fn rejects_a_valid_file_with_another_checksum() {
    let folder = tempfile::tempdir().unwrap();
    let path = write_segment(folder.path(), "s.txt", Analyzer::Code, &random_records(4, 7));
    let checksum = TextSegment::open(&path, None, token()).unwrap().checksum();
    assert!(TextSegment::open(&path, Some(checksum), token()).is_ok());
    let other = TextSegment::open(&path, Some(!checksum), token()).unwrap_err();
    assert!(matches!(other, SegmentError::WrongChecksum { .. }), "{other}");
    let missing = TextSegment::open(&folder.path().join("none"), None, token()).unwrap_err();
    assert!(matches!(missing, SegmentError::Io { .. }), "{missing}");
}

#[test]
fn rejects_invalid_sections_with_correct_checksums() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    let rows = |count: u64| [count.to_le_bytes().as_slice(), &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
    let one = 7u64.to_le_bytes();
    let cases = [
        ("empty", SegmentKind::Text, 1, vec![]),
        ("kind", SegmentKind::Vector, 1, vec![("parameters", rows(0))]),
        ("version", SegmentKind::Text, 9, vec![("parameters", rows(0))]),
        ("parameters", SegmentKind::Text, 1, vec![("parameters", vec![1; 16])]),
        (
            "counts",
            SegmentKind::Text,
            1,
            vec![("parameters", rows(u64::MAX)), ("rows", one.to_vec()), ("changes", one.to_vec())],
        ),
        (
            "index",
            SegmentKind::Text,
            1,
            vec![("parameters", rows(1)), ("rows", one.to_vec()), ("changes", one.to_vec())],
        ),
    ];
    for (name, kind, version, sections) in cases {
        let mut writer = ContainerWriter::create(&disk, name, kind, version).unwrap();
        for (section, bytes) in sections {
            writer.begin_section(section).unwrap();
            writer.write(&bytes).unwrap();
        }
        writer.finish().unwrap();
        let error = TextSegment::open(&folder.path().join(name), None, token()).unwrap_err();
        assert!(error.is_damage(), "{name}: {error}");
    }
}
