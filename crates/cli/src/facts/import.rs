//! `isolith fact import`: facts from a file of JSON Lines.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::Path;

use isolith_engine::Engine;
use isolith_types::{
    Code, FactOutcome, Failure, InvalidMoment, Moment, NewFact, Provenance, counted,
};
use serde::{Deserialize, Serialize};

/// Maximum size of a file, which is held in memory as facts.
const MAX_BYTES: u64 = 256 << 20;

/// Maximum length of a line. Names have at most 1,000 bytes.
const MAX_LINE: usize = 32 << 10;

/// Number of facts in a transaction.
const BATCH: usize = 500;

/// Maximum number of rejected rows that are listed.
const LISTED: usize = 20;

/// The result of an import. Only durable writes are counted.
#[derive(Debug, Default, Serialize)]
pub(crate) struct FactImportReceipt {
    success: bool,
    rows: u64,
    created: u64,
    updated: u64,
    unchanged: u64,
    rejected: Vec<RejectedRow>,
    rejected_count: u64,
    error: Option<Failure>,
}

/// A row that is not imported.
#[derive(Debug, Serialize)]
struct RejectedRow {
    /// Its line, from 1.
    row: usize,
    code: Code,
    reason: String,
}

/// A line of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FactRow {
    subject: String,
    predicate: String,
    object: String,
    valid_from: Option<String>,
    valid_to: Option<String>,
    confidence: Option<f64>,
    subject_type: Option<String>,
    object_type: Option<String>,
    drawer: Option<String>,
    file: Option<String>,
    agent: Option<String>,
}

/// Imports the facts of a file, or of standard input for `-`. If a line cannot be read as a fact,
/// nothing is written; facts that the store refuses are left out.
pub(super) async fn import(engine: &Engine, file: &Path) -> Result<FactImportReceipt, Failure> {
    let mut receipt = FactImportReceipt::default();
    let rows = match read(file, &mut receipt)? {
        Some(rows) => rows,
        None => {
            receipt.error = Some(not_facts(receipt.rejected_count));
            return Ok(receipt);
        }
    };
    let mut rows = rows.into_iter();
    loop {
        let (lines, facts): (Vec<usize>, Vec<NewFact>) = rows.by_ref().take(BATCH).unzip();
        if facts.is_empty() {
            break;
        }
        let added = match engine.add_facts(facts, None).await {
            Ok(added) => added,
            Err(failure) => {
                receipt.error = Some(failure);
                break;
            }
        };
        receipt.created += added.created;
        receipt.updated += added.updated;
        receipt.unchanged +=
            (lines.len() as u64).saturating_sub(added.created + added.updated + added.refused);
        for (row, outcome) in lines.into_iter().zip(added.facts) {
            if let FactOutcome::Refused(failure) = outcome {
                receipt.reject(row, failure.code, failure.message);
            }
        }
    }
    if receipt.error.is_none() && receipt.rejected_count > 0 {
        let refused = counted(receipt.rejected_count, "fact");
        let message = format!("{refused} of {} could not be added", receipt.rows);
        let failure = Failure::new(Code::BadInput, message);
        receipt.error = Some(failure.with_hint("correct them and import the file again"));
    }
    receipt.success = receipt.error.is_none();
    Ok(receipt)
}

impl FactImportReceipt {
    /// Why it failed.
    pub(super) fn error(&self) -> Option<&Failure> {
        self.error.as_ref()
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let Self { created, updated, unchanged, .. } = self;
        let facts = counted(*created, "new fact");
        let mut text = format!("{facts}, {updated} updated, {unchanged} unchanged\n");
        for RejectedRow { row, reason, .. } in &self.rejected {
            let _ = writeln!(text, "row {row}: {reason}");
        }
        let more = self.rejected_count - self.rejected.len() as u64;
        if more > 0 {
            let _ = writeln!(text, "and {}", counted(more, "more row"));
        }
        text
    }

    fn reject(&mut self, row: usize, code: Code, reason: String) {
        self.rejected_count += 1;
        if self.rejected.len() < LISTED {
            self.rejected.push(RejectedRow { row, code, reason });
        }
    }
}

/// Reads all rows; `None` if one of them is not a fact.
fn read(
    file: &Path,
    receipt: &mut FactImportReceipt,
) -> Result<Option<Vec<(usize, NewFact)>>, Failure> {
    let failed = |error: io::Error| {
        let code = match error.kind() {
            io::ErrorKind::NotFound => Code::NotFound,
            _ => Code::BadInput,
        };
        Failure::new(code, format!("cannot read {}: {error}", file.display()))
    };
    let source: Box<dyn Read> = match file.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(file).map_err(failed)?),
    };
    let mut source = BufReader::new(source.take(MAX_BYTES + 1));
    let (mut rows, mut line, mut bytes) = (Vec::new(), Vec::new(), 0);
    for row in 1.. {
        line.clear();
        let read = source.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line);
        let length = read.map_err(failed)?;
        bytes += length as u64;
        if length == 0 {
            break;
        }
        if bytes > MAX_BYTES {
            let limit = MAX_BYTES >> 20;
            let message = format!("{} has more than {limit} MiB", file.display());
            return Err(Failure::new(Code::TooLarge, message).with_hint("split the file"));
        }
        if length > MAX_LINE {
            let message = format!("row {row} of {} is not a fact: {}", file.display(), TOO_LONG);
            return Err(Failure::new(Code::TooLarge, message));
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        receipt.rows += 1;
        match parse(&line) {
            Ok(fact) => rows.push((row, fact)),
            Err(reason) => receipt.reject(row, Code::BadInput, reason),
        }
    }
    Ok((receipt.rejected_count == 0).then_some(rows))
}

const TOO_LONG: &str = "it has more than 32 KiB";

fn parse(line: &[u8]) -> Result<NewFact, String> {
    let row: FactRow = serde_json::from_slice(line).map_err(|error| {
        let text = error.to_string();
        // The position is within the line, whose number is known.
        text.split(" at line ").next().unwrap_or_default().to_owned()
    })?;
    let moment = |text: Option<String>| {
        text.map(|text| text.parse::<Moment>())
            .transpose()
            .map_err(|error: InvalidMoment| error.to_string())
    };
    Ok(NewFact {
        subject: row.subject,
        predicate: row.predicate,
        object: row.object,
        valid_from: moment(row.valid_from)?,
        valid_to: moment(row.valid_to)?,
        confidence: row.confidence,
        provenance: Provenance { drawer: row.drawer, file: row.file, agent: row.agent },
        subject_type: row.subject_type,
        object_type: row.object_type,
    })
}

fn not_facts(count: u64) -> Failure {
    let rows = counted(count, "row");
    let verb = if count == 1 { "is not a fact" } else { "are not facts" };
    Failure::new(Code::BadInput, format!("{rows} {verb}; nothing was imported")).with_hint(
        "a row is a JSON object with subject, predicate and object; docs/facts.md lists the others",
    )
}
