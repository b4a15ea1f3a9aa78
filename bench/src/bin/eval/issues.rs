//! Real bug reports, asked whole: are the files and lines that the fix changed among the hits?

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use clap::Args;
use isolith_engine::{
    CodeFilter, CodeHit, CodeSearch, CodeWeights, Engine, EngineOptions, IndexOptions, StorePlace,
};
use serde::Deserialize;

use crate::cross_validation::{CrossValidation, cross_validate};
use crate::default_data;
use crate::score::mean;

/// Hits that count.
const DEPTHS: [usize; 3] = [1, 5, 10];

/// Further places of a hit that count.
const FURTHER: usize = 2;

/// Characters of a report that are asked.
const LONGEST: usize = 15_000;

#[derive(Args)]
pub(crate) struct Options {
    /// Bare clones of the projects, as OWNER+NAME/repo
    mirrors: PathBuf,
    /// The file with the reports
    #[arg(long)]
    data: Option<PathBuf>,
    /// Only this project; may be repeated
    #[arg(long)]
    only: Vec<String>,
    /// List the reports whose files are not all among the first five
    #[arg(long)]
    misses: bool,
    /// Other constants of the ranking, as JSON
    #[arg(long, value_name = "JSON")]
    weights: Option<String>,
    /// Also score these constants, as JSON; may be repeated. Cross-validates the choice between
    /// them and the defaults by project
    #[arg(long = "try", value_name = "JSON")]
    tries: Vec<String>,
    /// Keep an index per report in this folder, and use those that are there
    #[arg(long, value_name = "DIR")]
    stores: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Report {
    repo: String,
    commit: String,
    text: String,
    files: Vec<String>,
    #[serde(default)]
    lines: BTreeMap<String, Vec<(u32, u32)>>,
}

/// Whether one report's files and lines were among the first hits, for each of [`DEPTHS`].
struct Outcome {
    repo: String,
    files: [bool; DEPTHS.len()],
    lines: [bool; DEPTHS.len()],
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let data = options.data.clone().unwrap_or_else(|| default_data("issues").join("issues.jsonl"));
    let lines = std::fs::read_to_string(&data).with_context(|| data.display().to_string())?;
    let reports: Vec<Report> =
        lines.lines().map(serde_json::from_str).collect::<Result<_, _>>().context("reports")?;
    let scratch = tempfile::tempdir()?;
    let stores = options.stores.clone().unwrap_or_else(|| scratch.path().to_owned());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let default: CodeWeights = match &options.weights {
        Some(json) => serde_json::from_str(json).context("--weights")?,
        None => CodeWeights::default(),
    };
    let mut tried = vec![default];
    for json in &options.tries {
        tried.push(serde_json::from_str(json).with_context(|| format!("--try {json}"))?);
    }
    let outcomes = runtime.block_on(ask_all(options, &reports, &stores, &tried))?;
    ensure!(!outcomes[0].is_empty(), "no clones in {}", options.mirrors.display());
    print_table(&outcomes[0]);
    if !options.tries.is_empty() {
        compare(&options.tries, &outcomes);
    }
    Ok(())
}

/// Asks every report with each of the constants.
async fn ask_all(
    options: &Options,
    reports: &[Report],
    stores: &Path,
    tried: &[CodeWeights],
) -> Result<Vec<Vec<Outcome>>> {
    let mut outcomes: Vec<Vec<Outcome>> = tried.iter().map(|_| Vec::new()).collect();
    for (number, report) in reports.iter().enumerate() {
        let mirror = options.mirrors.join(report.repo.replace('/', "+")).join("repo");
        let wanted = options.only.is_empty() || options.only.contains(&report.repo);
        if !wanted || !mirror.is_dir() {
            continue;
        }
        let engine = indexed(report, &mirror, &stores.join(number.to_string())).await?;
        for (weights, outcomes) in tried.iter().zip(&mut outcomes) {
            let filter = CodeFilter {
                languages: vec!["python".to_owned()],
                tests: Some(false),
                ..CodeFilter::default()
            };
            let text: String = report.text.chars().take(LONGEST).collect();
            let search = CodeSearch {
                weights: weights.clone(),
                filter,
                ..CodeSearch::new(&text, DEPTHS[2] as u32)
            };
            let found = engine.search_code(&search).await?.hits;
            outcomes.push(Outcome::of(report, &found));
        }
        let last = outcomes[0].last().filter(|outcome| options.misses && !outcome.files[1]);
        if last.is_some() {
            let title = report.text.lines().next().unwrap_or_default();
            println!("{number} {}: {title}\n    wanted {:?}", report.repo, report.files);
        }
        engine.close().await;
    }
    Ok(outcomes)
}

/// The project as it was before the fix, indexed.
async fn indexed(report: &Report, mirror: &Path, store: &Path) -> Result<Engine> {
    let is_there = store.join("truth.sqlite").exists();
    let how = EngineOptions { create: true, ..EngineOptions::default() };
    let engine = Engine::open(&StorePlace::unchecked(store.to_owned()), how)?;
    if !is_there {
        let tree = tempfile::tempdir()?;
        let archive = Command::new("git")
            .arg(format!("--git-dir={}", mirror.display()))
            .args(["archive", "--format=tar", "-o"])
            .arg(tree.path().join("tree.tar"))
            .arg(&report.commit)
            .status()?;
        ensure!(archive.success(), "{}: no commit {}", report.repo, report.commit);
        let unpacked =
            Command::new("tar").args(["-xf", "tree.tar"]).current_dir(tree.path()).status()?;
        ensure!(unpacked.success(), "{}: cannot unpack {}", report.repo, report.commit);
        std::fs::remove_file(tree.path().join("tree.tar"))?;
        let options = IndexOptions::new(tree.path().to_owned());
        engine.index(&options, Arc::new(|_| {})).await?;
    }
    Ok(engine)
}

impl Outcome {
    fn of(report: &Report, hits: &[CodeHit]) -> Self {
        let has_files = |depth: usize| {
            let shown = &hits[..hits.len().min(depth)];
            report.files.iter().all(|file| shown.iter().any(|hit| hit.path == *file))
        };
        let has_lines = |depth: usize| hits.iter().take(depth).any(|hit| shows_change(report, hit));
        Self {
            repo: report.repo.clone(),
            files: DEPTHS.map(has_files),
            lines: DEPTHS.map(has_lines),
        }
    }
}

/// Whether a hit shows a line that the fix changed.
fn shows_change(report: &Report, hit: &CodeHit) -> bool {
    let changed = report.lines.get(&hit.path).map(Vec::as_slice).unwrap_or_default();
    let also = hit.also.iter().take(FURTHER).map(|place| (place.start_line, place.end_line));
    std::iter::once((hit.start_line, hit.end_line))
        .chain(also)
        .any(|(start, end)| changed.iter().any(|&(first, last)| start <= last && first <= end))
}

fn print_table(outcomes: &[Outcome]) {
    let mut projects: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    for outcome in outcomes {
        projects.entry(&outcome.repo).or_default().push(outcome);
    }
    for (project, outcomes) in &projects {
        print_row("files", project, outcomes, |it| it.files);
        print_row("lines", project, outcomes, |it| it.lines);
    }
    let all: Vec<&Outcome> = outcomes.iter().collect();
    print_row("files", "all", &all, |it| it.files);
    print_row("lines", "all", &all, |it| it.lines);
}

fn print_row(what: &str, name: &str, outcomes: &[&Outcome], of: fn(&Outcome) -> [bool; 3]) {
    print!("{what} {name:<28} {:>4}", outcomes.len());
    for (at, depth) in DEPTHS.iter().enumerate() {
        let found: Vec<f64> = outcomes.iter().map(|it| f64::from(u8::from(of(it)[at]))).collect();
        print!("  @{depth} {:.3}", mean(&found));
    }
    println!();
}

/// What other constants score, and whether choosing among them would hold elsewhere.
fn compare(tries: &[String], outcomes: &[Vec<Outcome>]) {
    let score = |it: &Outcome| {
        let found = it.files[..2].iter().chain(&it.lines);
        found.map(|found| f64::from(u8::from(*found))).sum::<f64>() / 5.0
    };
    let scores: Vec<BTreeMap<&str, Vec<f64>>> = outcomes
        .iter()
        .map(|outcomes| {
            let mut scores: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
            for outcome in outcomes {
                scores.entry(&outcome.repo).or_default().push(score(outcome));
            }
            scores
        })
        .collect();
    for (json, outcomes) in tries.iter().zip(&outcomes[1..]) {
        println!("\nwith {json}");
        let all: Vec<&Outcome> = outcomes.iter().collect();
        print_row("files", "all", &all, |it| it.files);
        print_row("lines", "all", &all, |it| it.lines);
    }
    let CrossValidation { default, chosen, times } = cross_validate(&scores);
    println!(
        "\nchosen on half of the projects: {chosen:.3} on the other half, default {default:.3}"
    );
    for (json, times) in
        std::iter::once("default").chain(tries.iter().map(String::as_str)).zip(times)
    {
        println!("{json:<38} chosen {times} times");
    }
}
