use std::fmt::Display;

/// A count with its noun, which agrees with it: `1 file`, `2 files`, `0 queries`. For every
/// message that states a number of things. `noun` is in the singular; only its last word
/// changes.
pub fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) {
        format!("{count} {noun}")
    } else {
        format!("{count} {}", plural(noun))
    }
}

/// The regular plural. Nouns with another one do not occur in our messages.
fn plural(noun: &str) -> String {
    let hisses = ["s", "x", "z", "ch", "sh"].iter().any(|end| noun.ends_with(end));
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if hisses => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nouns_agree_with_their_counts() {
        let table = [
            ("file", "1 file", "2 files"),
            ("man page", "1 man page", "2 man pages"),
            ("query", "1 query", "2 queries"),
            ("key", "1 key", "2 keys"),
            ("crash", "1 crash", "2 crashes"),
            ("process", "1 process", "2 processes"),
        ];
        for (noun, one, two) in table {
            assert_eq!(counted(1_u64, noun), one);
            assert_eq!(counted(2_usize, noun), two);
        }
        assert_eq!(counted(0_u32, "row"), "0 rows");
    }
}
