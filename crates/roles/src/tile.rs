//! Chunks as they are stored: without gaps between them.

use isolith_types::Chunk;

/// Extends the texts of chunks, which must be in order, so that together they are the text. Blank
/// space and chunks that are not kept go to the kept chunk before them, or else to the first one.
/// Returns the kept chunks. Chunks that are not parts of the text, as the cells of a notebook, keep
/// their own texts.
pub(crate) fn tile(text: &str, chunks: Vec<Chunk>, kept: &[bool]) -> Vec<Chunk> {
    let Some(starts) = starts(text, &chunks) else { return of_lines(chunks, kept) };
    let mut tiled: Vec<Chunk> = Vec::with_capacity(chunks.len());
    let mut skipped_line = None;
    // Where the text of the last kept chunk begins.
    let mut from = 0;
    for ((mut chunk, start), kept) in chunks.into_iter().zip(starts).zip(kept) {
        match (tiled.last_mut(), kept) {
            (None, true) => {
                chunk.start_line = skipped_line.unwrap_or(chunk.start_line);
                tiled.push(chunk);
            }
            (Some(last), true) => {
                text[from..start].clone_into(&mut last.text);
                from = start;
                tiled.push(chunk);
            }
            (None, false) => {
                skipped_line.get_or_insert(chunk.start_line);
            }
            (Some(last), false) => last.end_line = chunk.end_line,
        }
    }
    if let Some(last) = tiled.last_mut() {
        text[from..].clone_into(&mut last.text);
    }
    tiled
}

/// The kept chunks, each with a line end after its last line.
fn of_lines(chunks: Vec<Chunk>, kept: &[bool]) -> Vec<Chunk> {
    let kept = chunks.into_iter().zip(kept).filter(|(_, kept)| **kept);
    kept.map(|(mut chunk, _)| {
        if !chunk.text.ends_with('\n') {
            chunk.text.push('\n');
        }
        chunk
    })
    .collect()
}

/// Where chunks begin in the text that they were cut from: only blank space is between them. `None`
/// if they were not cut from it.
fn starts(text: &str, chunks: &[Chunk]) -> Option<Vec<usize>> {
    let indentation = |text: &str| text.len() - text.trim_start().len();
    let mut end = 0;
    let mut starts = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        let first = end + indentation(&text[end..]);
        let start = boundary(text, first.saturating_sub(indentation(&chunk.text)).max(end));
        if !text[start..].starts_with(&chunk.text) {
            return None;
        }
        starts.push(start);
        end = start + chunk.text.len();
    }
    Some(starts)
}

/// The last boundary between characters up to this one.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use isolate::InWorker;
    use isolith_source::{Chunker, Mode, WorkLimit};
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    use super::*;

    fn chunks(path: &str, text: &str) -> Vec<Chunk> {
        let mut chunker = Chunker::new(InWorker::in_process());
        chunker.chunk(path, text, Mode::Parsed, WorkLimit::steps(100_000), &|| false).chunks
    }

    fn joined(chunks: &[Chunk]) -> String {
        chunks.iter().map(|chunk| chunk.text.as_str()).collect()
    }

    #[test]
    fn chunks_that_are_left_out_go_to_their_neighbors() {
        let line = |letter: &str| format!("{}\n", letter.repeat(1_400));
        let text = format!("\n \n{}\n\n{} \r\n{}", line("a"), line("b"), line("c"));
        let cut = chunks("a.txt", &text);
        let lines = |chunks: &[Chunk]| -> Vec<(u32, u32)> {
            chunks.iter().map(|chunk| (chunk.start_line, chunk.end_line)).collect()
        };
        assert_eq!(lines(&cut), [(3, 3), (6, 6), (8, 8)]);
        for (kept, expected) in [
            ([true, true, true], vec![(3, 3), (6, 6), (8, 8)]),
            ([false, true, true], vec![(3, 6), (8, 8)]),
            ([true, false, true], vec![(3, 6), (8, 8)]),
            ([true, false, false], vec![(3, 8)]),
            ([false, false, true], vec![(3, 8)]),
        ] {
            let tiled = tile(&text, cut.clone(), &kept);
            assert_eq!(lines(&tiled), expected, "{kept:?}");
            assert_eq!(joined(&tiled), text, "{kept:?}");
        }
        assert_eq!(tile(&text, cut, &[false; 3]), []);
    }

    #[test]
    fn cells_of_notebooks_keep_their_texts() {
        let notebook = r##"{
 "cells": [
  {"cell_type": "markdown", "source": ["# Title\n",
    "words"]},
  {"cell_type": "code", "source": ["x = \"é\"\n",
    "y = 2"]}
 ]
}"##;
        let cut = chunks("a.ipynb", notebook);
        let tiled = tile(notebook, cut.clone(), &vec![true; cut.len()]);
        let texts: Vec<(u32, &str)> =
            tiled.iter().map(|chunk| (chunk.start_line, chunk.text.as_str())).collect();
        assert_eq!(texts, [(3, "# Title\nwords\n"), (5, "x = \"é\"\ny = 2\n")]);
        let kept = tile(notebook, cut, &[false, true]);
        assert_eq!(kept, tiled[1..]);
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(43),
            failure_persistence: None,
            ..ProptestConfig::with_cases(100)
        })]

        #[test]
        fn chunks_are_the_text(
            pieces in prop::collection::vec(prop::sample::select(vec![
                "fn a() {\n", "}\n", "\n", " \t\n", "\r\n", "// é\n", "x = 1; ", "\u{a0}\n", "class A:\n",
                "    def b(self):\n        pass\n", "\u{c}\n",
            ]), 0..300),
            long in 0..6_000_usize,
            path in prop::sample::select(vec!["a.rs", "a.py", "a.txt", "a.md", "a.json"]),
        ) {
            let text = format!("{}{} {}", pieces.concat(), "y ".repeat(long), pieces.concat());
            let cut = chunks(path, &text);
            let kept = vec![true; cut.len()];
            let lines: Vec<(u32, u32)> = cut.iter().map(|it| (it.start_line, it.end_line)).collect();
            let tiled = tile(&text, cut, &kept);
            let same: Vec<(u32, u32)> = tiled.iter().map(|it| (it.start_line, it.end_line)).collect();
            prop_assert_eq!(lines, same);
            if !tiled.is_empty() {
                prop_assert_eq!(joined(&tiled), text);
            }
        }
    }
}
