//! Cypher queries over any graph.
//!
//! [`prepare`] parses and checks a query; [`Query::run`] plans it for a graph and returns its
//! rows one by one. The graph is a [`Graph`], or a [`GraphMut`] for queries that write. Storage
//! and transactions are the caller's. A [`Budget`] bounds time and memory.

mod ast;
mod budget;
mod check;
mod constraint;
mod csr;
mod error;
mod functions;
mod graph;
mod ir;
mod memory_graph;
mod parse;
mod plan;
mod procedures;
mod query;
mod run;
mod temporal;
mod value;

pub use budget::Budget;
pub use constraint::{
    ChangedEntities, Constraint, ConstraintTarget, PropertyType, Rule, Scalar, verify,
};
pub use csr::{Adjacency, Csr, CsrLists, Link, List, position_of};
pub use error::{Class, Detail, Error, Phase, Problem, QueryPosition, Result};
pub use graph::{
    Direction, Edge, Entity, Graph, GraphMut, Hop, KeyId, LabelId, LookupResult, TypeId,
};
pub use memory_graph::MemoryGraph;
pub use procedures::Procedure;
pub use query::{Query, prepare, prepare_with};
pub use run::{Flow, Stats};
pub use temporal::{Temporal, TemporalKind};
pub use value::{
    Datum, List as ValueList, MAX_DEPTH, Map, NodeDatum, Path, PathDatum, RelationshipDatum, Text,
    Value, compare, equals, order,
};
