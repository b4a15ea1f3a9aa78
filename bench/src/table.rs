//! The table that is printed.

use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

const COLUMNS: usize = 10;

const NOTES: &str = "\
ratio: the rival's time per call divided by ours; above 1, ours is faster.
thread hop: a std thread behind a std channel, one copy of the payload each way;
  the caller is a thread that blocks on a std channel. awaited hop: the caller is a
  tokio task that awaits a oneshot, as ours is a task that awaits a pool.
Python: warm and throughput against a warm ProcessPoolExecutor; cold against one
  process of multiprocessing's spawn context that echoes once through a pipe; crash
  against a ProcessPoolExecutor that is made anew once it reports itself broken.
1 MB and 10 kB travel as Bulk. The crash figure is the whole call, of which the
  first attempt aborts at once. Rates are those of the median round.
";

#[derive(Default, Serialize)]
pub(crate) struct Table {
    pub rows: Vec<Row>,
    pub load_before: Option<f64>,
    pub load_after: Option<f64>,
}

#[derive(Serialize)]
pub(crate) struct Row {
    pub name: String,
    pub ours: Figure,
    pub thread_hop: Rival,
    pub awaited_hop: Rival,
    pub python: Rival,
    pub goal: Option<Goal>,
}

/// In JSON: nanoseconds, or calls in a second.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Figure {
    Took(Duration),
    Rate(f64),
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rival {
    /// There is none here.
    None,
    NotAvailable,
    Figure(Figure),
}

#[derive(Serialize)]
pub(crate) struct Goal {
    text: String,
    met: bool,
    /// Ours divided by the goal.
    share: f64,
}

impl Goal {
    pub(crate) fn at_most(ours: Duration, limit: Duration) -> Self {
        Self {
            text: Figure::Took(limit).to_string(),
            met: ours <= limit,
            share: ours.as_secs_f64() / limit.as_secs_f64(),
        }
    }

    pub(crate) fn named(self, text: String) -> Self {
        Self { text, ..self }
    }
}

impl From<Option<Figure>> for Rival {
    fn from(figure: Option<Figure>) -> Self {
        figure.map_or(Self::NotAvailable, Self::Figure)
    }
}

impl Figure {
    fn seconds_per_call(self) -> f64 {
        match self {
            Self::Took(took) => took.as_secs_f64(),
            Self::Rate(rate) => 1.0 / rate,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Took(took) => {
                let us = took.as_secs_f64() * 1e6;
                match us {
                    ..100.0 => write!(f, "{us:.1} us"),
                    ..1000.0 => write!(f, "{us:.0} us"),
                    ..100_000.0 => write!(f, "{:.2} ms", us / 1e3),
                    _ => write!(f, "{:.0} ms", us / 1e3),
                }
            }
            Self::Rate(rate) => write!(f, "{rate:.0}/s"),
        }
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Took(took) => took.as_nanos().serialize(serializer),
            Self::Rate(rate) => rate.serialize(serializer),
        }
    }
}

impl Rival {
    /// The figure and its ratio to ours.
    fn cells(&self, ours: Figure) -> [String; 2] {
        match self {
            Self::None => ["-".into(), String::new()],
            Self::NotAvailable => ["not available".into(), String::new()],
            Self::Figure(figure) => {
                let ratio = figure.seconds_per_call() / ours.seconds_per_call();
                let digits = if ratio < 0.1 { 3 } else { 2 };
                [figure.to_string(), format!("{ratio:.digits$}")]
            }
        }
    }
}

impl Row {
    fn cells(&self) -> [String; COLUMNS] {
        let [hop, hop_ratio] = self.thread_hop.cells(self.ours);
        let [awaited, awaited_ratio] = self.awaited_hop.cells(self.ours);
        let [python, python_ratio] = self.python.cells(self.ours);
        let (goal, verdict) = match &self.goal {
            None => (String::new(), String::new()),
            Some(goal) => {
                let word = if goal.met { "met" } else { "MISSED" };
                (format!("<= {}", goal.text), format!("{word} ({:.2} of it)", goal.share))
            }
        };
        let ours = self.ours.to_string();
        [
            self.name.clone(),
            ours,
            hop,
            hop_ratio,
            awaited,
            awaited_ratio,
            python,
            python_ratio,
            goal,
            verdict,
        ]
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = [
            "measurement",
            "isolate",
            "thread hop",
            "ratio",
            "awaited hop",
            "ratio",
            "Python",
            "ratio",
            "goal",
            "verdict",
        ];
        let mut lines = vec![head.map(str::to_owned)];
        lines.extend(self.rows.iter().map(Row::cells));
        let width = |column: usize| {
            let cells = lines.iter().map(|cells| cells[column].chars().count());
            cells.max().unwrap_or_default()
        };
        let widths: [usize; COLUMNS] = std::array::from_fn(width);
        for (at, cells) in lines.iter().enumerate() {
            let mut line = String::new();
            for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
                // Words to the left, figures to the right.
                line += &match column {
                    0 | 8 | 9 => format!("{cell:<width$}  "),
                    _ => format!("{cell:>width$}  "),
                };
            }
            writeln!(f, "{}", line.trim_end())?;
            if at == 0 {
                writeln!(f, "{}", "-".repeat(line.trim_end().len().max(line.len() - 2)))?;
            }
        }
        write!(f, "\n{NOTES}")?;
        if let (Some(before), Some(after)) = (self.load_before, self.load_after) {
            let processors = std::thread::available_parallelism().map_or(1, usize::from);
            writeln!(f, "{processors} processors; load {before} before, {after} after the run.")?;
        }
        Ok(())
    }
}
