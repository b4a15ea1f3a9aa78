//! The same index run with and without workers.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::Repository;
use super::front::Order;
use super::in_process::Stages;
use super::processes::{self, Used};
use crate::figure::{Figure, Goal, Rival};
use crate::samples::Samples;
use crate::table::Beside;

const ROUNDS: usize = 5;
const GOAL: f64 = 1.1;

impl Repository {
    /// Rows, and where the time goes when nothing is isolated.
    pub(super) fn isolate(&self) -> Result<(Vec<Beside>, String)> {
        let (mut isolated, mut bare) = (Samples::default(), Samples::default());
        let (mut ratios, mut stages) = (Vec::new(), None);
        for _ in 0..if self.quick { ROUNDS.div_ceil(2) } else { ROUNDS } {
            let (code, store) = (self.code.clone(), self.folder.join("isolated"));
            let ((), with) = self.once(&Order::Index { code, store })?;
            let (code, store) = (self.code.clone(), self.folder.join("bare"));
            let (report, without) = self.once(&Order::IndexInProcess { code, store })?;
            isolated.push(with);
            bare.push(without);
            ratios.push(with.as_secs_f64() / without.as_secs_f64());
            stages = Some(report);
        }
        let median = |samples: &Samples| samples.percentile(50).context("there was no round");
        let (isolated, bare) = (median(&isolated)?, median(&bare)?);
        let list: String = ratios.iter().map(|ratio| format!(" {ratio:.2}")).collect();
        // Runs next to each other are under the same load.
        ratios.sort_by(f64::total_cmp);
        let times = ratios[ratios.len() / 2];
        let rows = vec![Beside {
            name: "index, CPU, beside no isolation".to_owned(),
            ours: Figure::Took(isolated),
            rival: Rival::Figure(Figure::Took(bare)),
            goal: Some(Goal::no_more(times, GOAL, "10 % more")),
        }];
        let stages: Stages = stages.context("there was no round")?;
        let notes = stages.notes();
        Ok((rows, format!("CPU with isolation, beside without, by round:{list}.\n{notes}")))
    }

    fn once<T: serde::de::DeserializeOwned>(&self, order: &Order) -> Result<(T, Duration)> {
        let (Order::Index { store, .. } | Order::IndexInProcess { store, .. }) = order else {
            anyhow::bail!("{order:?} is no index run");
        };
        let (report, used): (T, Used) = processes::report(&mut self.front(order)?)?;
        fs::remove_dir_all(store)?;
        Ok((report, used.cpu))
    }
}

impl Stages {
    fn notes(&self) -> String {
        let Self { walk, read, parse, store, link, fold } = self;
        format!(
            "CPU-seconds by stage, without isolation: walk {walk:.2}, read and hash {read:.2}, \
             parse, cut and embed {parse:.2},\nstore {store:.2}, link {link:.2}, fold {fold:.2}.\n"
        )
    }
}
