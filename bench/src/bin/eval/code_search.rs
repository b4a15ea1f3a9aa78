//! Evaluates code search with questions about public repositories at fixed revisions.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use clap::Args;
use isolith_engine::{
    CodeFilter, CodeSearch, CodeWeights, Engine, EngineOptions, IndexOptions, SearchMode,
    StorePlace,
};
use serde::Deserialize;

use crate::cross_validation::{CrossValidation, cross_validate};
use crate::default_data;
use crate::score::{DEPTH, mean, ndcg};

#[derive(Args)]
pub(crate) struct Options {
    /// Folder with the checkouts
    checkouts: PathBuf,
    /// Folder with repos.json and annotations/
    #[arg(long)]
    data: Option<PathBuf>,
    /// List the questions that score below 0.5
    #[arg(long)]
    misses: bool,
    /// Show how the score changes without each signal
    #[arg(long)]
    ablation: bool,
    /// Only this repository; may be repeated
    #[arg(long)]
    only: Vec<String>,
    /// Ranking constants, as JSON
    #[arg(long, value_name = "JSON")]
    weights: Option<String>,
    /// Also score these constants, as JSON; may be repeated. Cross-validates the choice between
    /// them and the defaults
    #[arg(long = "try", value_name = "JSON")]
    tries: Vec<String>,
    /// Keep the indexes in this folder and reuse existing ones
    #[arg(long, value_name = "DIR")]
    stores: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Repository {
    name: String,
    benchmark_root: Option<String>,
}

#[derive(Deserialize)]
struct Question {
    query: String,
    relevant: Vec<Target>,
    #[serde(default)]
    secondary: Vec<Target>,
    category: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Target {
    Path(String),
    Object { path: String },
}

struct IndexedRepository {
    name: String,
    engine: Engine,
    questions: Vec<Question>,
}

struct QuestionScore {
    repository: String,
    category: String,
    score: f64,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let scratch = tempfile::tempdir()?;
    let stores = options.stores.clone().unwrap_or_else(|| scratch.path().to_owned());
    runtime.block_on(async {
        let repositories = open_all(options, &stores).await?;
        ensure!(!repositories.is_empty(), "no checkouts in {}", options.checkouts.display());
        let default: CodeWeights = match &options.weights {
            Some(json) => serde_json::from_str(json).context("--weights")?,
            None => CodeWeights::default(),
        };
        let scored = score_all(&repositories, &default, SearchMode::Hybrid, options.misses).await?;
        print_table(&repositories, &scored);
        if options.ablation {
            ablate(&repositories, &default, &scored).await?;
        }
        if !options.tries.is_empty() {
            compare(&repositories, &options.tries, &scored).await?;
        }
        for repository in &repositories {
            repository.engine.close().await;
        }
        Ok(())
    })
}

async fn open_all(options: &Options, stores: &Path) -> Result<Vec<IndexedRepository>> {
    let data = options.data.clone().unwrap_or_else(|| default_data("code-search"));
    let read = |name: &str| {
        let path = data.join(name);
        let hint = "--data names the folder with repos.json and annotations/";
        std::fs::read(&path).with_context(|| format!("{}: {hint}", path.display()))
    };
    let known: Vec<Repository> = serde_json::from_slice(&read("repos.json")?)?;
    let mut indexed = Vec::new();
    for Repository { name, benchmark_root } in known {
        if !options.only.is_empty() && !options.only.contains(&name) {
            continue;
        }
        let root = options.checkouts.join(&name).join(benchmark_root.unwrap_or_default());
        if !root.is_dir() {
            println!("skipped, no checkout: {name}");
            continue;
        }
        let questions = serde_json::from_slice(&read(&format!("annotations/{name}.json"))?)?;
        let how = EngineOptions { create: true, ..EngineOptions::default() };
        let engine = Engine::open(&StorePlace::unchecked(stores.join(&name)), how)?;
        engine.index(&IndexOptions::new(root), Arc::new(|_| {})).await?;
        indexed.push(IndexedRepository { name, engine, questions });
    }
    Ok(indexed)
}

async fn score_all(
    repositories: &[IndexedRepository],
    weights: &CodeWeights,
    mode: SearchMode,
    misses: bool,
) -> Result<Vec<QuestionScore>> {
    let mut scored = Vec::new();
    for IndexedRepository { name, engine, questions } in repositories {
        for question in questions {
            let search = CodeSearch {
                weights: weights.clone(),
                mode,
                filter: CodeFilter::default(),
                ..CodeSearch::new(&question.query, DEPTH as u32)
            };
            let found = engine.search_code(&search).await?;
            let paths: Vec<String> = found.hits.into_iter().map(|hit| hit.path).collect();
            let targets = question.relevant.iter().chain(&question.secondary);
            let targets: Vec<String> = targets.map(|target| target.path().to_owned()).collect();
            let score = ndcg(&paths, &targets);
            if misses && score < 0.5 {
                println!("{score:.2}  {name}  {:?}", question.query);
                println!(
                    "      wanted {targets:?}\n      got    {:?}",
                    &paths[..paths.len().min(5)]
                );
            }
            let (repository, category) = (name.clone(), question.category.clone());
            scored.push(QuestionScore { repository, category, score });
        }
    }
    Ok(scored)
}

impl Target {
    fn path(&self) -> &str {
        match self {
            Self::Path(path) | Self::Object { path } => path,
        }
    }
}

fn overall(scored: &[QuestionScore]) -> f64 {
    mean(&scored.iter().map(|it| it.score).collect::<Vec<_>>())
}

fn by<'a>(
    scored: &'a [QuestionScore],
    key: impl Fn(&'a QuestionScore) -> &'a str,
) -> BTreeMap<&'a str, Vec<f64>> {
    let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    scored.iter().for_each(|it| groups.entry(key(it)).or_default().push(it.score));
    groups
}

fn print_table(repositories: &[IndexedRepository], scored: &[QuestionScore]) {
    let groups = by(scored, |it| &it.repository);
    for IndexedRepository { name, .. } in repositories {
        let scores = &groups[name.as_str()];
        println!("{name:<20} {:>4}  {:.3}", scores.len(), mean(scores));
    }
    for (category, scores) in by(scored, |it| &it.category) {
        println!("{category:<20} {:>4}  {:.3}", scores.len(), mean(&scores));
    }
    let (questions, repositories) = (scored.len(), repositories.len());
    println!(
        "NDCG@10 {:.3} over {questions} questions in {repositories} repositories",
        overall(scored)
    );
}

/// Prints how the score changes without each signal.
async fn ablate(
    repositories: &[IndexedRepository],
    default: &CodeWeights,
    whole: &[QuestionScore],
) -> Result<()> {
    println!("\n{:<38} {:>7}  repositories better / worse", "without", "change");
    let print = |what: &str, scored: &[QuestionScore]| {
        println!("{what:<38} {}", ScoreChange::of(whole, scored));
    };
    for (what, mode) in [("the model", SearchMode::Keyword), ("keywords", SearchMode::Vector)] {
        print(what, &score_all(repositories, default, mode, false).await?);
    }
    for (what, switch_off) in SIGNALS {
        let mut weights = default.clone();
        switch_off(&mut weights);
        print(what, &score_all(repositories, &weights, SearchMode::Hybrid, false).await?);
    }
    Ok(())
}

/// Prints the scores of other constants, and the cross-validation of choosing among them.
async fn compare(
    repositories: &[IndexedRepository],
    tries: &[String],
    whole: &[QuestionScore],
) -> Result<()> {
    println!("\n{:<38} {:>7}  repositories better / worse", "with", "change");
    let mut all = Vec::new();
    for json in tries {
        let weights = serde_json::from_str(json).with_context(|| format!("--try {json}"))?;
        let scored = score_all(repositories, &weights, SearchMode::Hybrid, false).await?;
        println!("{json:<38} {}", ScoreChange::of(whole, &scored));
        all.push(scored);
    }
    let tried = std::iter::once(whole).chain(all.iter().map(Vec::as_slice));
    let tried: Vec<_> = tried.map(|scored| by(scored, |it| &it.repository)).collect();
    let CrossValidation { default, chosen, times } = cross_validate(&tried);
    println!(
        "\nchosen on half of the repositories: {chosen:.3} on the other half, default {default:.3}"
    );
    for (json, times) in
        std::iter::once("default").chain(tries.iter().map(String::as_str)).zip(times)
    {
        println!("{json:<38} chosen {times} times");
    }
    Ok(())
}

/// The difference between two scorings of the same questions.
struct ScoreChange {
    difference: f64,
    better: usize,
    worse: usize,
}

impl ScoreChange {
    fn of(before: &[QuestionScore], now: &[QuestionScore]) -> Self {
        let (old, new) = (by(before, |it| &it.repository), by(now, |it| &it.repository));
        let changes: Vec<f64> =
            old.iter().map(|(name, scores)| mean(&new[name]) - mean(scores)).collect();
        Self {
            difference: overall(now) - overall(before),
            better: changes.iter().filter(|change| **change > 0.0005).count(),
            worse: changes.iter().filter(|change| **change < -0.0005).count(),
        }
    }
}

impl fmt::Display for ScoreChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>+7.3}  {} / {}", self.difference, self.better, self.worse)
    }
}

type SwitchOff = fn(&mut CodeWeights);

/// The signals, and how to disable each.
const SIGNALS: [(&str, SwitchOff); 7] = [
    ("removing the common direction", |weights| weights.common = 0.0),
    ("file-stem equality", |weights| weights.stem = 0.0),
    ("more than the best chunk per file", |weights| weights.chunks = 1),
    ("definition boosts", |weights| {
        weights.type_definition = 0.0;
        weights.other_definition = 0.0;
    }),
    ("penalties for tests, docs, examples", |weights| {
        for factor in [
            &mut weights.test,
            &mut weights.example,
            &mut weights.benchmark,
            &mut weights.docs,
            &mut weights.data,
        ] {
            *factor = 1.0;
        }
    }),
    ("penalties for old, copied, generated", |weights| {
        for factor in [
            &mut weights.compat,
            &mut weights.superseded,
            &mut weights.vendored,
            &mut weights.generated,
            &mut weights.entry,
        ] {
            *factor = 1.0;
        }
    }),
    ("collapsing variants for platforms", |weights| weights.variant = 1.0),
];
