//! Executes projections: grouping, `DISTINCT`, sorting and limits.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::rc::Rc;

use isolith_types::{FastMap, FastSet};

use crate::error::{Class, Detail, Error, Result};
use crate::functions::Accumulator;
use crate::ir::{Ex, Project, Slot};
use crate::value::{GroupKey, Value, order};

use super::{Flow, Row, Run, eval, row_held, sorted};

/// The state of one projection.
pub(super) struct Collector<'r> {
    project: &'r Project,
    /// The slot that holds how many rows a row represents.
    weight: Option<Slot>,
    eager: bool,
    /// Whether every row is a group of its own.
    all_new: bool,
    /// Publishes the minimum count that a row needs to be in the result.
    least: Option<Rc<Cell<i64>>>,
    seen: FastSet<GroupKey>,
    skip: u64,
    limit: u64,
    passed: u64,
    /// The groups and their indexes, in order of first appearance.
    groups: FastMap<GroupKey, usize>,
    /// The aggregates of all groups, group by group.
    accumulators: Vec<Accumulator>,
    /// The sort keys of the current row.
    keys: Vec<Value>,
    rows: Vec<HeldRow>,
    /// The sort keys of the last row that can still be in the result.
    worst: Option<Vec<Value>>,
    /// The approximate bytes counted for all this.
    kept: usize,
}

/// A row with its sort keys; its number makes sorting stable.
struct HeldRow {
    keys: Vec<Value>,
    number: usize,
    values: Vec<Value>,
}

/// The outcome of a row that is not held back.
pub(super) struct Pass {
    pub(super) emit: bool,
    pub(super) flow: Flow,
}

impl<'r> Collector<'r> {
    pub(super) fn new(
        run: &Run<'r>,
        project: &'r Project,
        weight: Option<Slot>,
        eager: bool,
    ) -> Result<Self> {
        Ok(Collector {
            project,
            weight,
            eager,
            all_new: false,
            least: None,
            seen: FastSet::default(),
            skip: bound(run, &project.skip, "SKIP")?.unwrap_or(0),
            limit: bound(run, &project.limit, "LIMIT")?.unwrap_or(u64::MAX),
            passed: 0,
            groups: FastMap::default(),
            accumulators: Vec::new(),
            keys: Vec::new(),
            rows: Vec::new(),
            worst: None,
            kept: 0,
        })
    }

    /// Declares that every row will be a group of its own.
    pub(super) fn expect_distinct_groups(&mut self) {
        self.all_new = true;
    }

    /// Declares that only the highest counts are wanted; `least` receives the current minimum.
    pub(super) fn report_minimum_to(&mut self, least: Rc<Cell<i64>>) {
        self.least = Some(least);
    }

    /// Whether rows are held back until the last one has arrived.
    pub(super) fn is_barrier(&self) -> bool {
        self.eager || self.project.aggregates.is_some() || !self.project.order.is_empty()
    }

    pub(super) fn kept(&self) -> &'r [Slot] {
        &self.project.keep
    }

    /// Handles a row that is passed on at once or dropped.
    pub(super) fn stream(&mut self, run: &Run<'r>, row: &mut Row) -> Result<Pass> {
        let stop = Pass { emit: false, flow: Flow::Stop };
        if self.limit == 0 || self.passed >= self.skip.saturating_add(self.limit) {
            return Ok(stop);
        }
        self.evaluate(run, &self.project.pre, row)?;
        if !self.is_new(run, row)? {
            return Ok(Pass { emit: false, flow: Flow::Continue });
        }
        self.passed += 1;
        let last = self.passed >= self.skip.saturating_add(self.limit);
        let mut emit = self.passed > self.skip;
        if let (true, Some(filter)) = (emit, &self.project.filter) {
            emit = is_true(&eval(run, row, filter)?)?;
        }
        Ok(Pass { emit, flow: if last { Flow::Stop } else { Flow::Continue } })
    }

    /// Holds a row back.
    pub(super) fn collect(&mut self, run: &Run<'r>, row: &mut Row) -> Result<()> {
        self.evaluate(run, &self.project.pre, row)?;
        match &self.project.aggregates {
            Some(_) => self.group(run, row),
            None => self.hold(run, row),
        }
    }

    fn evaluate(&self, run: &Run<'r>, items: &'r [(Ex, Slot)], row: &mut Row) -> Result<()> {
        for (ex, slot) in items {
            if !matches!(ex, Ex::Slot(from) if from == slot) {
                row[*slot] = eval(run, row, ex)?;
            }
        }
        Ok(())
    }

    fn keep(&mut self, run: &Run<'r>, size: usize) -> Result<()> {
        self.kept += size;
        run.budget.keep(size)
    }

    fn is_new(&mut self, run: &Run<'r>, row: &Row) -> Result<bool> {
        if !self.project.distinct {
            return Ok(true);
        }
        let key = GroupKey::of(self.project.columns.iter().map(|&slot| &row[slot]));
        run.budget.steps(key.weight())?;
        let held = key.held();
        let new = self.seen.insert(key);
        if new {
            self.keep(run, held)?;
        }
        Ok(new)
    }

    fn group(&mut self, run: &Run<'r>, row: &mut Row) -> Result<()> {
        let Some(aggregates) = &self.project.aggregates else { return Ok(()) };
        let weight = match self.weight.map(|slot| &row[slot]) {
            Some(Value::Integer(weight)) => *weight,
            _ => 1,
        };
        if self.all_new {
            self.accumulators.clear();
            self.accumulators.extend(aggregates.iter().map(Accumulator::new));
            self.accumulate(run, row, 0, weight)?;
            for (at, aggregate) in aggregates.iter().enumerate() {
                row[aggregate.slot] = self.accumulators[at].finish(run, &mut self.kept)?;
            }
            self.evaluate(run, &self.project.post, row)?;
            return self.hold(run, row);
        }
        let key = GroupKey::of(self.project.pre.iter().map(|(_, slot)| &row[*slot]));
        run.budget.steps(key.weight())?;
        let count = self.groups.len();
        let number = match self.groups.entry(key) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let size = entry.key().held() + 2 * size_of::<Accumulator>() * aggregates.len();
                self.kept += size;
                run.budget.keep(size)?;
                self.accumulators.extend(aggregates.iter().map(Accumulator::new));
                *entry.insert(count)
            }
        };
        self.accumulate(run, row, number * aggregates.len(), weight)
    }

    /// Adds a row to the aggregates of its group.
    fn accumulate(
        &mut self,
        run: &Run<'r>,
        row: &mut Row,
        first: usize,
        weight: i64,
    ) -> Result<()> {
        for (at, aggregate) in self.project.aggregates.iter().flatten().enumerate() {
            let value = match aggregate.arguments.first() {
                Some(ex) => eval(run, row, ex)?,
                None => Value::Boolean(true),
            };
            let second = match aggregate.arguments.get(1) {
                Some(ex) => eval(run, row, ex)?,
                None => Value::Null,
            };
            let accumulator = &mut self.accumulators[first + at];
            accumulator.add(run, value, second, weight, &mut self.kept)?;
        }
        Ok(())
    }

    /// Keeps a row until the last one has arrived, for sorting if requested.
    fn hold(&mut self, run: &Run<'r>, row: &mut Row) -> Result<()> {
        if self.limit == 0 || !self.is_new(run, row)? {
            return Ok(());
        }
        self.keys.clear();
        for (ex, _) in &self.project.order {
            self.keys.push(eval(run, row, ex)?);
        }
        run.budget.steps(self.keys.iter().map(Value::weight).fold(0, usize::saturating_add))?;
        let worse = |worst: &Vec<Value>| self.order(&self.keys, worst) != Ordering::Less;
        if self.worst.as_ref().is_some_and(worse) {
            return Ok(());
        }
        let keys = std::mem::take(&mut self.keys);
        let number = self.passed as usize;
        self.passed += 1;
        let wanted = self.skip.saturating_add(self.limit);
        if keys.is_empty() && number as u64 >= wanted {
            return Ok(());
        }
        let values: Vec<Value> = self.project.keep.iter().map(|&slot| row[slot].clone()).collect();
        let held = row_held(&values) + row_held(&keys);
        self.keep(run, held)?;
        self.rows.push(HeldRow { keys, number, values });
        // Only the first rows are wanted: drop the others from time to time.
        if self.rows.len() as u64 >= wanted.saturating_mul(2).saturating_add(64) {
            self.sort(run)?;
            for row in self.rows.drain(wanted as usize..) {
                let held = row_held(&row.values) + row_held(&row.keys);
                self.kept = self.kept.saturating_sub(held);
                run.budget.release(held);
            }
            self.worst = self.rows.last().map(|row| row.keys.clone());
            if let (Some(least), Some([Value::Integer(count), ..])) =
                (&self.least, self.worst.as_deref())
            {
                least.set(*count);
            }
        }
        Ok(())
    }

    fn order(&self, a: &[Value], b: &[Value]) -> Ordering {
        for ((a, b), (_, descending)) in a.iter().zip(b).zip(&self.project.order) {
            let ordering = if *descending { order(b, a) } else { order(a, b) };
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        Ordering::Equal
    }

    fn sort(&mut self, run: &Run<'r>) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let order = |a: &HeldRow, b: &HeldRow| {
            self.order(&a.keys, &b.keys).then_with(|| a.number.cmp(&b.number))
        };
        let weight =
            |row: &HeldRow| row.keys.iter().map(Value::weight).fold(0, usize::saturating_add);
        self.rows = sorted(run, rows, order, weight)?;
        Ok(())
    }

    /// Called after the last row: returns the resulting rows as the values of the kept slots.
    pub(super) fn finish(&mut self, run: &Run<'r>, before: &Row) -> Result<Vec<Vec<Value>>> {
        let mut row = before.clone();
        self.finish_groups(run, &mut row)?;
        if !self.project.order.is_empty() {
            self.sort(run)?;
        }
        let skip = usize::try_from(self.skip).unwrap_or(usize::MAX);
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let rows = std::mem::take(&mut self.rows).into_iter().skip(skip).take(limit);
        let mut result = Vec::new();
        for HeldRow { values, .. } in rows {
            run.budget.step()?;
            if let Some(filter) = &self.project.filter {
                for (slot, value) in self.project.keep.iter().zip(&values) {
                    row[*slot] = value.clone();
                }
                if !is_true(&eval(run, &mut row, filter)?)? {
                    continue;
                }
            }
            result.push(values);
        }
        // The caller counts the resulting rows again.
        run.budget.release(std::mem::take(&mut self.kept));
        for values in &result {
            run.budget.keep(row_held(values))?;
        }
        Ok(result)
    }

    /// Finishes the groups, in order of first appearance.
    fn finish_groups(&mut self, run: &Run<'r>, row: &mut Row) -> Result<()> {
        let Some(aggregates) = self.project.aggregates.as_ref().filter(|_| !self.all_new) else {
            return Ok(());
        };
        if self.groups.is_empty() && self.project.pre.is_empty() {
            // Aggregates over no rows have a value, too.
            self.accumulators.extend(aggregates.iter().map(Accumulator::new));
            self.groups.insert(GroupKey::Many(Vec::new()), 0);
        }
        let mut groups = vec![GroupKey::One(Value::Null); self.groups.len()];
        for (key, number) in std::mem::take(&mut self.groups) {
            groups[number] = key;
        }
        for (number, key) in groups.into_iter().enumerate() {
            run.budget.step()?;
            for ((_, slot), value) in self.project.pre.iter().zip(key.values()) {
                row[*slot] = value.clone();
            }
            let first = number * aggregates.len();
            for (at, aggregate) in aggregates.iter().enumerate() {
                let accumulator = &mut self.accumulators[first + at];
                row[aggregate.slot] = accumulator.finish(run, &mut self.kept)?;
            }
            self.evaluate(run, &self.project.post, row)?;
            self.hold(run, row)?;
        }
        Ok(())
    }
}

/// Whether a filter's value is true; null counts as false.
pub(super) fn is_true(value: &Value) -> Result<bool> {
    match value {
        Value::Boolean(value) => Ok(*value),
        Value::Null => Ok(false),
        other => Err(Error::type_mismatch(format!(
            "a filter needs a boolean, not {}",
            other.type_name()
        ))),
    }
}

/// Evaluates the operand of `SKIP` or `LIMIT`.
fn bound<'r>(run: &Run<'r>, ex: &'r Option<Ex>, clause: &str) -> Result<Option<u64>> {
    let Some(ex) = ex else { return Ok(None) };
    let wrong = |detail, value: &Value| {
        let message = format!("{clause} needs a non-negative integer, not {}", value.type_name());
        Err(Error::run(Class::SyntaxError, detail, message))
    };
    match eval(run, &mut Vec::new(), ex)? {
        Value::Integer(number) => match u64::try_from(number) {
            Ok(number) => Ok(Some(number)),
            Err(_) => wrong(Detail::NegativeIntegerArgument, &Value::Integer(number)),
        },
        other => wrong(Detail::InvalidArgumentType, &other),
    }
}
