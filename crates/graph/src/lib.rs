//! Cypher over any graph.
//!
//! [`prepare`] reads and checks a query; [`Query::run`] plans it for a graph and hands its
//! rows out one by one. The graph is a [`Graph`], or a [`GraphMut`] for queries that write:
//! where nodes and relationships are kept is not this crate's business, nor are
//! transactions. Everything that may be long is bounded by a [`Budget`].

mod ast;
mod budget;
mod check;
mod csr;
mod error;
mod functions;
mod graph;
mod ir;
mod memory;
mod parse;
mod plan;
mod query;
mod run;
mod value;

pub use budget::Budget;
pub use csr::{Adjacency, Csr, CsrLists, Link, List, position_of};
pub use error::{Class, Detail, Error, Phase, Place, Problem, Result};
pub use graph::{Direction, Edge, Entity, Found, Graph, GraphMut, Hop, KeyId, LabelId, TypeId};
pub use memory::MemoryGraph;
pub use query::{Query, prepare};
pub use run::{Flow, Stats};
pub use value::{
    Datum, List as ValueList, MAX_DEPTH, Map, NodeDatum, Path, PathDatum, RelationshipDatum, Text,
    Value, compare, equals, order,
};
