//! The two principal components of vectors, by iteration.

/// Maximum number of iterations; usually a few are enough.
const ITERATIONS: usize = 60;

/// The directions have converged when they change by less.
const TOLERANCE: f32 = 1e-4;

/// The place of each vector along the two directions in which they differ most, and the part of the
/// variance along each. Takes the vectors one after another.
pub(super) fn project(mut values: Vec<f32>, dimension: usize) -> (Vec<[f32; 2]>, [f32; 2]) {
    let rows = values.len() / dimension;
    if rows == 0 {
        return (Vec::new(), [0.0; 2]);
    }
    let variance = centre(&mut values, dimension);
    // Any start will do that is not orthogonal to the result; the same one gives the same picture.
    let mut random = 0x9e37_79b9_u32;
    let mut direction = || -> Vec<f32> {
        let number = |_| {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            random as f32 / u32::MAX as f32 - 0.5
        };
        (0..dimension).map(number).collect()
    };
    let mut axes = [direction(), direction()];
    orthonormalize(&mut axes);
    for _ in 0..ITERATIONS {
        let mut next = [vec![0.0; dimension], vec![0.0; dimension]];
        for row in values.chunks_exact(dimension) {
            for (axis, sum) in axes.iter().zip(&mut next) {
                let along = dot(row, axis);
                sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += along * value);
            }
        }
        orthonormalize(&mut next);
        let change = axes.iter().zip(&next).map(|(old, new)| 1.0 - dot(old, new).abs());
        let change = change.fold(0.0, f32::max);
        axes = next;
        if change < TOLERANCE {
            break;
        }
    }
    let places: Vec<[f32; 2]> = values
        .chunks_exact(dimension)
        .map(|row| [dot(row, &axes[0]), dot(row, &axes[1])])
        .collect();
    let along =
        |axis: usize| places.iter().map(|place| f64::from(place[axis]).powi(2)).sum::<f64>();
    let part = |axis| if variance > 0.0 { (along(axis) / variance) as f32 } else { 0.0 };
    let explained = [part(0), part(1)];
    (places, explained)
}

/// Moves the mean to the origin; returns the sum of the squares.
fn centre(values: &mut [f32], dimension: usize) -> f64 {
    let rows = (values.len() / dimension) as f64;
    let mut mean = vec![0.0_f64; dimension];
    for row in values.chunks_exact(dimension) {
        mean.iter_mut().zip(row).for_each(|(sum, value)| *sum += f64::from(*value) / rows);
    }
    let mut squares = 0.0;
    for row in values.chunks_exact_mut(dimension) {
        for (value, mean) in row.iter_mut().zip(&mean) {
            *value -= *mean as f32;
            squares += f64::from(*value).powi(2);
        }
    }
    squares
}

/// Makes both of length 1, and the second orthogonal to the first. A direction without length, in
/// which vectors do not differ, stays as it is.
fn orthonormalize([first, second]: &mut [Vec<f32>; 2]) {
    normalize(first);
    let along = dot(first, second);
    second.iter_mut().zip(first.iter()).for_each(|(value, of)| *value -= along * of);
    normalize(second);
}

fn normalize(vector: &mut [f32]) {
    let length = dot(vector, vector).sqrt();
    if length > 1e-20 {
        vector.iter_mut().for_each(|value| *value /= length);
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directions_of_most_variance_are_found() {
        // A long line along (3, 4, 0)/5, and a shorter one across it along z.
        let mut values = Vec::new();
        for step in -10..=10 {
            let step = step as f32;
            values.extend([3.0 * step + 7.0, 4.0 * step, 1.0]);
            values.extend([7.0, 0.0, 1.0 + step]);
        }
        let (places, [x, y]) = project(values, 3);
        assert_eq!(places.len(), 42);
        assert!((x - 25.0 / 26.0).abs() < 1e-3 && (y - 1.0 / 26.0).abs() < 1e-3, "{x} {y}");
        assert!((places[0][0].abs() - 50.0).abs() < 0.1 && places[0][1].abs() < 0.5);
        assert!(places[1][0].abs() < 0.5 && (places[1][1].abs() - 10.0).abs() < 0.1);
    }

    #[test]
    fn few_or_equal_vectors_have_a_picture_too() {
        assert_eq!(project(Vec::new(), 3), (Vec::new(), [0.0; 2]));
        assert_eq!(project(vec![1.0, 2.0], 2), (vec![[0.0; 2]], [0.0; 2]));
        let (places, explained) = project([1.0, 2.0].repeat(5), 2);
        assert!(places.iter().flatten().all(|place| place.abs() < 1e-6));
        assert_eq!(explained, [0.0; 2]);
        let (places, [x, _]) = project(vec![1.0, 2.0, 3.0], 1);
        assert!((places[0][0].abs() - 1.0).abs() < 1e-5 && (x - 1.0).abs() < 1e-5);
    }
}
