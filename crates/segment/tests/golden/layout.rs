//! Parses the golden files as described in docs/format.md, without the code of this crate.

use std::collections::BTreeMap;

use isolith_segment::text::Analyzer;
use isolith_types::Metric;

use crate::golden;
use crate::inputs::{
    EDGES, FILES, Input, NODES, ROWS, chunks, is_generated, row_and_change, symbols, texts, vector,
};

const BLOCK: usize = 65_536;

fn u16_at(bytes: &[u8], at: usize) -> usize {
    u16::from_le_bytes(*bytes[at..].first_chunk().unwrap()).into()
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize
}

fn f32_at(bytes: &[u8], at: usize) -> f32 {
    f32::from_bits(u32_at(bytes, at))
}

fn f32s(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|four| f32_at(four, 0)).collect()
}

/// Checks the container. Returns the names of its sections in order, and their contents.
fn sections(bytes: &[u8], kind: u32) -> (Vec<String>, BTreeMap<String, &[u8]>) {
    let (header, trailer) = (&bytes[..64], &bytes[bytes.len() - 64..]);
    assert_eq!(&header[..8], b"ISLTSEG\0");
    assert_eq!(
        [8, 12, 16, 20].map(|at| u32_at(header, at)),
        [1, kind, if kind == 4 { 2 } else { 1 }, BLOCK as u32]
    );
    assert!(header[24..60].iter().all(|byte| *byte == 0));
    assert_eq!(u32_at(header, 60), crc32c::crc32c(&header[..60]));

    assert_eq!(&trailer[..8], b"ISLTEND\0");
    let [directory_at, directory_bytes, table_at, blocks, length] =
        [8, 16, 24, 32, 40].map(|at| u64_at(trailer, at));
    assert!(trailer[52..60].iter().all(|byte| *byte == 0));
    assert_eq!(u32_at(trailer, 60), crc32c::crc32c(&trailer[..60]));
    assert_eq!((length, table_at), (bytes.len(), directory_at + directory_bytes));
    let table = &bytes[table_at..length - 64];
    assert_eq!(u32_at(trailer, 48), crc32c::crc32c(table));
    let checksums: Vec<u32> = bytes[..table_at].chunks(BLOCK).map(crc32c::crc32c).collect();
    assert_eq!(checksums.len(), blocks);
    assert_eq!(table, checksums.iter().flat_map(|sum| sum.to_le_bytes()).collect::<Vec<_>>());

    let mut directory = &bytes[directory_at..table_at];
    let count = u32_at(directory, 0);
    directory = &directory[4..];
    let (mut names, mut found, mut end) = (Vec::new(), BTreeMap::new(), 64);
    for _ in 0..count {
        let (name, rest) = directory[2..].split_at(u16_at(directory, 0));
        let (start, length) = (u64_at(rest, 0), u64_at(rest, 8));
        assert_eq!(start, usize::next_multiple_of(end, 64));
        assert!(bytes[end..start].iter().all(|byte| *byte == 0));
        end = start + length;
        names.push(String::from_utf8(name.to_vec()).unwrap());
        found.insert(names.last().unwrap().clone(), &bytes[start..end]);
        directory = &rest[16..];
    }
    assert!(directory.is_empty());
    assert_eq!(directory_at, end.next_multiple_of(64));
    (names, found)
}

fn column(numbers: impl Iterator<Item = u64>) -> Vec<u8> {
    numbers.flat_map(u64::to_le_bytes).collect()
}

#[test]
fn vector_segments_have_the_documented_layout() {
    for input in Input::ALL {
        let Input::Vector(metric, dimension) = input else { continue };
        let (_, bytes) = golden(input);
        let (names, sections) = sections(&bytes, 1);
        assert_eq!(names, ["vectors", "rows", "changes", "codes", "parameters", "sum"]);
        assert_eq!(sections["rows"], column((0..ROWS).map(|at| row_and_change(at).0)));
        assert_eq!(sections["changes"], column((0..ROWS).map(|at| row_and_change(at).1)));
        let bits = if dimension < 64 { 0 } else { dimension.next_multiple_of(32) };
        let parameters = sections["parameters"];
        let metric_number = match metric {
            Metric::Cosine => 1,
            Metric::L2 => 2,
            Metric::Dot => 3,
        };
        assert_eq!(u64_at(parameters, 0), ROWS);
        let words = [8, 12, 16, 20].map(|at| u32_at(parameters, at));
        assert_eq!(words, [dimension, metric_number, bits, 0]);
        let seed = u64_at(parameters, 24) as u64;
        let centroid = f32s(&parameters[32..]);
        let stored: Vec<Vec<f32>> = (0..ROWS).map(|at| stored(metric, dimension, at)).collect();
        let sum = |i: usize| stored.iter().map(|vector| f64::from(vector[i])).sum::<f64>();
        for (i, total) in f32s(sections["sum"]).into_iter().enumerate() {
            assert!((f64::from(total) - sum(i)).abs() < 1e-4);
            assert!((f64::from(centroid[i]) - sum(i) / ROWS as f64).abs() < 1e-5);
        }
        assert_eq!(centroid.len(), dimension as usize);
        assert_eq!(sections["sum"].len(), 4 * centroid.len());

        let stride = 16 + centroid.len().next_multiple_of(16);
        assert_eq!(sections["vectors"].len(), ROWS * stride);
        let block = bits as usize / 8 * 32 + 256;
        let blocks = if bits == 0 { 0 } else { ROWS.div_ceil(32) };
        assert_eq!(sections["codes"].len(), blocks * block);
        for (at, vector) in stored.iter().enumerate() {
            let record = &sections["vectors"][at * stride..][..stride];
            check_record(record, metric, vector, &centroid);
            if bits > 0 {
                let codes = &sections["codes"][at / 32 * block..][..block];
                let centered =
                    vector.iter().zip(&centroid).map(|(o, c)| f64::from(o - c)).collect();
                check_code(codes, at % 32, &rotated(centered, bits as usize, seed));
                assert_eq!(f32_at(codes, block - 256 + 4 * (at % 32)), f32_at(record, 12));
            }
        }
    }
}

/// The vector, normalized for cosine.
fn stored(metric: Metric, dimension: u32, position: usize) -> Vec<f32> {
    let vector = vector(position, dimension);
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    let length = if metric == Metric::Cosine { length } else { 1.0 };
    vector.iter().map(|x| (f64::from(*x) / length) as f32).collect()
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(x, y)| x * y).sum()
}

fn check_record(record: &[u8], metric: Metric, vector: &[f32], centroid: &[f32]) {
    let doubles = |numbers: &[f32]| numbers.iter().copied().map(f64::from).collect::<Vec<_>>();
    let centered: Vec<f64> = vector.iter().zip(centroid).map(|(o, c)| f64::from(o - c)).collect();
    let [scale, residual, norm, addend] = [0, 4, 8, 12].map(|at| f64::from(f32_at(record, at)));
    let largest = centered.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    assert!((scale * 127.0 - largest).abs() < 1e-5);
    let components: Vec<f64> = record[16..].iter().map(|byte| f64::from(*byte as i8)).collect();
    assert!(components[vector.len()..].iter().all(|padding| *padding == 0.0));
    let rest: Vec<f64> = centered.iter().zip(&components).map(|(v, q)| v - scale * q).collect();
    assert!(rest.iter().all(|rest| rest.abs() <= scale * 0.501));
    for (stated, exact) in [(residual, dot(&rest, &rest)), (norm, dot(&centered, &centered))] {
        let exact = exact.sqrt();
        assert!((exact..exact * 1.00001 + 1e-5).contains(&stated), "{stated} {exact}");
    }
    let expected = match metric {
        Metric::L2 => dot(&centered, &centered),
        Metric::Cosine | Metric::Dot => -dot(&doubles(centroid), &doubles(vector)),
    };
    assert!((addend - expected).abs() < 1e-5, "{addend} {expected}");
}

/// Four steps of random signs, each followed by a Walsh-Hadamard transform.
fn rotated(mut values: Vec<f64>, bits: usize, mut seed: u64) -> Vec<f64> {
    values.resize(bits, 0.0);
    let mixed = 1 << bits.ilog2();
    for step in 0..4 {
        for value in &mut values {
            *value *= if split_mix(&mut seed) >> 63 == 0 { 1.0 } else { -1.0 };
        }
        let start = if step % 2 == 0 { 0 } else { bits - mixed };
        transform(&mut values[start..start + mixed]);
    }
    values
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn transform(values: &mut [f64]) {
    let length = values.len();
    let signs = |row: usize, column: usize| (row & column).count_ones().is_multiple_of(2);
    let sums: Vec<f64> = (0..length)
        .map(|row| {
            (0..length).map(|at| if signs(row, at) { values[at] } else { -values[at] }).sum()
        })
        .collect();
    let scale = (length as f64).sqrt();
    values.iter_mut().zip(sums).for_each(|(value, sum)| *value = sum / scale);
}

fn check_code(block: &[u8], slot: usize, rotated: &[f64]) {
    for (bit, value) in rotated.iter().enumerate().filter(|(_, value)| value.abs() > 1e-5) {
        let byte = block[32 * (bit / 8) + slot];
        assert_eq!(byte >> (bit % 8) & 1 == 1, *value >= 0.0, "bit {bit} of {slot}");
    }
    let slope = f64::from(f32_at(block, block.len() - 128 + 4 * slot));
    let magnitudes: f64 = rotated.iter().map(|x| x.abs()).sum();
    assert!((slope - dot(rotated, rotated) / magnitudes).abs() < 1e-5);
}

#[test]
fn text_segments_have_the_documented_layout() {
    for (analyzer, number) in [(Analyzer::Code, 1), (Analyzer::Prose, 2)] {
        let (_, bytes) = golden(Input::Text(analyzer));
        let (names, sections) = sections(&bytes, 2);
        let files = ["term", "idx", "pos", "fieldnorm", "fast", "store"];
        let expected = ["parameters", "rows", "changes"].map(str::to_owned).into_iter();
        let expected: Vec<String> =
            expected.chain(files.iter().map(|file| format!("index.{file}"))).collect();
        assert_eq!(names, expected);
        let rows = texts(analyzer).len();
        let parameters = sections["parameters"];
        assert_eq!((parameters.len(), u64_at(parameters, 0)), (16, rows));
        assert_eq!((u32_at(parameters, 8), u32_at(parameters, 12)), (number, 0));
        assert_eq!(sections["rows"], column((0..rows).map(|at| row_and_change(at).0)));
        assert_eq!(sections["changes"], column((0..rows).map(|at| row_and_change(at).1)));
    }
}

#[test]
fn graph_segments_have_the_documented_layout() {
    let (_, bytes) = golden(Input::Graph);
    let (names, sections) = sections(&bytes, 3);
    let mut expected = vec!["nodes".to_owned()];
    let lists = ["offsets", "targets", "kinds", "edges"];
    expected.extend(["out", "in"].iter().flat_map(|dir| lists.map(|list| format!("{dir}.{list}"))));
    assert_eq!(names, expected);
    assert_eq!(sections["nodes"], NODES.map(i64::to_le_bytes).as_flattened());
    let reversed = EDGES.map(|(from, kind, to, edge)| (to, kind, from, edge));
    for (direction, mut edges) in [("out", EDGES), ("in", reversed)] {
        edges.sort_unstable();
        let section = |list: &str| sections[&format!("{direction}.{list}")];
        let before = |node: u32| edges.iter().filter(|edge| edge.0 < node).count() as u32;
        let offsets: Vec<u8> =
            (0..=NODES.len() as u32).flat_map(|n| before(n).to_le_bytes()).collect();
        assert_eq!(section("offsets"), offsets);
        assert_eq!(section("targets"), edges.map(|edge| edge.2.to_le_bytes()).as_flattened());
        assert_eq!(section("kinds"), edges.map(|edge| edge.1.to_le_bytes()).as_flattened());
        assert_eq!(section("edges"), edges.map(|edge| edge.3.to_le_bytes()).as_flattened());
    }
}

#[test]
fn source_segments_have_the_documented_layout() {
    let (_, bytes) = golden(Input::Source);
    let (names, sections) = sections(&bytes, 4);
    let expected = [
        "texts",
        "text.ends",
        "ids",
        "roots",
        "paths",
        "path.ends",
        "chunk.ends",
        "rows",
        "changes",
        "starts",
        "generated",
        "lines",
        "names",
        "name.ends",
        "by.row",
    ];
    assert_eq!(names, expected);
    let short =
        |numbers: Vec<u32>| -> Vec<u8> { numbers.into_iter().flat_map(u32::to_le_bytes).collect() };
    let ends = |lengths: Vec<usize>| -> Vec<u32> {
        let sum = |sum: &mut u32, length: usize| {
            *sum += length as u32;
            Some(*sum)
        };
        lengths.into_iter().scan(0, sum).collect()
    };
    let defined = symbols();
    let all = FILES.map(|(id, .., starts, _)| chunks(id, starts, &defined)).concat();
    assert_eq!(sections["texts"], FILES.map(|file| file.4).concat().as_bytes());
    let text_ends = ends(FILES.iter().map(|file| file.4.len()).collect());
    assert_eq!(sections["text.ends"], column(text_ends.into_iter().map(u64::from)));
    assert_eq!(sections["ids"], column(FILES.iter().map(|file| file.0)));
    assert_eq!(sections["roots"], column(FILES.iter().map(|file| file.1)));
    assert_eq!(sections["paths"], FILES.map(|file| file.2).concat().as_bytes());
    let path_ends = ends(FILES.iter().map(|file| file.2.len()).collect());
    assert_eq!(sections["path.ends"], short(path_ends));
    let chunk_ends = ends(FILES.iter().map(|file| file.3.len()).collect());
    assert_eq!(sections["chunk.ends"], short(chunk_ends));
    assert_eq!(sections["rows"], column(all.iter().map(|chunk| chunk.row)));
    assert_eq!(sections["changes"], column(all.iter().map(|chunk| chunk.change)));
    assert_eq!(sections["starts"], short(all.iter().map(|chunk| chunk.start).collect()));
    assert_eq!(sections["generated"], FILES.map(|file| u8::from(is_generated(file.0))));
    let lines = all.iter().flat_map(|chunk| [chunk.lines.0, chunk.lines.1]);
    assert_eq!(sections["lines"], short(lines.collect()));
    let one = [short(vec![0]), vec![0], short(vec![2, 7]), "größe".into()].concat();
    let first = [one, vec![10], short(vec![2, 1]), b"A".to_vec()].concat();
    let second = [short(vec![7]), "möbel".into()].concat();
    let names = [&first, &second, &first, &first].map(Vec::clone);
    assert_eq!(sections["names"], names.concat());
    let name_ends = ends(names.iter().map(Vec::len).collect());
    assert_eq!(sections["name.ends"], short(name_ends));
    let mut by_row: Vec<u32> = (0..all.len() as u32).collect();
    by_row.sort_by_key(|at| all[*at as usize].row);
    assert_eq!(sections["by.row"], short(by_row));
}
