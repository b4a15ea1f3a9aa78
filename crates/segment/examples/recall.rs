//! Measures recall and cost of vector segments on real embeddings.
//!
//! `cargo run --release -p isolith-segment --example recall -- FILE.npy [ROWS…]`
//!
//! The file contains float16 vectors; the last 400 are the queries. Larger sets are mixtures of
//! two real vectors with noise. The baseline is a plain scan, in the same run, over the same
//! vectors as bytes in memory.

use std::error::Error;
use std::fs;
use std::time::Duration;

use isolate_types::InWorker;
use isolith_segment::exact::ExactQuery;
use isolith_segment::storage::Disk;
use isolith_segment::{Bits, SearchBuffers, VectorBuilder, VectorSegment, VectorSpec};
use isolith_types::Metric;
use rustix::time::{ClockId, clock_gettime};

const WANT: usize = 10;
const QUERIES: usize = 400;
const RUNS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: recall FILE.npy [ROWS…]")?;
    let mut sizes = arguments.map(|size| size.parse()).collect::<Result<Vec<usize>, _>>()?;
    if sizes.is_empty() {
        sizes = vec![16_000, 100_000, 1_000_000];
    }
    let (dimension, mut real) = read_npy(&path)?;
    let queries = real.split_off(real.len() - QUERIES * dimension);
    println!(
        "{:>9} {:<16} {:>7} {:>6} {:>6} {:>9} {:>9} {:>9} {:>6} {:>9}",
        "rows", "set", "recall", "given", "exact", "search", "all", "plain", "ratio", "build"
    );
    for rows in sizes {
        let asked = if rows > 200_000 { 100 } else { QUERIES };
        let vectors = mixed(&real, dimension, rows);
        let queries = &queries[..asked * dimension];
        let filters: &[usize] = if rows < 100_000 { &[1, 10] } else { &[1, 10, 1000] };
        measure("cosine", Metric::Cosine, dimension, &vectors, queries, filters)?;
        if rows <= 200_000 {
            let offset = |vectors: &[f32]| -> Vec<f32> {
                let shift = 3.0 / (dimension as f32).sqrt();
                vectors.iter().enumerate().map(|(i, x)| x + shift * sign(i % dimension)).collect()
            };
            let (moved, asked) = (offset(&vectors), offset(queries));
            measure("cosine, moved", Metric::Cosine, dimension, &moved, &asked, &[1])?;
            measure("l2, moved", Metric::L2, dimension, &moved, &asked, &[1])?;
        }
        let (stretched, asked) =
            (stretch(vectors, dimension), stretch(queries.to_vec(), dimension));
        measure("l2, stretched", Metric::L2, dimension, &stretched, &asked, &[1])?;
        measure("dot, stretched", Metric::Dot, dimension, &stretched, &asked, &[1])?;
    }
    Ok(())
}

/// Builds a segment and searches it, allowing one row in n for each n of `filters`.
fn measure(
    name: &str,
    metric: Metric,
    dimension: usize,
    vectors: &[f32],
    queries: &[f32],
    filters: &[usize],
) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let disk = Disk::new(folder.path());
    let token = InWorker::in_process();
    let rows = vectors.len() / dimension;
    let start = cpu();
    let spec = VectorSpec { dimension: dimension as u32, metric };
    let mut builder = VectorBuilder::create(&disk, "one", spec, token)?;
    for (row, vector) in vectors.chunks_exact(dimension).enumerate() {
        builder.push(row as u64, row as u64, vector)?;
    }
    let (published, _) = builder.finish()?;
    let build = cpu() - start;
    let segment = VectorSegment::open(&folder.path().join("one"), Some(published.checksum), token)?;
    segment.verify()?;
    let plain = Plain::new(vectors, dimension);
    for every in filters {
        let mut allowed = Bits::new(rows);
        (0..rows)
            .filter(|row| scatter(*row).is_multiple_of(*every as u64))
            .for_each(|row| allowed.insert(row));
        let allowed = (*every > 1).then_some(&allowed);
        let figures = Figures::take(&segment, vectors, queries, allowed, &plain)?;
        let name = if *every > 1 { format!("{name}, 1/{every}") } else { name.to_owned() };
        println!(
            "{rows:>9} {name:<16} {:>7.4} {:>6.0} {:>6.1} {:>6.0} µs {:>6.0} µs {:>6.0} µs {:>6.3} {:>6.2} s",
            figures.recall,
            figures.given,
            figures.exact,
            figures.search,
            figures.all,
            figures.plain,
            figures.search / figures.plain,
            build.as_secs_f64(),
        );
    }
    Ok(())
}

/// Means over all queries. Times are CPU times in microseconds.
#[derive(Default)]
struct Figures {
    recall: f64,
    /// Number of candidates returned.
    given: f64,
    /// Number of candidates whose exact distance was needed.
    exact: f64,
    search: f64,
    all: f64,
    plain: f64,
}

impl Figures {
    fn take(
        segment: &VectorSegment,
        vectors: &[f32],
        queries: &[f32],
        allowed: Option<&Bits>,
        plain: &Plain,
    ) -> Result<Self, Box<dyn Error>> {
        let dimension = segment.dimension();
        let vector = |row: usize| &vectors[row * dimension..(row + 1) * dimension];
        let mut buffers = SearchBuffers::default();
        let mut figures = Self::default();
        let count = (queries.len() / dimension) as f64;
        for query in queries.chunks_exact(dimension) {
            let exact = ExactQuery::new(segment.metric(), query)?;
            let mut all = Vec::new();
            for row in
                (0..segment.len()).filter(|row| allowed.is_none_or(|bits| bits.contains(*row)))
            {
                all.push(exact.distance(vector(row))?);
            }
            let (_, worst, _) = all.select_nth_unstable_by(WANT - 1, f32::total_cmp);
            let worst = *worst;

            let mut candidates = Vec::new();
            figures.search += quickest(|| {
                candidates = segment.search(query, WANT, allowed, None, &mut buffers)?;
                Ok(())
            })?;
            let mut best: Vec<f32> = Vec::new();
            for candidate in &candidates {
                if best.len() >= WANT && best[WANT - 1] <= candidate.distance_at_least {
                    break;
                }
                let distance = exact.distance(vector(candidate.position))?;
                best.insert(best.partition_point(|other| *other <= distance), distance);
                figures.exact += 1.0;
            }
            figures.given += candidates.len() as f64;
            let found = best.iter().take(WANT).filter(|distance| **distance <= worst).count();
            figures.recall += found as f64 / WANT as f64;

            figures.all += quickest(|| {
                segment.search_all(query, WANT, allowed, None, &mut buffers)?;
                Ok(())
            })?;
            figures.plain += quickest(|| {
                std::hint::black_box(plain.search(query));
                Ok(())
            })?;
        }
        for figure in [
            &mut figures.recall,
            &mut figures.given,
            &mut figures.exact,
            &mut figures.search,
            &mut figures.all,
            &mut figures.plain,
        ] {
            *figure /= count;
        }
        Ok(figures)
    }
}

/// The baseline: vectors as bytes, with a scale each.
struct Plain {
    dimension: usize,
    bytes: Vec<i8>,
    scales: Vec<f32>,
}

impl Plain {
    fn new(vectors: &[f32], dimension: usize) -> Self {
        let mut plain = Self { dimension, bytes: Vec::new(), scales: Vec::new() };
        for vector in vectors.chunks_exact(dimension) {
            let scale = vector.iter().fold(0.0f32, |largest, x| largest.max(x.abs())) / 127.0;
            plain.bytes.extend(vector.iter().map(|x| (x / scale).round() as i8));
            plain.scales.push(scale);
        }
        plain
    }

    /// The nearest by inner product.
    fn search(&self, query: &[f32]) -> Vec<(f32, usize)> {
        let largest = query.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        let query: Vec<i16> = query.iter().map(|x| (x / largest * 127.0).round() as i16).collect();
        let mut best = vec![(f32::MIN, 0); WANT];
        for (row, (bytes, scale)) in
            self.bytes.chunks_exact(self.dimension).zip(&self.scales).enumerate()
        {
            let product = product(bytes, &query) as f32 * scale;
            if product > best[WANT - 1].0 {
                best.pop();
                best.insert(best.partition_point(|other| other.0 >= product), (product, row));
            }
        }
        best
    }
}

#[allow(unsafe_code)]
#[inline]
fn product(bytes: &[i8], query: &[i16]) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { product_avx2(bytes, query) };
    }
    bytes.iter().zip(query).map(|(x, y)| i32::from(*x) * i32::from(*y)).sum()
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[target_feature(enable = "avx2")]
fn product_avx2(bytes: &[i8], query: &[i16]) -> i32 {
    use std::arch::x86_64::*;
    let mut sums = [_mm256_setzero_si256(); 2];
    for (bytes, query) in bytes.chunks_exact(32).zip(query.chunks_exact(32)) {
        for half in 0..2 {
            // SAFETY: each half has the 16 components that are read.
            let (x, y) = unsafe {
                (
                    _mm_loadu_si128(bytes[16 * half..].as_ptr().cast()),
                    _mm256_loadu_si256(query[16 * half..].as_ptr().cast()),
                )
            };
            let products = _mm256_madd_epi16(_mm256_cvtepi8_epi16(x), y);
            sums[half] = _mm256_add_epi32(sums[half], products);
        }
    }
    let mut lanes = [0i32; 8];
    // SAFETY: the array has the size of the register.
    unsafe { _mm256_storeu_si256(lanes.as_mut_ptr().cast(), _mm256_add_epi32(sums[0], sums[1])) };
    let done = bytes.len() / 32 * 32;
    let rest = bytes[done..].iter().zip(&query[done..]).map(|(x, y)| i32::from(*x) * i32::from(*y));
    lanes.iter().sum::<i32>() + rest.sum::<i32>()
}

/// The real vectors first, then mixtures of two of them with noise.
fn mixed(real: &[f32], dimension: usize, rows: usize) -> Vec<f32> {
    let known = real.len() / dimension;
    let vector = |row: usize| &real[row * dimension..(row + 1) * dimension];
    let mut vectors = real[..rows.min(known) * dimension].to_vec();
    for row in known..rows {
        let random = |salt: usize| scatter(row * 8 + salt);
        let (one, other) = (random(0) as usize % known, random(1) as usize % known);
        let share = unit(random(2));
        let start = vectors.len();
        for (at, (x, y)) in vector(one).iter().zip(vector(other)).enumerate() {
            let noise = (unit(scatter(row * dimension + at)) - 0.5) * 3.46 * 0.3;
            vectors.push(x * share + y * (1.0 - share) + noise / (dimension as f32).sqrt());
        }
        let length = vectors[start..].iter().map(|x| x * x).sum::<f32>().sqrt();
        vectors[start..].iter_mut().for_each(|x| *x /= length);
    }
    vectors
}

/// Scales vectors by factors from 0.2 to 5.
fn stretch(mut vectors: Vec<f32>, dimension: usize) -> Vec<f32> {
    for (row, vector) in vectors.chunks_exact_mut(dimension).enumerate() {
        let factor = 0.2 * 25f32.powf(unit(scatter(row + 12_345)));
        vector.iter_mut().for_each(|x| *x *= factor);
    }
    vectors
}

fn sign(at: usize) -> f32 {
    if scatter(at) >> 63 == 0 { 1.0 } else { -1.0 }
}

fn unit(random: u64) -> f32 {
    (random >> 40) as f32 / (1u64 << 24) as f32
}

/// A pseudo-random number.
fn scatter(seed: usize) -> u64 {
    let mut z = (seed as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn read_npy(path: &str) -> Result<(usize, Vec<f32>), Box<dyn Error>> {
    let bytes = fs::read(path)?;
    let head = bytes.get(8..10).ok_or("too short")?;
    let start = 10 + usize::from(u16::from_le_bytes([head[0], head[1]]));
    let text = String::from_utf8_lossy(&bytes[10..start]);
    if !text.contains("'<f2'") || text.contains("'fortran_order': True") {
        return Err(format!("not float16 in rows: {text}").into());
    }
    let shape = text.split(['(', ')']).nth(1).ok_or("no shape")?;
    let dimension = shape.split(',').nth(1).ok_or("no second dimension")?.trim().parse()?;
    let half = |two: &[u8]| {
        let bits = u16::from_le_bytes([two[0], two[1]]);
        let (exponent, fraction) = (i32::from(bits >> 10 & 31), f32::from(bits & 1023));
        let size = match exponent {
            0 => fraction * 2f32.powi(-24),
            _ => (1024.0 + fraction) * 2f32.powi(exponent - 25),
        };
        if bits >> 15 == 0 { size } else { -size }
    };
    Ok((dimension, bytes[start..].chunks_exact(2).map(half).collect()))
}

/// The CPU time of this thread.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The minimum CPU time of several runs, in microseconds, to exclude effects of other processes.
fn quickest(mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        let start = cpu();
        run()?;
        least = least.min((cpu() - start).as_secs_f64() * 1e6);
    }
    Ok(least)
}
