//! Flags of `isolith graph import`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use isolith_engine::{GraphImport, TableEnd, TableHolds};

use super::typed::{TypedOnError, TypedOnce};

#[derive(Subcommand)]
pub(super) enum TypedImport {
    /// Make a node of every row
    ///
    /// Columns are properties: `isolith graph import nodes people.csv --label Person --id id`
    /// for a file that begins with `id:int,name,height:float,active:bool`. A column without a
    /// type is text; an empty cell is no property.
    Nodes {
        /// The label that nodes get
        #[arg(long)]
        label: String,
        /// The column that tells nodes of the label apart: a node that is there gets the other
        /// properties of the row [default: every row is a new node]
        #[arg(long, value_name = "COLUMN")]
        id: Option<String>,
        #[command(flatten)]
        table: TypedTable,
    },
    /// Make a relationship of every row
    ///
    /// The first two columns say where it begins and ends, the others are properties:
    /// `isolith graph import edges knows.csv --type KNOWS --from Person.id --to Person.id` for
    /// a file that begins with `from:int,to:int,since:int`. Import nodes first.
    Edges {
        /// The type that relationships get
        #[arg(long = "type", value_name = "TYPE")]
        kind: String,
        /// The label and the property of nodes that the first column names
        #[arg(long, value_name = "LABEL.PROPERTY", value_parser = end)]
        from: TableEnd,
        /// The label and the property of nodes that the second column names
        #[arg(long, value_name = "LABEL.PROPERTY", value_parser = end)]
        to: TableEnd,
        #[command(flatten)]
        table: TypedTable,
    },
}

#[derive(Args)]
pub(super) struct TypedTable {
    /// The file, CSV in UTF-8 whose first line names the columns
    file: PathBuf,
    /// What is between cells; "tab" for tabs
    #[arg(long, value_name = "CHAR", default_value = ",", value_parser = delimiter)]
    delimiter: u8,
    /// What a bad row does: stop the import, or be skipped and reported
    #[arg(long, value_enum, default_value_t = TypedOnError::Stop)]
    on_error: TypedOnError,
    #[command(flatten)]
    once: TypedOnce,
}

impl TypedImport {
    pub(super) fn import(self) -> GraphImport {
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
    let (label, key) = parts.ok_or("a label and a property are needed, as in Person.id")?;
    Ok(TableEnd { label: label.to_owned(), key: key.to_owned() })
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        _ if text == "tab" => Ok(b'\t'),
        [byte] if byte.is_ascii_punctuation() && *byte != b'"' || *byte == b'\t' => Ok(*byte),
        _ => Err("one punctuation mark other than a quotation mark, or \"tab\"".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_delimiters_are_understood() {
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
