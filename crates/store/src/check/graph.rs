//! Checks the graph: edges have both ends, lookup rows match their nodes, and counts are right.

use isolith_protocol::StoreError;
use isolith_sql::Connection;

use super::{ProblemList, collect};
use crate::deadline::Deadline;
use crate::graph::{
    KnownNames, NodeParts, TruthGraph, edge_names, has_ends, has_label, has_value,
    malformed_constraints,
};
use crate::sqlite::During;

const COUNTS: [&str; 5] = [
    "SELECT 'the graph says ' || nodes || ' nodes, there are ' || n FROM graph, \
     (SELECT count(*) AS n FROM node) WHERE n <> nodes LIMIT ?1",
    "SELECT 'the graph says ' || edges || ' edges, there are ' || n FROM graph, \
     (SELECT count(*) AS n FROM edge) WHERE n <> edges LIMIT ?1",
    "SELECT 'the graph has given fewer numbers than there are' FROM graph \
     WHERE last_node < (SELECT max(id) FROM node) OR last_edge < (SELECT max(id) FROM edge) \
     LIMIT ?1",
    "SELECT 'label ' || quote(name) || ' says ' || uses || ' nodes, there are ' || n \
     FROM (SELECT name, uses, (SELECT count(*) FROM node_label WHERE label = g.id) AS n \
     FROM graph_name g WHERE kind = 0) WHERE n <> uses LIMIT ?1",
    "SELECT 'type ' || quote(name) || ' says ' || uses || ' edges, there are ' || coalesce(n, 0) \
     FROM graph_name LEFT JOIN (SELECT type, count(*) AS n FROM edge GROUP BY type) ON type = id \
     WHERE kind = 1 AND coalesce(n, 0) <> uses LIMIT ?1",
];

const ORPHANS: [&str; 6] = [
    "SELECT 'edge ' || e.id || ' begins nowhere' FROM edge e \
     LEFT JOIN node n ON n.id = e.src WHERE n.id IS NULL LIMIT ?1",
    "SELECT 'edge ' || e.id || ' ends nowhere' FROM edge e \
     LEFT JOIN node n ON n.id = e.dst WHERE n.id IS NULL LIMIT ?1",
    "SELECT 'a label of node ' || l.node || ' has no node' FROM node_label l \
     LEFT JOIN node n ON n.id = l.node WHERE n.id IS NULL LIMIT ?1",
    "SELECT 'a value of node ' || v.node || ' has no node' FROM node_value v \
     LEFT JOIN node n ON n.id = v.node WHERE n.id IS NULL LIMIT ?1",
    "SELECT 'node ' || n.id || ' is made from a file that is gone' FROM node n \
     LEFT JOIN file f ON f.id = n.owner WHERE n.owner > 0 AND f.id IS NULL LIMIT ?1",
    "SELECT 'edge ' || e.id || ' is made from a file that is gone' FROM edge e \
     LEFT JOIN file f ON f.id = e.owner WHERE e.owner > 0 AND f.id IS NULL LIMIT ?1",
];

pub(super) fn counts(db: &dyn Connection, found: &mut ProblemList) -> Result<(), StoreError> {
    COUNTS.iter().try_for_each(|sql| collect(db, found, sql))?;
    let rows: i64 = db
        .query_row("SELECT count(*) FROM graph", [], |row| row.get(0))
        .during(db, "check the counts")?;
    if rows != 1 {
        found.add(format!("table graph has {rows} rows, not 1"));
    }
    Ok(())
}

pub(super) fn orphans(db: &dyn Connection, found: &mut ProblemList) -> Result<(), StoreError> {
    ORPHANS.iter().try_for_each(|sql| collect(db, found, sql))
}

/// Checks that nodes and edges can be decoded and looked up.
pub(super) fn content(
    db: &dyn Connection,
    deadline: &Deadline,
    found: &mut ProblemList,
) -> Result<(), StoreError> {
    let mut read = || {
        let names = KnownNames::read(db)?;
        nodes(db, &names, deadline, found)?;
        edges(db, &names, deadline, found)
    };
    read().during(db, "check the graph")?;
    for (_, reason) in malformed_constraints(db).during(db, "check the graph")? {
        found.add(reason);
    }
    facts(db, deadline, found)?;
    deadline.check("check the graph")
}

/// Checks that the graph contains exactly the current entities and facts.
fn facts(
    db: &dyn Connection,
    deadline: &Deadline,
    found: &mut ProblemList,
) -> Result<(), StoreError> {
    let graph = TruthGraph::new(db);
    for (table, shown, what, count) in [
        ("entity", "node", "entity ", "SELECT count(*) FROM entity"),
        ("fact", "edge", "fact f", "SELECT count(*) FROM fact WHERE retracted_at IS NULL"),
    ] {
        let read = || {
            db.prepare(&format!("SELECT id FROM {table} ORDER BY id"))?
                .query_map([], |row| row.get(0))?
                .collect::<Result<Vec<i64>, _>>()
        };
        let numbers = read().during(db, "check the graph")?;
        for (at, number) in numbers.iter().enumerate() {
            if found.is_full() || (at.is_multiple_of(256) && deadline.passed()) {
                return Ok(());
            }
            let is_shown = match table {
                "entity" => graph.is_entity_current(*number)?,
                _ => graph.is_fact_current(*number)?,
            };
            if !is_shown {
                found.add(format!("the graph is out of date for {what}{number}"));
            }
        }
        let there: usize = db
            .query_row(&format!("SELECT count(*) FROM {shown} WHERE owner < 0"), [], |row| {
                row.get(0)
            })
            .during(db, "check the graph")?;
        let expected: usize =
            db.query_row(count, [], |row| row.get(0)).during(db, "count facts")?;
        if there > expected {
            let more = there - expected;
            found.add(format!("{shown} has rows for missing facts: {more}"));
        }
    }
    Ok(())
}

fn nodes(
    db: &dyn Connection,
    names: &KnownNames,
    deadline: &Deadline,
    found: &mut ProblemList,
) -> isolith_sql::Result<()> {
    let mut statement = db
        .prepare("SELECT id, labels, properties, coalesce(owner, -1) >= 0 FROM node ORDER BY id")?;
    let mut rows = statement.query([])?;
    let (mut at, mut labels, mut values) = (0_u64, 0_u64, 0_u64);
    while let Some(row) = rows.next()? {
        at += 1;
        if found.is_full() || (at.is_multiple_of(256) && deadline.passed()) {
            return Ok(());
        }
        let (node, is_code): (i64, bool) = (row.get(0)?, row.get(3)?);
        let parts = NodeParts::read(row.get_ref(1)?.as_blob()?, row.get_ref(2)?.as_blob()?);
        let is_named = |(name, kind)| names.is(name, kind) == Some(true);
        let Some(parts) = parts.filter(|parts| parts.names().all(is_named)) else {
            found.add(format!("node {node} is malformed"));
            continue;
        };
        for label in &parts.labels {
            labels += 1;
            if !has_label(db, *label, node)? {
                found.add(format!("node {node} is not indexed by one of its labels"));
            }
        }
        for property in parts.indexed_properties(names, is_code) {
            values += 1;
            if !has_value(db, property, node)? {
                found.add(format!("node {node} is not indexed by one of its properties"));
            }
        }
    }
    for (table, expected) in [("node_label", labels), ("node_value", values)] {
        surplus(db, table, expected, "nodes without the value", found)?;
    }
    Ok(())
}

/// Whether a lookup table has more rows than expected.
fn surplus(
    db: &dyn Connection,
    table: &str,
    expected: u64,
    to: &str,
    found: &mut ProblemList,
) -> isolith_sql::Result<()> {
    let count = format!("SELECT count(*) FROM {table}");
    let there: u64 = db.query_row(&count, [], |row| row.get(0))?;
    if there > expected {
        found.add(format!("{table} has surplus rows for {to}: {}", there - expected));
    }
    Ok(())
}

fn edges(
    db: &dyn Connection,
    names: &KnownNames,
    deadline: &Deadline,
    found: &mut ProblemList,
) -> isolith_sql::Result<()> {
    let mut statement =
        db.prepare("SELECT id, type, properties, src, dst FROM edge ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut at = 0_u64;
    while let Some(row) = rows.next()? {
        at += 1;
        if found.is_full() || (at.is_multiple_of(256) && deadline.passed()) {
            return Ok(());
        }
        let (edge, kind): (i64, u32) = (row.get(0)?, row.get(1)?);
        let properties = row.get_ref(2)?.as_blob_or_null()?.unwrap_or(&[]);
        let is_named = |(name, kind): &(u32, u8)| names.is(*name, *kind) == Some(true);
        if !edge_names(kind, properties).is_some_and(|needed| needed.iter().all(is_named)) {
            found.add(format!("edge {edge} is malformed"));
        }
        if !has_ends(db, edge, kind, (row.get(3)?, row.get(4)?))? {
            found.add(format!("edge {edge} is not indexed by its endpoints"));
        }
    }
    for table in ["edge_out", "edge_in"] {
        surplus(db, table, at, "missing edges", found)?;
    }
    Ok(())
}
