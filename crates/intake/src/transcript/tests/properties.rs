//! Properties of any file.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::gather;
use crate::transcript::{DrawerBatch, Format, TranscriptOptions};

fn options(format: Option<Format>) -> TranscriptOptions {
    TranscriptOptions { name: "file.md".to_owned(), format, ..TranscriptOptions::default() }
}

/// Lines that resemble labels, headings, quotes and fences.
fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("---".to_owned()),
        Just("```".to_owned()),
        "[A-C]: [a-z ]{0,8}",
        "(User|Assistant|\\*\\*Anna\\*\\*): [a-z]{0,5}",
        "#{1,3} (User|Claude|Plan)",
        "> [a-z ]{0,6}",
        "[ a-zé:#>*-]{0,12}",
    ]
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The words of all drawers, in order.
fn words_of(batch: &DrawerBatch) -> Vec<String> {
    let mut all = Vec::new();
    for drawer in &batch.drawers {
        all.extend(words(&drawer.text));
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn drawers_contain_every_word_of_a_document(
        lines in vec("[ a-zé#>*`-]{0,10}", 0..30),
        markdown: bool,
    ) {
        let text = lines.join("\n");
        prop_assume!(!text.trim().is_empty() && !text.trim_start().starts_with('>'));
        let format = if markdown { Format::Markdown } else { Format::Text };
        let (_, batch) = gather(&options(Some(format)), text.as_bytes(), (usize::MAX, usize::MAX), false).unwrap();
        prop_assert_eq!(words_of(&batch), words(&text));
        prop_assert!(batch.problems.is_empty());
    }

    #[test]
    fn batch_size_does_not_change_a_chat(lines in vec(any_line(), 1..40), rows in 1usize..5) {
        let text = lines.join("\n");
        prop_assume!(!text.trim().is_empty());
        let whole = gather(&options(None), text.as_bytes(), (usize::MAX, usize::MAX), false).unwrap();
        prop_assert_eq!(gather(&options(None), text.as_bytes(), (rows, usize::MAX), true).unwrap(), whole);
    }

    #[test]
    fn arbitrary_bytes_do_not_panic(
        content in vec(any::<u8>(), 0..200),
        format in prop::sample::select(vec![None; 1].into_iter().chain(Format::ALL.map(Some)).collect::<Vec<_>>()),
    ) {
        let _ = gather(&options(format), &content, (3, 50), true);
    }

    #[test]
    fn corrupted_exports_do_not_panic(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        cut in any::<prop::sample::Index>(),
        which in 0usize..3,
    ) {
        let sample = [
            json!([{ "uuid": "c", "name": "n", "chat_messages": [
                { "uuid": "m", "sender": "human", "text": "a", "content": [{ "type": "text", "text": "a" }],
                  "attachments": [{ "file_name": "f", "extracted_content": "x" }] },
            ] }]),
            json!([{ "title": "t", "current_node": "b", "mapping": {
                "a": { "parent": null, "message": null },
                "b": { "parent": "a", "message": { "id": "b", "author": { "role": "user" },
                       "content": { "content_type": "text", "parts": ["x"] } } },
            } }]),
            json!({ "type": "user", "sessionId": "s", "cwd": "/a", "timestamp": "2026-01-01T00:00:00Z",
                    "message": { "content": "x" } }),
        ][which].to_string();
        let mut content = sample.into_bytes();
        for (at, byte) in changes {
            let at = at.index(content.len());
            content[at] = byte;
        }
        content.truncate(cut.index(content.len() * 4).max(1));
        for format in [None, Some(Format::Claude), Some(Format::Chatgpt), Some(Format::ClaudeCode), Some(Format::Codex), Some(Format::Gemini), Some(Format::Drawers)] {
            let _ = gather(&options(format), &content, (1, 50), true);
        }
    }
}
