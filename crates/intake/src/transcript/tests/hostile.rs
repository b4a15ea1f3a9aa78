//! Files that are broken, truncated or too large.

use serde_json::json;

use super::{gather, problems, read, said};
use crate::transcript::{Format, MAX_ITEM_BYTES, MAX_MESSAGES, TranscriptOptions};

fn conversation(uuid: &str, text: &str) -> String {
    json!({ "uuid": uuid, "name": "n", "chat_messages": [
        { "uuid": "m", "sender": "human", "text": text },
    ] })
    .to_string()
}

#[test]
fn a_bad_conversation_does_not_affect_the_others() {
    for (bad, expected) in [
        ("5", "it has no list of chat_messages"),
        (r#"{"chat_messages":{}}"#, "it has no list of chat_messages"),
        (r#"{"chat_messages" 1}"#, "expected a colon"),
        (r#"{"chat_messages":[{"text" 1}]}"#, "message 1: not JSON at byte"),
        (r#"{"chat_messages":[{"text":"\q"}]}"#, "message 1: text is not valid JSON text"),
        (r#"{"chat_messages":[1,{"text":5}]}"#, "message 2: text must be text, found a number"),
        (r#"{"chat_messages":[{"content":[{"type":"text","text":7}]}]}"#, "text must be text"),
    ] {
        let content = format!("[{},{bad},{}]", conversation("a", "one"), conversation("b", "two"));
        let (_, batch) = read("conversations.json", content);
        assert_eq!(said(&batch), [("user", "one"), ("user", "two")], "{bad}");
        let found = problems(&batch);
        assert!(found.len() == 1 && found[0].contains(expected), "{bad}: {found:?}");
        assert!(found[0].starts_with("2: "), "{found:?}");
    }
}

#[test]
fn everything_before_a_syntax_error_is_read() {
    let whole = format!("[{},{}]", conversation("a", "one"), conversation("b", "two"));
    for (content, expected) in [
        (whole[..whole.len() - 20].to_owned(), "2: truncated at byte"),
        (whole.replace("},{", "} {"), "2: not JSON at byte"),
        (whole.replace(",{\"chat_messages\":[{\"s", ",]{"), "2: not JSON at byte"),
        (whole[..whole.len() - 1].to_owned(), "3: truncated at byte"),
    ] {
        let (_, batch) = read("conversations.json", &content);
        assert_eq!(said(&batch)[0], ("user", "one"), "{content}");
        let found = problems(&batch);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{content}: {found:?}");
        assert!(found[0].ends_with("nothing after it can be read"), "{found:?}");
    }
}

#[test]
fn invalid_bytes_are_reported_with_their_position() {
    let content = b"{\"text\":\"good\"}\n{\"text\":\"b\xC3(d\"}\n\x00\xFF\n";
    let (_, batch) = read("d.jsonl", content);
    assert_eq!(said(&batch), [("-", "good")]);
    assert_eq!(
        problems(&batch),
        ["2: text is not UTF-8 at byte 26", "3: a drawer must be an object, found invalid JSON",]
    );
}

/// Reads a large file in one batch.
fn read_once(content: &[u8], format: Format) -> crate::transcript::DrawerBatch {
    let options = TranscriptOptions {
        name: "large".to_owned(),
        format: Some(format),
        ..TranscriptOptions::default()
    };
    gather(&options, content, (usize::MAX, usize::MAX), false).unwrap().1
}

#[test]
fn lines_and_conversations_that_are_too_large_are_skipped() {
    let large = "x".repeat(MAX_ITEM_BYTES);
    let rows = format!("{{\"text\":\"a\"}}\n{{\"text\":\"{large}\"}}\n{{\"text\":\"b\"}}\n");
    let batch = read_once(rows.as_bytes(), Format::Drawers);
    assert_eq!(said(&batch), [("-", "a"), ("-", "b")]);
    assert_eq!(problems(&batch), ["2: the line has 67108875 bytes, more than 64 MB"]);
    let middle = conversation("b", "LARGE").replace("LARGE", &large);
    let list = format!("[{},{middle},{}]", conversation("a", "a"), conversation("c", "c"));
    let batch = read_once(list.as_bytes(), Format::Claude);
    assert_eq!(said(&batch), [("user", "a"), ("user", "c")]);
    assert_eq!(batch.problems[0].row, 2);
    let turn = "x".repeat(2 << 20);
    let batch = read_once(format!("{{\"text\":\"{turn}\"}}\n").as_bytes(), Format::Drawers);
    assert_eq!(problems(&batch), ["1: the text has 2097152 bytes, more than 1 MB"]);
}

#[test]
fn a_conversation_is_cut_at_the_maximum_number_of_messages() {
    let messages = vec!["{\"text\":\"m\"}"; MAX_MESSAGES + 1].join(",");
    let batch =
        read_once(format!("[{{\"chat_messages\":[{messages}]}}]").as_bytes(), Format::Claude);
    assert_eq!(batch.drawers.len(), MAX_MESSAGES);
    assert_eq!(problems(&batch), ["1: it has more than 100000 messages"]);
    let nodes: Vec<String> = (0..=MAX_MESSAGES).map(|id| format!("\"{id}\":{{}}")).collect();
    let tree = format!("[{{\"mapping\":{{{}}}}}]", nodes.join(","));
    assert_eq!(
        problems(&read_once(tree.as_bytes(), Format::Chatgpt)),
        ["1: it has more than 100000 messages"]
    );
}
