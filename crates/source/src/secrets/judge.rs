//! Tells secrets from placeholders and examples.

/// Shannon entropy in bits per byte.
pub(super) fn entropy(bytes: &[u8]) -> f32 {
    let mut counts = [0_u32; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let all = bytes.len() as f32;
    let bits = |count: u32| {
        let share = count as f32 / all;
        -share * share.log2()
    };
    counts.into_iter().filter(|count| *count > 0).map(bits).sum()
}

/// Words that occur in placeholders.
const WORDS: &[&str] = &[
    "example",
    "placeholder",
    "redacted",
    "dummy",
    "sample",
    "changeme",
    "change-me",
    "change_me",
    "your_",
    "your-",
    "yourtoken",
    "yourkey",
    "yoursecret",
    "insert",
    "replace",
    "notreal",
    "not-real",
    "not_real",
    "fakefake",
    "foobar",
    "deadbeef",
    "xxxx",
    "....",
    "****",
    "____",
    "----",
];

/// A value with this many equal bytes in a row is not a secret.
const REPEATED: usize = 6;

/// Whether a value is a placeholder for a secret.
pub(super) fn is_placeholder(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let has = |word: &str| lower.windows(word.len()).any(|it| it == word.as_bytes());
    let repeated = lower.windows(REPEATED).any(|run| run.iter().all(|it| *it == run[0]));
    repeated || WORDS.iter().any(|word| has(word))
}

/// Whether a value is a template or an expression that is evaluated at run time.
pub(super) fn is_template(value: &[u8]) -> bool {
    const MARKS: &[u8] = b"${}<>%*()[]";
    value.iter().any(|byte| MARKS.contains(byte))
}

/// Whether a value looks random: high entropy and no placeholder.
pub(super) fn is_random(value: &[u8], least_entropy: f32) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    digits > 0 && letters > 0 && entropy(value) >= least_entropy && !is_placeholder(value)
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

pub(super) fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}

pub(super) fn is_base64_url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_".contains(&byte)
}
