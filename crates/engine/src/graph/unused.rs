//! What nobody uses, as far as can be told.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use isolith_folder::Folder;
use isolith_graph::Datum;
use isolith_search::{Role, roles};
use isolith_source::walk::read;
use isolith_types::Failure;

use super::overview::USES;
use super::row::Symbol;
use super::walk::Listed;
use crate::open::Engine;

/// The largest file that is read.
const LARGEST_TEXT: u64 = 4 << 20;

impl Engine {
    /// Functions, methods and types that nothing in the graph uses, not even likely, that
    /// their own file does not name a second time, and that are neither tests nor where
    /// programs begin; by path and line. What other files can see is left out unless
    /// `exported` says otherwise.
    ///
    /// # Errors
    /// `not_found` if no code is indexed, or what keeps the store from being read.
    pub async fn unused(&self, exported: bool, limit: usize) -> Result<Listed<Symbol>, Failure> {
        self.need_code().await?;
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
            // Calls of a method that several types have may lead to any of them.
            let is_shared = it.label == "Method" && methods.get(&it.name) > Some(&1);
            !is_shared && !begins_by_itself(it)
        });
        self.drop_named(&mut unused).await?;
        unused.sort_by(|a, b| (&a.path, a.line, &a.id).cmp(&(&b.path, b.line, &b.id)));
        Ok(Listed::cut(unused, limit, false))
    }

    /// Drops what the text of its own file names elsewhere, for names that could not be
    /// resolved are in no graph; and what is there because a trait wants it.
    async fn drop_named(&self, unused: &mut Vec<Symbol>) -> Result<(), Failure> {
        let folders = self.folders_of(unused).await?;
        let mut roots: HashMap<&PathBuf, Option<Folder>> = HashMap::new();
        let mut texts: HashMap<(&PathBuf, String), String> = HashMap::new();
        unused.retain(|it| {
            let Some(folder) = folders.get(&it.number) else { return true };
            let root = roots.entry(folder).or_insert_with(|| self.open_root(folder).ok());
            let text = texts.entry((folder, it.path.clone())).or_insert_with_key(|(_, path)| {
                let root = root.as_ref();
                let contents = root.and_then(|root| read(root, path, LARGEST_TEXT).ok());
                let bytes = contents.map(|contents| contents.bytes).unwrap_or_default();
                String::from_utf8_lossy(&bytes).into_owned()
            });
            let lines = it.line.unwrap_or(0)..=it.end_line.unwrap_or(0);
            let is_wanted = it.language == "rust" && is_for_trait(text, *lines.start());
            !is_wanted && !is_named_outside(text, &it.name, lines)
        });
        Ok(())
    }
}

/// Whether something may well be used although no code names it: programs and packages
/// begin there, languages and frameworks call it by its name, or tests have it.
fn begins_by_itself(symbol: &Symbol) -> bool {
    let name = symbol.name.as_str();
    let is_special = name.starts_with("__") && name.ends_with("__");
    let is_entry = matches!(name, "main" | "Main" | "init" | "default" | "_");
    // A type within another definition is there for whoever made the rules: a trait.
    let is_inner_type = symbol.kind == "type" && symbol.qualified_name != symbol.name;
    let is_implied = is_inner_type || matches!(symbol.kind.as_str(), "constructor" | "property");
    is_special || is_entry || is_implied || roles(&symbol.path).has(Role::Test)
}

/// Whether a text has a word on other lines than these.
fn is_named_outside(text: &str, word: &str, lines: RangeInclusive<u32>) -> bool {
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

/// Whether a line of Rust is within an `impl Trait for Type`, going by how it is indented.
fn is_for_trait(text: &str, line: u32) -> bool {
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
    fn words_are_looked_for_outside_of_their_definition() {
        let text = "fn run() {\n    run()\n}\n\nfn running() { self.rerun() }\n";
        assert!(!is_named_outside(text, "run", 1..=3));
        assert!(is_named_outside(text, "run", 1..=1));
        assert!(is_named_outside(text, "rerun", 1..=3));
    }

    #[test]
    fn what_a_trait_wants_is_known_by_where_it_stands() {
        let text = "impl<T> Deref for Held<T> {\n    type Target = T;\n}\n\nimpl Held {\n    \
                    fn own(&self) {}\n}\n\nfn alone() {}\n";
        for (line, expected) in [(2, true), (6, false), (9, false)] {
            assert_eq!(is_for_trait(text, line), expected, "{line}");
        }
    }
}
