//! Detecting the format of a file.

use isolith_types::Code;

use super::{read, read_as};
use crate::transcript::Format;

#[test]
fn formats_are_detected_from_the_content() {
    for (name, content, format) in [
        ("conversations.json", r#"[{"uuid":"c","chat_messages":[]}]"#, Format::Claude),
        ("x", r#" {"name":"one","chat_messages":[]}"#, Format::Claude),
        ("conversations.json", r#"[{"odd":1},{"title":"t","mapping":{}}]"#, Format::Chatgpt),
        ("x.json", r#"{"conversations":[{"mapping":{}}],"more":1}"#, Format::Chatgpt),
        ("s.jsonl", "{\"type\":\"summary\",\"summary\":\"s\"}\n", Format::ClaudeCode),
        ("s.jsonl", "{\"type\":\"user\",\"message\":{},\"sessionId\":\"s\"}\n", Format::ClaudeCode),
        ("d.jsonl", "{\"wing\":\"w\",\"text\":\"t\"}\n", Format::Drawers),
        ("d.jsonl", "{\"broken\n{\"wing\":\"w\",\"text\":\"t\"}\n", Format::Drawers),
        ("d.txt", "{\"text\":\"t\",\"type\":\"note\"}\n", Format::Drawers),
        ("notes.md", "[a link](there) and words", Format::Markdown),
        ("notes.MD", "# words", Format::Markdown),
        ("notes.txt", "{curly} words", Format::Text),
        ("notes", "words", Format::Text),
    ] {
        assert_eq!(read(name, content).0, format, "{name}: {content}");
    }
}

#[test]
fn unknown_files_are_rejected_with_a_reason_and_a_hint() {
    for (name, content, expected, hint) in [
        ("a.json", &b""[..], "empty", "export"),
        ("a.txt", b" \n\n\t", "empty", "export"),
        ("a.json", b"\xEF\xBB\xBF\n", "empty", "export"),
        ("e.zip", b"PK\x03\x04...", "zip archive", "conversations.json"),
        ("e.gz", b"\x1F\x8B...", "gzip", "unpack"),
        ("a.txt", b"\xFF\xFEa\0b\0", "UTF-16", "iconv"),
        ("a.txt", b"a\0b", "binary data", "docs/memory.md"),
        ("a.pdf", b"%PDF-1.7", "a PDF", "docs/memory.md"),
        ("chat.html", b"<html><body>", "a web page", "conversations.json"),
        ("user.json", br#"{"id":"u","email":"e"}"#, "the keys id, email", "chat_messages"),
        ("a.json", br#"[{"role":"user","content":"c"}]"#, "the keys role, content", "mapping"),
        ("a.json", br#"[{"text":"t"}]"#, "one list of drawers", "jq -c"),
        ("a.json", b"[]", "an empty list", "chat_messages"),
        ("a.jsonl", b"words", "no valid JSON", "chat_messages"),
    ] {
        let error = read_as(name, None, content).unwrap_err();
        assert!(error.to_string().contains(expected), "{name}: {error}");
        let given = error.hint().for_terminal();
        assert!(given.contains(hint), "{name}: {given}");
        assert_eq!(error.code(), Code::BadInput);
    }
}

#[test]
fn a_requested_format_must_match_the_content() {
    let claude = br#"[{"uuid":"c","chat_messages":[]}]"#;
    for (format, content, expected) in [
        (Format::Chatgpt, &claude[..], "conversations in the claude format"),
        (Format::Claude, b"{\"text\":\"t\"}\n", "drawers"),
        (Format::Claude, b"{\"type\":\"user\",\"message\":1}\n", "a Claude Code session"),
        (Format::Claude, b"words", "no valid JSON"),
        (Format::Claude, b"{\"a\":1}", "an object without conversations"),
        (Format::Drawers, claude, "one list"),
    ] {
        let error = read_as("a.json", Some(format), content).unwrap_err();
        assert!(error.to_string().contains(expected), "{format}: {error}");
    }
    let (format, batch) = read_as("a.json", Some(Format::Text), claude).unwrap();
    assert_eq!((format, batch.drawers.len()), (Format::Text, 1));
    let (_, batch) = read_as("a.json", Some(Format::Claude), b"[{\"a\":1}]").unwrap();
    assert_eq!(batch.problems[0].reason, "it has no list of chat_messages");
}
