//! Runs a query: rows flow through operators one by one, each calling the next.

mod arithmetic;
mod eval;
mod exec;
mod expand;
mod explain;
mod output;
mod pipeline;
mod project;
mod reach;
mod regex;
mod shortest;
mod sort;
mod subquery;
mod write;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(crate) use eval::eval;
pub(crate) use expand::EdgeSelector;
pub(crate) use explain::COLUMNS as PLAN_COLUMNS;
pub(crate) use sort::sorted;

use crate::budget::Budget;
use crate::constraint::{ChangedEntities, Constraint, verify};
use crate::csr::Adjacency;
use crate::error::{Class, Detail, Error, Phase, Problem, Result};
use crate::graph::{Edge, Entity, Graph, GraphMut, KeyId, LabelId, TypeId};
use crate::ir::{Match, Program, Symbol};
use crate::plan::Op;
use crate::temporal::Temporal;
use crate::value::{Datum, Value};

/// The current values of all variables, indexed by [`crate::ir::Slot`].
pub(crate) type Row = Vec<Value>;

/// The memory for keeping these values of a row.
fn row_held(values: &[Value]) -> usize {
    let vector = size_of::<Row>() + 16;
    values.iter().fold(vector, |sum, value| sum + value.held())
}

/// Whether the receiver wants more rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Send more rows.
    Continue,
    /// No more rows are needed.
    Stop,
}

/// How much a query has changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stats {
    /// Nodes created.
    pub nodes_created: u64,
    /// Nodes deleted.
    pub nodes_deleted: u64,
    /// Relationships created.
    pub relationships_created: u64,
    /// Relationships deleted.
    pub relationships_deleted: u64,
    /// Properties set or removed.
    pub properties_set: u64,
    /// Labels added to nodes.
    pub labels_added: u64,
    /// Labels removed from nodes.
    pub labels_removed: u64,
    /// Constraints created. Receipts of earlier versions do not have it, nor the next one.
    #[serde(default)]
    pub constraints_added: u64,
    /// Constraints dropped.
    #[serde(default)]
    pub constraints_removed: u64,
}

/// The cached id of a name in the graph.
#[derive(Debug, Clone, Copy)]
enum ResolvedName<T> {
    NotYet,
    Absent,
    Here(T),
}

/// How many nodes are expanded through the graph before the adjacency is opened.
const SMALL_STEPS: u32 = 32;

/// The state of a running query.
pub(crate) struct Run<'r> {
    pub(crate) graph: &'r dyn Graph,
    pub(crate) writer: Option<&'r dyn GraphMut>,
    pub(crate) budget: &'r Budget<'r>,
    pub(crate) program: &'r Program,
    pub(crate) parameters: Vec<Value>,
    adjacency: OnceCell<Option<Adjacency<'r>>>,
    /// Nodes expanded without the adjacency.
    small_steps: Cell<u32>,
    labels: Vec<Cell<ResolvedName<LabelId>>>,
    kinds: Vec<Cell<ResolvedName<TypeId>>>,
    keys: Vec<Cell<ResolvedName<KeyId>>>,
    plans: RefCell<HashMap<usize, Rc<Vec<Op<'r>>>>>,
    pub(crate) stats: Cell<Stats>,
    constraints: Arc<[Constraint]>,
    /// What was changed; empty if there are no constraints.
    changed: RefCell<ChangedEntities>,
    deleted: RefCell<HashSet<Entity>>,
    /// Deleted relationships, whose type can still be asked for.
    deleted_edges: RefCell<HashMap<i64, Edge>>,
    random: Cell<u64>,
    /// The time at which the query began, if it was asked for.
    now: OnceCell<Temporal>,
    regexes: regex::Regexes,
}

/// Runs a program. Rows go to `sink` until it stops.
pub(crate) fn run(
    program: &Program,
    graph: &dyn Graph,
    writer: Option<&dyn GraphMut>,
    parameters: &BTreeMap<String, Datum>,
    budget: &Budget<'_>,
    sink: &mut dyn FnMut(Vec<Datum>) -> Result<Flow>,
) -> Result<Stats> {
    let run = Run::new(program, graph, writer, parameters, budget)?;
    let mut stopped = false;
    let mut row = vec![Value::Null; program.slots];
    subquery::each_row(&run, &program.union, &mut row, &mut |row, columns| {
        if columns.is_empty() || stopped {
            return Ok(Flow::Continue);
        }
        let flow = sink(output::row(&run, columns, row)?)?;
        stopped = flow == Flow::Stop;
        // A query that writes runs to its end, however many rows are read.
        Ok(if program.writes { Flow::Continue } else { flow })
    })?;
    if let Some(writer) = writer {
        verify(writer, &run.constraints, &run.changed.borrow(), budget)?;
    }
    Ok(run.stats.get())
}

/// Describes how a program would run on a graph. Parameters have no values yet.
pub(crate) fn explain(
    program: &Program,
    graph: &dyn Graph,
    budget: &Budget<'_>,
    sink: &mut dyn FnMut(Vec<Datum>) -> Result<Flow>,
) -> Result<()> {
    let none = program.parameters.iter().map(|name| (name.to_string(), Datum::Null)).collect();
    explain::explain(&Run::new(program, graph, None, &none, budget)?, sink)
}

impl<'r> Run<'r> {
    fn new(
        program: &'r Program,
        graph: &'r dyn Graph,
        writer: Option<&'r dyn GraphMut>,
        parameters: &BTreeMap<String, Datum>,
        budget: &'r Budget<'r>,
    ) -> Result<Self> {
        let count = program.names.len();
        let values = program.parameters.iter().map(|name| match parameters.get(&**name) {
            Some(datum) => budget.check_value(datum.to_value()),
            None => Err(missing(name)),
        });
        Ok(Run {
            graph,
            writer,
            budget,
            program,
            parameters: values.collect::<Result<_>>()?,
            adjacency: OnceCell::new(),
            small_steps: Cell::default(),
            labels: vec![Cell::new(ResolvedName::NotYet); count],
            kinds: vec![Cell::new(ResolvedName::NotYet); count],
            keys: vec![Cell::new(ResolvedName::NotYet); count],
            plans: RefCell::default(),
            stats: Cell::default(),
            constraints: match writer {
                Some(writer) => writer.constraints()?,
                None => Arc::new([]),
            },
            changed: RefCell::default(),
            deleted: RefCell::default(),
            deleted_edges: RefCell::default(),
            random: Cell::new(seed()),
            now: OnceCell::new(),
            regexes: regex::Regexes::default(),
        })
    }

    /// The graph's adjacency, for traversals that may be long.
    pub(crate) fn adjacency(&self) -> Option<&Adjacency<'r>> {
        let find = || if self.program.writes { None } else { self.graph.adjacency() };
        self.adjacency.get_or_init(find).as_ref()
    }

    /// The graph's adjacency, if it is open or enough nodes were expanded without it: opening it
    /// may cost more than a few expansions.
    pub(crate) fn adjacency_if_worthwhile(&self) -> Option<&Adjacency<'r>> {
        if self.adjacency.get().is_none() && self.small_steps.get() < SMALL_STEPS {
            self.small_steps.set(self.small_steps.get() + 1);
            return None;
        }
        self.adjacency()
    }

    fn resolve<T: Copy>(
        &self,
        cell: &Cell<ResolvedName<T>>,
        find: impl FnOnce() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        match cell.get() {
            ResolvedName::Here(id) => Ok(Some(id)),
            ResolvedName::Absent => Ok(None),
            ResolvedName::NotYet => {
                let found = find()?;
                match found {
                    Some(id) => cell.set(ResolvedName::Here(id)),
                    // A query that writes may create the name.
                    None if !self.program.writes => cell.set(ResolvedName::Absent),
                    None => {}
                }
                Ok(found)
            }
        }
    }

    pub(crate) fn name(&self, symbol: Symbol) -> &'r Arc<str> {
        &self.program.names[symbol.0 as usize]
    }

    pub(crate) fn label(&self, symbol: Symbol) -> Result<Option<LabelId>> {
        let cell = &self.labels[symbol.0 as usize];
        self.resolve(cell, || Ok(self.graph.label_id(self.name(symbol))?))
    }

    pub(crate) fn key(&self, symbol: Symbol) -> Result<Option<KeyId>> {
        let cell = &self.keys[symbol.0 as usize];
        self.resolve(cell, || Ok(self.graph.key_id(self.name(symbol))?))
    }

    fn kind(&self, symbol: Symbol) -> Result<Option<TypeId>> {
        let cell = &self.kinds[symbol.0 as usize];
        self.resolve(cell, || Ok(self.graph.type_id(self.name(symbol))?))
    }

    /// The types of a pattern: empty for any type, `None` if no relationship can match.
    pub(crate) fn kinds(&self, symbols: &[Symbol]) -> Result<Option<Vec<TypeId>>> {
        let mut kinds = Vec::with_capacity(symbols.len());
        for symbol in symbols {
            kinds.extend(self.kind(*symbol)?);
        }
        kinds.sort_unstable();
        kinds.dedup();
        Ok((symbols.is_empty() || !kinds.is_empty()).then_some(kinds))
    }

    /// The operators of a pattern, planned on first use.
    pub(crate) fn plan(&self, pattern: &'r Match) -> Result<Rc<Vec<Op<'r>>>> {
        let key = std::ptr::from_ref(pattern) as usize;
        if let Some(plan) = self.plans.borrow().get(&key) {
            return Ok(plan.clone());
        }
        let plan = Rc::new(crate::plan::plan(self, pattern)?);
        self.plans.borrow_mut().insert(key, plan.clone());
        Ok(plan)
    }

    /// Whether the graph has all names of a pattern.
    fn knows(&self, pattern: &Match) -> Result<bool> {
        for node in &pattern.pattern.nodes {
            for label in &node.labels {
                if self.label(*label)?.is_none() {
                    return Ok(false);
                }
            }
            for (key, _) in &node.properties {
                if self.key(*key)?.is_none() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    pub(crate) fn edge(&self, edge: i64) -> Result<Edge> {
        if let Some(found) = self.graph.edge(edge)? {
            return Ok(found);
        }
        if let Some(deleted) = self.deleted_edges.borrow().get(&edge) {
            return Ok(*deleted);
        }
        Err(self.deleted_error(Entity::Edge(edge)))
    }

    /// Fails if this query deleted the entity.
    pub(crate) fn alive(&self, entity: Entity) -> Result<()> {
        if self.program.writes && self.deleted.borrow().contains(&entity) {
            return Err(self.deleted_error(entity));
        }
        Ok(())
    }

    pub(crate) fn is_deleted(&self, entity: Entity) -> bool {
        self.program.writes && self.deleted.borrow().contains(&entity)
    }

    fn deleted_error(&self, entity: Entity) -> Error {
        let message = match entity {
            Entity::Node(id) => format!("node {id} is deleted"),
            Entity::Edge(id) => format!("relationship {id} is deleted"),
        };
        Error::run(Class::EntityNotFound, Detail::DeletedEntityAccess, message)
    }

    /// A random number from 0 to 1.
    pub(crate) fn random(&self) -> f64 {
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A random UUID of version 4.
    pub(crate) fn random_uuid(&self) -> String {
        let mut bytes = [0; 16];
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&seed().to_le_bytes());
        }
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
    }

    /// The time of the query, the same for all its rows.
    pub(crate) fn now(&self) -> &Temporal {
        self.now.get_or_init(Temporal::now)
    }

    /// Notes that constraints must be checked for this node or relationship.
    fn note_change(&self, entity: Entity) {
        if self.constraints.is_empty() {
            return;
        }
        let mut changed = self.changed.borrow_mut();
        match entity {
            Entity::Node(node) => changed.nodes.insert(node),
            Entity::Edge(edge) => changed.edges.insert(edge),
        };
    }

    fn count(&self, change: impl FnOnce(&mut Stats)) {
        let mut stats = self.stats.get();
        change(&mut stats);
        self.stats.set(stats);
    }
}

/// The error of a query that writes where only reading is possible.
pub(crate) fn read_only() -> Error {
    let message = "this query writes, but the graph was opened for reading";
    Error::Storage(isolith_types::Failure::new(isolith_types::Code::ReadOnly, message))
}

/// A random number, never zero.
fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish() | 1
}

fn missing(name: &str) -> Error {
    Error::Query(Box::new(Problem {
        class: Class::ParameterMissing,
        detail: Detail::MissingParameter,
        phase: Phase::Compile,
        message: format!("the parameter ${name} has no value"),
        position: None,
        entity: None,
    }))
}
