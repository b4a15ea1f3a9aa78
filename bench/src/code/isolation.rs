//! The cost of isolation: the same index run with and without workers.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Repository;
use super::front::Phase;
use super::in_process::StageTimes;
use super::processes::{self, Usage};
use crate::figure::{Figure, Goal, Rival};
use crate::samples::Samples;
use crate::table::Row;

const ROUNDS: usize = 5;
const GOAL: f64 = 1.1;

impl Repository {
    /// Returns the rows, and notes on the time by stage without isolation.
    pub(super) fn isolate(&self) -> Result<(Vec<Row>, String)> {
        let (mut isolated, mut bare) = (Samples::default(), Samples::default());
        let (mut ratios, mut stages) = (Vec::new(), None);
        for _ in 0..if self.quick { ROUNDS.div_ceil(2) } else { ROUNDS } {
            let (code, store) = (self.code.clone(), self.folder.join("isolated"));
            let ((), with) = self.once(&Phase::Index { code, store })?;
            let (code, store) = (self.code.clone(), self.folder.join("bare"));
            let (report, without) = self.once(&Phase::IndexInProcess { code, store })?;
            isolated.push(with);
            bare.push(without);
            ratios.push(with.as_secs_f64() / without.as_secs_f64());
            stages = Some(report);
        }
        let median = |samples: &Samples| samples.percentile(50).context("no round was run");
        let (isolated, bare) = (median(&isolated)?, median(&bare)?);
        let list: String = ratios.iter().map(|ratio| format!(" {ratio:.2}")).collect();
        // Consecutive runs have the same load, so use the median of their ratios.
        ratios.sort_by(f64::total_cmp);
        let times = ratios[ratios.len() / 2];
        let rows = vec![Row {
            name: "index, CPU, vs. no isolation".to_owned(),
            ours: Figure::Time(isolated),
            rival: Rival::Figure(Figure::Time(bare)),
            goal: Some(Goal::at_most(times, GOAL, "10 % more")),
        }];
        let stages: StageTimes = stages.context("no round was run")?;
        let notes = stages.notes();
        Ok((rows, format!("CPU with isolation divided by CPU without, by round:{list}.\n{notes}")))
    }

    fn once<T: serde::de::DeserializeOwned>(&self, phase: &Phase) -> Result<(T, Duration)> {
        let (Phase::Index { store, .. } | Phase::IndexInProcess { store, .. }) = phase else {
            anyhow::bail!("{phase:?} is not an index run");
        };
        let (report, used): (T, Usage) = processes::report(&mut self.front(phase)?)?;
        fs::remove_dir_all(store)?;
        Ok((report, used.cpu))
    }
}

impl StageTimes {
    fn notes(&self) -> String {
        let Self { walk, read, parse, store, link, fold } = self;
        format!(
            "CPU-seconds by stage, without isolation: walk {walk:.2}, read and hash {read:.2}, \
             parse, chunk and embed {parse:.2},\nstore {store:.2}, link {link:.2}, fold {fold:.2}.\n"
        )
    }
}
