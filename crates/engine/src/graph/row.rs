//! Rows of internal queries as typed values.

use std::collections::BTreeMap;

use isolith_graph::{Datum, NodeDatum};
use isolith_protocol::CypherQuery;
use isolith_types::{Code, Failure};
use serde::Serialize;

use crate::open::Engine;

/// Labels of nodes that are symbols.
const LABELS: [&str; 6] = ["File", "Module", "Class", "Function", "Method", "Variable"];

/// A file or a definition in one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Symbol {
    /// Its node's number in the graph.
    #[serde(skip)]
    pub(crate) number: i64,
    /// Identifies it within its root: `path#Qualified.name`, or the path of a file.
    pub id: String,
    /// Its own name, without qualification.
    pub name: String,
    /// Its qualified name; for a file, its path.
    pub qualified_name: String,
    /// The label of its node.
    pub label: String,
    /// Its kind: `function`, `struct`, …; `file` for files.
    pub kind: String,
    /// The path of its file, relative to the root.
    pub path: String,
    /// The line of its name; none for files.
    pub line: Option<u32>,
    /// Its last line; none for files.
    pub end_line: Option<u32>,
    /// The language of its file.
    pub language: String,
    /// Its declaration.
    pub signature: Option<String>,
    /// Whether other files can see it.
    pub exported: bool,
    /// Whether it is test code.
    pub test: bool,
}

impl Symbol {
    /// The symbol that a node represents; `None` if it is not code.
    pub(super) fn from_node(node: &NodeDatum) -> Option<Self> {
        let label = node.labels.iter().find(|label| LABELS.contains(&label.as_str()))?;
        let text = |key: &str| match node.properties.get(key) {
            Some(Datum::Text(text)) => Some(text.clone()),
            _ => None,
        };
        let line = |key: &str| node.properties.get(key).and_then(as_line);
        let is = |key: &str| node.properties.get(key) == Some(&Datum::Boolean(true));
        let path = text("path")?;
        Some(Self {
            number: node.id,
            id: text("id")?,
            name: text("name")?,
            qualified_name: text("qualified_name").unwrap_or_else(|| path.clone()),
            label: label.clone(),
            kind: text("kind").unwrap_or_else(|| label.to_lowercase()),
            path,
            line: line("line"),
            end_line: line("end_line"),
            language: text("language").unwrap_or_default(),
            signature: text("signature"),
            exported: is("exported"),
            test: is("test"),
        })
    }

    /// Whether it is a file.
    pub fn is_file(&self) -> bool {
        self.label == "File"
    }

    /// Whether it contains other symbols, which queries about it include.
    pub(super) fn is_container(&self) -> bool {
        matches!(self.label.as_str(), "File" | "Module" | "Class")
    }
}

/// The cells of a row, read from left to right.
pub(super) struct RowCells(std::vec::IntoIter<Datum>);

impl RowCells {
    pub(super) fn next(&mut self) -> Datum {
        self.0.next().unwrap_or_default()
    }

    pub(super) fn symbol(&mut self) -> Option<Symbol> {
        match self.next() {
            Datum::Node(node) => Symbol::from_node(&node),
            _ => None,
        }
    }

    pub(super) fn number(&mut self) -> i64 {
        match self.next() {
            Datum::Integer(number) => number,
            _ => 0,
        }
    }

    pub(super) fn text(&mut self) -> Option<String> {
        match self.next() {
            Datum::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn line(&mut self) -> Option<u32> {
        as_line(&self.next())
    }
}

fn as_line(datum: &Datum) -> Option<u32> {
    match datum {
        Datum::Integer(number) => u32::try_from(*number).ok(),
        _ => None,
    }
}

impl Engine {
    /// Runs an internal query.
    pub(super) async fn rows<const N: usize>(
        &self,
        text: impl Into<String>,
        parameters: [(&str, Datum); N],
    ) -> Result<Vec<RowCells>, Failure> {
        let parameters: BTreeMap<String, Datum> =
            parameters.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let answer = self.cypher(CypherQuery { text: text.into(), parameters }, None).await?;
        answer.rows().map(|row| Ok(RowCells(row?.into_iter()))).collect()
    }

    /// Runs an internal query whose first column has symbols.
    pub(super) async fn symbols<const N: usize>(
        &self,
        text: impl Into<String>,
        parameters: [(&str, Datum); N],
    ) -> Result<Vec<Symbol>, Failure> {
        let rows = self.rows(text, parameters).await?;
        Ok(rows.into_iter().filter_map(|mut row| row.symbol()).collect())
    }

    /// The beginning of a query that restricts `node` to the roots that answer questions, with
    /// the parameter `roots`; empty if all do.
    pub(super) async fn in_roots_here(&self, node: &str) -> Result<(String, Datum), Failure> {
        let roots = self.root_folders().await?;
        let Some(answering) = self.answering(&roots)? else {
            return Ok((String::new(), Datum::Null));
        };
        let ids = answering.iter().filter_map(|root| i64::try_from(root.id).ok());
        let restricted = format!(
            "MATCH (project:Project) WHERE project.root IN $roots \
             MATCH (project)-[:CONTAINS*]->({node}) "
        );
        Ok((restricted, numbers(ids)))
    }

    /// Fails if the graph contains no code.
    pub(super) async fn require_code(&self) -> Result<(), Failure> {
        match self.rows("MATCH (f:File) RETURN f.path LIMIT 1", []).await?.is_empty() {
            true => Err(crate::code::nothing_indexed()),
            false => Ok(()),
        }
    }
}

/// The certainties of edges to follow, as a parameter.
pub(super) fn certainties(candidates: bool) -> Datum {
    let words: &[&str] = if candidates { &["resolved", "candidate"] } else { &["resolved"] };
    Datum::List(words.iter().map(|word| Datum::Text((*word).to_owned())).collect())
}

pub(super) fn numbers(numbers: impl IntoIterator<Item = i64>) -> Datum {
    Datum::List(numbers.into_iter().map(Datum::Integer).collect())
}

pub(super) fn not_found(message: String, hint: String) -> Failure {
    Failure::new(Code::NotFound, message).with_hint(hint)
}
