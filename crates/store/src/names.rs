//! The names that the program gives to files in a store. Only files with such names are ever
//! deleted: others in the folder are not ours.

/// Databases that are built aside before they are moved into place.
const ASIDES: [&str; 6] = ["new", "salvage", "model", "copy", "recover", "rewrite"];

/// Whether this is a plain file name, without a path.
pub(crate) fn is_plain(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

/// Segments: `c<collection>-<generation>-<level>-<chance>.<kind>`, and `g-<change>-<chance>.adj`
/// for the graph.
pub fn is_segment(name: &str) -> bool {
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let parts: Vec<&str> = stem.split('-').collect();
    match (parts.as_slice(), extension) {
        ([collection, generation, "base" | "delta", chance], "vec" | "txt" | "src") => {
            collection.strip_prefix('c').is_some_and(is_number)
                && is_number(generation)
                && is_hex(chance, 8)
        }
        (["g", change, chance], "adj") => is_number(change) && is_hex(chance, 8),
        _ => false,
    }
}

/// Crash reports: `<ms since 1970>-<process>-<number>.json`.
pub fn is_crash_report(name: &str) -> bool {
    name.strip_suffix(".json").is_some_and(is_crash_stem)
}

/// A crash report being written, or the file that tests whether one can be.
pub fn is_unfinished_report(name: &str) -> bool {
    let Some(name) = name.strip_prefix('.') else { return false };
    is_crash_stem(name) || name.strip_prefix("probe-").is_some_and(is_number)
}

/// Logs: `<process>-<number>.jsonl`.
pub fn is_log(name: &str) -> bool {
    let stem = name.strip_suffix(".jsonl").and_then(|stem| stem.split_once('-'));
    stem.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// Sockets of fronts: `<process>-<chance>.sock`.
pub fn is_socket(name: &str) -> bool {
    let stem = name.strip_suffix(".sock").and_then(|stem| stem.split_once('-'));
    stem.is_some_and(|(process, chance)| is_number(process) && is_hex(chance, 16))
}

/// A temporary file in `run/`: if it is old, its process did not finish.
pub fn is_unfinished(name: &str) -> bool {
    ASIDES.iter().any(|what| is_aside(name, what))
        || name.strip_prefix('.').is_some_and(is_socket)
        || name.strip_prefix(".import-").is_some_and(is_chance)
}

/// `<what>-<process>-<chance>.sqlite`, with SQLite's suffixes.
pub(crate) fn is_aside(name: &str, what: &str) -> bool {
    let name = ["-wal", "-shm", "-journal"]
        .iter()
        .find_map(|suffix| name.strip_suffix(suffix))
        .unwrap_or(name);
    let stem = name.strip_suffix(".sqlite").and_then(|stem| stem.strip_prefix(what));
    let parts = stem.and_then(|stem| stem.strip_prefix('-')?.split_once('-'));
    parts.is_some_and(|(process, chance)| is_number(process) && is_hex(chance, 8))
}

/// `truth.sqlite.damaged-<ms since 1970>`, with the suffixes of related files.
pub fn is_damaged_truth(name: &str) -> bool {
    name.strip_prefix("truth.sqlite.damaged-").is_some_and(|rest| {
        rest.starts_with(|first: char| first.is_ascii_digit()) && !rest.contains('/')
    })
}

fn is_crash_stem(stem: &str) -> bool {
    let parts: Vec<&str> = stem.split('-').collect();
    matches!(parts.as_slice(), [time, process, number]
        if time.len() >= 13 && [time, process, number].into_iter().all(|part| is_number(part)))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The random part of a temporary file's name.
fn is_chance(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_hex(text: &str, digits: usize) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    text.len() == digits && text.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_the_program_creates_are_recognized() {
        type Rule = fn(&str) -> bool;
        let table: [(Rule, &[&str], &[&str]); 7] = [
            (
                is_segment,
                &[
                    "c1-9-base-0123abcd.vec",
                    "c12-10-delta-ffffffff.txt",
                    "c2-1-base-00000000.src",
                    "g-7-0000000f.adj",
                ],
                &[
                    "c1-9-base-0123abcd.vec.bak",
                    "c1-9-base-0123ABCD.vec",
                    "c1-9-other-0123abcd.vec",
                    "c-9-base-0123abcd.vec",
                    "c1-9-base-0123abcd.adj",
                    "../c1-9-base-0123abcd.vec",
                    "thesis.txt",
                    "photo.vec",
                    "",
                ],
            ),
            (is_crash_report, &["1763424000000-17-0.json"], &["package.json", "1-2-3.json"]),
            (is_unfinished_report, &[".1763424000000-17-0", ".probe-17"], &[".bashrc", ".probe-"]),
            (is_log, &["17-0.jsonl"], &["data.jsonl", "17-0.json", "17-.jsonl"]),
            (is_socket, &["17-0123456789abcdef.sock"], &["docker.sock", "17-0.sock"]),
            (
                is_unfinished,
                &["new-17-0123abcd.sqlite", "salvage-17-0123abcd.sqlite-wal", ".import-a1B2c3"],
                &["new-17-0123abcd.txt", "mine.sqlite", "id_rsa", ".profile"],
            ),
            (
                is_damaged_truth,
                &["truth.sqlite.damaged-17", "truth.sqlite.damaged-17-wal"],
                &["truth.sqlite", "truth.sqlite.damaged-", "truth.sqlite.damaged-x"],
            ),
        ];
        for (rule, ours, others) in table {
            ours.iter().for_each(|name| assert!(rule(name), "{name}"));
            others.iter().for_each(|name| assert!(!rule(name), "{name}"));
        }
    }
}
