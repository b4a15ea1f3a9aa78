//! The stages of a query. A stage is a run of operators and what ends it: a projection or a
//! clause that writes. Rows stream from stage to stage, except where all of them must be
//! there first: for groups, for an order, and around every clause that writes.

use std::cell::RefCell;

use crate::error::Result;
use crate::ir::{Slot, Step};
use crate::plan::{self, Op};

use super::project::Collector;
use super::{Flow, Row, Run, exec, row_held, write};

/// Where rows go.
pub(crate) type Sink<'s> = dyn FnMut(&mut Row) -> Result<Flow> + 's;

struct Stage<'r> {
    ops: Vec<Op<'r>>,
    end: End<'r>,
}

enum End<'r> {
    Project(RefCell<Collector<'r>>),
    /// A clause that writes, and the rows it waits for.
    Write(&'r Step, RefCell<Vec<Row>>),
    /// Nothing happens, but the operators before it are done when those behind it begin.
    Pause(RefCell<Vec<Row>>),
    Nothing,
}

/// Operators of one stage call each other: so many of them, and no more.
const MAX_OPS: usize = 60;

/// Runs steps for one row that comes in.
pub(crate) fn run<'r>(
    run: &Run<'r>,
    steps: &'r [Step],
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

fn stages<'r>(run: &Run<'r>, steps: &'r [Step]) -> Result<Vec<Stage<'r>>> {
    let mut stages = Vec::new();
    let mut ops = Vec::new();
    let mut streamed = 0;
    for step in steps {
        match step {
            Step::Match(_) | Step::Unwind { .. } if streamed + ops.len() > MAX_OPS => {
                let ops = std::mem::replace(&mut ops, operators(run, step)?);
                stages.push(Stage { ops, end: End::Pause(RefCell::default()) });
                streamed = 0;
            }
            Step::Match(_) | Step::Unwind { .. } => ops.extend(operators(run, step)?),
            Step::Project(project) => {
                let mut ops = std::mem::take(&mut ops);
                let weight = plan::shorten(&mut ops, project);
                streamed += ops.len() + 1;
                let eager = streamed > MAX_OPS;
                let mut collector = Collector::new(run, project, weight, eager)?;
                if stages.is_empty() && plan::groups_differ(run, &ops, project)? {
                    collector.expect_new_groups();
                    if let (Some(Op::Weight(it)), true) =
                        (ops.last(), plan::heaviest_first(project))
                    {
                        collector.tell_least(it.least.clone());
                    }
                }
                if collector.is_barrier() {
                    streamed = 0;
                }
                stages.push(Stage { ops, end: End::Project(RefCell::new(collector)) });
            }
            Step::Create(_) | Step::Merge(_) | Step::Set(_) | Step::Delete { .. } => {
                streamed = 0;
                let ops = std::mem::take(&mut ops);
                stages.push(Stage { ops, end: End::Write(step, RefCell::default()) });
            }
        }
    }
    if !ops.is_empty() {
        stages.push(Stage { ops, end: End::Nothing });
    }
    Ok(stages)
}

fn operators<'r>(run: &Run<'r>, step: &'r Step) -> Result<Vec<Op<'r>>> {
    match step {
        Step::Match(pattern) => plan::clause(run, pattern),
        Step::Unwind { list, slot } => Ok(vec![Op::Unwind { list, slot: *slot }]),
        _ => Ok(Vec::new()),
    }
}

struct Pipeline<'a, 'r> {
    run: &'a Run<'r>,
    stages: Vec<Stage<'r>>,
}

impl<'r> Pipeline<'_, 'r> {
    /// A row comes to a stage, or out of the last.
    fn push(&self, at: usize, row: &mut Row, out: &mut Sink<'_>) -> Result<Flow> {
        let Some(stage) = self.stages.get(at) else { return out(row) };
        exec::exec(self.run, &stage.ops, row, &mut |row| self.finish(at, row, out))
    }

    /// A row has passed all operators of a stage.
    fn finish(&self, at: usize, row: &mut Row, out: &mut Sink<'_>) -> Result<Flow> {
        self.run.budget.step()?;
        match &self.stages[at].end {
            End::Nothing => out(row),
            End::Write(_, rows) | End::Pause(rows) => {
                self.run.budget.keep(row_held(row))?;
                rows.borrow_mut().push(row.clone());
                Ok(Flow::Continue)
            }
            End::Project(collector) => {
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

    /// Every row has come to a stage: what it held back goes on.
    fn drain(&self, at: usize, before: &Row, flow: Flow, out: &mut Sink<'_>) -> Result<Flow> {
        let (slots, rows): (Option<&[Slot]>, Vec<Row>) = match &self.stages[at].end {
            End::Nothing => return Ok(flow),
            End::Project(collector) => {
                let mut collector = collector.borrow_mut();
                if !collector.is_barrier() {
                    return Ok(flow);
                }
                let rows = collector.finish(self.run, before)?;
                (Some(collector.kept()), rows)
            }
            End::Pause(rows) => (None, rows.take()),
            End::Write(step, rows) => {
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
