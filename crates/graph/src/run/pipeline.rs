//! The stages of a query. A stage is a sequence of operators that ends with a projection or a
//! writing clause. Rows stream from stage to stage, except where all of them are needed first:
//! for grouping, for sorting, and around every writing clause.

use std::cell::RefCell;

use crate::error::Result;
use crate::ir::{QueryStep, Slot};
use crate::plan::{self, Op};

use super::project::Collector;
use super::{Flow, Row, Run, exec, row_held, write};

/// The receiver of rows.
pub(crate) type Sink<'s> = dyn FnMut(&mut Row) -> Result<Flow> + 's;

struct Stage<'r> {
    ops: Vec<Op<'r>>,
    end: StageEnd<'r>,
}

enum StageEnd<'r> {
    Project(RefCell<Collector<'r>>),
    /// A writing clause, and the rows collected for it.
    Write(&'r QueryStep, RefCell<Vec<Row>>),
    /// Collects all rows, so that the operators before it finish before those after it begin.
    Pause(RefCell<Vec<Row>>),
    Nothing,
}

/// Limits the recursion: the operators of one stage call each other.
const MAX_OPS: usize = 60;

/// Runs steps for one input row.
pub(crate) fn run<'r>(
    run: &Run<'r>,
    steps: &'r [QueryStep],
    row: &mut Row,
    out: &mut Sink<'_>,
) -> Result<Flow> {
    let stages = stages(run, steps)?;
    let pipeline = Pipeline { run, stages };
    let before = row.clone();
    let mut flow = pipeline.push(0, row, out)?;
    for at in 0..pipeline.stages.len() {
        flow = pipeline.drain(at, &before, flow, out)?;
    }
    Ok(flow)
}

fn stages<'r>(run: &Run<'r>, steps: &'r [QueryStep]) -> Result<Vec<Stage<'r>>> {
    let mut stages = Vec::new();
    let mut ops = Vec::new();
    let mut streamed = 0;
    for step in steps {
        match step {
            _ if is_streamed(step) && streamed + ops.len() > MAX_OPS => {
                let ops = std::mem::replace(&mut ops, operators(run, step)?);
                stages.push(Stage { ops, end: StageEnd::Pause(RefCell::default()) });
                streamed = 0;
            }
            _ if is_streamed(step) => ops.extend(operators(run, step)?),
            QueryStep::Project(project) => {
                let mut ops = std::mem::take(&mut ops);
                let weight = plan::shorten(&mut ops, project);
                streamed += ops.len() + 1;
                let eager = streamed > MAX_OPS;
                let mut collector = Collector::new(run, project, weight, eager)?;
                if stages.is_empty() && plan::groups_differ(run, &ops, project)? {
                    collector.expect_distinct_groups();
                    if let (Some(Op::Weight(it)), true) =
                        (ops.last(), plan::heaviest_first(project))
                    {
                        collector.report_minimum_to(it.least.clone());
                    }
                }
                if collector.is_barrier() {
                    streamed = 0;
                }
                stages.push(Stage { ops, end: StageEnd::Project(RefCell::new(collector)) });
            }
            QueryStep::Match(_)
            | QueryStep::Unwind { .. }
            | QueryStep::Call(_)
            | QueryStep::Procedure(_)
            | QueryStep::Create(_)
            | QueryStep::Merge(_)
            | QueryStep::Set(_)
            | QueryStep::Delete { .. }
            | QueryStep::Foreach { .. } => {
                streamed = 0;
                let ops = std::mem::take(&mut ops);
                stages.push(Stage { ops, end: StageEnd::Write(step, RefCell::default()) });
            }
        }
    }
    if !ops.is_empty() {
        stages.push(Stage { ops, end: StageEnd::Nothing });
    }
    Ok(stages)
}

/// Whether a step passes on its rows one by one.
fn is_streamed(step: &QueryStep) -> bool {
    match step {
        QueryStep::Match(_) | QueryStep::Unwind { .. } | QueryStep::Procedure(_) => true,
        QueryStep::Call(call) => !call.writes,
        _ => false,
    }
}

fn operators<'r>(run: &Run<'r>, step: &'r QueryStep) -> Result<Vec<Op<'r>>> {
    match step {
        QueryStep::Match(pattern) => plan::clause(run, pattern),
        QueryStep::Unwind { list, slot } => Ok(vec![Op::Unwind { list, slot: *slot }]),
        QueryStep::Call(call) => Ok(vec![Op::Call(call)]),
        QueryStep::Procedure(call) => Ok(vec![Op::Procedure(call)]),
        QueryStep::Project(_)
        | QueryStep::Create(_)
        | QueryStep::Merge(_)
        | QueryStep::Set(_)
        | QueryStep::Delete { .. }
        | QueryStep::Foreach { .. } => Ok(Vec::new()),
    }
}

struct Pipeline<'a, 'r> {
    run: &'a Run<'r>,
    stages: Vec<Stage<'r>>,
}

impl<'r> Pipeline<'_, 'r> {
    /// Passes a row to a stage, or to `out` after the last one.
    fn push(&self, at: usize, row: &mut Row, out: &mut Sink<'_>) -> Result<Flow> {
        let Some(stage) = self.stages.get(at) else { return out(row) };
        exec::exec(self.run, &stage.ops, row, &mut |row| self.finish(at, row, out))
    }

    /// Ends a stage for a row that has passed all its operators.
    fn finish(&self, at: usize, row: &mut Row, out: &mut Sink<'_>) -> Result<Flow> {
        self.run.budget.step()?;
        match &self.stages[at].end {
            StageEnd::Nothing => out(row),
            StageEnd::Write(_, rows) | StageEnd::Pause(rows) => {
                self.run.budget.keep(row_held(row))?;
                rows.borrow_mut().push(row.clone());
                Ok(Flow::Continue)
            }
            StageEnd::Project(collector) => {
                if collector.borrow().is_barrier() {
                    collector.borrow_mut().collect(self.run, row)?;
                    return Ok(Flow::Continue);
                }
                let pass = collector.borrow_mut().stream(self.run, row)?;
                if pass.emit && self.push(at + 1, row, out)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
                Ok(pass.flow)
            }
        }
    }

    /// Called after the last row: passes on what a stage and those after it held back.
    fn drain(&self, at: usize, before: &Row, flow: Flow, out: &mut Sink<'_>) -> Result<Flow> {
        let (slots, rows): (Option<&[Slot]>, Vec<Row>) = match &self.stages[at].end {
            StageEnd::Nothing => return Ok(flow),
            StageEnd::Project(collector) => {
                let mut collector = collector.borrow_mut();
                if !collector.is_barrier() {
                    return Ok(flow);
                }
                let rows = collector.finish(self.run, before)?;
                (Some(collector.kept()), rows)
            }
            StageEnd::Pause(rows) => (None, rows.take()),
            StageEnd::Write(step, rows) => {
                let mut rows = rows.take();
                write::write(self.run, step, &mut rows)?;
                (None, rows)
            }
        };
        let mut row = before.clone();
        for values in rows {
            self.run.budget.release(row_held(&values));
            match slots {
                Some(slots) => {
                    for (slot, value) in slots.iter().zip(values) {
                        row[*slot] = value;
                    }
                }
                None => row = values,
            }
            if self.push(at + 1, &mut row, out)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }
}
