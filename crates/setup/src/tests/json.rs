use super::*;

#[test]
fn a_new_file_is_indented() {
    let text = register(JSON, None, &entry()).unwrap().text.unwrap();
    let expected = r#"{
  "mcpServers": {
    "isolith": {
      "command": "/bin/isolith",
      "args": ["mcp"]
    }
  }
}
"#;
    assert_eq!(text, expected);
    let code = ConfigFormat::Json { servers: "servers", typed: true };
    let text = register(code, None, &entry()).unwrap().text.unwrap();
    assert!(text.contains("\"servers\": {\n    \"isolith\": {\n      \"type\": \"stdio\",\n"));
}

#[test]
fn new_entries_follow_the_formatting_of_the_file() {
    let table = [
        (
            "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"b\": {}\n  }\n}\n",
            "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"isolith\": {\n      \"command\": \"/bin/isolith\",\n      \"args\": [\"mcp\"]\n    },\n    \"b\": {}\n  }\n}\n",
        ),
        (
            "{\r\n\t\"a\": 1\r\n}",
            "{\r\n\t\"mcpServers\": {\r\n\t\t\"isolith\": {\r\n\t\t\t\"command\": \"/bin/isolith\",\r\n\t\t\t\"args\": [\"mcp\"]\r\n\t\t}\r\n\t},\r\n\t\"a\": 1\r\n}",
        ),
        (
            "{\n  \"mcpServers\": {},\n  \"a\": 1\n}\n",
            "{\n  \"mcpServers\": {\"isolith\": {\n    \"command\": \"/bin/isolith\",\n    \"args\": [\"mcp\"]\n  }},\n  \"a\": 1\n}\n",
        ),
        (
            "{}",
            "{\"mcpServers\": {\n  \"isolith\": {\n    \"command\": \"/bin/isolith\",\n    \"args\": [\"mcp\"]\n  }\n}}",
        ),
        (
            "{\"a\":1}",
            "{\"mcpServers\": { \"isolith\": {\"command\": \"/bin/isolith\", \"args\": [\"mcp\"]} },\"a\":1}",
        ),
        (
            "{\"mcpServers\":{\"b\":{}}}",
            "{\"mcpServers\":{\"isolith\": {\"command\": \"/bin/isolith\", \"args\": [\"mcp\"]},\"b\":{}}}",
        ),
    ];
    for (before, after) in table {
        assert_eq!(registered(JSON, before), after, "{before}");
    }
}

#[test]
fn comments_stay_where_they_belong() {
    let entry = r#""isolith": {
    "command": "/bin/isolith",
    "args": ["mcp"]
  }"#;
    let table = [
        (
            "{ // all\n  \"b\": {}, // one\n  // none\n}",
            "{ // all\n  @,\n  \"b\": {}, // one\n  // none\n}",
        ),
        ("{ /* all */ // of it\n  \"b\": {},\n}", "{ /* all */ // of it\n  @,\n  \"b\": {},\n}"),
        ("{\n  // about b\n  \"b\": {}\n}", "{\n  @,\n  // about b\n  \"b\": {}\n}"),
        ("{ /* about b */ \"b\": {}\n}", "{ @, /* about b */ \"b\": {}\n}"),
        ("{\n  // none yet\n}", "{\n  @\n  // none yet\n}"),
        ("{ // none yet\n}", "{ // none yet\n  @\n}"),
    ];
    for (servers, expected) in table {
        // The servers are nested in the document, but not indented.
        let text = format!("{{\"mcpServers\": {servers}}}");
        let expected = format!("{{\"mcpServers\": {expected}}}");
        let entry = if servers.starts_with("{ /* about b") {
            entry.replace("\n  ", "\n")
        } else {
            entry.to_owned()
        };
        assert_eq!(registered(JSON, &text), expected.replace('@', &entry), "{servers}");
    }
}

#[test]
fn an_entry_is_removed_wherever_it_is() {
    let table = [
        // Wherever a user may have put it.
        (r#"{"a": 1, "isolith": {}}"#, r#"{"a": 1}"#),
        (r#"{"a": 1, "isolith": {},}"#, r#"{"a": 1,}"#),
        (r#"{"a": 1, "isolith": {}, "b": 2}"#, r#"{"a": 1, "b": 2}"#),
        ("{\n  \"a\": 1,\n  \"isolith\": {}\n}", "{\n  \"a\": 1\n}"),
        ("{\n  \"a\": 1, // one\n  \"isolith\": {}\n}", "{\n  \"a\": 1 // one\n}"),
        (
            "{\n  \"a\": 1,\n  // ours\n  \"isolith\": {} // it\n}",
            "{\n  \"a\": 1\n  // ours\n   // it\n}",
        ),
        ("{// all\n\"isolith\": {}, \"b\": 2}", "{// all\n \"b\": 2}"),
        ("{// all\n\"isolith\": {}}", "{// all\n}"),
        ("{\"isolith\": null\n}", "{\n}"),
        // An escaped name is the same name.
        (r#"{"a": 1, "isolit\u0068": {}}"#, r#"{"a": 1}"#),
    ];
    for (before, after) in table {
        let within = |servers: &str| format!("{{\"x\": 1, \"mcpServers\": {servers}}}");
        assert_eq!(unregistered(JSON, &within(before)), within(after), "{before}");
    }
}

#[test]
fn objects_created_by_setup_are_removed_with_the_entry() {
    let table = [
        ("{\"x\": 1, \"mcpServers\": { \"isolith\": {} }}", "{\"x\": 1}", false),
        ("{\n  \"mcpServers\": {\n    \"isolith\": {}\n  }\n}\n", "{\n}\n", true),
        ("{\n  \"mcpServers\": {\n    \"isolith\": {}\n  }\n} // mine\n", "{\n} // mine\n", false),
        ("{\"mcpServers\": {\n    \"isolith\": {}\n  }}\n", "{}\n", false),
        ("{\n  \"mcpServers\": {\"isolith\": {}}\n}\n", "{\n  \"mcpServers\": {}\n}\n", false),
        (
            "{\n  \"mcpServers\": {\n    // mine\n    \"isolith\": {}\n  }\n}\n",
            "{\n  \"mcpServers\": {\n    // mine\n  }\n}\n",
            false,
        ),
    ];
    for (before, after, can_delete_file) in table {
        let change = unregister(JSON, Some(before)).unwrap();
        assert_eq!(change.text.as_deref(), Some(after), "{before}");
        assert_eq!(change.can_delete_file, can_delete_file, "{before}");
    }
    for untouched in ["", "{}", "{\"mcpServers\": {}}", "{\"isolith\": 1}", "// nothing"] {
        let change = unregister(JSON, Some(untouched)).unwrap();
        assert_eq!(change, ConfigChange::unchanged(EntryAction::None), "{untouched}");
    }
}

#[test]
fn another_entry_with_the_name_is_replaced() {
    let table = [
        // Other keys are kept.
        (
            r#"{"command": "/old", "args": ["mcp"], "env": {"A": "b"}}"#,
            r#"{"command": "/bin/isolith", "args": ["mcp"], "env": {"A": "b"}}"#,
        ),
        (
            "{ \"args\": [ ], /* by hand */ \"command\": \"x\", }",
            "{ \"args\": [\"mcp\"], /* by hand */ \"command\": \"/bin/isolith\", }",
        ),
        (
            r#"{"command": "/bin/isolith", "args": ["mcp", 1]}"#,
            r#"{"command": "/bin/isolith", "args": ["mcp"]}"#,
        ),
        // An entry that lacks a key is replaced as a whole.
        (r#"{"url": "http://localhost/mcp"}"#, r#"{"command": "/bin/isolith", "args": ["mcp"]}"#),
        ("null", r#"{"command": "/bin/isolith", "args": ["mcp"]}"#),
    ];
    for (before, after) in table {
        let within =
            |entry: &str| format!("{{\"mcpServers\": {{\"isolith\": {entry}, \"b\": 1}}}}");
        assert_eq!(updated(JSON, &within(before)), within(after), "{before}");
    }
}

#[test]
fn an_equal_entry_is_left_alone() {
    let text = "{\"mcpServers\":{\"isolith\":{\"args\":[\n\"mcp\"],\"disabled\":true,\n\"command\":\"\\/bin/isolith\"}}}";
    let change = register(JSON, Some(text), &entry()).unwrap();
    assert_eq!(change, ConfigChange::unchanged(EntryAction::Unchanged));
}

#[test]
fn a_file_without_content_counts_as_an_empty_object() {
    for (before, after) in [("", "{}"), (" \n", " \n{}"), ("// soon", "// soon\n{}")] {
        let change = register(JSON, Some(before), &entry()).unwrap();
        assert_eq!(unregistered(JSON, &change.text.unwrap()), after);
    }
}

#[test]
fn invalid_files_are_refused() {
    let wrong = |location: &str, found| EditError::WrongType {
        location: location.to_owned(),
        expected: "an object",
        found,
    };
    assert_eq!(refused(JSON, "[]"), wrong("the file", "an array"));
    assert_eq!(refused(JSON, r#"{"mcpServers": []}"#), wrong("\"mcpServers\"", "an array"));
    assert_eq!(refused(JSON, r#"{"mcpServers": null}"#), wrong("\"mcpServers\"", "null"));
    let duplicate = |key: &str| EditError::DuplicateKey { key: key.to_owned() };
    assert_eq!(refused(JSON, r#"{"mcpServers": {}, "mcpServers": {}}"#), duplicate("mcpServers"));
    let twice = r#"{"mcpServers": {"isolith": 1, "isolith": 2}}"#;
    assert_eq!(refused(JSON, twice), duplicate("isolith"));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let broken =
        ["{", "{\"a\" 1}", "{} {}", "{'a': 1}", "{a: 1}", "{\"a\": 1 \"b\": 2}", "/*", &deep];
    for text in broken {
        assert!(matches!(refused(JSON, text), EditError::Syntax { language: "JSON", .. }));
    }
    let reason = refused(JSON, "{\n  \"a\" 1}").to_string();
    assert!(reason.contains("line 2"), "{reason}");
}
