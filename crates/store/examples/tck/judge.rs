//! Whether a scenario's answers are the expected ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, bail};
use isolith_graph::{Datum, Error, Phase, Procedure};

use super::feature::{Scenario, Step};
use super::subject::{Answer, Subject};
use super::value;

/// How a scenario ended.
pub(super) enum Verdict {
    Passed,
    /// The query asks for something that is refused by name.
    Refused(String),
    Wrong(String),
}

/// Plays a scenario on an empty graph.
pub(super) fn judge(
    scenario: &Scenario,
    graphs: &Path,
    graph: &mut dyn Subject,
) -> Result<Verdict> {
    let mut parameters = BTreeMap::new();
    let mut answer: Option<Result<Answer, Error>> = None;
    let mut before = State::default();
    for step in &scenario.steps {
        let line = step.line.trim_end_matches(':');
        if let Some(name) = line.strip_prefix("the ").and_then(|rest| rest.strip_suffix(" graph")) {
            let script = graphs.join(name).join(format!("{name}.cypher"));
            let text = std::fs::read_to_string(&script)
                .with_context(|| format!("{} comes with the kit", script.display()))?;
            graph.ask(&text, &BTreeMap::new())?;
        } else if line == "having executed" {
            if let Err(error) = graph.ask(&step.text, &parameters) {
                return Ok(failed(&error, "in the preparation"));
            }
        } else if let Some(signature) = line.strip_prefix("there exists a procedure ") {
            if !graph.define(procedure(signature, &step.table)?) {
                return Ok(Verdict::Refused("procedures that only the kit has".to_owned()));
            }
        } else if line.starts_with("parameters are") {
            for row in &step.table {
                parameters.insert(row[0].clone(), value::parse(&row[1])?);
            }
        } else if line == "executing query" || line == "executing control query" {
            before = State::of(graph)?;
            answer = Some(graph.ask(&step.text, &parameters));
        } else if let Some(verdict) = compare(step, line, &answer, graph, &before)? {
            return Ok(verdict);
        }
    }
    Ok(Verdict::Passed)
}

/// A procedure with a signature such as `a.b(in :: STRING?) :: (out :: INTEGER?)`.
fn procedure(signature: &str, table: &[Vec<String>]) -> Result<Procedure> {
    let (head, outputs) = signature.split_once(") :: (").context("no signature")?;
    let (name, inputs) = head.split_once('(').context("no inputs")?;
    let typed = |text: &'_ str| -> Vec<(String, String)> {
        let columns = text.trim_end().trim_end_matches([':', ' ', ')']).split(", ");
        let column = |column: &str| {
            let (name, kind) = column.split_once(" :: ")?;
            Some((name.to_owned(), kind.trim_end_matches('?').to_owned()))
        };
        columns.filter_map(column).collect()
    };
    let (inputs, outputs) = (typed(inputs), typed(outputs));
    let mut rows = Vec::new();
    for row in table.iter().skip(1) {
        rows.push(row.iter().map(|cell| value::parse(cell)).collect::<Result<_>>()?);
    }
    let inputs: Vec<_> = inputs.iter().map(|(name, kind)| (&**name, &**kind)).collect();
    let outputs: Vec<_> = outputs.iter().map(|(name, kind)| (&**name, &**kind)).collect();
    Ok(Procedure::of_table(name, &inputs, &outputs, rows))
}

fn failed(error: &Error, when: &str) -> Verdict {
    match error {
        Error::Unsupported { what, .. } => Verdict::Refused(what.clone()),
        error => Verdict::Wrong(format!("{error} {when}")),
    }
}

/// Compares what a step expects with what came; `None` if it is the same.
fn compare(
    step: &Step,
    line: &str,
    answer: &Option<Result<Answer, Error>>,
    graph: &mut dyn Subject,
    before: &State,
) -> Result<Option<Verdict>> {
    let nothing = ["an empty graph", "any graph"];
    if nothing.contains(&line) {
        return Ok(None);
    }
    let Some(answer) = answer else { bail!("nothing was asked before {line:?}") };
    if line.contains(" should be raised at ") {
        return Ok(compare_error(line, answer));
    }
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Ok(Some(failed(error, ""))),
    };
    if line == "the result should be empty" {
        let count = answer.rows.len();
        return Ok((count > 0).then(|| Verdict::Wrong(format!("{count} rows and not none"))));
    }
    if line.starts_with("the result should be") {
        return compare_rows(step, line, answer);
    }
    let mut expected: BTreeMap<String, i64> = BTreeMap::new();
    if line.starts_with("the side effects should be") {
        for row in &step.table {
            expected.insert(row[0].clone(), row[1].parse()?);
        }
    } else if line != "no side effects" {
        bail!("the step {line:?} is not known");
    }
    let found = before.changes(&State::of(graph)?);
    Ok((found != expected)
        .then(|| Verdict::Wrong(format!("side effects {found:?} and not {expected:?}"))))
}

fn compare_error(line: &str, answer: &Result<Answer, Error>) -> Option<Verdict> {
    let expected = line.trim_start_matches("a ").trim_start_matches("an ");
    let found = match answer {
        Ok(answer) => format!("{} rows", answer.rows.len()),
        Err(Error::Query(problem)) => {
            let any = expected.contains("at any time");
            let phase = match problem.phase {
                _ if any => "any time",
                Phase::Compile => "compile time",
                Phase::Run => "runtime",
            };
            let detail = if expected.ends_with('*') {
                "*".to_owned()
            } else {
                format!("{:?}", problem.detail)
            };
            format!("{:?} should be raised at {phase}: {detail}", problem.class)
        }
        Err(error) => return Some(failed(error, "")),
    };
    (found != expected).then(|| Verdict::Wrong(format!("{found}, not {expected}")))
}

fn compare_rows(step: &Step, line: &str, answer: &Answer) -> Result<Option<Verdict>> {
    let Some((header, rows)) = step.table.split_first() else { bail!("no table under {line:?}") };
    if *header != answer.columns {
        let found = format!("columns {:?} and not {header:?}", answer.columns);
        return Ok(Some(Verdict::Wrong(found)));
    }
    let sorted = line.contains("ignoring element order");
    let mut expected = Vec::new();
    for row in rows {
        let cells = row.iter().map(|cell| Ok(value::show(&value::parse(cell)?, sorted)));
        expected.push(cells.collect::<Result<Vec<_>>>()?.join(" | "));
    }
    let show = |row: &Vec<Datum>| {
        row.iter().map(|cell| value::show(cell, sorted)).collect::<Vec<_>>().join(" | ")
    };
    let mut found: Vec<String> = answer.rows.iter().map(show).collect();
    if !line.contains("in order") {
        expected.sort();
        found.sort();
    }
    Ok((found != expected).then(|| Verdict::Wrong(format!("rows {found:?} and not {expected:?}"))))
}

/// What a graph holds, as far as side effects are concerned.
#[derive(Default)]
struct State {
    nodes: BTreeSet<i64>,
    relationships: BTreeSet<i64>,
    labels: BTreeSet<String>,
    properties: BTreeSet<String>,
}

impl State {
    fn of(graph: &mut dyn Subject) -> Result<Self> {
        let mut state = State::default();
        let nothing = BTreeMap::new();
        for row in graph.ask("MATCH (n) RETURN n", &nothing)?.rows {
            let Datum::Node(node) = &row[0] else { continue };
            state.nodes.insert(node.id);
            state.labels.extend(node.labels.iter().cloned());
            for (key, value) in &node.properties {
                state.properties.insert(format!(
                    "n{} {key} {}",
                    node.id,
                    value::show(value, false)
                ));
            }
        }
        for row in graph.ask("MATCH ()-[r]->() RETURN r", &nothing)?.rows {
            let Datum::Relationship(edge) = &row[0] else { continue };
            state.relationships.insert(edge.id);
            for (key, value) in &edge.properties {
                state.properties.insert(format!(
                    "r{} {key} {}",
                    edge.id,
                    value::show(value, false)
                ));
            }
        }
        Ok(state)
    }

    fn changes(&self, after: &State) -> BTreeMap<String, i64> {
        let mut changes = BTreeMap::new();
        let mut note = |name: &str, count: usize| {
            if count > 0 {
                changes.insert(name.to_owned(), count as i64);
            }
        };
        note("+nodes", after.nodes.difference(&self.nodes).count());
        note("-nodes", self.nodes.difference(&after.nodes).count());
        note("+relationships", after.relationships.difference(&self.relationships).count());
        note("-relationships", self.relationships.difference(&after.relationships).count());
        note("+labels", after.labels.difference(&self.labels).count());
        note("-labels", self.labels.difference(&after.labels).count());
        note("+properties", after.properties.difference(&self.properties).count());
        note("-properties", self.properties.difference(&after.properties).count());
        changes
    }
}
