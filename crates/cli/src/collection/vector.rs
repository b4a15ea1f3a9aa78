//! Vectors as arguments.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use isolith_types::{Code, Failure};
use serde_json::Value;

/// Maximum size of a file with a vector, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Reads the vector of an argument: a JSON array, a file that has one, or `-` for standard input.
pub(crate) fn read_vector(argument: &Path) -> Result<Vec<f32>, Failure> {
    if let Some(inline) = argument.to_str().filter(|text| text.trim_start().starts_with('[')) {
        return parse(inline).map_err(|reason| bad("--vector", Code::BadInput, &reason));
    }
    let is_stdin = argument == Path::new("-");
    let name = if is_stdin { "standard input".into() } else { argument.to_string_lossy() };
    let mut text = String::new();
    let read =
        |reader: &mut dyn Read, text: &mut String| reader.take(MAX_BYTES + 1).read_to_string(text);
    let outcome = match is_stdin {
        true => read(&mut io::stdin().lock(), &mut text),
        false => File::open(argument).and_then(|mut file| read(&mut file, &mut text)),
    };
    match outcome {
        Err(error) => {
            let missing = error.kind() == io::ErrorKind::NotFound;
            let code = if missing { Code::NotFound } else { Code::BadInput };
            Err(bad(&name, code, &error.to_string()))
        }
        Ok(length) if length as u64 > MAX_BYTES => {
            Err(bad(&name, Code::TooLarge, &format!("longer than {MAX_BYTES} bytes")))
        }
        Ok(_) => parse(&text).map_err(|reason| bad(&name, Code::BadInput, &reason)),
    }
}

fn bad(name: &str, code: Code, reason: &str) -> Failure {
    Failure::new(code, format!("{name}: {reason}"))
        .with_hint("a vector is a JSON array of numbers: [0.1, -0.2, 0.3]")
}

fn parse(text: &str) -> Result<Vec<f32>, String> {
    let numbers = serde_json::from_str::<Vec<f64>>(text).map_err(|error| why_not(text, &error))?;
    if numbers.is_empty() {
        return Err("the vector is empty".to_owned());
    }
    let short = |number: f64| match number as f32 {
        short if short.is_finite() => Ok(short),
        _ => Err(format!("{number:e} does not fit in a 32-bit number")),
    };
    numbers.into_iter().map(short).collect()
}

/// Why a text is not a list of numbers.
fn why_not(text: &str, error: &serde_json::Error) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Array(items)) => match items.iter().find(|item| !item.is_number()) {
            Some(item) => format!("{} is not a number", shortened(&item.to_string())),
            None => error.to_string(),
        },
        Ok(_) => "not a JSON array".to_owned(),
        Err(_) if has_word(text, &["nan", "inf", "infinity"]) => {
            "NaN and Infinity are not numbers in JSON".to_owned()
        }
        Err(error) if error.is_eof() => "the list is incomplete".to_owned(),
        Err(error) => error.to_string(),
    }
}

fn has_word(text: &str, words: &[&str]) -> bool {
    text.split(|letter: char| !letter.is_alphabetic())
        .any(|word| words.iter().any(|it| word.eq_ignore_ascii_case(it)))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers_are_vectors() {
        for (text, expected) in [
            ("[1]", vec![1.0]),
            (" [0.1, -2, 3e-2]\n", vec![0.1, -2.0, 0.03]),
            ("[1e-60]", vec![0.0]),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_say_what_is_not_a_number() {
        for (text, expected) in [
            ("[]", "the vector is empty"),
            ("{}", "not a JSON array"),
            ("0.5", "not a JSON array"),
            ("[1, \"b\"]", "\"b\" is not a number"),
            ("[1, null]", "null is not a number"),
            ("[[1, 2]]", "[1,2] is not a number"),
            ("[1, NaN]", "NaN and Infinity are not numbers in JSON"),
            ("[-Infinity]", "NaN and Infinity are not numbers in JSON"),
            ("[1e39, 0]", "1e39 does not fit in a 32-bit number"),
            ("[1, 2", "the list is incomplete"),
            ("[1; 2]", "expected `,` or `]` at line 1 column 3"),
            ("", "the list is incomplete"),
        ] {
            assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
        }
        let long = format!("[\"{}\"]", "x".repeat(100));
        assert_eq!(parse(&long).unwrap_err(), format!("\"{}… is not a number", "x".repeat(39)));
    }
}
