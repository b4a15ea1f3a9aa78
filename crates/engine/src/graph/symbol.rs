//! Finds symbols by name.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use isolith_graph::Datum;
use isolith_types::{Code, Failure};

use super::name::{SymbolName, similar_names};
use super::row::{RowCells, Symbol, not_found, numbers};
use crate::index::{RootFolder, root_around};
use crate::open::Engine;

/// Maximum number of listed candidates for an ambiguous name.
const MAX_LISTED: usize = 12;

impl Engine {
    /// The symbol with this name, qualified name, id, path, or path and line.
    ///
    /// # Errors
    /// `not_found` if there is none, or no code is indexed; `bad_input` if the name is
    /// ambiguous; any error of the store.
    pub async fn symbol(&self, text: &str) -> Result<Symbol, Failure> {
        let (text, folders) = self.within_roots(text).await?;
        let folders = folders.as_deref();
        let by_id = "MATCH (n {id: $id}) RETURN n";
        let found = self.symbols(by_id, [("id", Datum::Text(text.clone()))]).await?;
        let mut found = self.only_in(folders, found).await?;
        let name = SymbolName::parse(&text);
        if found.is_empty() {
            found = match name.line {
                Some(line) => self.at_line(&name, line, folders).await?,
                None => self.named(&name, folders).await?,
            };
        }
        if found.len() > 1 {
            return Err(ambiguous(&text, &found, &self.folders_of(&found).await?));
        }
        match found.pop() {
            Some(symbol) => Ok(symbol),
            None => Err(self.unknown_symbol(&text, &name).await?),
        }
    }

    /// The symbol and everything it contains.
    pub(super) async fn with_contents(&self, symbol: &Symbol) -> Result<Vec<Symbol>, Failure> {
        let mut parts = vec![symbol.clone()];
        if !symbol.is_container() {
            return Ok(parts);
        }
        let number = ("number", Datum::Integer(symbol.number));
        let found = if symbol.is_file() {
            let inside = "MATCH (f)-[:CONTAINS*]->(n) WHERE id(f) = $number RETURN DISTINCT n";
            self.symbols(inside, [number]).await?
        } else {
            // Members may be defined outside of their type: `impl Type`, `func (t *Type)`.
            let beside = "MATCH (f:File)-[:CONTAINS*]->(c) WHERE id(c) = $number \
                          MATCH (f)-[:CONTAINS*]->(n) WHERE n.qualified_name STARTS WITH $prefix \
                          RETURN DISTINCT n";
            let prefix = Datum::Text(format!("{}.", symbol.qualified_name));
            self.symbols(beside, [number, ("prefix", prefix)]).await?
        };
        parts.extend(found.into_iter().filter(|part| part.number != symbol.number));
        Ok(parts)
    }

    /// A path relative to its root, and the folders of the roots to look in if not all: that of
    /// an absolute path, or else those that answer questions.
    async fn within_roots(&self, text: &str) -> Result<(String, Option<Vec<PathBuf>>), Failure> {
        let roots = self.root_folders().await?;
        if !text.starts_with('/') {
            let folder = |root: &RootFolder| root.folder.clone();
            let answering = self.answering(&roots)?;
            let folders = answering.map(|roots| roots.into_iter().map(folder).collect());
            return Ok((text.strip_prefix("./").unwrap_or(text).to_owned(), folders));
        }
        let inner = root_around(&roots, Path::new(text)).and_then(|root| {
            let path = Path::new(text).strip_prefix(&root.folder).ok()?;
            Some((path.to_string_lossy().into_owned(), Some(vec![root.folder.clone()])))
        });
        Ok(inner.unwrap_or_else(|| (text.to_owned(), None)))
    }

    /// Those of these symbols that are in the roots with these folders, if any are given.
    async fn only_in(
        &self,
        folders: Option<&[PathBuf]>,
        mut symbols: Vec<Symbol>,
    ) -> Result<Vec<Symbol>, Failure> {
        let Some(meant) = folders.filter(|_| !symbols.is_empty()) else { return Ok(symbols) };
        let folders = self.folders_of(&symbols).await?;
        symbols.retain(|it| folders.get(&it.number).is_some_and(|it| meant.contains(it)));
        Ok(symbols)
    }

    /// The folders of the symbols' roots.
    pub(super) async fn folders_of(
        &self,
        symbols: &[Symbol],
    ) -> Result<HashMap<i64, PathBuf>, Failure> {
        let query = "MATCH (p:Project)-[:CONTAINS*]->(n) WHERE id(n) IN $numbers \
                     RETURN id(n), p.root";
        let roots = self.root_folders().await?;
        let numbers = numbers(symbols.iter().map(|it| it.number));
        let rows = self.rows(query, [("numbers", numbers)]).await?;
        let folder = |mut row: RowCells| {
            let (symbol, root) = (row.number(), u64::try_from(row.number()).ok()?);
            let root = roots.iter().find(|it| it.id == root)?;
            Some((symbol, root.folder.clone()))
        };
        Ok(rows.into_iter().filter_map(folder).collect())
    }

    async fn named(
        &self,
        name: &SymbolName,
        folders: Option<&[PathBuf]>,
    ) -> Result<Vec<Symbol>, Failure> {
        let by_name = "UNWIND $names AS name MATCH (n {name: name}) RETURN DISTINCT n";
        // `store.py` may be a file as well as a qualified name.
        let names = [Some(name.last()), name.name.as_deref()].into_iter().flatten();
        let names = names.map(|name| Datum::Text(name.to_owned())).collect();
        let mut found = self.symbols(by_name, [("names", Datum::List(names))]).await?;
        found.retain(|it| name.matches(&it.qualified_name, &it.path, it.is_file()));
        Ok(most_likely(self.only_in(folders, found).await?))
    }

    /// The innermost definition that contains a line, or else the file.
    async fn at_line(
        &self,
        name: &SymbolName,
        line: u32,
        folders: Option<&[PathBuf]>,
    ) -> Result<Vec<Symbol>, Failure> {
        let files = self.named(&SymbolName { line: None, ..name.clone() }, folders).await?;
        let [file] = files.as_slice() else { return Ok(files) };
        let around = "MATCH (f)-[:CONTAINS*]->(n) WHERE id(f) IN $file \
                      AND n.start_line <= $line AND n.end_line >= $line \
                      RETURN n ORDER BY n.end_line - n.start_line, n.start_line DESC LIMIT 1";
        let parameters =
            [("file", numbers([file.number])), ("line", Datum::Integer(i64::from(line)))];
        let found = self.symbols(around, parameters).await?;
        Ok(if found.is_empty() { files } else { found })
    }

    async fn unknown_symbol(&self, text: &str, name: &SymbolName) -> Result<Failure, Failure> {
        self.require_code().await?;
        let query = match name.name {
            Some(_) => {
                "MATCH (n) WHERE n.qualified_name IS NOT NULL AND n.kind <> 'section' \
                        RETURN DISTINCT n.name"
            }
            None => "MATCH (n:File) RETURN DISTINCT n.path",
        };
        let asked = match (&name.name, &name.path) {
            (None, Some(path)) => path,
            _ => name.last(),
        };
        let rows = self.rows(query, []).await?;
        let names = similar_names(asked, rows.into_iter().filter_map(|mut row| row.text()));
        let hint = match names.is_empty() {
            true => "search for what it does, or update the index if it is new".to_owned(),
            false => format!("similar names: {}", names.join(", ")),
        };
        Ok(not_found(format!("no symbol in the code graph is named {text:?}"), hint))
    }
}

/// The most likely candidates: a type instead of its own members, anything else instead of
/// variables.
fn most_likely(mut found: Vec<Symbol>) -> Vec<Symbol> {
    if found.iter().any(|it| it.label != "Variable") {
        found.retain(|it| it.label != "Variable");
    }
    let containers: Vec<(String, String)> = found
        .iter()
        .filter(|it| it.is_container() && !it.is_file())
        .map(|it| (it.path.clone(), format!("{}.", it.qualified_name)))
        .collect();
    found.retain(|it| {
        let is_inside = |(path, prefix): &(String, String)| {
            it.path == *path && it.qualified_name.starts_with(prefix)
        };
        !containers.iter().any(is_inside)
    });
    found.sort_by(|a, b| (&a.path, a.line, &a.id).cmp(&(&b.path, b.line, &b.id)));
    found
}

fn ambiguous(text: &str, found: &[Symbol], folders: &HashMap<i64, PathBuf>) -> Failure {
    let distinct: HashSet<&str> = found.iter().map(|it| it.id.as_str()).collect();
    let id = |it: &Symbol| match folders.get(&it.number) {
        // The same id in two roots.
        Some(folder) if distinct.len() < found.len() => format!("{}/{}", folder.display(), it.id),
        _ => it.id.clone(),
    };
    let ids: Vec<String> = found.iter().take(MAX_LISTED).map(id).collect();
    let rest = match found.len() - ids.len() {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    let message = format!("{text:?} is ambiguous: {} symbols have this name", found.len());
    Failure::new(Code::BadInput, message)
        .with_hint(format!("give the id of one: {}{rest}", ids.join(", ")))
}

#[cfg(test)]
mod tests {
    use isolith_types::Hint;

    use super::*;

    fn symbol(number: i64, label: &str, path: &str, qualified: &str) -> Symbol {
        Symbol {
            number,
            id: format!("{path}#{qualified}"),
            name: qualified.rsplit('.').next().unwrap().to_owned(),
            qualified_name: qualified.to_owned(),
            label: label.to_owned(),
            kind: label.to_lowercase(),
            path: path.to_owned(),
            line: Some(1),
            end_line: Some(2),
            language: "java".to_owned(),
            signature: None,
            exported: true,
            test: false,
        }
    }

    #[test]
    fn types_come_before_their_constructors_and_variables_last() {
        let found = vec![
            symbol(1, "Method", "A.java", "Box.Box"),
            symbol(2, "Class", "A.java", "Box"),
            symbol(3, "Variable", "B.java", "C.Box"),
        ];
        let likely = most_likely(found);
        assert_eq!(likely.iter().map(|it| it.number).collect::<Vec<_>>(), [2]);
    }

    #[test]
    fn ambiguous_names_are_listed_with_their_ids() {
        let found: Vec<Symbol> =
            (0..15).map(|n| symbol(n, "Function", &format!("f{n}.py"), "open")).collect();
        let failure = ambiguous("open", &found, &HashMap::new());
        assert_eq!(failure.code, Code::BadInput);
        let hint = failure.worded(Hint::for_terminal).hint;
        assert!(hint.contains("f0.py#open, f1.py#open"), "{hint}");
        assert!(hint.ends_with("and 3 more"), "{hint}");
        let found = [symbol(1, "Function", "a.py", "f"), symbol(2, "Function", "a.py", "f")];
        let folders = [(1, "/x".into()), (2, "/y".into())].into();
        let failure = ambiguous("f", &found, &folders);
        assert_eq!(failure.hint, Some("give the id of one: /x/a.py#f, /y/a.py#f".into()));
    }
}
