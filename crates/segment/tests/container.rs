//! The container format: damage and power loss.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolate_types::InWorker;
use isolith_segment::storage::lossy::LossyStorage;
use isolith_segment::storage::{Disk, Storage};
use isolith_segment::{
    Container, ContainerWriter, PublishedSegment, SegmentError, SegmentKind, remove_leftovers,
};

const BLOCK: usize = 64 * 1024;

/// Two sections: a short one and one of `length` bytes.
fn publish(
    storage: &dyn Storage,
    name: &str,
    length: usize,
) -> Result<PublishedSegment, SegmentError> {
    let mut writer = ContainerWriter::create(storage, name, SegmentKind::Vector, 3)?;
    writer.begin_section("short")?;
    writer.write(b"hello")?;
    writer.begin_section("long")?;
    for piece in payload(length).chunks(1000) {
        writer.write(piece)?;
    }
    writer.finish()
}

fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 7 + i / 251) as u8).collect()
}

fn open(path: &Path) -> Result<Container, SegmentError> {
    Container::open(path, SegmentKind::Vector, None, InWorker::in_process())
}

/// Opens the file and compares all its content.
fn read(path: &Path, length: usize) -> Result<(), SegmentError> {
    let container = open(path)?;
    container.verify()?;
    assert_eq!(container.bytes(container.section("short")?)?, b"hello");
    assert_eq!(container.bytes(container.section("long")?)?, payload(length));
    Ok(())
}

fn published(length: usize) -> (tempfile::TempDir, PathBuf, PublishedSegment) {
    let folder = tempfile::tempdir().unwrap();
    let published = publish(&Disk::new(folder.path()), "one", length).unwrap();
    let path = folder.path().join("one");
    (folder, path, published)
}

#[test]
fn round_trips() {
    for length in [0, 1, 63, 1000, BLOCK - 192, BLOCK, 3 * BLOCK + 17] {
        let (folder, path, published) = published(length);
        read(&path, length).unwrap();
        let container = open(&path).unwrap();
        assert_eq!((container.version(), container.checksum()), (3, published.checksum));
        assert_eq!(fs::metadata(&path).unwrap().len(), published.bytes);
        assert!(container.sections().all(|(_, range)| range.start % 64 == 0));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary files");
    }
}

#[test]
fn container_without_sections_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    ContainerWriter::create(&disk, "one", SegmentKind::Text, 1).unwrap().finish().unwrap();
    let path = folder.path().join("one");
    let container =
        Container::open(&path, SegmentKind::Text, None, InWorker::in_process()).unwrap();
    container.verify().unwrap();
    assert!(container.section("short").unwrap_err().is_damage());
}

#[test]
fn detects_a_flipped_bit_in_any_byte() {
    let (_folder, path, _) = published(100);
    let sound = fs::read(&path).unwrap();
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, &bytes).unwrap();
        let error = read(&path, 100).expect_err(&format!("byte {at} is not covered by a checksum"));
        assert!(error.is_damage(), "byte {at}: {error}");
    }
}

#[test]
fn detects_wrong_lengths() {
    let (_folder, path, _) = published(BLOCK);
    let sound = fs::read(&path).unwrap();
    let cuts = (0..200).chain(sound.len() - 200..sound.len()).chain([BLOCK, BLOCK + 64]);
    for cut in cuts {
        fs::write(&path, &sound[..cut]).unwrap();
        assert!(open(&path).unwrap_err().is_damage(), "cut at {cut}");
    }
    for more in [1, 64, 1000, BLOCK] {
        fs::write(&path, [sound.as_slice(), &vec![0; more]].concat()).unwrap();
        assert!(open(&path).unwrap_err().is_damage(), "{more} more");
    }
    fs::write(&path, [sound.as_slice(), &sound].concat()).unwrap();
    assert!(open(&path).unwrap_err().is_damage(), "twice");
}

#[test]
fn rejects_other_files() {
    let (folder, path, first) = published(100);
    let token = InWorker::in_process();
    let error = Container::open(&path, SegmentKind::Text, None, token).unwrap_err();
    assert!(matches!(error, SegmentError::WrongKind { .. }), "{error}");
    let error =
        Container::open(&path, SegmentKind::Vector, Some(first.checksum ^ 1), token).unwrap_err();
    assert!(matches!(error, SegmentError::WrongChecksum { .. }), "{error}");
    Container::open(&path, SegmentKind::Vector, Some(first.checksum), token).unwrap();

    for foreign in [vec![], vec![0; 63], vec![0; 4096], b"SQLite format 3\0".repeat(300)] {
        fs::write(&path, &foreign).unwrap();
        let error = open(&path).unwrap_err();
        assert!(matches!(error, SegmentError::NotASegment { .. }), "{error}");
    }
    let error = open(&folder.path().join("missing")).unwrap_err();
    assert!(matches!(error, SegmentError::Io { .. }) && !error.is_damage(), "{error}");
}

#[test]
fn verifies_blocks_on_first_use() {
    let (_folder, path, _) = published(4 * BLOCK);
    let mut bytes = fs::read(&path).unwrap();
    bytes[2 * BLOCK + 5] ^= 1;
    fs::write(&path, &bytes).unwrap();

    let container = open(&path).unwrap();
    let long = container.section("long").unwrap();
    container.bytes(long.start..2 * BLOCK).unwrap();
    for _ in 0..2 {
        let error = container.bytes(2 * BLOCK - 1..2 * BLOCK + 1).unwrap_err();
        assert!(matches!(error, SegmentError::Damaged { .. }), "{error}");
    }
    container.bytes(3 * BLOCK..long.end).unwrap();
    assert!(container.verify().is_err());
    assert!(container.bytes(0..bytes.len()).is_err(), "the checksum table is not content");
    assert!(container.bytes(usize::MAX - 1..usize::MAX).is_err());
}

#[test]
fn rejects_data_without_section_and_duplicate_names() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    let mut writer = ContainerWriter::create(&disk, "one", SegmentKind::Text, 1).unwrap();
    assert!(writer.write(b"x").is_err());
    writer.begin_section("a").unwrap();
    assert!(writer.begin_section("a").is_err());
    drop(writer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "a dropped build leaves no files");
}

#[test]
fn removes_only_old_leftovers() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    publish(&disk, "one", 10).unwrap();
    disk.create(".tmp-0123456789abcdef").unwrap().write_all(b"half").unwrap();
    disk.create(".tmp-mine").unwrap().write_all(b"kept").unwrap();
    assert_eq!(remove_leftovers(&disk, Duration::from_secs(3600)).unwrap(), 0);
    assert_eq!(remove_leftovers(&disk, Duration::ZERO).unwrap(), 1);
    read(&folder.path().join("one"), 10).unwrap();
}

/// Pseudo-random bits.
fn bits(mut state: u64) -> impl FnMut() -> bool {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 63 == 1
    }
}

#[test]
fn power_loss_leaves_a_complete_segment_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("after");
    let length = 2 * BLOCK + 100;
    let whole = LossyStorage::new();
    publish(&whole, "one", length).unwrap();
    let operations = whole.operations();
    let mut survived = 0;

    for (point, fate) in (0..=operations).flat_map(|point| (0..8).map(move |fate| (point, fate))) {
        let lossy = LossyStorage::new();
        lossy.fail_after(point);
        let outcome = publish(&lossy, "one", length);
        assert_eq!(outcome.is_ok(), point == operations);
        // Unsynced changes are all lost, all kept, or some of each.
        match fate {
            0 => lossy.crash(),
            1 => lossy.crash_keeping(|| true),
            seed => lossy.crash_keeping(bits(seed)),
        }
        match lossy.contents("one") {
            Some(bytes) => {
                fs::write(&path, bytes).unwrap();
                read(&path, length).unwrap_or_else(|error| panic!("{point}/{fate}: {error}"));
                survived += 1;
            }
            None => assert!(outcome.is_err(), "{point}/{fate}: a published file is missing"),
        }
        remove_leftovers(&lossy, Duration::ZERO).unwrap();
        assert!(lossy.list().unwrap().iter().all(|entry| entry.name == "one"));
    }
    assert!(survived > 8, "some crashes must be after the rename");
}

#[test]
fn does_not_publish_a_file_that_reads_back_differently() {
    let storage = CorruptingStorage(LossyStorage::new());
    let error = publish(&storage, "one", BLOCK).unwrap_err();
    assert!(matches!(error, SegmentError::Damaged { .. }), "{error}");
    assert!(storage.list().unwrap().is_empty());
}

/// A disk that returns a wrong byte.
struct CorruptingStorage(LossyStorage);

impl Storage for CorruptingStorage {
    fn create(
        &self,
        name: &str,
    ) -> std::io::Result<Box<dyn isolith_segment::storage::StorageFile>> {
        self.0.create(name)
    }

    fn open(&self, name: &str) -> std::io::Result<Box<dyn Read + Send>> {
        let mut bytes = Vec::new();
        self.0.open(name)?.read_to_end(&mut bytes)?;
        bytes[1000] ^= 4;
        Ok(Box::new(std::io::Cursor::new(bytes)))
    }

    fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> std::io::Result<()> {
        self.0.remove(name)
    }

    fn list(&self) -> std::io::Result<Vec<isolith_segment::storage::StorageEntry>> {
        self.0.list()
    }

    fn sync_folder(&self) -> std::io::Result<()> {
        self.0.sync_folder()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path(name)
    }
}
