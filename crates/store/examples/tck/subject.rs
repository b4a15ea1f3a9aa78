//! The graphs that the kit is tried on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use isolate::InWorker;
use isolith_graph::{Budget, Datum, Error, Flow, MemoryGraph, Procedure, prepare, prepare_with};
use isolith_protocol::{ChangeGraph, CypherQuery, GraphAnswer, Key, StoreError};
use isolith_store::{Durability, Reader, StoreFolder, Truth, Writer, WriterOptions};
use isolith_types::Failure;
use tempfile::TempDir;

/// What a query may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// The answer to a query.
pub(super) struct Answer {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Datum>>,
}

/// A graph that can be asked.
pub(super) trait Subject {
    fn ask(&mut self, text: &str, parameters: &BTreeMap<String, Datum>) -> Result<Answer, Error>;

    /// Lets queries call a procedure of the kit; false if that is not possible here.
    fn define(&mut self, procedure: Procedure) -> bool;

    /// Takes all away.
    fn clear(&mut self) -> Result<()>;
}

/// A graph in memory, and the procedures that are defined for it.
#[derive(Default)]
pub(super) struct MemorySubject {
    graph: MemoryGraph,
    procedures: Vec<Arc<Procedure>>,
}

impl Subject for MemorySubject {
    fn ask(&mut self, text: &str, parameters: &BTreeMap<String, Datum>) -> Result<Answer, Error> {
        let query = prepare_with(text, &self.procedures)?;
        let budget = Budget::unbounded().with_deadline(Instant::now() + PATIENCE);
        let mut rows = Vec::new();
        query.run_mut(&self.graph, parameters, &budget, &mut |row| {
            rows.push(row);
            Ok(Flow::Continue)
        })?;
        Ok(Answer { columns: query.columns().to_vec(), rows })
    }

    fn define(&mut self, procedure: Procedure) -> bool {
        self.procedures.push(Arc::new(procedure));
        true
    }

    fn clear(&mut self) -> Result<()> {
        *self = Self::default();
        Ok(())
    }
}

/// Whether two failures say the same, but for the numbers of nodes.
fn are_alike(one: &Failure, other: &Failure) -> bool {
    let words = |failure: &Failure| failure.message.replace(|letter: char| letter.is_numeric(), "");
    one.code == other.code && words(one) == words(other)
}

/// The graph of a store, changed by its writer and read by a reader. Failures have no kind
/// there: a graph in memory to which the same is done must fail with the same words.
pub(super) struct StoreGraph {
    twin: MemorySubject,
    writer: Writer,
    reader: Reader,
    writes: u64,
    _place: TempDir,
}

impl StoreGraph {
    pub(super) fn new() -> Result<Self> {
        let place = tempfile::tempdir()?;
        let folder = StoreFolder::new(place.path().join("store"));
        let options = WriterOptions { durability: Durability::Normal, create: true };
        let writer = Truth::open_writer(&folder, options, InWorker::in_process())?;
        let reader = Truth::open_reader(&folder, InWorker::in_process())?;
        Ok(Self { twin: MemorySubject::default(), writer, reader, writes: 0, _place: place })
    }

    fn answer(&mut self, query: CypherQuery, is_write: bool) -> Result<GraphAnswer, StoreError> {
        if !is_write {
            self.reader.set_deadline(Instant::now() + PATIENCE);
            return self.reader.snapshot()?.cypher(&query, None);
        }
        self.writes += 1;
        let key = Key(u128::from(self.writes).to_be_bytes());
        self.writer.set_deadline(Instant::now() + PATIENCE);
        let done = self.writer.apply_one(key, ChangeGraph { query })?;
        Ok(done.reply.graph.unwrap_or_default())
    }
}

impl Subject for StoreGraph {
    fn ask(&mut self, text: &str, parameters: &BTreeMap<String, Datum>) -> Result<Answer, Error> {
        let is_write = prepare(text)?.is_write();
        let twin = self.twin.ask(text, parameters);
        let query = CypherQuery { text: text.to_owned(), parameters: parameters.clone() };
        let failure = match self.answer(query, is_write) {
            Ok(answer) => {
                let rows = answer.rows().collect::<Result<_, Failure>>()?;
                return Ok(Answer { columns: answer.columns, rows });
            }
            Err(error) => error.to_failure(),
        };
        match twin {
            Err(error) if are_alike(&Failure::from(error.clone()), &failure) => Err(error),
            _ => Err(Error::Storage(failure)),
        }
    }

    fn define(&mut self, _: Procedure) -> bool {
        false
    }

    fn clear(&mut self) -> Result<()> {
        self.twin = MemorySubject::default();
        let all = "MATCH (n) DETACH DELETE n".to_owned();
        self.answer(CypherQuery { text: all, ..CypherQuery::default() }, true)?;
        let left = self.ask("MATCH (n) RETURN n", &BTreeMap::new())?.rows.len();
        ensure!(left == 0, "{left} nodes are left after all were deleted");
        Ok(())
    }
}
