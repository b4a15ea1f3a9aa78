//! Compares kernels and search strategies with each other.

use isolate_types::InWorker;
use isolith_types::Metric;

use super::rotation::Rotation;
use super::search::LivePositions;
use super::segment::LAYOUT;
use super::*;
use crate::kernel::Kernel;
use crate::storage::Disk;

const ROWS: usize = 700;

fn vector(seed: usize, dimension: usize) -> Vec<f32> {
    let component = |i: usize| {
        let mixed = ((seed * 70_001 + i) as u32).wrapping_mul(2_654_435_761);
        (mixed ^ mixed >> 15) as f32 / 2e9 - 0.7 + (seed % 5) as f32 * ((i * 7 + seed) % 3) as f32
    };
    (0..dimension).map(component).collect()
}

fn build(folder: &std::path::Path, name: &str, spec: VectorSpec, kernel: Kernel) -> u32 {
    let disk = Disk::new(folder);
    let mut builder = VectorBuilder::create(&disk, name, spec, InWorker::in_process()).unwrap();
    builder.kernel = kernel;
    for row in 0..ROWS {
        builder.push(row as u64, row as u64, &vector(row, spec.dimension as usize)).unwrap();
    }
    builder.finish().unwrap().0.checksum
}

#[test]
fn all_kernels_give_the_same_results() {
    for dimension in [1, 2, 3, 7, 100, 384, 1536] {
        for metric in [Metric::Cosine, Metric::L2, Metric::Dot] {
            let folder = tempfile::tempdir().unwrap();
            let spec = VectorSpec { dimension, metric };
            let checksums = [Kernel::plain(), Kernel::detect()]
                .map(|kernel| build(folder.path(), "one", spec, kernel));
            assert_eq!(checksums[0], checksums[1], "{metric} {dimension}");

            let path = folder.path().join("one");
            let mut segment = VectorSegment::open(&path, None, InWorker::in_process()).unwrap();
            let (bits, seed) = (segment.parameters.bits, segment.parameters.seed);
            let query = vector(ROWS + 3, dimension as usize);
            let live = LivePositions { length: ROWS, allowed: None, dead: None };
            for by_codes in [false, true] {
                let found = [Kernel::plain(), Kernel::detect()].map(|kernel| {
                    segment.kernel = kernel;
                    segment.rotation = (bits > 0).then(|| Rotation::new(bits, seed, kernel));
                    let buffers = &mut SearchBuffers::default();
                    segment.search_by(by_codes, &query, 10, live, buffers).unwrap()
                });
                assert_eq!(found[0], found[1], "{metric} {dimension} {by_codes}");
                assert!(found[0].len() >= 10);
            }
        }
    }
}

#[test]
fn finds_neighbors_of_the_centroid() {
    let folder = tempfile::tempdir().unwrap();
    let spec = VectorSpec { dimension: 64, metric: Metric::L2 };
    build(folder.path(), "one", spec, Kernel::detect());
    let path = folder.path().join("one");
    let segment = VectorSegment::open(&path, None, InWorker::in_process()).unwrap();
    let centroid = segment.parameters.centroid.clone();
    let live = LivePositions { length: ROWS, allowed: None, dead: None };
    let mut buffers = SearchBuffers::default();
    let found = [false, true]
        .map(|by_codes| segment.search_by(by_codes, &centroid, 5, live, &mut buffers).unwrap());
    assert_eq!(found[0][..5], found[1][..5]);
}

#[test]
fn stores_the_sum_of_all_vectors() {
    let folder = tempfile::tempdir().unwrap();
    for metric in [Metric::Cosine, Metric::L2] {
        let name = metric.name();
        build(folder.path(), name, VectorSpec { dimension: 7, metric }, Kernel::detect());
        let path = folder.path().join(name);
        let segment = VectorSegment::open(&path, None, InWorker::in_process()).unwrap();
        let mut sum = vec![0.0f64; 7];
        for row in 0..ROWS {
            let vector = vector(row, 7);
            let square: f64 = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum();
            let length = if metric == Metric::Cosine { square.sqrt() } else { 1.0 };
            sum.iter_mut().zip(&vector).for_each(|(sum, x)| *sum += f64::from(*x) / length);
        }
        let kept = segment.sum().unwrap().unwrap();
        for (kept, sum) in kept.iter().zip(&sum) {
            assert!((f64::from(*kept) - sum).abs() < 1e-4 * sum.abs().max(1.0), "{kept} {sum}");
        }
    }
}

#[test]
fn reads_files_without_a_sum_and_rejects_invalid_sums() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    build(
        folder.path(),
        "whole",
        VectorSpec { dimension: 3, metric: Metric::L2 },
        Kernel::detect(),
    );
    let open = |name: &str| {
        VectorSegment::open(&folder.path().join(name), None, InWorker::in_process()).unwrap()
    };
    let whole = open("whole");
    for (name, sum) in [("without", None), ("short", Some([0; 8]))] {
        let mut writer =
            crate::ContainerWriter::create(&disk, name, crate::SegmentKind::Vector, LAYOUT)
                .unwrap();
        for (section, range) in whole.container.sections().filter(|(name, _)| *name != "sum") {
            writer.begin_section(section).unwrap();
            writer.write(whole.container.bytes(range).unwrap()).unwrap();
        }
        if let Some(bytes) = sum {
            writer.begin_section("sum").unwrap();
            writer.write(&bytes).unwrap();
        }
        writer.finish().unwrap();
    }
    assert_eq!(open("without").sum().unwrap(), None);
    assert!(open("short").sum().is_err());
}
