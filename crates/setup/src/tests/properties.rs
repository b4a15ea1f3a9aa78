//! Properties of every document: registering is one insertion, and undoing restores the text.

use jsonc_parser::parse_to_serde_value;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use super::*;

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(1_000)
    })]

    #[test]
    fn json_gets_one_insertion(text in document()) {
        let new = registered(JSON, &text);
        prop_assert!(is_insertion(&text, &new), "{text}\n{new}");
        let mut expected = parsed(&text);
        expected["mcpServers"]["isolith"] =
            serde_json::json!({ "command": "/bin/isolith", "args": ["mcp"] });
        prop_assert_eq!(parsed(&new), expected);
    }

    #[test]
    fn json_loses_the_entry_and_nothing_else(text in document_with_entry()) {
        let rest = unregistered(JSON, &text);
        let mut expected = parsed(&text);
        let servers = expected["mcpServers"].as_object_mut().unwrap();
        servers.remove("isolith");
        let emptied = servers.is_empty();
        let actual = parsed(&rest);
        if emptied && actual.get("mcpServers").is_none() {
            expected.as_object_mut().unwrap().remove("mcpServers");
        }
        prop_assert_eq!(actual, expected, "{}", text);
    }

    #[test]
    fn toml_gets_one_insertion(text in toml_document()) {
        let new = registered(TOML, &text);
        prop_assert!(is_insertion(&text, &new), "{text}\n{new}");
    }

    #[test]
    fn no_input_causes_a_panic(text in "(\\PC|[\\[\\]{}\",:='#/*.a\n\r\t ]|isolith|mcp_?[sS]ervers){0,40}") {
        for format in [JSON, TOML] {
            let _ = register(format, Some(&text), &entry());
            let _ = unregister(format, Some(&text));
        }
    }
}

fn is_insertion(before: &str, after: &str) -> bool {
    let (before, after) = (before.as_bytes(), after.as_bytes());
    let start = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    after.len() > before.len() && after.ends_with(&before[start..])
}

fn parsed(text: &str) -> Value {
    let text = text.trim_start_matches('\u{feff}');
    parse_to_serde_value(text, &jsonc_parser::ParseOptions::default()).unwrap()
}

fn gap() -> impl Strategy<Value = &'static str> {
    select(vec![
        "",
        "",
        "",
        " ",
        "\n",
        "\n  ",
        "\r\n\t",
        "\n\n    ",
        " // c\n",
        "/* c */",
        "\n  // \"isolith\": {\n  ",
        "/* a\n b */ // c\r\n",
    ])
}

fn scalar() -> impl Strategy<Value = String> {
    let texts = [
        "1",
        "-2.5e3",
        "true",
        "null",
        "\"\"",
        "\"}, // \\\" /*\"",
        "\"\u{e9}\u{1f600}\"",
        "[]",
        "{}",
    ];
    select(texts.map(str::to_owned).to_vec())
}

fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(3, 12, 3, |inner| {
        let list = vec((gap(), inner.clone(), gap()), 1..3).prop_map(|items| {
            let items: Vec<_> = items.iter().map(|(a, it, b)| format!("{a}{it}{b}")).collect();
            format!("[{}]", items.join(","))
        });
        prop_oneof![list, object(inner, Just(None))]
    })
}

/// An object of members `k0`, `k1` ... with `special` somewhere among them.
fn object(
    inner: impl Strategy<Value = String> + 'static,
    special: impl Strategy<Value = Option<(&'static str, String)>> + 'static,
) -> BoxedStrategy<String> {
    let member = (gap(), inner, gap(), gap(), gap());
    let parts =
        (vec(member, 0..4), special, any::<prop::sample::Index>(), any::<bool>(), gap(), gap());
    parts
        .prop_map(|(members, special, at, trailing_comma, before, after)| {
            let mut members: Vec<String> = members
                .iter()
                .enumerate()
                .map(|(n, (a, value, b, c, d))| format!("{a}\"k{n}\"{b}:{c}{value}{d}"))
                .collect();
            if let Some((key, value)) = special {
                let at = at.index(members.len() + 1);
                members.insert(at, format!("{before}\"{key}\": {value}{after}"));
            }
            let comma = if trailing_comma && !members.is_empty() { "," } else { "" };
            format!("{{{}{comma}{after}}}", members.join(","))
        })
        .boxed()
}

fn surrounded(root: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    let mark = select(vec!["", "", "\u{feff}"]);
    (mark, gap(), root, gap()).prop_map(|(mark, a, root, b)| format!("{mark}{a}{root}{b}"))
}

/// Documents without the entry, most of them with servers.
fn document() -> impl Strategy<Value = String> {
    let servers = object(value(), Just(None)).prop_map(|object| Some(("mcpServers", object)));
    let servers = prop_oneof![1 => Just(None), 2 => servers];
    surrounded(object(value(), servers))
}

fn document_with_entry() -> impl Strategy<Value = String> {
    let entry = value().prop_map(|value| Some(("isolith", value)));
    let servers = object(value(), entry).prop_map(|object| Some(("mcpServers", object)));
    surrounded(object(value(), servers))
}

fn toml_document() -> impl Strategy<Value = String> {
    let lines = [
        "",
        "  ",
        "# comment",
        "[table]",
        "[mcp_servers.other]",
        "[[list]]",
        "KEY = 1",
        "KEY = [\n  'x', # y\n]",
        "KEY = \"\"\"\n[mcp_servers.isolith]\n\"\"\"",
        "KEY = { a = 1 } # c",
        "KEY.dotted = 'isolith'",
    ];
    let newline = select(vec!["\n", "\r\n"]);
    (vec((select(lines.to_vec()), newline), 0..8), any::<bool>()).prop_map(|(lines, ends)| {
        let mut seen = Vec::new();
        let mut text = String::new();
        for (n, (line, newline)) in lines.iter().enumerate() {
            // A table must not be defined twice.
            if line.starts_with("[t") || line.starts_with("[m") {
                if seen.contains(line) {
                    continue;
                }
                seen.push(line);
            }
            text += &line.replace("KEY", &format!("key{n}"));
            text += newline;
        }
        if !ends {
            text.truncate(text.trim_end_matches(['\r', '\n']).len());
        }
        text
    })
}
