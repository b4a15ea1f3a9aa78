//! How symbols are called by people.

/// What somebody calls a symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SymbolName {
    /// The path of its file, or the end of it.
    pub(super) path: Option<String>,
    /// Its name with names around it, as many as are said, joined by dots.
    pub(super) name: Option<String>,
    /// A line in it.
    pub(super) line: Option<u32>,
}

impl SymbolName {
    /// Understands a name, `Type.name`, `Type::name`, a path, `path#Name` and `path:line`.
    pub(super) fn of(text: &str) -> Self {
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

    /// The last part of it, by which it is looked for: what the symbol itself, or the file,
    /// is called.
    pub(super) fn last(&self) -> &str {
        match (&self.name, &self.path) {
            // What a file is called has dots in it.
            (Some(name), _) => name.rsplit('.').next().unwrap_or(name),
            (None, Some(path)) => path.rsplit('/').next().unwrap_or(path),
            (None, None) => "",
        }
    }

    /// Whether a symbol has this name.
    pub(super) fn fits(&self, qualified_name: &str, path: &str, is_file: bool) -> bool {
        let path_fits = self.path.as_ref().is_none_or(|asked| ends_with(path, '/', asked));
        let name_fits = match &self.name {
            Some(asked) if is_file => self.path.is_none() && ends_with(path, '/', asked),
            Some(asked) => ends_with(qualified_name, '.', asked),
            None => is_file,
        };
        path_fits && name_fits
    }
}

/// Names that are somewhat like another, the likest first.
pub(super) fn alike(asked: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    const MOST: usize = 5;
    let asked = asked.to_lowercase();
    let reach = (asked.chars().count() / 3).clamp(1, 4);
    let mut found: Vec<(usize, String)> = names
        .into_iter()
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let away = distance(&asked, &lower);
            let within = lower.contains(&asked) && asked.len() > 2;
            (away <= reach || within).then_some((away, name))
        })
        .collect();
    found.sort();
    found.dedup();
    found.into_iter().take(MOST).map(|(_, name)| name).collect()
}

fn dotted(name: &str) -> String {
    name.replace("::", ".").trim_end_matches("()").to_owned()
}

/// Whether a whole ends with these parts.
fn ends_with(whole: &str, separator: char, parts: &str) -> bool {
    whole.strip_suffix(parts).is_some_and(|rest| rest.is_empty() || rest.ends_with(separator))
}

/// How many letters have to be added, dropped or changed.
fn distance(left: &str, right: &str) -> usize {
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
    fn names_are_understood() {
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
            assert_eq!(SymbolName::of(text), expected, "{text}");
        }
    }

    #[test]
    fn symbols_are_called_by_the_end_of_their_names() {
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
            assert_eq!(SymbolName::of(text).fits(qualified, path, is_file), expected, "{text}");
        }
    }

    #[test]
    fn names_that_are_alike_are_found() {
        let names = ["connect", "Connection", "close", "parse"].map(str::to_owned);
        assert_eq!(alike("conect", names.clone()), ["connect"]);
        assert_eq!(alike("connec", names.clone()), ["connect", "Connection"]);
        assert!(alike("zebra", names).is_empty());
    }
}
