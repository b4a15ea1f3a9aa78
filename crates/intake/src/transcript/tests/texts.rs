//! Text and Markdown, with and without speakers.

use isolith_types::LONGEST_DRAWER;

use super::{gather, problems, read, said, shown};
use crate::transcript::{DrawerBatch, Format, TranscriptOptions};

/// Reads a large file in one batch.
fn read_once(content: &[u8]) -> (Format, DrawerBatch) {
    let options = TranscriptOptions { name: "a.txt".to_owned(), ..TranscriptOptions::default() };
    gather(&options, content, (usize::MAX, usize::MAX), false).unwrap()
}

#[test]
fn chats_are_split_at_speakers() {
    type Said = &'static [(&'static str, &'static str)];
    let cases: [(&str, &str, Said); 8] = [
        (
            "a.txt",
            "User: hello\nAssistant: Hi.\n\nWhat can I do?\nNote: nothing yet\nUser:\n  indented\n\n",
            &[
                ("User", "hello"),
                ("Assistant", "Hi.\n\nWhat can I do?\nNote: nothing yet"),
                ("User", "  indented"),
            ],
        ),
        (
            "a.txt",
            "Anna: hi\r\nBen: hello\r\nAnna: so\r\nBen: bye\r\n",
            &[("Anna", "hi"), ("Ben", "hello"), ("Anna", "so"), ("Ben", "bye")],
        ),
        (
            "a.md",
            "# Talk\n\n**Alice**: One\n\ntwo\n\n**Bob:** Three\n\n---\n\n**Alice**: Four\n\n**Bob:** Five",
            &[
                ("-", "# Talk"),
                ("Alice", "One\n\ntwo"),
                ("Bob", "Three"),
                ("Alice", "Four"),
                ("Bob", "Five"),
            ],
        ),
        (
            "a.md",
            "# Log\n\n## 👤 User\n\nUse this:\n\n```\n## User\nUser: x\n```\n\n---\n\n## 🤖 Claude (10:15)\n\n### Plan\n\nok\n",
            &[
                ("-", "# Log"),
                ("User", "Use this:\n\n```\n## User\nUser: x\n```"),
                ("Claude", "### Plan\n\nok"),
            ],
        ),
        (
            "a.md",
            "> why?\n> really\n\nBecause.\n\nTruly.\n\n> ok\n\nFine.",
            &[
                ("user", "why?\nreally"),
                ("assistant", "Because.\n\nTruly."),
                ("user", "ok"),
                ("assistant", "Fine."),
            ],
        ),
        (
            "a.md",
            "preface\n# One\n\ntext\n\n## Part\nmore\n# Two\n## Three\nend\n",
            &[
                ("-", "preface"),
                ("-", "# One\n\ntext"),
                ("-", "## Part\nmore"),
                ("-", "# Two\n## Three\nend"),
            ],
        ),
        (
            "a.txt",
            "\n\nOne\nline\n\n\n  Two\n\t\n```\ncode\n\nmore\n```\n",
            &[("-", "One\nline"), ("-", "  Two"), ("-", "```\ncode\n\nmore\n```")],
        ),
        ("a", "Just one line", &[("-", "Just one line")]),
    ];
    for (name, content, expected) in cases {
        let (format, batch) = read(name, content);
        assert_eq!(said(&batch), expected, "{content}");
        assert_eq!(problems(&batch), Vec::<String>::new());
        assert_eq!(format == Format::Markdown, name.ends_with("md"), "{name}");
    }
}

#[test]
fn turns_have_a_source_and_a_date() {
    let chat =
        "[2026-01-03T10:15:00Z] Anna: hi\n[3 Jan 2026 10:16] Ben: hello\nAnna: so\nBen: bye\n";
    let (_, batch) = read("my chat.txt", chat);
    assert_eq!(
        shown(&batch.drawers[0]),
        r#"conversations/my chat my chat.txt#1 Anna: "hi" 2026-01-03T10:15:00Z - [] {}"#
    );
    assert_eq!(
        shown(&batch.drawers[1]),
        r#"conversations/my chat my chat.txt#2 Ben: "hello" - 3 Jan 2026 10:16 [] {}"#
    );
    let (_, batch) = read("notes.md", "# Rome\n\nIt is old.\n");
    assert_eq!(
        shown(&batch.drawers[0]),
        "conversations/notes notes.md#1 -: \"# Rome\\n\\nIt is old.\" - - [] {\"heading\":\"Rome\"}"
    );
}

#[test]
fn invalid_text_affects_only_its_own_turn() {
    let content = b"Anna: hi\nBen: gr\xFC\xDFe\nAnna: so\nBen: bye\nAnna: nul \0 here\nBen: end\n";
    // Only the beginning decides whether a file is text.
    let padded = [b"Anna: x\nBen: y\n".repeat(20_000), content.to_vec()].concat();
    let (_, batch) = read_once(&padded);
    assert_eq!(batch.drawers.len(), 40_004);
    assert_eq!(
        problems(&batch),
        [
            "40002: not UTF-8: convert the file, for example with iconv -f LATIN1",
            "40005: the text contains a NUL character",
        ]
    );
}

#[test]
fn overlong_turns_are_split_and_overlong_lines_reported() {
    let line = "word ".repeat(200);
    let long = format!("{line}\n").repeat(2_500);
    let (_, batch) =
        read_once(format!("Assistant: hm\nUser: so\n{long}Assistant: done\n").as_bytes());
    assert_eq!(batch.drawers.len(), 5);
    assert!(batch.drawers.iter().all(|drawer| drawer.text.len() <= LONGEST_DRAWER));
    let length: usize = batch.drawers.iter().map(|drawer| drawer.text.len()).sum();
    assert!(length > 2_500 * line.trim_end().len());

    let endless = "x".repeat(LONGEST_DRAWER + 1);
    let endless = format!("Assistant: hm\nUser: a\n{endless}\nAssistant: b\n");
    let (_, batch) = read_once(endless.as_bytes());
    assert_eq!(said(&batch), [("Assistant", "hm"), ("User", "a"), ("Assistant", "b")]);
    assert_eq!(problems(&batch), ["3: a line is longer than 1 MB"]);
}
