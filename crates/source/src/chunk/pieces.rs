use std::ops::Range;

use super::lines::{Lines, chars};
use super::outline::Cut;

/// Pieces are merged with the next until they have this many characters.
const LEAST_CHARS: usize = 300;

/// Pieces with more characters are split.
pub(super) const MOST_CHARS: usize = 2_000;

/// The same for text without definitions, whose pieces stand for less.
const MOST_CHARS_OF_TEXT: usize = 1_500;

/// Cuts a text at definitions: small neighbours are merged unless there is a wall between them,
/// large pieces split. The pieces follow each other without a gap.
pub(super) fn pieces(lines: &Lines<'_>, mut cuts: Vec<Cut>, walls: &[usize]) -> Vec<Range<usize>> {
    let length = lines.text().len();
    // Of cuts at one place the outermost counts, and a loose one least.
    cuts.sort_unstable_by_key(|cut| (cut.at, cut.loose, cut.depth));
    let mut pieces = Vec::new();
    let (mut start, mut cuts) = (0, cuts.as_slice());
    for end in walls.iter().copied().chain([length]) {
        let (own, rest) = cuts.split_at(cuts.partition_point(|cut| cut.at < end));
        cuts = rest;
        for piece in merged(lines, raw(lines, start..end, own)) {
            split(lines, piece.range, piece.chars, MOST_CHARS, &mut pieces);
        }
        start = end;
    }
    pieces
}

/// Cuts a text near blank lines.
pub(super) fn text_pieces(lines: &Lines<'_>) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let text = lines.text();
    split(lines, 0..text.len(), chars(text), MOST_CHARS_OF_TEXT, &mut pieces);
    pieces
}

struct Piece {
    range: Range<usize>,
    chars: usize,
    /// How many definitions are around its first part.
    depth: usize,
    /// The same for its last part.
    last_depth: usize,
}

/// The text between one cut and the next, within a range.
fn raw(lines: &Lines<'_>, within: Range<usize>, cuts: &[Cut]) -> Vec<Piece> {
    let text = lines.text();
    let mut cuts = cuts.to_vec();
    if cuts.first().is_none_or(|cut| cut.at > within.start || cut.loose || cut.depth > 0) {
        cuts.insert(0, Cut { at: within.start, depth: 0, loose: false });
    }
    cuts.dedup_by_key(|cut| cut.at);
    let mut pieces: Vec<Piece> = Vec::with_capacity(cuts.len());
    for (index, cut) in cuts.iter().enumerate() {
        let end = cuts.get(index + 1).map_or(within.end, |next| next.at);
        let part = &text[cut.at..end];
        let piece = Piece {
            range: cut.at..end,
            chars: chars(part),
            depth: cut.depth,
            last_depth: cut.depth,
        };
        match pieces.last_mut() {
            Some(last) if cut.loose && chars(part.trim()) < LEAST_CHARS => last.join(&piece),
            _ => pieces.push(piece),
        }
    }
    pieces
}

impl Piece {
    fn join(&mut self, next: &Self) {
        self.range.end = next.range.end;
        self.chars += next.chars;
        self.last_depth = next.last_depth;
    }
}

/// Merges small pieces with the next. One that is the end of a class, or of the file,
/// joins what is before it instead, if there is room.
fn merged(lines: &Lines<'_>, pieces: Vec<Piece>) -> Vec<Piece> {
    let text = lines.text();
    let mut done: Vec<Piece> = Vec::with_capacity(pieces.len());
    let mut open: Option<Piece> = None;
    for next in pieces {
        let Some(mut piece) = open.take() else {
            open = Some(next);
            continue;
        };
        let small =
            piece.chars < LEAST_CHARS || chars(text[piece.range.clone()].trim()) < LEAST_CHARS;
        if !small {
            done.push(piece);
            open = Some(next);
        } else if next.depth < piece.depth && joins_previous(&mut done, &piece, piece.depth) {
            open = Some(next);
        } else {
            piece.join(&next);
            open = Some(piece);
        }
    }
    if let Some(piece) = open {
        let small = chars(text[piece.range.clone()].trim()) < LEAST_CHARS;
        if !(small && joins_previous(&mut done, &piece, 0)) {
            done.push(piece);
        }
    }
    done
}

/// Joins a piece to the one before it, if that is inside as many definitions at its end.
fn joins_previous(done: &mut [Piece], piece: &Piece, depth: usize) -> bool {
    match done.last_mut() {
        Some(last) if last.last_depth >= depth && last.chars + piece.chars <= MOST_CHARS => {
            last.join(piece);
            true
        }
        _ => false,
    }
}

/// Splits a piece into parts of about equal size at line ends, at blank lines where there
/// are any near. Only a line that is too long by itself is split within.
fn split(
    lines: &Lines<'_>,
    piece: Range<usize>,
    total: usize,
    most: usize,
    into: &mut Vec<Range<usize>>,
) {
    let mut rest = piece;
    let mut left = total;
    while left > most {
        let target = left / left.div_ceil(most);
        let (at, taken) = border(lines, &rest, target, most);
        into.push(rest.start..at);
        rest.start = at;
        left -= taken;
    }
    if !rest.is_empty() {
        into.push(rest);
    }
}

/// Where to end the first part, and how many characters that takes.
fn border(lines: &Lines<'_>, rest: &Range<usize>, target: usize, most: usize) -> (usize, usize) {
    let text = lines.text();
    let mut row = lines.row_of(rest.start);
    let mut at = rest.start;
    let mut taken = 0;
    let mut too_long = false;
    let mut best: Option<(bool, usize, usize, usize)> = None;
    while at < rest.end {
        let end = lines.start(row + 1).min(rest.end);
        let line = &text[at..end];
        // A line of megabytes is not counted to its end.
        let length = line.chars().take(MOST_CHARS + 2).count();
        let fits_alone = length - usize::from(line.ends_with('\n')) <= MOST_CHARS;
        if taken + length > most && !(taken == 0 && fits_alone) {
            too_long = !fits_alone;
            break;
        }
        taken += length;
        at = end;
        row += 1;
        let near = taken >= target * 3 / 4 && taken <= target * 5 / 4;
        let poor = !(near && line.trim().is_empty());
        let candidate = (poor, taken.abs_diff(target), at, taken);
        if taken >= LEAST_CHARS && best.is_none_or(|best| candidate < best) {
            best = Some(candidate);
        }
    }
    if let Some((_, _, at, taken)) = best {
        return (at, taken);
    }
    if !too_long {
        return (at, taken);
    }
    let cut = text[rest.clone()].char_indices().nth(MOST_CHARS);
    match cut {
        Some((offset, _)) => (rest.start + offset, MOST_CHARS),
        None => (rest.end, chars(&text[rest.clone()])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(at: usize, depth: usize) -> Cut {
        Cut { at, depth, loose: false }
    }

    fn sizes(text: &str, cuts: Vec<Cut>) -> Vec<usize> {
        pieces(&Lines::of(text), cuts, &[]).iter().map(ExactSizeIterator::len).collect()
    }

    /// This many lines of 50 characters.
    fn filled(lines: usize) -> String {
        format!("{}\n", "x".repeat(49)).repeat(lines)
    }

    #[test]
    fn small_pieces_merge_with_the_next() {
        let cuts = vec![cut(100, 0), cut(200, 0), cut(400, 0), cut(800, 0)];
        assert_eq!(sizes(&filled(24), cuts), [400, 400, 400]);
    }

    #[test]
    fn the_end_of_a_class_joins_its_own_methods() {
        let cuts = vec![cut(400, 1), cut(800, 1), cut(900, 0)];
        assert_eq!(sizes(&filled(26), cuts), [400, 500, 400]);
    }

    #[test]
    fn a_small_end_of_the_file_joins_what_is_before() {
        assert_eq!(sizes(&filled(20), vec![cut(900, 0)]), [1000]);
    }

    #[test]
    fn loose_lines_are_cut_off_only_if_they_are_long() {
        let loose = |at| Cut { at, depth: 0, loose: true };
        assert_eq!(sizes(&filled(24), vec![loose(400), cut(600, 0)]), [600, 600]);
        assert_eq!(sizes(&filled(24), vec![loose(400), cut(800, 0)]), [400, 400, 400]);
    }

    #[test]
    fn large_pieces_are_split_evenly_at_line_ends() {
        assert_eq!(sizes(&filled(50), vec![]), [1250, 1250]);
    }

    #[test]
    fn blank_lines_are_preferred_to_the_exact_middle() {
        let text = format!("{}\n{}", filled(22), filled(28));
        assert_eq!(sizes(&text, vec![]), [1101, 1400]);
    }

    #[test]
    fn a_line_that_is_too_long_is_split_within() {
        assert_eq!(sizes(&"x".repeat(4500), vec![]), [2000, 2000, 500]);
        let text = format!("{}{}\nend\n", filled(2), "é".repeat(4000));
        let pieces = pieces(&Lines::of(&text), vec![], &[]);
        assert!(pieces.iter().all(|piece| chars(&text[piece.clone()]) <= MOST_CHARS), "{pieces:?}");
        assert_eq!(pieces.iter().map(ExactSizeIterator::len).sum::<usize>(), text.len());
    }
}
