use crate::{Agent, EntryAction, HookProgram, register_hooks, unregister_hooks};

const AGENTS: [Agent; 4] = [Agent::ClaudeCode, Agent::Codex, Agent::Gemini, Agent::Cursor];

fn program(prompts: bool) -> HookProgram {
    HookProgram { command: "/bin/isolith".to_owned(), options: String::new(), prompts }
}

/// Registers, and checks that a second time changes nothing and that undoing restores the text.
fn registered(agent: Agent, text: &str, prompts: bool) -> String {
    let change = register_hooks(agent, Some(text), &program(prompts)).unwrap();
    assert_eq!(change.action, EntryAction::Added, "{text}");
    let new = change.text.unwrap();
    let again = register_hooks(agent, Some(&new), &program(prompts)).unwrap();
    assert_eq!((again.action, again.text), (EntryAction::Unchanged, None), "{new}");
    let undone = unregister_hooks(agent, Some(&new)).unwrap();
    assert_eq!(
        (undone.action, undone.text.as_deref()),
        (EntryAction::Removed, Some(text)),
        "{new}"
    );
    let nothing = unregister_hooks(agent, Some(text)).unwrap();
    assert_eq!((nothing.action, nothing.text), (EntryAction::None, None), "{text}");
    new
}

#[test]
fn hooks_are_added_and_removed_byte_for_byte() {
    let texts = [
        "{}",
        "{}\n",
        "{\n}\n",
        "{ }",
        "{\"model\": \"m\"}",
        "{\r\n\t// mine\r\n\t\"model\": \"m\", // last\r\n}\r\n",
        "{\n  \"hooks\": {}\n}\n",
        "{\n  \"hooks\": {\n  }\n}\n",
        "{\"hooks\": {\"Stop\": []}}",
        "{\n  \"hooks\": {\n    \"Stop\": [\n    ]\n  }\n}\n",
        "{\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"beep\"}]},\n    ],\n    \"AfterAgent\": [{}], \"stop\": [ {\"command\": \"beep\"} ]\n  }\n}\n",
        "{ \"hooks\": { \"SessionStart\": [ { \"hooks\": [] } ] }, \"version\": 1 }",
        "\u{feff}{\n    \"hooks\": { /* none */ }\n}\n",
    ];
    for agent in AGENTS {
        for text in texts {
            for prompts in [false, true] {
                let new = registered(agent, text, prompts);
                let events = new.matches("--client").count();
                let expected = if prompts && agent != Agent::Cursor { 5 } else { 4 };
                assert_eq!(events, expected, "{new}");
                assert_eq!(new.matches("beep").count(), text.matches("beep").count());
            }
        }
    }
}

#[test]
fn new_files_can_be_deleted_again() {
    for agent in AGENTS {
        let new = register_hooks(agent, None, &program(true)).unwrap();
        assert_eq!(new.action, EntryAction::Added);
        let text = new.text.unwrap();
        assert_eq!(text.contains("\"version\": 1"), agent == Agent::Cursor, "{text}");
        assert!(unregister_hooks(agent, Some(&text)).unwrap().can_delete_file, "{text}");
    }
    let kept = register_hooks(Agent::ClaudeCode, Some("{\"a\": 1}"), &program(true)).unwrap();
    assert!(!unregister_hooks(Agent::ClaudeCode, kept.text.as_deref()).unwrap().can_delete_file);
}

#[test]
fn hooks_that_moved_are_updated_and_unwanted_ones_removed() {
    let text = "{\n  \"model\": \"m\"\n}\n";
    let with = registered(Agent::ClaudeCode, text, true);
    let moved = HookProgram { command: "/opt/isolith".to_owned(), ..program(false) };
    let change = register_hooks(Agent::ClaudeCode, Some(&with), &moved).unwrap();
    assert_eq!(change.action, EntryAction::Updated);
    let new = change.text.unwrap();
    assert!(!new.contains("/bin/isolith") && !new.contains("UserPromptSubmit"), "{new}");
    let fresh = register_hooks(Agent::ClaudeCode, Some(text), &moved).unwrap().text.unwrap();
    assert_eq!(new, fresh);
}

#[test]
fn what_is_written_looks_as_documented() {
    let new = register_hooks(Agent::ClaudeCode, None, &program(false)).unwrap().text.unwrap();
    let value: serde_json::Value = serde_json::from_str(&new).unwrap();
    assert_eq!(
        value["hooks"]["SessionStart"],
        serde_json::json!([{ "hooks": [{
            "type": "command",
            "command": "/bin/isolith hook session-start --client claude-code",
            "timeout": 3,
        }] }])
    );
    check_indentation(&new);
    let cursor = register_hooks(Agent::Cursor, None, &program(false)).unwrap().text.unwrap();
    let value: serde_json::Value = serde_json::from_str(&cursor).unwrap();
    let stop = &value["hooks"]["stop"][0]["command"];
    assert_eq!(*stop, "/bin/isolith hook stop --client cursor");
}

/// Every line of a new file is indented by its depth.
fn check_indentation(text: &str) {
    let mut depth = 0_usize;
    for line in text.lines() {
        let closes = line.trim_start().starts_with(['}', ']']);
        depth -= usize::from(closes);
        let indent = line.len() - line.trim_start().len();
        assert_eq!(indent, depth * 2, "{line:?} in {text}");
        depth += usize::from(line.ends_with(['{', '[']));
    }
    assert_eq!(depth, 0);
}

#[test]
fn unusable_files_are_refused() {
    for text in [
        "[]",
        "{\"hooks\": []}",
        "{\"hooks\": {\"Stop\": {}}}",
        "{\"hooks\": {}, \"hooks\": {}}",
        "{",
    ] {
        assert!(register_hooks(Agent::ClaudeCode, Some(text), &program(true)).is_err(), "{text}");
        assert!(unregister_hooks(Agent::ClaudeCode, Some(text)).is_err(), "{text}");
    }
}
