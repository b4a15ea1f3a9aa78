use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use isolate::misbehave::Fault;
use isolith_types::{Failure, counted};

use super::DrillPlan;
use super::report::{FaultLine, Verdict};
use crate::output::Output;

/// Shows progress: a table that fills on a terminal, otherwise a line now and then.
pub(super) struct Screen {
    table: Option<Table>,
    output: Output,
    /// Whether each fault is printed.
    lines: bool,
    total: usize,
    seen: Mutex<Seen>,
}

struct Table {
    all: MultiProgress,
    total: ProgressBar,
    rows: BTreeMap<Fault, ProgressBar>,
}

#[derive(Default)]
struct Seen {
    verdicts: usize,
    by_kind: BTreeMap<Fault, (usize, Duration)>,
}

impl Screen {
    pub(super) fn new(plan: &DrillPlan, output: &Output) -> Self {
        let total = plan.count as usize;
        Self {
            table: output.draws_progress().then(|| Table::new(total)),
            output: *output,
            lines: plan.lines,
            total,
            seen: Mutex::default(),
        }
    }

    /// Shows the outcome of a fault.
    ///
    /// # Errors
    /// If a line cannot be printed.
    pub(super) fn show(&self, verdict: &Verdict) -> Result<(), Failure> {
        if self.lines {
            self.output.lines(&[FaultLine::from(verdict)])?;
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.verdicts += 1;
        let row = seen.by_kind.entry(verdict.fault).or_default();
        row.0 += 1;
        row.1 = row.1.max(verdict.recovery.unwrap_or_default());
        let (count, slowest) = *row;
        if let Some(table) = &self.table {
            table.show(verdict, count, slowest);
        }
        let tenth = self.total.div_ceil(10);
        if self.output.prints_progress()
            && (seen.verdicts.is_multiple_of(tenth) || seen.verdicts == self.total)
        {
            self.output.progress(&format!(
                "drill: {} of {}",
                seen.verdicts,
                counted(self.total, "fault")
            ));
        }
        Ok(())
    }

    /// Clears the terminal for the report.
    pub(super) fn finish(&self) {
        if let Some(table) = &self.table {
            let _ = table.all.clear();
        }
    }
}

impl Table {
    fn new(total: usize) -> Self {
        let all = MultiProgress::new();
        // Both templates are constants; the plain style is only for the compiler.
        let line = ProgressStyle::with_template("{msg}");
        let line = line.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressStyle::with_template("{bar:40} {pos}/{len} faults, {eta} left");
        let bar = bar.unwrap_or_else(|_| ProgressStyle::default_bar());
        let rows = Fault::ALL
            .into_iter()
            .map(|fault| {
                let row = all.add(ProgressBar::new(1).with_style(line.clone()));
                row.set_message(fault.describe().to_owned());
                (fault, row)
            })
            .collect();
        let total = all.add(ProgressBar::new(total as u64).with_style(bar));
        Self { all, total, rows }
    }

    fn show(&self, verdict: &Verdict, count: usize, slowest: Duration) {
        self.total.inc(1);
        let Some(row) = self.rows.get(&verdict.fault) else {
            return;
        };
        let class = verdict.classes.first().map_or("none", |class| class.name());
        let mark = if verdict.misclassified() || verdict.lost || verdict.duplicated {
            "  WRONG"
        } else {
            ""
        };
        row.set_message(format!(
            "{:<22}{count:>6}  {class:<14} {:>9.2} ms {:>9.2} ms{mark}",
            verdict.fault.describe(),
            verdict.recovery.unwrap_or_default().as_secs_f64() * 1e3,
            slowest.as_secs_f64() * 1e3,
        ));
    }
}
