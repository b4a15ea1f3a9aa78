//! openCypher's compatibility kit, run on a graph of ours.

mod feature;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use isolith_graph::{Budget, Datum, Error, Flow, GraphMut, MemoryGraph, Phase, prepare};

use feature::{Scenario, Step};

/// Runs all scenarios of a folder and says which do not pass, and how many do, folder by
/// folder.
pub(crate) fn run(features: &Path) -> Result<()> {
    run_on(features, &|| Ok(MemoryGraph::new()))
}

/// How a scenario ended.
enum Verdict {
    Passed,
    /// The query asks for something that is refused by name.
    Refused(String),
    Wrong(String),
}

#[derive(Default)]
struct Tally {
    passed: usize,
    refused: usize,
    wrong: usize,
}

fn run_on<G: GraphMut>(features: &Path, make: &dyn Fn() -> Result<G>) -> Result<()> {
    let mut files = Vec::new();
    collect(features, &mut files)?;
    files.sort();
    let graphs = features.parent().unwrap_or(features).join("graphs");
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let (mut plain, mut temporal) = (Tally::default(), Tally::default());
    for file in &files {
        let content = std::fs::read_to_string(file)?;
        let folder = file.parent().and_then(|folder| folder.strip_prefix(features).ok());
        let folder = folder.map(|folder| folder.display().to_string()).unwrap_or_default();
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        for scenario in feature::scenarios(&content) {
            let verdict = judge(&scenario, &graphs, make)?;
            // What needs dates and times is counted apart, wherever it stands.
            let needs = |verdict: &Verdict| matches!(verdict, Verdict::Refused(why) if why.contains("temporal"));
            let is_temporal = folder.ends_with("temporal") || needs(&verdict);
            let total = if is_temporal { &mut temporal } else { &mut plain };
            let tally = tallies.entry(folder.clone()).or_default();
            for tally in [tally, total] {
                match &verdict {
                    Verdict::Passed => tally.passed += 1,
                    Verdict::Refused(_) => tally.refused += 1,
                    Verdict::Wrong(_) => tally.wrong += 1,
                }
            }
            match verdict {
                Verdict::Refused(why) if !is_temporal => {
                    println!("refused  {stem} {}: {why}", scenario.name);
                }
                Verdict::Wrong(why) => println!("WRONG    {stem} {}: {why}", scenario.name),
                _ => {}
            }
        }
    }
    println!("\n{:44} passed refused wrong", "folder");
    for (folder, tally) in &tallies {
        println!("{folder:44} {:6} {:7} {:5}", tally.passed, tally.refused, tally.wrong);
    }
    for (name, tally) in [("without temporal", &plain), ("temporal", &temporal)] {
        let all = tally.passed + tally.refused + tally.wrong;
        let rate = 100.0 * tally.passed as f64 / all.max(1) as f64;
        println!(
            "{name:44} {:6} {:7} {:5}  {rate:.2} % of {all}",
            tally.passed, tally.refused, tally.wrong
        );
    }
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("{} is not a folder of features", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "feature") {
            files.push(path);
        }
    }
    Ok(())
}

/// The answer to a query.
struct Answer {
    columns: Vec<String>,
    rows: Vec<Vec<Datum>>,
}

fn ask(
    graph: &dyn GraphMut,
    text: &str,
    parameters: &BTreeMap<String, Datum>,
) -> Result<Answer, Error> {
    let query = prepare(text)?;
    let budget = Budget::unbounded().with_deadline(Instant::now() + Duration::from_secs(20));
    let mut rows = Vec::new();
    query.run_mut(graph, parameters, &budget, &mut |row| {
        rows.push(row);
        Ok(Flow::Continue)
    })?;
    Ok(Answer { columns: query.columns().to_vec(), rows })
}

fn judge<G: GraphMut>(
    scenario: &Scenario,
    graphs: &Path,
    make: &dyn Fn() -> Result<G>,
) -> Result<Verdict> {
    let graph = make()?;
    let mut parameters = BTreeMap::new();
    let mut answer: Option<Result<Answer, Error>> = None;
    let mut before = State::default();
    for step in &scenario.steps {
        let line = step.line.trim_end_matches(':');
        if let Some(name) = line.strip_prefix("the ").and_then(|rest| rest.strip_suffix(" graph")) {
            let script = graphs.join(name).join(format!("{name}.cypher"));
            let text = std::fs::read_to_string(&script)?;
            ask(&graph, &text, &BTreeMap::new())?;
        } else if line == "having executed" {
            if let Err(error) = ask(&graph, &step.text, &parameters) {
                return Ok(failed(&error, "in the preparation"));
            }
        } else if line.starts_with("parameters are") {
            for row in &step.table {
                parameters.insert(row[0].clone(), value::parse(&row[1])?);
            }
        } else if line == "executing query" || line == "executing control query" {
            before = State::of(&graph)?;
            answer = Some(ask(&graph, &step.text, &parameters));
        } else if let Some(verdict) = compare(step, line, &answer, &graph, &before)? {
            return Ok(verdict);
        }
    }
    Ok(Verdict::Passed)
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
    graph: &dyn GraphMut,
    before: &State,
) -> Result<Option<Verdict>> {
    let nothing = ["an empty graph", "any graph"];
    if nothing.contains(&line) || line.starts_with("there exists a procedure") {
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
    fn of(graph: &dyn GraphMut) -> Result<Self> {
        let mut state = State::default();
        let nothing = BTreeMap::new();
        for row in ask(graph, "MATCH (n) RETURN n", &nothing)?.rows {
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
        for row in ask(graph, "MATCH ()-[r]->() RETURN r", &nothing)?.rows {
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
