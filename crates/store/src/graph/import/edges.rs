//! Importing edges.

use isolith_graph::Entity;
use isolith_protocol::TableEnd;
use isolith_types::{Code, Failure};

use super::Import;
use super::find::NodeFinder;
use super::nodes::keyed;
use super::table::{MAX_ROWS, MIN_EDGE_LEN};
use crate::graph::TruthGraph;
use crate::graph::bytes;
use crate::graph::names::NameKind;

impl Import<'_> {
    pub(super) fn edges(
        &mut self,
        kind: &str,
        from: &TableEnd,
        to: &TableEnd,
    ) -> Result<(), Failure> {
        let keys = self.edge_keys()?;
        let graph = self.graph;
        let rows = (self.table.rows.len() as u64 / MIN_EDGE_LEN).min(MAX_ROWS);
        let mut starts = finder(graph, from, rows)?;
        // Both columns refer to the same kind of node: share one finder.
        let mut ends = if from == to { None } else { Some(finder(graph, to, rows)?) };
        let kind = graph.number(NameKind::Type, kind)?;
        let mut bare = Vec::new();
        while let Some(cells) = self.next_row()? {
            let [start, end, properties @ ..] = &cells[..] else { continue };
            let start = starts.find_one(graph, start)?;
            let end = ends.as_mut().unwrap_or(&mut starts).find_one(graph, end)?;
            let ends = match (start, end) {
                (Ok(start), Ok(end)) => (start, end),
                (Err(reason), _) | (_, Err(reason)) => {
                    self.reject(reason)?;
                    continue;
                }
            };
            self.stats.relationships_created += 1;
            if keys.is_empty() && self.constraints.is_empty() {
                bare.push(ends);
                continue;
            }
            let keyed = keyed(&keys, properties);
            self.stats.properties_set += keyed.clone().count() as u64;
            let edge = graph.insert_edge(kind, ends, bytes::write(keyed), None)?;
            self.note(Entity::Edge(edge), self.row());
        }
        graph.write_bare_edges(kind, &bare)
    }

    /// The ids of the edge properties.
    fn edge_keys(&self) -> Result<Vec<u32>, Failure> {
        let [start, end, others @ ..] = &self.header.0[..] else {
            let message = "a table of edges needs at least two columns";
            let hint = "the first two say where edges begin and end: keys of nodes";
            return Err(Failure::new(Code::BadInput, message).with_hint(hint));
        };
        start.check_names()?;
        end.check_names()?;
        others.iter().map(|column| self.graph.number(NameKind::Key, &column.name)).collect()
    }
}

/// A finder that preloads nodes if that pays off for this many rows.
fn finder<'a>(
    graph: &TruthGraph<'_>,
    end: &'a TableEnd,
    rows: u64,
) -> Result<NodeFinder<'a>, Failure> {
    let mut finder = NodeFinder::new(graph, end)?.ok_or_else(|| {
        let TableEnd { label, key } = end;
        let message = format!("no node has the label {label} and a property {key}");
        Failure::new(Code::BadInput, message).with_hint("import nodes before their edges")
    })?;
    finder.learn(graph, rows)?;
    Ok(finder)
}
