//! Cypher, with the help of the graph's segment.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use isolate::Context;
use isolith_graph::Adjacency;
use isolith_segment::GraphSegment;
use isolith_store::{AdjacencySource, CypherQuery, GraphAnswer, GraphState, Snapshot, StoreError};
use serde::{Deserialize, Serialize};

use super::Searched;
use super::segments::Segments;
use crate::fault;

/// What a query found, and with what.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CypherFound {
    /// The answer.
    pub answer: GraphAnswer,
    /// What it went through.
    pub searched: Searched,
    /// Whether a segment would have helped that is not there, or is older than the graph.
    pub wanted: bool,
}

/// The graph's segment, opened when it is first asked for.
struct Asked<'a> {
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
    let asked = Asked {
        snapshot,
        context,
        segments: RefCell::new(segments),
        searched: RefCell::default(),
        segment: OnceCell::new(),
        state: OnceCell::new(),
    };
    let mut rest = |rows: &[u8]| context.send_part(rows);
    let mut answer = snapshot.cypher_to(query, Some(&asked), Some(&mut rest))?;
    let wanted = asked.segment.get().is_some_and(Option::is_none)
        && asked.state.get().is_some_and(GraphState::is_large);
    let searched = asked.searched.into_inner();
    answer.degraded = searched.trouble().map(|why| format!("{why}: walked in the truth instead"));
    Ok(CypherFound { answer, searched, wanted })
}

impl Asked<'_> {
    fn open(&self) -> Option<Arc<GraphSegment>> {
        // A graph whose state cannot be read is not walked with a segment either.
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

impl AdjacencySource for Asked<'_> {
    fn adjacency(&self) -> Option<Adjacency<'_>> {
        self.segment.get_or_init(|| self.open()).as_ref().map(|segment| segment.adjacency())
    }
}
