//! The printed report.

use std::fmt;

use serde::Serialize;

use crate::figure::{Figure, Goal, Rival};
use crate::grid::align_columns;

const NOTES: &str = "\
ratio: the rival's time per call divided by ours; above 1, ours is faster.
thread hop: a std thread behind a std channel, one copy of the payload each way;
  the caller is a thread that blocks on a std channel. awaited hop: the caller is a
  tokio task that awaits a oneshot, just as callers of a pool are tasks.
Python: warm and throughput against a warm ProcessPoolExecutor; cold against one
  process of multiprocessing's spawn context that echoes once through a pipe; crash
  against a ProcessPoolExecutor that is recreated once it reports itself broken.
1 MB and 10 kB are sent as Bulk. The crash figure is the whole call, whose first
  attempt aborts immediately. Rates are those of the median round.
";

#[derive(Default, Serialize)]
pub(crate) struct Table {
    /// The benchmarks of worker processes.
    pub rows: Vec<WorkerRow>,
    pub store: Vec<Comparison>,
    pub code: Vec<Comparison>,
    pub graph: Vec<Comparison>,
    pub agents: Vec<Comparison>,
    pub load_before: Option<f64>,
    pub load_after: Option<f64>,
}

#[derive(Serialize)]
pub(crate) struct WorkerRow {
    pub name: String,
    pub ours: Figure,
    pub thread_hop: Rival,
    pub awaited_hop: Rival,
    pub python: Rival,
    pub goal: Option<Goal>,
}

/// A comparison with one rival.
#[derive(Serialize)]
pub(crate) struct Comparison {
    /// The header of the column of names.
    pub what: String,
    pub rival: String,
    pub rows: Vec<Row>,
    pub notes: String,
}

#[derive(Serialize)]
pub(crate) struct Row {
    pub name: String,
    pub ours: Figure,
    pub rival: Rival,
    pub goal: Option<Goal>,
}

impl Table {
    pub(crate) fn comparisons(&self) -> impl Iterator<Item = &Comparison> {
        self.store.iter().chain(&self.code).chain(&self.graph).chain(&self.agents)
    }
}

impl WorkerRow {
    fn cells(&self) -> Vec<String> {
        let rivals = [&self.thread_hop, &self.awaited_hop, &self.python];
        let mut cells = vec![self.name.clone(), self.ours.to_string()];
        cells.extend(rivals.iter().flat_map(|rival| rival.cells(self.ours)));
        cells.extend(Goal::cells(self.goal.as_ref()));
        cells
    }
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let mut cells = vec![self.name.clone(), self.ours.to_string()];
        cells.extend(self.rival.cells(self.ours));
        cells.extend(Goal::cells(self.goal.as_ref()));
        cells
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.rows.is_empty() {
            let heads = ["measurement", "isolate", "thread hop", "ratio", "awaited hop", "ratio"];
            let heads = heads.into_iter().chain(["Python", "ratio", "goal", "verdict"]);
            let mut lines = vec![heads.map(str::to_owned).collect()];
            lines.extend(self.rows.iter().map(WorkerRow::cells));
            writeln!(f, "{}\n{NOTES}", align_columns(&lines, &[0, 8, 9]))?;
        }
        for comparison in self.comparisons() {
            let Comparison { what, rival, .. } = comparison;
            let heads = [what.as_str(), "isolith", rival, "ratio", "goal", "verdict"];
            let mut lines = vec![heads.map(str::to_owned).to_vec()];
            lines.extend(comparison.rows.iter().map(Row::cells));
            writeln!(f, "{}\n{}", align_columns(&lines, &[0, 4, 5]), comparison.notes)?;
        }
        if let (Some(before), Some(after)) = (self.load_before, self.load_after) {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            writeln!(f, "{processors} processors; load {before} before, {after} after the run.")?;
        }
        Ok(())
    }
}
