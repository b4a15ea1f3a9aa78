//! Nodes and edges whose rows are lost: lookup tables still know labels, indexed properties, and
//! the endpoints of edges.

use std::collections::{BTreeMap, BTreeSet};

use isolith_graph::Value as GraphValue;
use isolith_protocol::StoreError;
use isolith_sql::Value;
use isolith_sql::{Connection, OptionalExtension, params};

use super::indexes::Index;
use super::ranges::Gaps;
use super::rebuild::{Rescue, violates_schema};
use super::report::Extent;
use crate::graph::{NodeParts, from_lookup};
use crate::sqlite::During;

const OWNER: Index = Index {
    from: "node INDEXED BY node_owner WHERE owner IS NOT NULL",
    row: "id",
    columns: &["owner", "name"],
    unique: true,
    has_all: false,
};

const LABEL: Index =
    Index { from: "node_label", row: "node", columns: &["label"], unique: false, has_all: false };

const VALUE: Index = Index {
    from: "node_value",
    row: "node",
    columns: &["key", "value"],
    unique: false,
    has_all: false,
};

const OUT: Index = Index {
    from: "edge_out",
    row: "edge",
    columns: &["src", "type", "dst"],
    unique: false,
    has_all: false,
};

const IN: Index = Index { from: "edge_in", columns: &["dst", "type", "src"], ..OUT };

/// What is known of a lost node.
#[derive(Default)]
struct LostNode {
    owner: Option<(i64, String)>,
    labels: BTreeSet<u32>,
    properties: BTreeMap<u32, GraphValue>,
}

impl Rescue<'_> {
    /// Saves what is left of nodes in unreadable ranges.
    pub(super) fn recover_nodes(&mut self, gaps: &Gaps) -> Result<(), StoreError> {
        if gaps.ranges.is_empty() {
            return Ok(());
        }
        let (lost, owners_known) = self.lost_nodes(gaps)?;
        let db = self.work.db;
        let (mut partial, mut gone, mut of_code) = (Vec::new(), Vec::new(), 0);
        for (node, known) in lost {
            let is_own = known.owner.is_none();
            if is_own && !owners_known {
                gone.push(node.to_string());
                continue;
            }
            if save_node(db, node, &known).during(db, "save nodes")? {
                match known.owner {
                    None => partial.push(node.to_string()),
                    // Will be rebuilt from the facts.
                    Some((owner, _)) if owner < 0 => {}
                    Some(_) => of_code += 1,
                }
            } else {
                gone.push(node.to_string());
            }
        }
        self.graph_gone[0] += gone.len() as u64;
        let reason = "their properties that are not indexed are lost".to_owned();
        self.lose_named("node", Extent::Partial, partial, reason);
        self.lose_named("node", Extent::Lost, gone, "they could not be read".to_owned());
        if of_code > 0 {
            let reason = "nodes of code".to_owned();
            self.lose("node", Extent::Derived, of_code, reason);
        }
        Ok(())
    }

    fn lost_nodes(&self, gaps: &Gaps) -> Result<(BTreeMap<i64, LostNode>, bool), StoreError> {
        let (old, deadline) = (self.old, self.work.deadline);
        let mut lost: BTreeMap<i64, LostNode> = BTreeMap::new();
        let owners_known = OWNER.read(old, deadline, &mut |node, values| {
            if let [Value::Integer(owner), Value::Text(name)] = values.as_slice()
                && gaps.contains(node)
            {
                lost.entry(node).or_default().owner = Some((*owner, name.clone()));
            }
            Ok(())
        })?;
        LABEL.read(old, deadline, &mut |node, values| {
            if let [Value::Integer(label)] = values.as_slice()
                && let Ok(label) = u32::try_from(*label)
                && gaps.contains(node)
            {
                lost.entry(node).or_default().labels.insert(label);
            }
            Ok(())
        })?;
        VALUE.read(old, deadline, &mut |node, values| {
            if let [Value::Integer(key), value] = values.as_slice()
                && let Ok(key) = u32::try_from(*key)
                && gaps.contains(node)
            {
                let properties = &mut lost.entry(node).or_default().properties;
                properties.extend(from_lookup(value).map(|value| (key, value)));
            }
            Ok(())
        })?;
        Ok((lost, owners_known))
    }

    /// Saves what is left of edges in unreadable ranges. Edges of code and facts will be
    /// rebuilt.
    pub(super) fn recover_edges(&mut self, gaps: &Gaps) -> Result<(), StoreError> {
        if gaps.ranges.is_empty() {
            return Ok(());
        }
        let mut lost: BTreeMap<i64, (i64, i64, i64)> = BTreeMap::new();
        for index in [&OUT, &IN] {
            index.read(self.old, self.work.deadline, &mut |edge, values| {
                if let [Value::Integer(first), Value::Integer(kind), Value::Integer(second)] =
                    values.as_slice()
                    && gaps.contains(edge)
                {
                    let (src, dst) = if index.columns[0] == "src" {
                        (*first, *second)
                    } else {
                        (*second, *first)
                    };
                    lost.insert(edge, (*kind, src, dst));
                }
                Ok(())
            })?;
        }
        let db = self.work.db;
        let (mut partial, mut gone, mut of_code) = (Vec::new(), Vec::new(), 0);
        for (edge, (kind, src, dst)) in lost {
            let owners = (owner_of(db, src), owner_of(db, dst));
            match (owners.0.during(db, "save edges")?, owners.1.during(db, "save edges")?) {
                // Both nodes are derived, so the edge is, too.
                (Some(Some(_)), Some(Some(owner))) => of_code += u64::from(owner >= 0),
                (Some(_), Some(_)) => {
                    db.execute(
                        "INSERT INTO edge (id, type, src, dst) VALUES (?1, ?2, ?3, ?4)",
                        params![edge, kind, src, dst],
                    )
                    .during(db, "save edges")?;
                    partial.push(edge.to_string());
                }
                _ => gone.push(edge.to_string()),
            }
        }
        self.graph_gone[1] += gone.len() as u64 + of_code;
        self.lose_named("edge", Extent::Partial, partial, "their properties are lost".to_owned());
        let reason = "a node at their end is lost".to_owned();
        self.lose_named("edge", Extent::Lost, gone, reason);
        if of_code > 0 {
            let reason = "edges between nodes of code; edges of your own between them are lost";
            self.lose("edge", Extent::Derived, of_code, reason.to_owned());
        }
        Ok(())
    }

    /// The numbers of nodes and edges according to the damaged graph.
    pub(super) fn counted_before(&self) -> Option<[u64; 2]> {
        let sql = "SELECT nodes, edges FROM graph WHERE only = 1";
        self.old.query_row(sql, [], |row| Ok([row.get(0)?, row.get(1)?])).ok()
    }

    /// Compares the counts with those of the damaged graph, after facts were restored: rows may
    /// be gone without a trace.
    pub(super) fn count_graph(&mut self) -> Result<(), StoreError> {
        let Some(before) = self.counted_before() else { return Ok(()) };
        let db = self.work.db;
        for (at, (table, shows)) in [("node", "entity"), ("edge", "fact")].into_iter().enumerate() {
            let there: u64 = db
                .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
                .during(db, "count what was saved")?;
            // Nodes and edges of lost facts were already reported with those.
            let reported = self.report.lost.iter().filter(|loss| {
                loss.table == shows && matches!(loss.extent, Extent::Lost | Extent::Unknown)
            });
            let reported: u64 = reported.map(|loss| loss.rows).sum::<u64>() + self.graph_gone[at];
            let untold = before[at].saturating_sub(there).saturating_sub(reported);
            if untold > 0 {
                let reason = "the graph had more of them; indexing recreates those of code";
                self.lose(table, Extent::Unknown, untold, reason.to_owned());
            }
        }
        Ok(())
    }
}

/// Returns false if its id or name is taken.
fn save_node(db: &dyn Connection, node: i64, known: &LostNode) -> isolith_sql::Result<bool> {
    let parts = NodeParts {
        labels: known.labels.iter().copied().collect(),
        properties: known.properties.iter().map(|(key, value)| (*key, value.clone())).collect(),
    };
    let (labels, properties) = parts.write();
    let (owner, name) = known.owner.clone().unzip();
    let saved = db
        .prepare_cached(
            "INSERT INTO node (id, labels, properties, owner, name) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![node, labels, properties, owner, name]);
    match saved {
        Ok(_) => Ok(true),
        Err(error) if violates_schema(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// The owner of a node; `None` if there is no such node.
fn owner_of(db: &dyn Connection, node: i64) -> isolith_sql::Result<Option<Option<i64>>> {
    db.prepare_cached("SELECT owner FROM node WHERE id = ?1")?
        .query_row([node], |row| row.get(0))
        .optional()
}
