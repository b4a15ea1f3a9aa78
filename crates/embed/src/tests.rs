use std::iter;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

fn model() -> Model {
    Model::embedded(InWorker::in_process())
}

fn length(vector: &Vector) -> f32 {
    vector.iter().map(|number| number * number).sum::<f32>().sqrt()
}

#[derive(Deserialize)]
struct Reference {
    text: String,
    tokens: Vec<u32>,
    vector: Vec<f32>,
}

/// The weights of chunks for each name of the model. Vectors made with other weights cannot be
/// compared, so new weights need a new name: add it here.
const CHUNK_WEIGHTS: [(&str, ChunkWeights); 1] =
    [("static-code-256@ed6bbd2da213da9f", ChunkWeights { path: 0.5, names: 0.5 })];

#[test]
fn the_name_of_the_model_implies_the_weights_of_chunks() {
    let known: Vec<_> = CHUNK_WEIGHTS.iter().filter(|(name, _)| *name == model_name()).collect();
    let [(_, weights)] = known.as_slice() else { panic!("{known:?}") };
    assert_eq!(*weights, ChunkWeights::default());
}

#[test]
fn the_reference_is_reproduced() {
    let lines = include_str!("../tests/reference.jsonl").lines();
    let references: Vec<Reference> =
        lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(references.len(), 10);
    for Reference { text, tokens, vector } in references {
        assert_eq!(model().pieces(&text), tokens, "{text}");
        let mut found = [0.0; DIMENSION];
        assert_eq!(model().embed_into(&text, &mut found), !tokens.is_empty(), "{text}");
        assert_eq!(model().embed(&text), (!tokens.is_empty()).then_some(found));
        assert_eq!(vector.len(), DIMENSION);
        for (number, expected) in found.iter().zip(&vector) {
            assert!((number - expected).abs() < 1e-5, "{text}: {number} {expected}");
        }
    }
}

#[test]
fn the_model_name_consists_of_id_and_checksum() {
    assert_eq!(model_name(), format!("{MODEL_ID}@{}", &CHECKSUM[..16]));
}

/// Computed once with this code. If it changes, queries no longer match the vectors in existing
/// stores, and the model needs a new name.
#[test]
fn vectors_are_bit_identical_everywhere() {
    let text = include_str!("../tests/reference.jsonl");
    let vector = model().embed(text).unwrap();
    let fold = |hash: u32, number: &f32| (hash ^ number.to_bits()).wrapping_mul(0x0100_0193);
    assert_eq!(vector.iter().fold(0x811c_9dc5, fold), 860_512_659);
}

#[test]
fn hostile_texts_are_embedded_quickly() {
    let marks = "\u{301}".repeat(1_000_000);
    for (name, text, pieces) in [
        ("nothing", String::new(), Some(0)),
        ("zeros", "\0".repeat(10_000_000), Some(0)),
        ("marks", marks.clone(), Some(0)),
        ("a letter with marks", format!("e{marks}"), Some(1)),
        ("words", "retry policy ".repeat(1_000_000), Some(65_536)),
        ("a word", "z".repeat(10_000_000), Some(1)),
        ("a word of wide letters", "\u{1e9e}\u{130}".repeat(3_000_000), Some(1)),
        ("almost too long words", format!("{} ", "q".repeat(400)).repeat(25_000), None),
        ("capitals", "aB".repeat(5_000_000), Some(65_536)),
        ("signs", "{".repeat(10_000_000), Some(65_536)),
        ("ideographs", "\u{4e00}".repeat(4_000_000), Some(65_536)),
        ("syllables", "\u{d55c}".repeat(4_000_000), Some(1)),
        ("ligatures that grow", "\u{fdfa}".repeat(4_000_000), None),
    ] {
        let start = Instant::now();
        let found = model().pieces(&text);
        let vector = model().embed(&text);
        assert!(start.elapsed() < Duration::from_secs(5), "{name}: {:?}", start.elapsed());
        if let Some(pieces) = pieces {
            assert_eq!(found.len(), pieces, "{name}");
        }
        assert_eq!(vector.is_some(), !found.is_empty(), "{name}");
        if let Some(vector) = vector {
            assert!((length(&vector) - 1.0).abs() < 1e-5, "{name}");
        }
    }
}

#[test]
fn chunk_vectors_combine_the_available_parts() {
    let [body, path, names] = ["let delay = base * 2;", "src/net/retry.rs", "RetryPolicy"];
    let weights = ChunkWeights::default();
    let chunk = |body, path, names: &[&'static str]| {
        model().embed_chunk(body, &model().embed_path(path), names.iter().copied(), weights)
    };
    let whole = chunk(body, path, &[names, "back_off"]).unwrap();
    let parts = [body, path, "RetryPolicy back_off"].map(|text| model().embed(text).unwrap());
    let mut expected = [0.0; DIMENSION];
    for (index, number) in expected.iter_mut().enumerate() {
        *number = parts[0][index] + 0.5 * parts[1][index] + 0.5 * parts[2][index];
    }
    let scale = length(&expected);
    for (number, expected) in whole.iter().zip(expected) {
        assert!((number - expected / scale).abs() < 1e-6);
    }
    assert!((length(&whole) - 1.0).abs() < 1e-5);

    assert_eq!(chunk(body, "", &[]), model().embed(body).map(normalized));
    assert_eq!(chunk("", "", &[]), None);
    assert!(chunk("\0", path, &[""]).is_some());
    let alone = ChunkWeights { path: 0.0, names: 0.0 };
    let only_body = model().embed_chunk(body, &model().embed_path(path), iter::once(names), alone);
    assert_eq!(only_body, chunk(body, "", &[]));
}

/// Vectors with different weights must not be compared: a change here needs a new model name.
#[test]
fn the_model_name_implies_the_chunk_weights() {
    let known = [("static-code-256@ed6bbd2da213da9f", ChunkWeights { path: 0.5, names: 0.5 })];
    assert!(known.contains(&(model_name(), ChunkWeights::default())), "give the model a new name");
}

fn normalized(mut vector: Vector) -> Vector {
    assert!(sum::normalize(&mut vector));
    vector
}

#[test]
fn a_million_names_are_embedded_quickly() {
    let start = Instant::now();
    let names = iter::repeat_n("someName", 10_000_000);
    assert!(
        model().embed_chunk("", &model().embed_path(""), names, ChunkWeights::default()).is_some()
    );
    assert!(start.elapsed() < Duration::from_secs(5));
}

proptest! {
    #[test]
    fn any_text_has_a_unit_vector_or_no_vector(text in any::<String>()) {
        let vector = model().embed(&text);
        prop_assert_eq!(vector.is_some(), !model().pieces(&text).is_empty());
        if let Some(vector) = &vector {
            prop_assert!((length(vector) - 1.0).abs() < 1e-5);
        }
        prop_assert_eq!(vector, model().embed(&text));
    }

    #[test]
    fn pieces_of_separated_texts_are_concatenated(a in "[ -~\u{e0}-\u{ff}\u{3040}-\u{30ff}]{0,60}", b in ".{0,60}") {
        let mut both = model().pieces(&a);
        both.extend(model().pieces(&b));
        prop_assert_eq!(model().pieces(&format!("{a} {b}")), both);
    }
}
