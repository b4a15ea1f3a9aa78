//! Highlights the words of a query in results.

use crate::output::Paint;

/// The words to highlight: those with more than two letters, without their endings.
pub(crate) fn needles(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let mut words: Vec<String> = words
        .filter(|word| word.chars().count() > 2)
        .map(str::to_lowercase)
        .filter(|word| !STOP_WORDS.contains(&word.as_str()))
        .map(|word| {
            let stem = word.strip_suffix("ies").or_else(|| word.strip_suffix("ing"));
            let stem = stem.or_else(|| word.strip_suffix('s'));
            stem.filter(|stem| stem.len() > 2).unwrap_or(&word).to_owned()
        })
        .collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.dedup();
    words
}

const STOP_WORDS: [&str; 22] = [
    "and", "are", "but", "can", "does", "for", "from", "how", "into", "its", "not", "that", "the",
    "this", "was", "what", "when", "where", "which", "who", "why", "with",
];

/// A line with the words highlighted.
pub(crate) fn highlight(line: &str, words: &[String], paint: &Paint) -> String {
    // Lower-casing other letters can change the length, and the positions would be wrong.
    let lower = line.to_ascii_lowercase();
    if words.is_empty() || !paint.is_coloured() {
        return line.to_owned();
    }
    let mut marked = String::new();
    let mut at = 0;
    while let Some((start, end)) = words
        .iter()
        .filter_map(|word| {
            lower[at..].find(word.as_str()).map(|it| (at + it, at + it + word.len()))
        })
        .min_by_key(|(start, end)| (*start, std::cmp::Reverse(*end)))
    {
        marked.push_str(&line[at..start]);
        marked.push_str(&paint.found(&line[start..end]));
        at = end;
    }
    marked.push_str(&line[at..]);
    marked
}
