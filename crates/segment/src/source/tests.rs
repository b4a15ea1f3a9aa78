use super::*;
use crate::storage::Disk;

fn token() -> InWorker {
    InWorker::in_process()
}

const fn chunk(row: u64, change: u64, start: u32) -> SourceChunk<'static> {
    SourceChunk { row, change, start, lines: (1, 1), parent: None, symbols: &[] }
}

/// Two files, one of them without a line, and one chunk that is the rest of a file.
const FILES: [(u64, &str, &[SourceChunk<'static>], &str); 3] = [
    (
        3,
        "src/ä.rs",
        &[
            SourceChunk { lines: (1, 1), ..chunk(20, 21, 0) },
            SourceChunk { lines: (2, 3), parent: Some("m"), ..chunk(21, 22, 8) },
        ],
        "fn a();\nfn b();\n",
    ),
    (4, "empty", &[], ""),
    (9, "b.py", &[chunk(7, 30, 0)], "\n\nimport ä\n"),
];

fn written(place: &Path) -> PublishedSegment {
    let disk = Disk::new(place);
    let mut builder = SourceBuilder::create(&disk, "s", token()).unwrap();
    for (id, path, chunks, text) in FILES {
        let (root, generated) = (id + 100, id == 4);
        builder.push(&SourceFile { id, root, path, generated, chunks, text }).unwrap();
    }
    let (published, rows) = builder.finish().unwrap();
    assert_eq!(rows, 3);
    published
}

fn open(place: &Path, published: &PublishedSegment) -> Result<SourceSegment, SegmentError> {
    SourceSegment::open(&place.join("s"), Some(published.checksum), token())
}

#[test]
fn files_are_read_as_they_were_written() {
    let place = tempfile::tempdir().unwrap();
    let published = written(place.path());
    let segment = open(place.path(), &published).unwrap();
    assert_eq!((segment.len(), segment.files()), (3, 3));
    for (at, (id, path, chunks, text)) in FILES.into_iter().enumerate() {
        let file = segment.file(at).unwrap();
        assert_eq!((file.id, file.root, file.path), (id, id + 100, path));
        let rows: Vec<u64> = chunks.iter().map(|chunk| chunk.row).collect();
        let starts: Vec<u32> = chunks.iter().map(|chunk| chunk.start).collect();
        assert_eq!((file.rows, file.starts), (rows.as_slice(), starts.as_slice()));
        assert_eq!(file.generated, id == 4);
        assert_eq!(segment.text(at).unwrap(), text.as_bytes());
    }
    assert!(matches!(segment.file(3), Err(SegmentError::Invalid { .. })));
    assert!(matches!(segment.text(3), Err(SegmentError::Invalid { .. })));
}

#[test]
fn chunks_are_found_by_row() {
    let place = tempfile::tempdir().unwrap();
    let segment = open(place.path(), &written(place.path())).unwrap();
    let texts = [(20, "fn a();\n"), (21, "fn b();\n"), (7, "\n\nimport ä\n")];
    let chunks = FILES.iter().enumerate();
    let chunks = chunks.flat_map(|(file, it)| it.2.iter().map(move |chunk| (file, chunk)));
    for ((file, chunk), (row, text)) in chunks.zip(texts) {
        assert_eq!(chunk.row, row);
        let at = segment.chunk_of(row).unwrap();
        let facts = segment.facts(at).unwrap();
        assert_eq!((segment.file_of(at), facts.change), (file, chunk.change));
        assert_eq!((facts.start_line, facts.end_line), chunk.lines);
        assert_eq!(facts.parent.as_deref(), chunk.parent);
        assert_eq!(segment.chunk_text(at).unwrap(), text);
    }
    for row in [0, 8, 22] {
        assert_eq!(segment.chunk_of(row), None);
    }
    assert!(matches!(segment.facts(3), Err(SegmentError::Invalid { .. })));
    assert!(matches!(segment.chunk_text(3), Err(SegmentError::Invalid { .. })));
}

#[test]
fn files_are_found_by_the_versions_of_their_chunks() {
    let place = tempfile::tempdir().unwrap();
    let segment = open(place.path(), &written(place.path())).unwrap();
    for (versions, expected) in [
        (&[][..], &[][..]),
        (&[(21, 22)], &[0]),
        (&[(21, 22), (7, 30), (20, 21)], &[0, 2]),
        (&[(7, 29), (8, 30)], &[]),
    ] {
        let found: Vec<usize> = segment.files_with(versions).iter().collect();
        assert_eq!(found, expected, "{versions:?}");
    }
}

#[test]
fn a_segment_without_files_is_valid() {
    let place = tempfile::tempdir().unwrap();
    let disk = Disk::new(place.path());
    let (published, rows) = SourceBuilder::create(&disk, "s", token()).unwrap().finish().unwrap();
    assert_eq!(rows, 0);
    let segment = open(place.path(), &published).unwrap();
    assert!(segment.is_empty());
    assert_eq!(segment.files(), 0);
    assert!(segment.files_with(&[(1, 1)]).is_empty());
}

#[test]
fn every_changed_byte_and_every_truncation_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    let published = written(place.path());
    let path = place.path().join("s");
    let bytes = std::fs::read(&path).unwrap();
    let read_all = || -> Result<(), SegmentError> {
        let segment = open(place.path(), &published)?;
        (0..segment.len()).try_for_each(|at| segment.facts(at).map(drop))?;
        (0..segment.files()).try_for_each(|at| segment.text(at).map(drop))
    };
    read_all().unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        std::fs::write(&path, &damaged).unwrap();
        assert!(read_all().is_err(), "changed at {at}");
        std::fs::write(&path, &bytes[..at]).unwrap();
        assert!(read_all().is_err(), "truncated at {at}");
    }
}

#[test]
fn sections_that_do_not_fit_together_are_refused() {
    let number = |number: u64| number.to_le_bytes().to_vec();
    let short = |number: u32| number.to_le_bytes().to_vec();
    // One file "a" with the text "x" and one chunk.
    let sound: [(&str, Vec<u8>); 15] = [
        ("texts", b"x".to_vec()),
        ("text.ends", number(1)),
        ("ids", number(5)),
        ("roots", number(1)),
        ("paths", b"a".to_vec()),
        ("path.ends", short(1)),
        ("chunk.ends", short(1)),
        ("rows", number(7)),
        ("changes", number(7)),
        ("starts", short(0)),
        ("generated", vec![0]),
        ("lines", number(0)),
        ("names", vec![]),
        ("name.ends", short(0)),
        ("by.row", short(0)),
    ];
    let place = tempfile::tempdir().unwrap();
    let disk = Disk::new(place.path());
    let opened = |name: &str, sections: &[(&str, Vec<u8>)]| {
        let mut writer = ContainerWriter::create(&disk, name, SegmentKind::Source, LAYOUT).unwrap();
        for (section, bytes) in sections {
            writer.begin_section(section).unwrap();
            writer.write(bytes).unwrap();
        }
        writer.finish().unwrap();
        SourceSegment::open(&place.path().join(name), None, token())
    };
    opened("sound", &sound).unwrap();
    for (at, (name, _)) in sound.iter().enumerate() {
        for bytes in [vec![], vec![0; 3], [2; 16].to_vec()] {
            if bytes == sound[at].1 {
                continue;
            }
            let mut sections = sound.clone();
            sections[at].1 = bytes.clone();
            // A path may be any text, as long as it is as long as its end says.
            let error = opened(&format!("{name}-{}", bytes.len()), &sections).unwrap_err();
            assert!(error.is_damage(), "{name} {bytes:?}: {error}");
        }
    }
}
