//! Sessions of Codex and Gemini CLI.

use super::{problems, read, read_as, said, shown};
use crate::transcript::{Format, SkippedItems};

const ROLLOUT: &str = r##"{"timestamp":"2026-05-02T10:00:00.100Z","type":"session_meta","payload":{"id":"019a2d7a-41c4-78b1-b7cc-a45d62a89cd5","timestamp":"2026-05-02T10:00:00.000Z","cwd":"/home/anna/shop","originator":"codex_cli_rs","cli_version":"0.65.0","git":{"branch":"main"}}}
{"timestamp":"2026-05-02T10:00:00.200Z","type":"response_item","payload":{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be brief."}]}}
{"timestamp":"2026-05-02T10:00:00.200Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>\n  <cwd>/home/anna/shop</cwd>\n</environment_context>"}]}}
{"timestamp":"2026-05-02T10:00:01.000Z","type":"turn_context","payload":{"cwd":"/home/anna/shop","model":"gpt-5-codex"}}
{"timestamp":"2026-05-02T10:00:01.000Z","type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Why does the build fail?"},{"type":"input_image","image_url":"data:"}]}}
{"timestamp":"2026-05-02T10:00:01.000Z","type":"event_msg","payload":{"type":"user_message","message":"Why does the build fail?"}}
{"timestamp":"2026-05-02T10:00:02.000Z","type":"response_item","payload":{"type":"reasoning","summary":[],"encrypted_content":"x"}}
{"timestamp":"2026-05-02T10:00:03.000Z","type":"response_item","payload":{"type":"function_call","name":"shell","arguments":"{}","call_id":"c"}}
{"timestamp":"2026-05-02T10:00:09.000Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"A header is missing."}]}}
"##;

#[test]
fn rollouts_of_codex_are_read() {
    let (format, batch) = read("rollout-2026.jsonl", ROLLOUT);
    assert_eq!((format, problems(&batch)), (Format::Codex, vec![]));
    assert_eq!(
        batch.drawers.iter().map(shown).collect::<Vec<_>>(),
        [
            r#"shop/2026-05-02 62a89cd5 codex:019a2d7a-41c4-78b1-b7cc-a45d62a89cd5:5 user: "Why does the build fail?" 2026-05-02T10:00:01Z - [] {"branch":"main","role":"user","session":"019a2d7a-41c4-78b1-b7cc-a45d62a89cd5"}"#,
            r#"shop/2026-05-02 62a89cd5 codex:019a2d7a-41c4-78b1-b7cc-a45d62a89cd5:9 assistant: "A header is missing." 2026-05-02T10:00:09Z - [] {"branch":"main","model":"gpt-5-codex","role":"assistant","session":"019a2d7a-41c4-78b1-b7cc-a45d62a89cd5"}"#,
        ]
    );
    let skipped =
        SkippedItems { events: 3, hidden: 1, inserted: 1, without_text: 2, ..Default::default() };
    assert_eq!(batch.skipped, skipped);
}

#[test]
fn a_rollout_may_lack_its_header_or_have_bad_lines() {
    let lines: Vec<&str> = ROLLOUT.lines().collect();
    let broken = format!("{}\nnot json\n{}\n", lines[4], lines[8]);
    let (_, batch) = read("r.jsonl", broken);
    assert_eq!(batch.drawers[0].source.as_deref(), Some("r.jsonl#1"));
    assert_eq!((batch.drawers.len(), batch.problems.len(), batch.problems[0].row), (2, 1, 2));
    let wrong =
        r#"{"type":"response_item","payload":{"type":"message","role":"user","content":7}}"#;
    let (format, batch) = read("r.jsonl", wrong);
    assert_eq!((format, batch.drawers.len()), (Format::Codex, 0));
}

const SESSION: &str = r#"{"sessionId":"f86f5318","projectHash":"79b6fa","startTime":"2026-05-02T10:00:00.000Z","lastUpdated":"2026-05-02T10:01:00.000Z",
"messages":[
 {"id":"m1","timestamp":"2026-05-02T10:00:01.000Z","type":"user","content":"List the files"},
 {"id":"m2","timestamp":"2026-05-02T10:00:02.000Z","type":"gemini","content":"","toolCalls":[{"id":"t","name":"ls","args":{}}],"thoughts":[]},
 {"id":"m3","timestamp":"2026-05-02T10:00:03.000Z","type":"gemini","content":[{"text":"There are two."},{"thought":true,"text":"hm"},{"inlineData":{}}],"model":"gemini-2.5-pro"},
 {"id":"m4","timestamp":"2026-05-02T10:00:04.000Z","type":"info","content":"Request cancelled."},
 {"id":"m5","timestamp":"2026-05-02T10:00:05.000Z","type":"user","content":7}
]}"#;

#[test]
fn sessions_of_gemini_are_read() {
    let (format, batch) = read("session-1.json", SESSION);
    assert_eq!(format, Format::Gemini);
    assert_eq!(said(&batch), [("user", "List the files"), ("assistant", "There are two.")]);
    assert_eq!(batch.drawers[1].source.as_deref(), Some("gemini:f86f5318:m3"));
    assert_eq!(batch.drawers[1].room, "2026-05-02");
    let skipped = SkippedItems { hidden: 1, without_text: 1, ..SkippedItems::default() };
    assert_eq!((batch.skipped, batch.problems.len()), (skipped, 1));
    assert!(read_as("s.json", Some(Format::Gemini), br#"{"text":"x"}"#).is_err());
}
