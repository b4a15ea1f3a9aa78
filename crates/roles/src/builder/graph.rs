//! Builds the graph segment.

use isolate::{Context, InWorker};
use isolith_protocol::{GraphSegmentEntry, GraphState, Key, SwapGraphSegment};
use isolith_segment::storage::Disk;
use isolith_segment::{PublishedSegment, write_graph};
use isolith_store::{Reader, StoreFolder, Truth};
use serde::{Deserialize, Serialize};

use super::{BuildError, BuildOutcome, remove, remove_leftover_files, write};
use isolith_fault as fault;

/// Builds the graph segment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct GraphJob {
    /// Build even if little has changed.
    pub ignore_threshold: bool,
    /// Build even if nothing has changed.
    pub rebuild: bool,
}

pub(super) struct GraphBuild<'a> {
    pub(super) folder: &'a StoreFolder,
    pub(super) token: InWorker,
    pub(super) job: &'a GraphJob,
    pub(super) context: &'a Context<'a>,
}

impl GraphBuild<'_> {
    pub(super) fn run(&self) -> Result<BuildOutcome, BuildError> {
        let mut reader = Truth::open_reader(self.folder, self.token)?.for_scans()?;
        reader.set_deadline(std::time::Instant::now() + self.context.remaining().mul_f32(0.9));
        let storage = Disk::new(self.folder.segments());
        remove_leftover_files(self.folder, &mut reader, &storage)?;
        let state = reader.snapshot()?.graph_state()?;
        if !self.is_due(&state) {
            return Ok(BuildOutcome::default());
        }
        let entry = if state.is_large() { Some(self.build(&mut reader, &storage)?) } else { None };
        drop(reader);
        fault::point("graph.built", self.context);
        let built = entry.clone();
        // If a build crashes after its swap, the retry finds nothing to do, so any key is safe.
        let key = Key(fastrand::u128(..).to_le_bytes());
        let swap = SwapGraphSegment { entry };
        let outcome = write(self.folder, self.token, self.context, key, swap)?;
        fault::point("graph.swapped", self.context);
        for file in &outcome.obsolete_files {
            remove(&storage, file)?;
        }
        match built {
            Some(built) if !outcome.swapped => {
                // The graph has changed in the meantime, so the segment is already outdated.
                remove(&storage, &built.file)?;
                Ok(BuildOutcome::default())
            }
            Some(built) => Ok(BuildOutcome {
                generation: Some(built.change),
                rows: built.edges,
                bytes: built.bytes,
                busy: false,
            }),
            None => Ok(BuildOutcome { generation: Some(state.change), ..BuildOutcome::default() }),
        }
    }

    fn is_due(&self, state: &GraphState) -> bool {
        let stale = state.is_large() && state.current().is_none();
        self.job.rebuild || state.build_due() || (self.job.ignore_threshold && stale)
    }

    fn build(&self, reader: &mut Reader, storage: &Disk) -> Result<GraphSegmentEntry, BuildError> {
        let snapshot = reader.snapshot()?;
        // Read again, in the same transaction as the lists.
        let change = snapshot.graph_state()?.change;
        let lists = snapshot.graph_lists()?;
        let edges = lists.out.edges.len() as u64;
        self.context.progress(edges, Some(edges), "graph");
        if self.context.cancelled() {
            return Err(BuildError::Cancelled);
        }
        // Names are random, so that a name never refers to different content.
        let name = format!("g-{change}-{:08x}.adj", fastrand::u32(..));
        let directions = [&lists.out, &lists.incoming];
        let published = write_graph(storage, &name, &lists.nodes, directions, self.token)?;
        let PublishedSegment { file, bytes, checksum } = published;
        Ok(GraphSegmentEntry { change, edges, file, bytes, checksum, quarantined: None })
    }
}
