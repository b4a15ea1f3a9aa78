use isolith_types::Manifest;
use serde_json::Value;

/// What a file says about its package, if it is one that does.
pub(crate) fn manifest(path: &str, text: &str) -> Option<Manifest> {
    let file = path.rsplit('/').next().unwrap_or(path);
    match file {
        "Cargo.toml" => cargo(text),
        "go.mod" => go(text),
        "package.json" => package(text),
        "tsconfig.json" | "jsconfig.json" | "tsconfig.base.json" => options(text),
        _ => None,
    }
}

/// The name of a crate, and of the library in it, if that has another.
fn cargo(text: &str) -> Option<Manifest> {
    let (mut section, mut package, mut library, mut entry) = ("", None, None, None);
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with('[') {
            section = line;
        } else if let Some((key, value)) = line.split_once('=') {
            let value = value.trim().split('"').nth(1).map(str::to_owned);
            match (section, key.trim()) {
                ("[package]", "name") => package = value,
                ("[lib]", "name") => library = value,
                ("[lib]", "path") => entry = value,
                _ => {}
            }
        }
    }
    let name = library.or(package)?;
    Some(Manifest { name: Some(name), entry, ..Manifest::default() })
}

fn go(text: &str) -> Option<Manifest> {
    let line = text.lines().find_map(|line| line.trim().strip_prefix("module "))?;
    let name = line.split("//").next().unwrap_or(line).trim().trim_matches('"');
    Some(Manifest { name: Some(name.to_owned()), ..Manifest::default() })
}

fn package(text: &str) -> Option<Manifest> {
    let value: Value = serde_json::from_str(text).ok()?;
    let name = value.get("name")?.as_str()?.to_owned();
    let exports = value.get("exports");
    let mut aliases = Vec::new();
    match exports {
        Some(Value::Object(map)) => {
            for (key, target) in map.iter().filter(|(key, _)| key.starts_with('.')).take(64) {
                let mut targets = Vec::new();
                paths_in(target, &mut targets, 0);
                aliases.push((key.clone(), targets));
            }
        }
        Some(target) => {
            let mut targets = Vec::new();
            paths_in(target, &mut targets, 0);
            aliases.push((".".to_owned(), targets));
        }
        None => {}
    }
    let text_of = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let entry = text_of("source").or_else(|| text_of("module")).or_else(|| text_of("main"));
    Some(Manifest { name: Some(name), base: None, aliases, entry })
}

/// The paths that conditions in `exports` may lead to.
fn paths_in(value: &Value, paths: &mut Vec<String>, depth: usize) {
    const DEEPEST: usize = 4;
    const MOST: usize = 8;
    match value {
        Value::String(path) if paths.len() < MOST && !paths.contains(path) => {
            paths.push(path.clone());
        }
        Value::Object(map) if depth < DEEPEST => {
            map.values().for_each(|value| paths_in(value, paths, depth + 1));
        }
        _ => {}
    }
}

fn options(text: &str) -> Option<Manifest> {
    let value: Value = serde_json::from_str(&without_comments(text)).ok()?;
    let options = value.get("compilerOptions")?;
    let base = options.get("baseUrl").and_then(Value::as_str).map(str::to_owned);
    let paths = options.get("paths").and_then(Value::as_object);
    let aliases: Vec<(String, Vec<String>)> = paths
        .into_iter()
        .flatten()
        .map(|(pattern, targets)| {
            let targets = targets.as_array().into_iter().flatten().filter_map(Value::as_str);
            (pattern.clone(), targets.map(str::to_owned).collect())
        })
        .collect();
    let says_something = base.is_some() || !aliases.is_empty();
    says_something.then(|| Manifest { base, aliases, ..Manifest::default() })
}

/// JSON as TypeScript's options have it, without comments and without commas before a
/// closing bracket.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_string = false;
    while let Some(c) = rest.chars().next() {
        if in_string {
            let length = if c == '\\' {
                1 + rest[1..].chars().next().map_or(0, char::len_utf8)
            } else {
                c.len_utf8()
            };
            in_string = c != '"';
            plain.push_str(&rest[..length]);
            rest = &rest[length..];
        } else if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
        } else {
            if matches!(c, '}' | ']') {
                let end = plain.trim_end();
                if end.ends_with(',') {
                    plain.truncate(end.len() - 1);
                }
            }
            in_string = c == '"';
            plain.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_say_what_they_are_called() {
        let table = [
            (
                "a/Cargo.toml",
                "[package]\nname = \"my-crate\"\n[dependencies]\nname = \"x\"",
                "my-crate",
            ),
            ("Cargo.toml", "[lib]\nname = \"own\"\n[package]\nname = \"my-crate\"", "own"),
            ("go.mod", "module example.com/a // yes\n\ngo 1.22\n", "example.com/a"),
            ("package.json", "{\"name\": \"@a/b\", \"main\": \"x.js\"}", "@a/b"),
        ];
        for (path, text, name) in table {
            assert_eq!(manifest(path, text).unwrap().name.as_deref(), Some(name), "{path}");
        }
        assert_eq!(manifest("data.json", "{\"name\": \"x\"}"), None);
        assert_eq!(manifest("package.json", "{"), None);
    }

    #[test]
    fn options_may_have_comments() {
        let text = "{ // a\n \"compilerOptions\": { /* b */ \"baseUrl\": \"./src\", \"paths\": {\
                    \"@/*\": [\"./*\", ],\n \"x//y\": [\"z\"], } }, }";
        let found = manifest("a/tsconfig.json", text).unwrap();
        assert_eq!(found.base.as_deref(), Some("./src"));
        let aliases = [("@/*".into(), vec!["./*".into()]), ("x//y".into(), vec!["z".into()])];
        assert_eq!(found.aliases, aliases);
    }
}
