use proptest::prelude::*;

use super::*;

const LENGTHS: [usize; 12] = [1, 2, 3, 7, 16, 31, 100, 257, 384, 1536, 2064, 5000];

fn vectors(count: usize) -> impl Strategy<Value = Vec<Vec<f32>>> {
    (prop::sample::select(&LENGTHS[..]), -10i32..10).prop_flat_map(move |(length, size)| {
        let component = (-1000i32..=1000).prop_map(move |x| x as f32 / 1000.0 * 10f32.powi(size));
        prop::collection::vec(prop::collection::vec(component, length), count)
    })
}

fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Without AVX2, both are the plain loops.
fn kernels() -> [Kernel; 2] {
    [Kernel::plain(), Kernel::detect()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn products_and_distances_are_correct_on_every_kernel(pair in vectors(2)) {
        let (one, other) = (&pair[0], &pair[1]);
        let wide = |x: &f32| f64::from(*x);
        let dot: f64 = one.iter().zip(other).map(|(x, y)| wide(x) * wide(y)).sum();
        let square: f64 = other.iter().map(|y| wide(y) * wide(y)).sum();
        let distance: f64 = one.iter().zip(other).map(|(x, y)| (wide(x) - wide(y)).powi(2)).sum();
        let own: f64 = one.iter().map(|x| wide(x) * wide(x)).sum();
        let near = 1e-6 * (own.sqrt() * square.sqrt());

        let mut blob = vec![0u8];
        blob.extend(bytes(other));
        let results = kernels().map(|kernel| {
            let plain = (
                kernel.dot(one, other),
                kernel.dot_and_square(one, other),
                kernel.distance(one, other),
            );
            // An odd address.
            let unaligned = (
                plain.0,
                kernel.dot_and_square_bytes(one, &blob[1..]),
                kernel.distance_bytes(one, &blob[1..]),
            );
            assert_eq!(plain, unaligned);
            plain
        });
        prop_assert_eq!(results[0], results[1]);
        prop_assert!((results[0].0 - dot).abs() <= near);
        prop_assert!((results[0].1.1 - square).abs() <= 1e-6 * square);
        prop_assert!((results[0].2 - distance).abs() <= 1e-6 * distance);
    }

    #[test]
    fn quantization_error_is_bounded(vector in vectors(1)) {
        let vector = &vector[0];
        let padded = vector.len().next_multiple_of(16);
        let results = kernels().map(|kernel| {
            let mut out = vec![0; padded];
            (kernel.quantize(vector, &mut out), out)
        });
        prop_assert_eq!(&results[0], &results[1]);
        let (numbers, out) = &results[0];
        let mut rest = 0.0;
        for (x, component) in vector.iter().zip(out) {
            rest += (f64::from(*x) - f64::from(numbers.scale) * f64::from(*component as i8)).powi(2);
        }
        let norm: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
        prop_assert!(f64::from(numbers.residual) >= rest.sqrt());
        prop_assert!(f64::from(numbers.residual) <= rest.sqrt() * 1.001 + norm.sqrt() * 1e-6);
        prop_assert!(f64::from(numbers.norm) >= norm.sqrt());
        prop_assert!(out[vector.len()..].iter().all(|component| *component == 0));
    }

    #[test]
    fn products_of_components_never_overflow(
        length in prop::sample::select(&[16usize, 48, 384, 1536, 2064, 65_536][..]),
        component in prop::sample::select(&[127i8, -127, 3][..]),
        query in prop::sample::select(&[32_767i16, -32_767, 5][..]),
    ) {
        let components: Vec<u8> =
            (0..length).map(|i| if i % 97 == 5 { 1 } else { component as u8 }).collect();
        let query: Vec<i16> = (0..length).map(|i| if i % 89 == 7 { -2 } else { query }).collect();
        let expected: i64 = components
            .iter()
            .zip(&query)
            .map(|(x, y)| i64::from(*x as i8) * i64::from(*y))
            .sum();
        for kernel in kernels() {
            prop_assert_eq!(kernel.dot_components(&components, &query), expected);
        }
    }

    #[test]
    fn transform_and_signs_are_the_same_on_every_kernel(
        log in 3usize..9,
        extra in 0usize..40,
        seed in any::<u32>(),
    ) {
        let mixed = 1 << log;
        let bits = mixed + extra / 8 * 8;
        let values: Vec<f32> = (0..bits)
            .map(|i| original(i, seed))
            .collect();
        let factors: Vec<f32> = (0..bits).map(|i| if i % 3 == 0 { -0.5 } else { 0.5 }).collect();
        let results = kernels().map(|kernel| {
            let mut values = values.clone();
            kernel.walsh_hadamard(&mut values, &factors, bits - mixed, mixed);
            let mut signs = vec![0; bits / 8];
            let sum = kernel.signs(&values, &mut signs);
            (values, signs, sum)
        });
        prop_assert_eq!(&results[0], &results[1]);
        let (values, signs, sum) = &results[0];
        // By the definition of the transform, the sign is the parity of the common bits.
        for (row, value) in values[bits - mixed..].iter().enumerate() {
            let expected: f64 = (0..mixed)
                .map(|column| {
                    let at = bits - mixed + column;
                    let sign = if (row & column).count_ones() % 2 == 0 { 1.0 } else { -1.0 };
                    sign * f64::from(factors[at]) * f64::from(original(at, seed))
                })
                .sum();
            prop_assert!((f64::from(*value) - expected).abs() < 1e-3);
        }
        let magnitude: f64 = values.iter().map(|x| f64::from(x.abs())).sum();
        prop_assert!((sum - magnitude).abs() <= 1e-6 * magnitude);
        for (at, value) in values.iter().enumerate() {
            prop_assert_eq!(signs[at / 8] >> (at % 8) & 1 == 1, *value >= 0.0);
        }
    }

    #[test]
    fn the_same_codes_pass_everywhere(
        groups in prop::sample::select(&[2usize, 3, 12, 48, 256][..]),
        seed in any::<u64>(),
        limit in -3.0f32..3.0,
    ) {
        let mut state = seed | 1;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        let bits = 32 * groups;
        let mut block: Vec<u8> = (0..bits / 8 * CODES_PER_BLOCK).map(|_| random()).collect();
        for _ in 0..2 * CODES_PER_BLOCK {
            block.extend((f32::from(random()) / 128.0 - 1.0).to_le_bytes());
        }
        let tables: Vec<u8> = (0..bits / 4 * 16).map(|_| random() % (MAX_TABLE_ENTRY + 1)).collect();
        let middle = (bits / 4 * 16) as f32;
        let filter = CodeFilter { step: 1.0 / middle.sqrt(), shift: -middle.sqrt(), limit };
        let [plain, fast] = kernels().map(|kernel| kernel.filter_codes(&block, &tables, filter));
        prop_assert_eq!(plain, fast);
        let all = CodeFilter { limit: f32::INFINITY, ..filter };
        for kernel in kernels() {
            prop_assert_eq!(kernel.filter_codes(&block, &tables, all), u32::MAX);
        }
    }
}

fn original(at: usize, seed: u32) -> f32 {
    ((at as u32).wrapping_mul(2_654_435_761) ^ seed) as f32 / 1e9 - 2.0
}

#[test]
fn largest_sums_of_codes_do_not_overflow() {
    let bits = 8192;
    let tables = vec![MAX_TABLE_ENTRY; bits / 4 * 16];
    let mut block = vec![0xff; bits / 8 * CODES_PER_BLOCK];
    block.resize(block.len() + 4 * CODES_PER_BLOCK, 0);
    block.extend([(-1f32).to_le_bytes(); CODES_PER_BLOCK].as_flattened());
    let sum = f32::from(MAX_TABLE_ENTRY) * (bits / 4) as f32;
    for kernel in kernels() {
        for (limit, mask) in [(sum, u32::MAX), (sum - 1.0, 0)] {
            let filter = CodeFilter { step: 1.0, shift: 0.0, limit };
            assert_eq!(kernel.filter_codes(&block, &tables, filter), mask);
        }
    }
}

#[test]
fn extreme_values_are_quantized_within_the_bounds() {
    for vector in [vec![0.0; 5], vec![1e-45, 0.0], vec![-1e18, 1e18, 3.0], vec![1e-38, -1e-39]] {
        for kernel in kernels() {
            let mut out = vec![0; 16];
            let numbers = kernel.quantize(&vector, &mut out);
            for (x, component) in vector.iter().zip(&out) {
                let rest = f64::from(*x) - f64::from(numbers.scale) * f64::from(*component as i8);
                assert!(rest.abs() <= f64::from(numbers.residual), "{vector:?}");
            }
        }
    }
}
