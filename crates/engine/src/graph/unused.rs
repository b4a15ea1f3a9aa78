//! Finds definitions without a known use.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use isolith_folder::Folder;
use isolith_graph::Datum;
use isolith_search::{FileRole, file_roles};
use isolith_source::walk::read;
use isolith_types::Failure;

use super::overview::USES;
use super::row::Symbol;
use super::walk::Listed;
use crate::open::Engine;

/// Maximum size of a file that is searched for a name.
const MAX_TEXT_BYTES: u64 = 4 << 20;

impl Engine {
    /// Functions, methods and types without a use in the graph (candidates count as uses) and
    /// without a second mention in their own file, except for tests and entry points; by path
    /// and line. Exported definitions are included only if `exported` is set.
    ///
    /// # Errors
    /// `not_found` if no code is indexed, or an error of the store.
    pub async fn unused(&self, exported: bool, limit: usize) -> Result<Listed<Symbol>, Failure> {
        self.require_code().await?;
        let (restricted, roots) = self.in_roots_here("n").await?;
        let mut unused = Vec::new();
        for label in ["Function", "Method", "Class"] {
            let query = format!(
                "{restricted}MATCH (n:{label}) WHERE n.test = false AND (n.exported = false OR $exported) \
                 AND NOT EXISTS {{ MATCH (n)<-[:{USES}]-(m) WHERE m <> n }} \
                 AND NOT EXISTS {{ MATCH (t)-[:CONTAINS*]->(n) WHERE t.test = true }} RETURN n"
            );
            let parameters = [("exported", Datum::Boolean(exported)), ("roots", roots.clone())];
            unused.extend(self.symbols(query, parameters).await?);
        }
        let query = format!("{restricted}MATCH (n:Method) RETURN n.name, count(*)");
        let methods: HashMap<String, i64> = self
            .rows(query, [("roots", roots)])
            .await?
            .into_iter()
            .filter_map(|mut row| Some((row.text()?, row.number())))
            .collect();
        unused.retain(|it| {
            // A call of a method that several types have may be a call of any of them.
            let is_shared = it.label == "Method" && methods.get(&it.name) > Some(&1);
            !is_shared && !is_implicitly_used(it)
        });
        self.drop_mentioned(&mut unused).await?;
        unused.sort_by(|a, b| (&a.path, a.line, &a.id).cmp(&(&b.path, b.line, &b.id)));
        Ok(Listed::truncated(unused, limit, false))
    }

    /// Drops definitions that their own file mentions elsewhere, because unresolved references
    /// are not in the graph, and those that implement a trait.
    async fn drop_mentioned(&self, unused: &mut Vec<Symbol>) -> Result<(), Failure> {
        let folders = self.folders_of(unused).await?;
        let mut roots: HashMap<&PathBuf, Option<Folder>> = HashMap::new();
        let mut texts: HashMap<(&PathBuf, String), String> = HashMap::new();
        unused.retain(|it| {
            let Some(folder) = folders.get(&it.number) else { return true };
            let root = roots.entry(folder).or_insert_with(|| self.open_root(folder).ok());
            let text = texts.entry((folder, it.path.clone())).or_insert_with_key(|(_, path)| {
                let root = root.as_ref();
                let contents = root.and_then(|root| read(root, path, MAX_TEXT_BYTES).ok());
                let bytes = contents.map(|contents| contents.bytes).unwrap_or_default();
                String::from_utf8_lossy(&bytes).into_owned()
            });
            let lines = it.line.unwrap_or(0)..=it.end_line.unwrap_or(0);
            let implements = it.language == "rust" && is_in_trait_impl(text, *lines.start());
            !implements && !is_mentioned_outside(text, &it.name, lines)
        });
        Ok(())
    }
}

/// Whether a symbol may be used without being mentioned in code: entry points of programs and
/// packages, names that languages and frameworks call, and tests.
fn is_implicitly_used(symbol: &Symbol) -> bool {
    let name = symbol.name.as_str();
    let is_special = name.starts_with("__") && name.ends_with("__");
    let is_entry = matches!(name, "main" | "Main" | "init" | "default" | "_");
    // A type inside another definition is usually an associated type of a trait.
    let is_inner_type = symbol.kind == "type" && symbol.qualified_name != symbol.name;
    let is_implied = is_inner_type || matches!(symbol.kind.as_str(), "constructor" | "property");
    is_special || is_entry || is_implied || file_roles(&symbol.path).contains(FileRole::Test)
}

/// Whether a text contains a word outside of these lines.
fn is_mentioned_outside(text: &str, word: &str, lines: RangeInclusive<u32>) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let has_word = |line: &str| {
        line.match_indices(word).any(|(at, _)| {
            let before = line[..at].chars().next_back().is_some_and(is_part);
            let after = line[at + word.len()..].chars().next().is_some_and(is_part);
            !before && !after
        })
    };
    (1..).zip(text.lines()).any(|(number, line)| !lines.contains(&number) && has_word(line))
}

/// Whether a line of Rust is inside an `impl Trait for Type`, judged by indentation.
fn is_in_trait_impl(text: &str, line: u32) -> bool {
    let lines: Vec<&str> = text.lines().take(line as usize).collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let Some(own) = lines.last().map(|line| indent(line)) else { return false };
    let begins = |line: &&str| {
        let code = line.trim_start();
        let code = code.strip_prefix("unsafe ").unwrap_or(code);
        indent(line) < own && (code.starts_with("impl ") || code.starts_with("impl<"))
    };
    let Some(at) = lines.iter().rposition(begins) else { return false };
    let head = lines[at..].iter().take_while(|line| indent(line) < own);
    head.take(8).any(|line| line.split_whitespace().any(|word| word == "for"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_inside_the_definition_do_not_count() {
        let text = "fn run() {\n    run()\n}\n\nfn running() { self.rerun() }\n";
        assert!(!is_mentioned_outside(text, "run", 1..=3));
        assert!(is_mentioned_outside(text, "run", 1..=1));
        assert!(is_mentioned_outside(text, "rerun", 1..=3));
    }

    #[test]
    fn items_in_trait_impls_are_recognized() {
        let text = "impl<T> Deref for Held<T> {\n    type Target = T;\n}\n\nimpl Held {\n    \
                    fn own(&self) {}\n}\n\nfn alone() {}\n";
        for (line, expected) in [(2, true), (6, false), (9, false)] {
            assert_eq!(is_in_trait_impl(text, line), expected, "{line}");
        }
    }
}
