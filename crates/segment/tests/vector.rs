//! Vector segments: search results, error bounds, validation and damage.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use isolate_types::InWorker;
use isolith_segment::exact::{self, ExactQuery, VectorProblem};
use isolith_segment::storage::Disk;
use isolith_segment::storage::lossy::LossyStorage;
use isolith_segment::{
    Bits, SearchBuffers, SegmentError, VectorBuilder, VectorCandidate, VectorSegment, VectorSpec,
};
use isolith_types::Metric;

const METRICS: [Metric; 3] = [Metric::Cosine, Metric::L2, Metric::Dot];
const WANT: usize = 10;

/// Vectors in clusters, scaled by factors from 1/4 to 4 and shifted away from the origin.
fn clustered(rows: usize, dimension: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut random = Random(seed);
    // The same clusters for every seed, so that queries lie among the rows.
    let mut places = Random(dimension as u64);
    let centroids: Vec<Vec<f32>> =
        (0..1 + rows / 200).map(|_| (0..dimension).map(|_| places.normal()).collect()).collect();
    let offset: Vec<f32> = (0..dimension).map(|_| places.normal()).collect();
    (0..rows)
        .map(|_| {
            let centroid = &centroids[random.next() as usize % centroids.len()];
            let size = 4f32.powf(random.unit() * 2.0 - 1.0);
            (0..dimension)
                .map(|i| (centroid[i] + 0.7 * random.normal()) * size + 0.5 * offset[i])
                .collect()
        })
        .collect()
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Approximately normal: the sum of three uniform numbers.
    fn normal(&mut self) -> f32 {
        (0..3).map(|_| self.unit() - 0.5).sum::<f32>() * 2.0
    }
}

fn row_and_change(position: usize) -> (u64, u64) {
    let row = 100 + 3 * position as u64 + position as u64 / 7;
    (row, row + 5)
}

fn build(folder: &Path, metric: Metric, vectors: &[Vec<f32>], dimension: usize) -> VectorSegment {
    let disk = Disk::new(folder);
    let token = InWorker::in_process();
    let spec = VectorSpec { dimension: dimension as u32, metric };
    let mut builder = VectorBuilder::create(&disk, "one", spec, token).unwrap();
    for (position, vector) in vectors.iter().enumerate() {
        let (row, change) = row_and_change(position);
        if position % 2 == 0 {
            builder.push(row, change, vector).unwrap();
        } else {
            let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
            builder.push_bytes(row, change, &bytes).unwrap();
        }
    }
    let (published, rows) = builder.finish().unwrap();
    assert_eq!(rows, vectors.len() as u64);
    VectorSegment::open(&folder.join("one"), Some(published.checksum), token).unwrap()
}

/// Computes exact distances in the order of the candidates until no other can be nearer, as
/// callers do. Also checks the bounds.
fn rescore(
    candidates: &[VectorCandidate],
    query: &ExactQuery,
    vectors: &[Vec<f32>],
) -> Vec<(f32, usize)> {
    let mut best: Vec<(f32, usize)> = Vec::new();
    let mut done = false;
    for pair in candidates.windows(2) {
        assert!(pair[0].distance_at_least <= pair[1].distance_at_least);
    }
    for candidate in candidates {
        let (position, at_least) = (candidate.position, candidate.distance_at_least);
        assert_eq!((candidate.row, candidate.change), row_and_change(position));
        let distance = query.distance(&vectors[position]).unwrap();
        assert!(at_least <= distance, "{at_least} > {distance}");
        assert!(at_least <= candidate.distance_estimate);
        done |= best.len() >= WANT && best[WANT - 1].0 <= at_least;
        if done {
            assert!(distance >= best[WANT - 1].0, "stopping early would have missed one");
            continue;
        }
        best.push((distance, position));
        best.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        best.truncate(WANT);
    }
    best
}

fn brute_force(
    query: &ExactQuery,
    vectors: &[Vec<f32>],
    live: impl Fn(usize) -> bool,
) -> Vec<(f32, usize)> {
    let mut all: Vec<(f32, usize)> = (0..vectors.len())
        .filter(|position| live(*position))
        .map(|position| (query.distance(&vectors[position]).unwrap(), position))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    all.truncate(WANT);
    all
}

#[test]
fn search_all_is_exact_in_every_dimension() {
    for dimension in [1, 2, 3, 7, 63, 64, 100, 384, 1536] {
        let rows = if dimension > 100 { 200 } else { 1000 };
        let vectors = clustered(rows, dimension, 1);
        for metric in METRICS {
            let folder = tempfile::tempdir().unwrap();
            let segment = build(folder.path(), metric, &vectors, dimension);
            let mut buffers = SearchBuffers::default();
            for vector in clustered(5, dimension, 2) {
                let query = ExactQuery::new(metric, &vector).unwrap();
                let found = segment.search_all(&vector, WANT, None, None, &mut buffers).unwrap();
                let expected = brute_force(&query, &vectors, |_| true);
                assert_eq!(rescore(&found, &query, &vectors), expected, "{metric} {dimension}");
                let chosen = segment.search(&vector, WANT, None, None, &mut buffers).unwrap();
                assert_eq!(chosen, found, "small sets are scanned");
            }
        }
    }
}

#[test]
fn search_with_codes_finds_nearly_all_and_respects_filters() {
    let (rows, dimension) = (7000, 96);
    let vectors = clustered(rows, dimension, 1);
    let mut allowed = Bits::new(rows);
    let mut dead = Bits::new(rows);
    let mut random = Random(3);
    for position in 0..rows {
        if random.unit() < 0.7 {
            allowed.insert(position);
        }
        if random.unit() < 0.2 {
            dead.insert(position);
        }
    }
    for metric in METRICS {
        let folder = tempfile::tempdir().unwrap();
        let segment = build(folder.path(), metric, &vectors, dimension);
        let mut buffers = SearchBuffers::default();
        let (mut right, mut wanted) = (0, 0);
        for vector in clustered(30, dimension, 2) {
            let query = ExactQuery::new(metric, &vector).unwrap();
            for filter in [false, true] {
                let live =
                    |position| !filter || allowed.contains(position) && !dead.contains(position);
                let (allowed, dead) = (filter.then_some(&allowed), filter.then_some(&dead));
                let found = segment.search(&vector, WANT, allowed, dead, &mut buffers).unwrap();
                assert!(found.iter().all(|candidate| live(candidate.position)));
                let found = rescore(&found, &query, &vectors);
                let expected = brute_force(&query, &vectors, live);
                right += expected.iter().filter(|hit| found.contains(hit)).count();
                wanted += expected.len();
            }
        }
        assert!(right * 1000 >= wanted * 995, "{metric}: {right} of {wanted}");
    }
}

#[test]
fn search_of_small_and_sparse_sets_is_exact() {
    let (rows, dimension) = (5000, 64);
    let vectors = clustered(rows, dimension, 1);
    let folder = tempfile::tempdir().unwrap();
    let segment = build(folder.path(), Metric::Cosine, &vectors, dimension);
    let mut buffers = SearchBuffers::default();
    let vector = &clustered(1, dimension, 2)[0];
    let query = ExactQuery::new(Metric::Cosine, vector).unwrap();
    for every in [3, 50, 2000, 4999] {
        let mut allowed = Bits::new(rows);
        (0..rows).step_by(every).for_each(|position| allowed.insert(position));
        let found = segment.search(vector, WANT, Some(&allowed), None, &mut buffers).unwrap();
        let expected = brute_force(&query, &vectors, |position| position % every == 0);
        assert_eq!(rescore(&found, &query, &vectors), expected, "1/{every}");
    }
    let nothing = segment.search(vector, WANT, Some(&Bits::new(rows)), None, &mut buffers);
    assert!(nothing.unwrap().is_empty());
    assert!(segment.search(vector, 0, None, None, &mut buffers).unwrap().is_empty());
    let all = segment.search(vector, usize::MAX, None, None, &mut buffers).unwrap();
    assert_eq!(all.len(), rows);
}

#[test]
fn identical_vectors_are_ordered_by_row() {
    let (rows, dimension) = (5000, 64);
    let vector = clustered(1, dimension, 4).remove(0);
    let vectors = vec![vector.clone(); rows];
    for metric in METRICS {
        let folder = tempfile::tempdir().unwrap();
        let segment = build(folder.path(), metric, &vectors, dimension);
        let found =
            segment.search(&vector, WANT, None, None, &mut SearchBuffers::default()).unwrap();
        assert!(found.len() >= WANT && found.len() < rows, "{} of {rows}", found.len());
        let positions: Vec<usize> = found.iter().map(|candidate| candidate.position).collect();
        assert!(positions.iter().copied().eq(0..found.len()));
    }
}

#[test]
fn zero_vectors_have_the_cosine_distance_one() {
    let (rows, dimension) = (5000, 32);
    let mut vectors = clustered(rows, dimension, 9);
    (0..rows).step_by(100).for_each(|at| vectors[at] = vec![0.0; dimension]);
    let folder = tempfile::tempdir().unwrap();
    let segment = build(folder.path(), Metric::Cosine, &vectors, dimension);
    // Away from everything else, so that zero vectors are among the nearest.
    let away: Vec<f32> = vectors[1].iter().map(|x| -x).collect();
    for vector in [vectors[1].clone(), away, vec![0.0; dimension]] {
        let query = ExactQuery::new(Metric::Cosine, &vector).unwrap();
        assert_eq!(query.distance(&vectors[0]), Ok(1.0));
        let mut buffers = SearchBuffers::default();
        let found = segment.search(&vector, WANT, None, None, &mut buffers).unwrap();
        let expected = brute_force(&query, &vectors, |_| true);
        let distances = |best: &[(f32, usize)]| best.iter().map(|it| it.0).collect::<Vec<_>>();
        let found = rescore(&found, &query, &vectors);
        assert_eq!(distances(&found), distances(&expected));
    }
}

#[test]
fn finds_positions_of_rows() {
    let vectors = clustered(500, 3, 1);
    let folder = tempfile::tempdir().unwrap();
    let segment = build(folder.path(), Metric::L2, &vectors, 3);
    assert_eq!((segment.len(), segment.dimension(), segment.metric()), (500, 3, Metric::L2));
    let mut wanted = Vec::new();
    for position in 0..segment.len() {
        let (row, change) = row_and_change(position);
        assert_eq!(segment.row(position).unwrap(), row);
        assert_eq!(segment.change(position).unwrap(), change);
        assert_eq!(segment.position_of(row).unwrap(), Some(position));
        assert_eq!(segment.position_of(row + 1).unwrap(), None);
        if position % 5 == 0 {
            wanted.extend([row, row + 1]);
        }
    }
    let mut bits = Bits::new(segment.len());
    segment.positions_of(&wanted, &mut bits).unwrap();
    assert!(bits.iter().eq((0..500).step_by(5)));
    let error = segment.row(500).unwrap_err();
    assert!(!error.is_damage(), "{error}");
}

#[test]
fn empty_segment() {
    let folder = tempfile::tempdir().unwrap();
    let segment = build(folder.path(), Metric::Dot, &[], 128);
    assert!(segment.is_empty());
    let query = vec![1.0; 128];
    let found = segment.search(&query, WANT, None, None, &mut SearchBuffers::default()).unwrap();
    assert!(found.is_empty());
    assert_eq!(segment.position_of(1).unwrap(), None);
}

#[test]
fn rejects_invalid_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    let token = InWorker::in_process();
    let spec = |dimension, metric| VectorSpec { dimension, metric };
    for dimension in [0, 65_537] {
        assert!(VectorBuilder::create(&disk, "x", spec(dimension, Metric::L2), token).is_err());
    }
    let mut builder = VectorBuilder::create(&disk, "one", spec(2, Metric::Cosine), token).unwrap();
    builder.push(5, 5, &[1.0, 2.0]).unwrap();
    for (row, vector) in [
        (5, vec![1.0, 2.0]),
        (4, vec![1.0, 2.0]),
        (6, vec![1.0]),
        (6, vec![1.0, f32::NAN]),
        (6, vec![f32::INFINITY, 1.0]),
        (6, vec![f32::MAX, f32::MAX]),
    ] {
        let error = builder.push(row, row, &vector).unwrap_err();
        assert!(matches!(error, SegmentError::Invalid { .. }), "{row} {vector:?}: {error}");
    }
    assert!(builder.push_bytes(6, 6, &[0; 7]).is_err());
    builder.push(6, 7, &[1e-30, 0.0]).unwrap();
    let (published, rows) = builder.finish().unwrap();
    assert_eq!(rows, 2, "rejected vectors are not included");

    let path = folder.path().join("one");
    let segment = VectorSegment::open(&path, Some(published.checksum), token).unwrap();
    let mut buffers = SearchBuffers::default();
    for query in [vec![1.0], vec![f32::NAN, 0.0]] {
        let error = segment.search(&query, 1, None, None, &mut buffers).unwrap_err();
        assert!(!error.is_damage(), "{error}");
    }
    let found = segment.search(&[1.0, 0.0], 1, None, None, &mut buffers).unwrap();
    assert_eq!(found[0].row, 6, "a tiny vector still has a direction");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn extreme_lengths_are_found_exactly() {
    let dimension = 64;
    let mut vectors = clustered(300, dimension, 1);
    for (position, vector) in vectors.iter_mut().enumerate() {
        let factor = [1e-30, 1e-3, 1.0, 1e6, 1e15][position % 5];
        vector.iter_mut().for_each(|x| *x *= factor);
    }
    for metric in METRICS {
        let folder = tempfile::tempdir().unwrap();
        let segment = build(folder.path(), metric, &vectors, dimension);
        for size in [1e-20, 1.0, 1e15] {
            let vector: Vec<f32> = vectors[2].iter().map(|x| x * size).collect();
            let query = ExactQuery::new(metric, &vector).unwrap();
            let found = segment
                .search_all(&vector, WANT, None, None, &mut SearchBuffers::default())
                .unwrap();
            let expected = brute_force(&query, &vectors, |_| true);
            let found = rescore(&found, &query, &vectors);
            let distances =
                |hits: &[(f32, usize)]| hits.iter().map(|hit| hit.0).collect::<Vec<_>>();
            assert_eq!(distances(&found), distances(&expected), "{metric} {size}");
        }
    }
}

#[test]
fn damaged_blocks_are_never_used() {
    let (rows, dimension) = (5000, 64);
    let vectors = clustered(rows, dimension, 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one");
    let segment = build(folder.path(), Metric::L2, &vectors, dimension);
    let vector = &clustered(1, dimension, 2)[0];
    let mut buffers = SearchBuffers::default();
    let expected = segment.search(vector, WANT, None, None, &mut buffers).unwrap();
    drop(segment);

    let sound = fs::read(&path).unwrap();
    let (mut noticed, step) = (0, sound.len() / 100);
    for at in (0..sound.len()).step_by(step) {
        let mut bytes = sound.clone();
        bytes[at] ^= 16;
        fs::write(&path, &bytes).unwrap();
        let outcome = VectorSegment::open(&path, None, InWorker::in_process())
            .and_then(|segment| segment.search(vector, WANT, None, None, &mut buffers));
        match outcome {
            // The search did not need this block.
            Ok(found) => assert_eq!(found, expected, "byte {at}"),
            Err(error) => {
                assert!(error.is_damage(), "byte {at}: {error}");
                noticed += 1;
            }
        }
        if let Ok(segment) = VectorSegment::open(&path, None, InWorker::in_process()) {
            assert!(segment.verify().is_err(), "byte {at}");
        }
    }
    assert!(noticed > 20, "{noticed}");
}

#[test]
fn published_segment_survives_power_loss() {
    let lossy = LossyStorage::new();
    let token = InWorker::in_process();
    let spec = VectorSpec { dimension: 8, metric: Metric::Cosine };
    let build = || -> Result<u32, SegmentError> {
        let mut builder = VectorBuilder::create(&lossy, "one", spec, token)?;
        for (position, vector) in clustered(50, 8, 1).iter().enumerate() {
            builder.push(position as u64, position as u64, vector)?;
        }
        Ok(builder.finish()?.0.checksum)
    };
    lossy.fail_after(3);
    assert!(build().is_err());
    lossy.crash();
    assert_eq!(lossy.contents("one"), None);
    let checksum = build().unwrap();
    lossy.crash();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one");
    fs::write(&path, lossy.contents("one").unwrap()).unwrap();
    VectorSegment::open(&path, Some(checksum), token).unwrap().verify().unwrap();
}

#[test]
fn threads_share_a_segment() {
    let vectors = clustered(6000, 64, 1);
    let folder = tempfile::tempdir().unwrap();
    let segment = Arc::new(build(folder.path(), Metric::Cosine, &vectors, 64));
    let answers: Vec<Vec<VectorCandidate>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (segment, query) = (segment.clone(), &vectors[17]);
                scope.spawn(move || {
                    segment.search(query, WANT, None, None, &mut SearchBuffers::default()).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(answers[0][0].position, 17);
}

#[test]
fn exact_distances_agree_with_f64() {
    for dimension in [1, 3, 100, 384, 1536] {
        let vectors = clustered(20, dimension, 9);
        for metric in METRICS {
            for pair in vectors.windows(2) {
                let (x, y) = (&pair[0], &pair[1]);
                let dot = |x: &[f32], y: &[f32]| -> f64 {
                    x.iter().zip(y).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
                };
                let (size, product) = ((dot(x, x) * dot(y, y)).sqrt(), dot(x, y));
                let expected = match metric {
                    Metric::Cosine => 1.0 - product / size,
                    Metric::Dot => 1.0 - product,
                    Metric::L2 => {
                        x.iter().zip(y).map(|(x, y)| (f64::from(*x) - f64::from(*y)).powi(2)).sum()
                    }
                };
                let scale = if metric == Metric::Cosine { 1.0 } else { 1.0 + size + expected };
                let found = ExactQuery::new(metric, x).unwrap().distance(y).unwrap();
                assert!((f64::from(found) - expected).abs() < 2e-6 * scale, "{metric} {dimension}");
            }
        }
    }
}

#[test]
fn exact_distances_reject_invalid_vectors() {
    let query = ExactQuery::new(Metric::Cosine, &[3.0, 4.0]).unwrap();
    assert_eq!(query.distance(&[6.0, 8.0]), Ok(0.0));
    assert_eq!(query.distance(&[1e-40, 0.0]).map(|distance| (distance * 1e4).round()), Ok(4000.0));
    let problem = VectorProblem::Dimension { expected: 2, found: 3 };
    assert_eq!(query.distance(&[1.0, 2.0, 3.0]), Err(problem));
    assert!(query.distance_bytes(&[0; 9]).is_err());
    assert_eq!(query.distance(&[1.0, f32::NAN]), Err(VectorProblem::NotFinite(1)));

    assert_eq!(exact::check(&[0.0, 0.0], Metric::Cosine), Err(VectorProblem::Zero));
    assert_eq!(exact::check(&[0.0, 0.0], Metric::L2), Ok(()));
    assert_eq!(exact::check(&[1.0, f32::INFINITY], Metric::Dot), Err(VectorProblem::NotFinite(1)));
    assert_eq!(exact::check(&[2e18], Metric::Dot), Err(VectorProblem::TooLong));
}
