//! The segment of the graph: the edges of all nodes in one file.

use isolate::{Context, InWorker};
use isolith_protocol::{GraphSegmentEntry, GraphState, Key, SwapGraphSegment};
use isolith_segment::storage::Disk;
use isolith_segment::write_graph;
use isolith_store::{Reader, StoreFolder, Truth};
use serde::{Deserialize, Serialize};

use super::{FoldDone, Problem, remove, remove_rubbish, write};
use isolith_fault as fault;

/// Makes the segment of the graph.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GraphJob {
    /// Make it even if little has changed.
    pub even_little: bool,
    /// Make it in any case.
    pub rebuild: bool,
}

pub(super) struct GraphBuild<'a> {
    pub(super) folder: &'a StoreFolder,
    pub(super) token: InWorker,
    pub(super) job: &'a GraphJob,
    pub(super) context: &'a Context<'a>,
}

impl GraphBuild<'_> {
    pub(super) fn run(&self) -> Result<FoldDone, Problem> {
        let mut reader = Truth::open_reader(self.folder, self.token)?;
        reader.set_deadline(std::time::Instant::now() + self.context.remaining().mul_f32(0.9));
        let storage = Disk::new(self.folder.segments());
        remove_rubbish(self.folder, &mut reader, &storage)?;
        let state = reader.snapshot()?.graph_state()?;
        if !self.is_due(&state) {
            return Ok(FoldDone::default());
        }
        let entry = if state.is_large() { Some(self.build(&mut reader, &storage)?) } else { None };
        drop(reader);
        fault::point("graph.built", self.context);
        let made = entry.clone();
        // A build that died after its swap has nothing left to do when it is tried again.
        let key = Key(fastrand::u128(..).to_le_bytes());
        let swap = SwapGraphSegment { entry };
        let outcome = write(self.folder, self.token, self.context, key, swap)?;
        fault::point("graph.swapped", self.context);
        for file in &outcome.obsolete_files {
            remove(&storage, file)?;
        }
        match made {
            Some(made) if !outcome.swapped => {
                // The graph has changed meanwhile: nobody would use it.
                remove(&storage, &made.file)?;
                Ok(FoldDone::default())
            }
            Some(made) => Ok(FoldDone {
                generation: Some(made.change),
                rows: made.edges,
                bytes: made.bytes,
                busy: false,
            }),
            None => Ok(FoldDone { generation: Some(state.change), ..FoldDone::default() }),
        }
    }

    fn is_due(&self, state: &GraphState) -> bool {
        let stale = state.is_large() && state.current().is_none();
        self.job.rebuild || state.build_due() || (self.job.even_little && stale)
    }

    fn build(&self, reader: &mut Reader, storage: &Disk) -> Result<GraphSegmentEntry, Problem> {
        let snapshot = reader.snapshot()?;
        // In the same transaction as the lists: it may have changed since it was due.
        let change = snapshot.graph_state()?.change;
        let lists = snapshot.graph_lists()?;
        let edges = lists.out.edges.len() as u64;
        self.context.progress(edges, Some(edges), "graph");
        if self.context.cancelled() {
            return Err(Problem::Stopped);
        }
        // Chance makes each name new, so that a name never changes its content.
        let name = format!("g-{change}-{:08x}.adj", fastrand::u32(..));
        let ways = [&lists.out, &lists.incoming];
        let published = write_graph(storage, &name, &lists.nodes, ways, self.token)?;
        let isolith_segment::PublishedSegment { file, bytes, checksum } = published;
        Ok(GraphSegmentEntry { change, edges, file, bytes, checksum, quarantined: None })
    }
}
