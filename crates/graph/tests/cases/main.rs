//! Tables of queries and their results, and tests of invalid, large and endless queries.

#![allow(clippy::unwrap_used, clippy::panic)]

mod bounds;
mod constraints;
mod errors;
mod planning;
mod reading;
mod subqueries;
mod temporal;
mod writing;

use std::collections::BTreeMap;

use isolith_graph::{Budget, Datum, Error, Flow, MemoryGraph, Stats, prepare};

/// Runs a query and returns its rows as JSON.
fn ask(graph: &MemoryGraph, text: &str) -> Result<Vec<String>, Error> {
    ask_with(graph, text, &BTreeMap::new())
}

fn ask_with(
    graph: &MemoryGraph,
    text: &str,
    parameters: &BTreeMap<String, Datum>,
) -> Result<Vec<String>, Error> {
    let mut rows = Vec::new();
    prepare(text)?.run_mut(graph, parameters, &Budget::unbounded(), &mut |row| {
        let cells: Vec<String> = row.iter().map(|cell| cell.to_json().to_string()).collect();
        rows.push(cells.join(" "));
        Ok(Flow::Continue)
    })?;
    Ok(rows)
}

fn change(graph: &MemoryGraph, text: &str) -> Stats {
    let query = prepare(text).unwrap();
    let sink = &mut |_| Ok(Flow::Continue);
    query.run_mut(graph, &BTreeMap::new(), &Budget::unbounded(), sink).unwrap()
}

/// A graph created by a query.
fn graph(text: &str) -> MemoryGraph {
    let graph = MemoryGraph::new();
    change(&graph, text);
    graph
}

#[track_caller]
fn check(graph: &MemoryGraph, table: &[(&str, &[&str])]) {
    for (text, expected) in table {
        match ask(graph, text) {
            Ok(rows) => assert_eq!(rows, *expected, "{text}"),
            Err(error) => panic!("{text}: {error}"),
        }
    }
}
