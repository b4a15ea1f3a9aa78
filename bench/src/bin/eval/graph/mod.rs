//! Evaluates the edges of the code graph against the indexes of `scip-python` and
//! `scip-typescript`, which resolve names with a type checker.

mod checkout;
mod class_head;
mod ground_truth;
mod indexers;
mod scip;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use isolith_types::{Certainty, CodeEdge, CodeNode, DefinitionKind, EdgeKind};

use self::checkout::Checkout;
use self::ground_truth::{GroundTruth, Location};
use self::indexers::{Indexer, Indexers};

#[derive(Args)]
pub(super) struct Options {
    /// Git repositories in Python
    #[arg(long, value_name = "FOLDER", num_args = 1..)]
    python: Vec<PathBuf>,
    /// Git repositories in TypeScript that need no installed packages
    #[arg(long, value_name = "FOLDER", num_args = 1..)]
    typescript: Vec<PathBuf>,
    /// Print the wrong and missing edges of this kind: calls, imports, inherits
    #[arg(long, value_name = "KIND")]
    differences: Option<String>,
}

/// The kinds of edges that are compared.
const KINDS: [&str; 3] = ["calls", "imports", "inherits"];

pub(super) fn run(options: &Options) -> Result<()> {
    ensure!(
        !options.python.is_empty() || !options.typescript.is_empty(),
        "pass repositories with --python or --typescript"
    );
    let indexers = Indexers::installed()?;
    println!(
        "repository            revision   files  kind      edges  exact  unjudged  precision  recall"
    );
    for (indexer, folders) in
        [(Indexer::Python, &options.python), (Indexer::TypeScript, &options.typescript)]
    {
        for folder in folders {
            compare(&indexers, indexer, folder, options.differences.as_deref())
                .with_context(|| format!("{}", folder.display()))?;
        }
    }
    Ok(())
}

fn compare(
    indexers: &Indexers,
    indexer: Indexer,
    repository: &Path,
    differences: Option<&str>,
) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let folder = scratch.path().join("checkout");
    let clone = Command::new("git")
        .args(["clone", "--quiet", "--shared"])
        .args([repository, &folder])
        .status()?;
    ensure!(clone.success(), "git cannot clone it");
    let list = git(&folder, &["ls-files"])?;
    let paths: Vec<String> = list.lines().map(str::to_owned).collect();
    let revision = git(&folder, &["rev-parse", "--short=9", "HEAD"])?;
    let index = indexers.index(indexer, &folder)?;
    let checkout = Checkout::read(&folder, &paths)?;
    let text = |path: &str| {
        let text = std::fs::read_to_string(folder.join(path)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    };
    let truth =
        ground_truth::ground_truth(&index, &text, &|location| is_definition(&checkout, location));
    let ours = edges(&checkout, &truth);
    let exact = exact(&checkout, &truth);
    let name = repository.components().rev().map(|part| part.as_os_str().to_string_lossy());
    let name = name.into_iter().find(|part| part != "repo" && part != ".git").unwrap_or_default();
    for ((kind, ours), exact) in KINDS.iter().zip(&ours).zip(&exact) {
        let unjudged =
            ours.iter().filter(|(edge, judged)| !**judged && !exact.contains(edge)).count();
        let ours: BTreeSet<Edge> = ours
            .iter()
            .filter(|(edge, judged)| **judged || exact.contains(edge))
            .map(|(edge, _)| edge.clone())
            .collect();
        let right = ours.intersection(exact).count() as f64;
        println!(
            "{name:<21} {:<10} {:>5}  {kind:<8} {:>6} {:>6} {unjudged:>9} {:>10.3} {:>7.3}",
            revision.trim(),
            truth.files.len(),
            ours.len(),
            exact.len(),
            right / ours.len().max(1) as f64,
            right / exact.len().max(1) as f64,
        );
        if differences == Some(*kind) {
            ours.difference(exact).for_each(|edge| println!("  wrong   {}", shown(edge)));
            exact.difference(&ours).for_each(|edge| println!("  missing {}", shown(edge)));
        }
    }
    Ok(())
}

/// An edge, from one location to another.
type Edge = (Location, Location);

fn shown(((from, line), (to, at)): &Edge) -> String {
    format!("{from}:{line} -> {to}:{at}")
}

/// Our resolved edges between files of the index, in the order of [`KINDS`], each with whether the
/// index can judge it.
fn edges(checkout: &Checkout, truth: &GroundTruth) -> [BTreeMap<Edge, bool>; 3] {
    let mut sets: [BTreeMap<Edge, bool>; 3] = Default::default();
    for (path, edges) in checkout.edges() {
        for edge in edges.iter().filter(|edge| edge.certainty == Certainty::Resolved) {
            let known = truth.files.contains(&path) && truth.files.contains(&edge.to.path);
            let Some(set) = set_of(edge).filter(|_| known) else { continue };
            let from = match edge.kind {
                EdgeKind::Calls => checkout.enclosing(&path, edge.line),
                EdgeKind::Imports => 0,
                _ => {
                    let node = CodeNode { path: path.clone(), definition: edge.from };
                    checkout.definition(&node).map_or(0, |one| one.line)
                }
            };
            let line = (path.clone(), edge.line);
            let judged = match edge.kind {
                EdgeKind::Imports if edge.to.definition.is_none() => truth.knows_import(&line),
                _ => truth.knows(&line, &checkout.names(&path, &edge.to)),
            };
            let from = truth.first(&checkout.first(&(path.clone(), from)));
            let to = truth.first(&location(checkout, &edge.to));
            *sets[set].entry((from, to)).or_default() |= judged;
        }
    }
    sets
}

fn set_of(edge: &CodeEdge) -> Option<usize> {
    match edge.kind {
        EdgeKind::Calls => Some(0),
        EdgeKind::Imports => Some(1),
        EdgeKind::Inherits | EdgeKind::Implements => Some(2),
        _ => None,
    }
}

/// The definition of a node; for a constructor, that of its class.
fn location(checkout: &Checkout, node: &CodeNode) -> Location {
    let mut node = node.clone();
    if let Some(one) = checkout.definition(&node)
        && one.kind == DefinitionKind::Constructor
    {
        node.definition = one.parent;
    }
    let line = checkout.definition(&node).map_or(0, |one| one.line);
    checkout.first(&(node.path, line))
}

/// The exact edges; calls start at the enclosing function or class.
fn exact(checkout: &Checkout, truth: &GroundTruth) -> [BTreeSet<Edge>; 3] {
    let calls = truth.calls.iter().map(|((path, line), to)| {
        let from = checkout.first(&(path.clone(), checkout.enclosing(path, *line)));
        (truth.first(&from), to.clone())
    });
    [calls.collect(), truth.imports.clone(), truth.bases.clone()]
}

fn is_definition(checkout: &Checkout, (path, line): &Location) -> bool {
    let graph = checkout.files.get(path);
    graph.is_some_and(|graph| graph.definitions.iter().any(|one| one.line == *line))
}

fn git(folder: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output()?;
    ensure!(output.status.success(), "git {arguments:?}: {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
