//! Flags of `isolith graph import`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use isolith_engine::{GraphImport, TableEnd, TableHolds};
use isolith_types::{Code, Failure};

use super::examples;
use super::typed::{TypedOnError, TypedOnce};
use crate::graph::{GraphCommand, KuzuImport};

/// A table, or a database of Kuzu.
#[derive(Args)]
pub(super) struct TypedImport {
    #[command(subcommand)]
    table: Option<TypedTableImport>,
    /// Copy a Kuzu database: its tables, and their keys and types as constraints
    ///
    /// Python reads it with the package kuzu, in a process of its own. Copying the same database
    /// again adds what is new.
    #[arg(long, value_name = "DATABASE", required = true)]
    from_kuzu: Option<PathBuf>,
    /// Python that has the package kuzu
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
}

impl TypedImport {
    pub(super) fn command(self) -> Result<GraphCommand, Failure> {
        match (self.table, self.from_kuzu) {
            (Some(table), _) => Ok(GraphCommand::Import(table.import())),
            (None, Some(database)) => {
                Ok(GraphCommand::FromKuzu(KuzuImport { database, python: self.python }))
            }
            (None, None) => Err(Failure::new(Code::Usage, "say what to import")
                .with_hint("pass nodes, edges or --from-kuzu")),
        }
    }
}

#[derive(Subcommand)]
enum TypedTableImport {
    /// Import nodes, one per row
    ///
    /// Columns become properties. A column without a type is text; an empty cell sets no
    /// property.
    #[command(after_long_help = examples::GRAPH_NODES)]
    Nodes {
        /// Label of the nodes
        #[arg(long)]
        label: String,
        /// Column that identifies nodes of the label [default: every row is a new node]
        ///
        /// If the node exists, its other properties are updated from the row.
        #[arg(long, value_name = "COLUMN")]
        id: Option<String>,
        #[command(flatten)]
        table: TypedTable,
    },
    /// Import relationships, one per row
    ///
    /// The first two columns identify the start and the end, the others become properties.
    /// Import the nodes first.
    #[command(after_long_help = examples::GRAPH_EDGES)]
    Edges {
        /// Type of the relationships
        #[arg(long = "type", value_name = "TYPE")]
        kind: String,
        /// Label and property of the start nodes, which the first column identifies
        #[arg(long, value_name = "LABEL.PROPERTY", value_parser = end)]
        from: TableEnd,
        /// Label and property of the end nodes, which the second column identifies
        #[arg(long, value_name = "LABEL.PROPERTY", value_parser = end)]
        to: TableEnd,
        #[command(flatten)]
        table: TypedTable,
    },
}

#[derive(Args)]
pub(super) struct TypedTable {
    /// CSV file in UTF-8; its first line names the columns
    file: PathBuf,
    /// Separator of cells; "tab" for tabs
    #[arg(long, value_name = "CHAR", default_value = ",", value_parser = delimiter)]
    delimiter: u8,
    /// What to do about invalid rows: stop the import, or skip and report them
    #[arg(long, value_enum, default_value_t = TypedOnError::Stop)]
    on_error: TypedOnError,
    #[command(flatten)]
    once: TypedOnce,
}

impl TypedTableImport {
    fn import(self) -> GraphImport {
        let (holds, table) = match self {
            Self::Nodes { label, id, table } => (TableHolds::Nodes { label, key: id }, table),
            Self::Edges { kind, from, to, table } => (TableHolds::Edges { kind, from, to }, table),
        };
        let TypedTable { file, delimiter, on_error, once } = table;
        GraphImport { file, holds, delimiter, on_error: on_error.into(), key: once.key() }
    }
}

fn end(text: &str) -> Result<TableEnd, String> {
    let parts = text.rsplit_once('.').filter(|(label, key)| !label.is_empty() && !key.is_empty());
    let (label, key) = parts.ok_or("expected a label and a property, for example Person.id")?;
    Ok(TableEnd { label: label.to_owned(), key: key.to_owned() })
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if text == "tab" => Ok(b'\t'),
        [byte] if byte.is_ascii_punctuation() && *byte != b'"' || *byte == b'\t' => Ok(*byte),
        _ => {
            Err("expected one punctuation mark other than a quotation mark, or \"tab\"".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_delimiters_are_parsed() {
        let person = TableEnd { label: "my.Person".to_owned(), key: "id".to_owned() };
        assert_eq!(end("my.Person.id"), Ok(person));
        for wrong in ["Person", ".id", "Person."] {
            assert!(end(wrong).is_err(), "{wrong}");
        }
        assert_eq!((delimiter("tab"), delimiter(";")), (Ok(b'\t'), Ok(b';')));
        for wrong in ["\"", "", ";;", "a", "ä"] {
            assert!(delimiter(wrong).is_err(), "{wrong}");
        }
    }
}
