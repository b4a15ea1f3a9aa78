//! Exports and ready drawers as other programs write them.

use serde_json::{Value, json};

use super::{lines, problems, read, read_with, said, shown};
use crate::transcript::{Format, TranscriptOptions};

fn claude() -> Value {
    json!([
        {
            "uuid": "c-1", "name": "Trip to Lisbon", "summary": "",
            "created_at": "2026-03-01T09:00:00.000000Z", "updated_at": "2026-03-01T09:10:00Z",
            "account": { "uuid": "a-1" },
            "chat_messages": [
                {
                    "uuid": "m-1", "sender": "human", "text": "When is it warm?",
                    "content": [{ "type": "text", "text": " When is it warm?\n", "citations": [] }],
                    "created_at": "2026-03-01T09:00:01.250000Z", "attachments": [], "files": [],
                },
                {
                    "uuid": "m-2", "sender": "assistant",
                    "text": "```\nThis block is not supported on your current device yet.\n```\nFrom May.",
                    "content": [
                        { "type": "thinking", "thinking": "Lisbon, so spring." },
                        { "type": "text", "text": "From May." },
                        { "type": "tool_use", "name": "weather", "input": { "text": "no" } },
                        { "type": "tool_result", "content": [{ "type": "text", "text": "no" }] },
                        { "type": "voice_note", "transcript": "Until October." },
                    ],
                    "created_at": "2026-03-01T09:00:09Z", "attachments": [], "files": [],
                },
                {
                    "uuid": "m-3", "sender": "human", "text": "", "content": [],
                    "created_at": "2026-03-01T09:01:00Z",
                    "attachments": [
                        { "file_name": "options.txt", "file_size": 9, "extracted_content": "Day one: walk" },
                        { "file_name": "photo.png", "extracted_content": "" },
                    ],
                },
                {
                    "uuid": "m-4", "sender": "assistant", "text": "ignored",
                    "content": [{ "type": "tool_use", "name": "weather", "input": {} }],
                },
            ],
        },
        { "uuid": "c-2", "name": "", "created_at": "2026-03-02T10:00:00Z", "chat_messages": [
            { "uuid": "m-5", "sender": "human", "text": "an old export" },
        ] },
        { "uuid": "c-3", "name": "empty", "chat_messages": [] },
    ])
}

#[test]
fn claude_conversations_become_drawers() {
    let (format, batch) = read("conversations.json", claude().to_string());
    assert_eq!((format, batch.skipped.total(), problems(&batch)), (Format::Claude, 2, vec![]));
    let found: Vec<String> = batch.drawers.iter().map(shown).collect();
    assert_eq!(
        found,
        [
            r#"conversations/Trip to Lisbon claude:c-1:m-1 user: " When is it warm?\n" 2026-03-01T09:00:01.25Z - [] {"conversation":"Trip to Lisbon","role":"user"}"#,
            r#"conversations/Trip to Lisbon claude:c-1:m-2 assistant: "From May.\n\nUntil October." 2026-03-01T09:00:09Z - [] {"conversation":"Trip to Lisbon","role":"assistant"}"#,
            r#"conversations/Trip to Lisbon claude:c-1:m-3:1 user: "Day one: walk" 2026-03-01T09:01:00Z - [] {"attachment":"options.txt","conversation":"Trip to Lisbon","role":"user"}"#,
            r#"conversations/2026-03-02 claude:c-2:m-5 user: "an old export" 2026-03-02T10:00:00Z - [] {"role":"user"}"#,
        ]
    );
}

#[test]
fn a_single_conversation_needs_no_list() {
    let all = claude();
    let (_, expected) = read("conversations.json", all.to_string());
    for content in [
        json!({ "account": { "email": "x" }, "conversations": all }).to_string(),
        serde_json::to_string_pretty(&all).unwrap(),
        format!("\u{FEFF}\n{all}"),
    ] {
        assert_eq!(read("conversations.json", content).1, expected);
    }
    let (_, one) = read("c-1.json", all[0].to_string());
    assert_eq!(one.drawers, expected.drawers[..3]);
}

fn message(id: &str, parent: Value, role: &str, text: &str) -> (String, Value) {
    let message = json!({
        "id": id, "author": { "role": role, "name": null, "metadata": {} },
        "create_time": 1_772_355_600.5, "update_time": null,
        "content": { "content_type": "text", "parts": [text] },
        "status": "finished_successfully", "weight": 1.0, "recipient": "all",
        "metadata": { "model_slug": if role == "assistant" { "gpt-5" } else { "" } },
    });
    (id.to_owned(), json!({ "id": id, "message": message, "parent": parent, "children": [] }))
}

fn chatgpt() -> Value {
    let mut mapping = serde_json::Map::new();
    mapping.insert("root".into(), json!({ "id": "root", "message": null, "parent": null }));
    mapping.extend([
        message("s", json!("root"), "system", "You are helpful"),
        message("u1", json!("s"), "user", "What is ü?"),
        message("old", json!("u1"), "assistant", "a first answer that was regenerated"),
        message("a1", json!("u1"), "assistant", "A letter."),
        message("call", json!("a1"), "assistant", "search(\"ü\")"),
        message("tool", json!("call"), "tool", "results"),
        message("think", json!("tool"), "assistant", "hm"),
        message("u2", json!("think"), "user", "[image]"),
        message("a2", json!("u2"), "assistant", "   "),
        message("hidden", json!("a2"), "user", "context"),
        message("u3", json!("hidden"), "user", "Thanks"),
    ]);
    mapping["call"]["message"]["recipient"] = json!("browser");
    mapping["think"]["message"]["content"] = json!({ "content_type": "thoughts", "thoughts": [] });
    mapping["hidden"]["message"]["metadata"]["is_visually_hidden_from_conversation"] = json!(true);
    mapping["u2"]["message"]["content"] = json!({ "content_type": "multimodal_text", "parts": [
        { "content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1" },
        { "content_type": "audio_transcription", "text": "And this one?", "direction": "in" },
        "It was on a sign.",
    ] });
    json!([{
        "title": "Letters", "create_time": 1_772_355_500.0, "update_time": 1_772_355_700.0,
        "mapping": mapping, "current_node": "u3", "conversation_id": "g-1", "id": "g-1",
    }])
}

#[test]
fn chatgpt_conversations_follow_the_current_branch() {
    let (format, batch) = read("conversations-000.json", chatgpt().to_string());
    assert_eq!((format, batch.skipped.total(), problems(&batch)), (Format::Chatgpt, 6, vec![]));
    assert_eq!(
        said(&batch),
        [
            ("user", "What is ü?"),
            ("assistant", "A letter."),
            ("user", "And this one?\n\nIt was on a sign."),
            ("user", "Thanks"),
        ]
    );
    assert_eq!(
        shown(&batch.drawers[1]),
        r#"conversations/Letters chatgpt:g-1:a1 assistant: "A letter." 2026-03-01T09:00:00.5Z - [] {"conversation":"Letters","model":"gpt-5","role":"assistant"}"#
    );
}

#[test]
fn a_tree_without_a_current_node_or_with_a_cycle_is_read() {
    let mut lost = chatgpt();
    lost[0]["current_node"] = json!("nowhere");
    let (_, batch) = read("a.json", lost.to_string());
    assert_eq!(said(&batch).last(), Some(&("user", "Thanks")));
    let mut looped = chatgpt();
    looped[0]["mapping"]["s"]["parent"] = json!("u3");
    let (_, batch) = read("a.json", looped.to_string());
    assert_eq!(said(&batch).len(), 4);
}

fn event(kind: &str, uuid: &str, content: Value) -> Value {
    json!({
        "parentUuid": null, "isSidechain": false, "userType": "external", "type": kind,
        "uuid": uuid, "sessionId": "6e6b9dd1-aaaa", "cwd": "/home/anna/shop/",
        "timestamp": "2026-04-08T13:10:56.766Z", "version": "2.1.96", "gitBranch": "main",
        "message": { "role": kind, "content": content },
    })
}

#[test]
fn claude_code_sessions_become_drawers() {
    let mut later = event("assistant", "e-6", json!([{ "type": "text", "text": "Done." }]));
    later["cwd"] = json!("/home/anna/shop/src");
    later["timestamp"] = json!("2026-04-09T00:10:00Z");
    later["message"]["model"] = json!("claude-opus-4-6");
    let flagged = |flag: &str| {
        let mut event = event("user", "x", json!("not said by anybody"));
        event[flag] = json!(true);
        event
    };
    let mut synthetic = event("assistant", "x", json!([{ "type": "text", "text": "API error" }]));
    synthetic["message"]["model"] = json!("<synthetic>");
    let content = lines(&[
        json!({ "type": "summary", "summary": "Fix the cart", "leafUuid": "l" }),
        json!({ "type": "file-history-snapshot", "messageId": "m", "snapshot": {} }),
        event("user", "e-1", json!("Why is the cart empty?")),
        event("assistant", "e-2", json!([{ "type": "thinking", "thinking": "hm" }])),
        event("assistant", "e-3", json!([{ "type": "text", "text": "Let me look." }])),
        event("assistant", "e-4", json!([{ "type": "tool_use", "name": "Read", "input": {} }])),
        event("user", "e-5", json!([{ "type": "tool_result", "content": "fn cart()" }])),
        flagged("isMeta"),
        flagged("isSidechain"),
        flagged("isCompactSummary"),
        synthetic,
        event(
            "user",
            "x",
            json!("<command-name>/clear</command-name>\n<command-args></command-args>"),
        ),
        event("user", "x", json!("<local-command-stdout>ok</local-command-stdout>")),
        event(
            "user",
            "x",
            json!(
                "Caveat: The messages below were generated by the user while running local commands."
            ),
        ),
        event(
            "user",
            "e-7",
            json!(
                "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>the cart</command-args>"
            ),
        ),
        later,
    ]);
    let (format, batch) = read("6e6b9dd1-aaaa.jsonl", &content);
    assert_eq!((format, batch.skipped.total(), problems(&batch)), (Format::ClaudeCode, 12, vec![]));
    assert_eq!(
        said(&batch),
        [
            ("user", "Why is the cart empty?"),
            ("assistant", "Let me look."),
            ("user", "/review the cart"),
            ("assistant", "Done."),
        ]
    );
    assert_eq!(
        shown(&batch.drawers[3]),
        r#"shop/2026-04-08 6e6b9dd1 claude-code:6e6b9dd1-aaaa:e-6 assistant: "Done." 2026-04-09T00:10:00Z - [] {"branch":"main","folder":"/home/anna/shop/src","model":"claude-opus-4-6","role":"assistant","session":"6e6b9dd1-aaaa"}"#
    );
}

#[test]
fn ready_drawers_are_read_with_all_fields() {
    let content = lines(&[
        json!({
            "text": "Anna moved", "wing": "anna", "room": "home", "source": "n-1",
            "author": "Ben", "date": "2026-01-31", "date_text": "last day of January",
            "tags": ["move", " flat "], "mood": "glad", "rank": 3, "lists": [1, "two"],
        }),
        json!({ "text": " as it is \n", "wing": "w", "room": "r", "source": "D1:3", "date_text": "" }),
        json!({ "text": "bare", "date": null, "tags": null, "author": "", "nothing": null }),
        json!({ "text": "at an instant", "date": "2026-01-31T09:30:00+01:00", "metadata": { "k": true } }),
    ]);
    let (format, batch) = read("notes.jsonl", &content);
    assert_eq!((format, problems(&batch)), (Format::Drawers, vec![]));
    let found: Vec<String> = batch.drawers.iter().map(shown).collect();
    assert_eq!(
        found,
        [
            r#"anna/home n-1 Ben: "Anna moved" 2026-01-31 last day of January ["move", "flat"] {"lists":[1,"two"],"mood":"glad","rank":3}"#,
            r#"w/r D1:3 -: " as it is \n" - - [] {}"#,
            r#"general/general - -: "bare" - - [] {}"#,
            r#"general/general - -: "at an instant" 2026-01-31T08:30:00Z - [] {"k":true}"#,
        ]
    );
}

#[test]
fn a_bad_drawer_is_reported_and_the_others_are_read() {
    let cases = [
        (r#"{"text":"a","date":"yesterday"}"#, r#"date is invalid: "yesterday" is not a date"#),
        (r#"{"text":"a","date":20260131}"#, "date must be text, found a number"),
        (r#"{"text":" \n"}"#, "text is empty"),
        (r#"{"wing":"w"}"#, "text is missing"),
        (r#"{"text":5}"#, "text must be text, found a number"),
        (r#"{"text":"a","wing":["w"]}"#, "wing must be text, found a list"),
        (r#"{"text":"a","tags":"x"}"#, "tags must be a list of texts, found text"),
        (r#"{"text":"a","tags":["x",1]}"#, "tags must be a list of texts: an item must be text"),
        (r#"{"text":"a","deep":{"er":1}}"#, r#"metadata key "deep" must hold text"#),
        (r#"{"text":"a","text":"b"}"#, r#"duplicate key "text""#),
        (r#"{"text":"a\u0000b"}"#, "NUL"),
        (r#"{"text":"a","n":1e}"#, "n cannot be read"),
        (r#"{"text":"a""#, "truncated at byte"),
        (r#"["text"]"#, "a drawer must be an object, found a list"),
        ("no JSON", "a drawer must be an object, found null"),
    ];
    let mut content = String::from("{\"text\":\"first\"}\n\n");
    for (row, _) in cases {
        content += &format!("{row}\n");
    }
    content += r#"{"text":"last"}"#;
    let (_, batch) = read("notes.jsonl", content);
    assert_eq!(said(&batch), [("-", "first"), ("-", "last")]);
    assert_eq!(batch.problems.len(), cases.len());
    for ((row, expected), (at, problem)) in cases.iter().zip(batch.problems.iter().enumerate()) {
        assert!(problem.reason.contains(expected), "{row}: {}", problem.reason);
        assert_eq!(problem.row, at as u64 + 3, "{row}");
    }
}

#[test]
fn options_set_wing_room_and_authors() {
    let options = TranscriptOptions {
        name: "conversations.json".to_owned(),
        wing: Some("anna".to_owned()),
        room: Some("chats".to_owned()),
        authors: vec![("User".to_owned(), "Anna".to_owned())],
        ..TranscriptOptions::default()
    };
    let (_, batch) = read_with(&options, claude().to_string().as_bytes()).unwrap();
    assert!(
        batch.drawers.iter().all(|it| (it.wing.as_str(), it.room.as_str()) == ("anna", "chats"))
    );
    assert_eq!(said(&batch)[0].0, "Anna");
    // The fields of a ready drawer take precedence.
    let row = r#"{"text":"a","wing":"own","author":"user"}"#;
    let (_, batch) = read_with(&options, row.as_bytes()).unwrap();
    assert_eq!(shown(&batch.drawers[0]), r#"own/chats - Anna: "a" - - [] {}"#);
}
