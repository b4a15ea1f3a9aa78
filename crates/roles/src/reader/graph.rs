//! Cypher queries, which use the graph segment for traversals.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use isolate::Context;
use isolith_graph::Adjacency;
use isolith_protocol::{CypherFound, CypherQuery, GraphState, Searched, StoreError};
use isolith_segment::GraphSegment;
use isolith_store::{AdjacencySource, Snapshot};

use isolith_fault as fault;
use isolith_retrieve::Segments;

/// The graph segment, opened on first use.
struct LazyGraphSegment<'a> {
    snapshot: &'a Snapshot<'a>,
    context: &'a Context<'a>,
    segments: RefCell<&'a mut Segments>,
    searched: RefCell<Searched>,
    segment: OnceCell<Option<Arc<GraphSegment>>>,
    state: OnceCell<GraphState>,
}

pub(super) fn cypher(
    snapshot: &Snapshot<'_>,
    segments: &mut Segments,
    query: &CypherQuery,
    context: &Context<'_>,
) -> Result<CypherFound, StoreError> {
    let source = LazyGraphSegment {
        snapshot,
        context,
        segments: RefCell::new(segments),
        searched: RefCell::default(),
        segment: OnceCell::new(),
        state: OnceCell::new(),
    };
    let mut send_rows = |rows: &[u8]| context.send_part(rows);
    let mut answer = snapshot.cypher_to(query, Some(&source), Some(&mut send_rows))?;
    let wanted = source.segment.get().is_some_and(Option::is_none)
        && source.state.get().is_some_and(GraphState::is_large);
    let searched = source.searched.into_inner();
    if let Some(answer) = &mut answer {
        let trouble = searched.trouble();
        answer.degraded = trouble.map(|why| format!("{why}: the database was used instead"));
    }
    Ok(CypherFound { answer, searched, wanted })
}

impl LazyGraphSegment<'_> {
    fn open(&self) -> Option<Arc<GraphSegment>> {
        // If the state cannot be read, the query runs without the segment.
        let state = self.snapshot.graph_state().ok()?;
        let state = self.state.get_or_init(|| state);
        let mut searched = self.searched.borrow_mut();
        searched.generation = state.change;
        searched.quarantined = state.is_large() && state.is_quarantined();
        let entry = state.current()?;
        if self.context.attempt() > 0 {
            searched.avoided.push(entry.file.clone());
            return None;
        }
        let segment = self.segments.borrow_mut().graph(entry, &mut searched)?;
        fault::point("graph.walk", self.context);
        Some(segment)
    }
}

impl AdjacencySource for LazyGraphSegment<'_> {
    fn adjacency(&self) -> Option<Adjacency<'_>> {
        self.segment.get_or_init(|| self.open()).as_ref().map(|segment| segment.adjacency())
    }
}
