//! Names by which callers refer to symbols.

/// A name that a caller gave for a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SymbolName {
    /// The path of its file, or the last part of that path.
    pub(super) path: Option<String>,
    /// Its name, possibly qualified, with dots as separators.
    pub(super) name: Option<String>,
    /// A line in it.
    pub(super) line: Option<u32>,
}

impl SymbolName {
    /// Parses a name, `Type.name`, `Type::name`, a path, `path#Name` and `path:line`.
    pub(super) fn parse(text: &str) -> Self {
        let text = text.strip_prefix("./").unwrap_or(text);
        if let Some((path, name)) = text.split_once('#').filter(|(path, _)| !path.is_empty()) {
            return Self { path: Some(path.to_owned()), name: Some(dotted(name)), line: None };
        }
        let place = text.rsplit_once(':').filter(|(path, _)| !path.ends_with(':'));
        if let Some((path, line)) = place
            && let Ok(line) = line.parse()
        {
            return Self { path: Some(path.to_owned()), name: None, line: Some(line) };
        }
        if text.contains('/') {
            return Self { path: Some(text.to_owned()), name: None, line: None };
        }
        Self { path: None, name: Some(dotted(text)), line: None }
    }

    /// Its last part, which the graph is searched for: the symbol's own name, or the file's.
    pub(super) fn last(&self) -> &str {
        match (&self.name, &self.path) {
            // Only symbols are qualified by dots; the name of a file contains one.
            (Some(name), _) => name.rsplit('.').next().unwrap_or(name),
            (None, Some(path)) => path.rsplit('/').next().unwrap_or(path),
            (None, None) => "",
        }
    }

    /// Whether a symbol matches this name.
    pub(super) fn matches(&self, qualified_name: &str, path: &str, is_file: bool) -> bool {
        let path_matches = self.path.as_ref().is_none_or(|asked| ends_with(path, '/', asked));
        let name_matches = match &self.name {
            Some(asked) if is_file => self.path.is_none() && ends_with(path, '/', asked),
            Some(asked) => ends_with(qualified_name, '.', asked),
            None => is_file,
        };
        path_matches && name_matches
    }
}

/// Names similar to the given one, the most similar first.
pub(super) fn similar_names(asked: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    const MAX_NAMES: usize = 5;
    let asked = asked.to_lowercase();
    let max_distance = (asked.chars().count() / 3).clamp(1, 4);
    let mut found: Vec<(usize, String)> = names
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let distance = edit_distance(&asked, &lower);
            let within = lower.contains(&asked) && asked.len() > 2;
            (distance <= max_distance || within).then_some((distance, name))
        })
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(MAX_NAMES).map(|(_, name)| name).collect()
}

fn dotted(name: &str) -> String {
    name.replace("::", ".").trim_end_matches("()").to_owned()
}

/// Whether `whole` ends with `parts`, at a separator.
fn ends_with(whole: &str, separator: char, parts: &str) -> bool {
    whole.strip_suffix(parts).is_some_and(|rest| rest.is_empty() || rest.ends_with(separator))
}

/// The Levenshtein distance.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, letter) in left.chars().enumerate() {
        let mut before = row[0];
        row[0] = at + 1;
        for (column, other) in right.iter().enumerate() {
            let changed = before + usize::from(letter != *other);
            before = row[column + 1];
            row[column + 1] = changed.min(before + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        for (text, path, name, line) in [
            ("open", None, Some("open"), None),
            ("Store.open", None, Some("Store.open"), None),
            ("Store::open()", None, Some("Store.open"), None),
            ("store.py", None, Some("store.py"), None),
            ("./src/store.py", Some("src/store.py"), None, None),
            ("src/a.py#Store.open", Some("src/a.py"), Some("Store.open"), None),
            ("src/a.py:12", Some("src/a.py"), None, Some(12)),
            ("a.py:12", Some("a.py"), None, Some(12)),
            ("a::12", None, Some("a.12"), None),
        ] {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let expected = SymbolName { path: owned(path), name: owned(name), line };
            assert_eq!(SymbolName::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn the_last_parts_of_a_name_match() {
        for (text, qualified, path, is_file, expected) in [
            ("open", "Store.open", "src/a.py", false, true),
            ("pen", "Store.open", "src/a.py", false, false),
            ("Store.open", "Outer.Store.open", "src/a.py", false, true),
            ("a.py#open", "Store.open", "src/a.py", false, true),
            ("b.py#open", "Store.open", "src/a.py", false, false),
            ("a.py", "src/a.py", "src/a.py", true, true),
            ("src/a.py", "src/a.py", "src/a.py", true, true),
            ("src/a.py", "Store.open", "src/a.py", false, false),
        ] {
            assert_eq!(
                SymbolName::parse(text).matches(qualified, path, is_file),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn similar_names_are_suggested() {
        let names = ["connect", "Connection", "close", "parse"].map(str::to_owned);
        assert_eq!(similar_names("conect", names.clone()), ["connect"]);
        assert_eq!(similar_names("connec", names.clone()), ["connect", "Connection"]);
        assert!(similar_names("zebra", names).is_empty());
    }
}
