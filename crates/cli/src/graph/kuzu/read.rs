//! Reads a Kuzu database with its own Python package. Its native code runs in a child process: if
//! that crashes, nothing has been written yet.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use isolith_engine::{TableEnd, TableHolds};
use isolith_types::{Code, Failure};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;

use super::KuzuImport;

const SCRIPT: &str = include_str!("read.py");

/// How much of the child's error output is shown.
const SHOWN_BYTES: usize = 2_000;

/// A line of the script's output.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line {
    Nodes {
        key: String,
        #[serde(flatten)]
        table: Table,
    },
    Edges {
        from: (String, String),
        to: (String, String),
        #[serde(flatten)]
        table: Table,
    },
    Refused {
        message: String,
        hint: String,
    },
    End,
}

/// A table that the script has written into a file.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Table {
    pub(super) table: String,
    /// Statements that create the table's constraints.
    pub(super) constraints: Vec<String>,
    /// What has no exact counterpart.
    pub(super) notes: Vec<String>,
    pub(super) file: PathBuf,
    pub(super) rows: u64,
}

/// Writes all tables into files in this folder, calling `watch` after each.
pub(super) async fn read(
    import: &KuzuImport,
    folder: &Path,
    watch: impl Fn(&Table),
) -> Result<Vec<(Table, TableHolds)>, Failure> {
    let mut child = Command::new(&import.python)
        .arg("-c")
        .arg(SCRIPT)
        .arg(&import.database)
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| {
            let message = format!("cannot start {}: {error}", import.python.display());
            Failure::new(Code::BadInput, message)
                .with_hint("name a Python that has the kuzu package with --python")
        })?;
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let complaints = async {
        let mut text = Vec::new();
        if let Some(mut errors) = errors {
            let _ = errors.read_to_end(&mut text).await;
        }
        text
    };
    let tables = async {
        match output {
            Some(output) => tables_of(BufReader::new(output), watch).await,
            None => Ok(None),
        }
    };
    let (tables, complaints) = tokio::join!(tables, complaints);
    let status = child.wait().await.map_err(|error| unreadable(&error.to_string()))?;
    match tables? {
        Some(tables) => Ok(tables),
        None => Err(died(status, &complaints)),
    }
}

/// The tables that the script reports; `None` if it did not get to the end.
async fn tables_of(
    output: impl tokio::io::AsyncBufRead + Unpin,
    watch: impl Fn(&Table),
) -> Result<Option<Vec<(Table, TableHolds)>>, Failure> {
    let (mut lines, mut tables) = (output.lines(), Vec::new());
    while let Some(line) =
        lines.next_line().await.map_err(|error| unreadable(&error.to_string()))?
    {
        let (table, holds) = match serde_json::from_str(&line) {
            Ok(Line::Nodes { key, table }) => {
                let label = table.table.clone();
                (table, TableHolds::Nodes { label, key: Some(key) })
            }
            Ok(Line::Edges { from, to, table }) => {
                let [from, to] = [from, to].map(|(label, key)| TableEnd { label, key });
                let kind = table.table.clone();
                (table, TableHolds::Edges { kind, from, to })
            }
            Ok(Line::Refused { message, hint }) => {
                let failure = Failure::new(Code::BadInput, message);
                return Err(if hint.is_empty() { failure } else { failure.with_hint(hint) });
            }
            Ok(Line::End) => return Ok(Some(tables)),
            Err(error) => return Err(unreadable(&format!("{error} in {line:?}"))),
        };
        watch(&table);
        tables.push((table, holds));
    }
    Ok(None)
}

fn unreadable(reason: &str) -> Failure {
    Failure::new(Code::Failed, format!("cannot read what Python reports: {reason}"))
}

fn died(status: ExitStatus, complaints: &[u8]) -> Failure {
    let reason = match status.signal() {
        Some(signal) => {
            format!("the process that reads the database was killed by signal {signal}")
        }
        None => format!("the process that reads the database ended with {status}"),
    };
    let shown = &complaints[complaints.len().saturating_sub(SHOWN_BYTES)..];
    let shown = String::from_utf8_lossy(shown);
    let message = match shown.trim() {
        "" => reason,
        shown => format!("{reason}:\n{shown}"),
    };
    Failure::new(Code::Failed, message).with_hint(match status.success() {
        true => "--python must name a Python that has the package kuzu",
        false => {
            "nothing was imported; use the version of the package kuzu that wrote the database"
        }
    })
}
