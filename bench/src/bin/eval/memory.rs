//! Evaluates memory search with questions about long conversations and paraphrased notes.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use isolith_engine::{Engine, EngineOptions, MemorySearch, MemoryWeights, SearchMode, StorePlace};
use isolith_types::{DrawerFilter, NewDrawer};
use serde::Deserialize;
use serde_json::Value;

use crate::score::{DEPTH, mean};
use crate::weak::{WeakSample, cross_validated_rates, weak_rates};

#[derive(Args)]
pub(crate) struct Options {
    /// LoCoMo's file, a folder of such conversations, or a file of notes (JSONL)
    #[arg(required = true)]
    sets: Vec<PathBuf>,
    /// Show how the scores change without each signal
    #[arg(long)]
    ablation: bool,
    /// Ranking constants, as JSON
    #[arg(long, value_name = "JSON")]
    weights: Option<String>,
    /// Also score these constants, as JSON; may be repeated
    #[arg(long = "try", value_name = "JSON")]
    tries: Vec<String>,
    /// Show only how often an answer is weak: for the questions of each conversation, and for
    /// those of the others
    #[arg(long)]
    weak: bool,
    /// Also ask these questions, one per line, which are about nothing in any memory
    #[arg(long, value_name = "FILE")]
    off_topic: Option<PathBuf>,
    /// Share of weak answers to own questions that cross-validation chooses thresholds for
    #[arg(long, value_name = "SHARE", default_value_t = 0.03)]
    weak_share: f64,
}

/// A conversation or a set of notes, stored in a wing of its own.
struct Wing {
    drawers: Vec<NewDrawer>,
    questions: Vec<Question>,
}

struct Question {
    text: String,
    wing: String,
    evidence: HashSet<String>,
    category: String,
}

#[derive(Deserialize)]
struct Note {
    id: String,
    note: String,
    question: Option<String>,
}

#[derive(Deserialize)]
struct Turn {
    speaker: String,
    dia_id: String,
    #[serde(alias = "clean_text", default)]
    text: String,
    blip_caption: Option<String>,
    date_time: Option<String>,
}

/// Recall and reciprocal rank.
type Score = (f64, f64);

/// Number of drawers per call.
const BATCH: usize = 200;

/// One in this many questions about other conversations is asked.
const OTHERS_STEP: usize = 9;

pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        for set in &options.sets {
            println!("{}", set.display());
            evaluate(set, options).await?;
        }
        Ok(())
    })
}

async fn evaluate(set: &Path, options: &Options) -> Result<()> {
    let wings = read(set).with_context(|| set.display().to_string())?;
    ensure!(!wings.is_empty(), "{} is empty", set.display());
    let scratch = tempfile::tempdir()?;
    let how = EngineOptions { create: true, ..EngineOptions::default() };
    let engine = Engine::open(&StorePlace::unchecked(scratch.path().join("store")), how)?;
    for wing in &wings {
        for batch in wing.drawers.chunks(BATCH) {
            engine.add_drawers(batch.to_vec(), None).await?;
        }
    }
    engine.settle().await;
    if options.weak {
        print_weak(&engine, &wings, options).await?;
        engine.close().await;
        return Ok(());
    }
    let default: MemoryWeights = match &options.weights {
        Some(json) => serde_json::from_str(json).context("--weights")?,
        None => MemoryWeights::default(),
    };
    let questions: Vec<&Question> = wings.iter().flat_map(|wing| &wing.questions).collect();
    let scores = ask(&engine, &questions, &default, SearchMode::Hybrid).await?;
    print_by_category(&questions, &scores);
    for mode in [SearchMode::Keyword, SearchMode::Vector] {
        print(mode.name(), &ask(&engine, &questions, &default, mode).await?);
    }
    for (name, weights) in variants(&default, options)? {
        print(&name, &ask(&engine, &questions, &weights, SearchMode::Hybrid).await?);
    }
    engine.close().await;
    Ok(())
}

async fn ask(
    engine: &Engine,
    questions: &[&Question],
    weights: &MemoryWeights,
    mode: SearchMode,
) -> Result<Vec<Score>> {
    let mut scores = Vec::with_capacity(questions.len());
    for question in questions {
        let search = MemorySearch {
            mode,
            filter: DrawerFilter { wing: Some(question.wing.clone()), ..DrawerFilter::default() },
            weights: weights.clone(),
            ..MemorySearch::new(&question.text, DEPTH as u32)
        };
        let hits = engine.search_memory(&search).await?.hits;
        let sources: Vec<String> = hits.into_iter().filter_map(|hit| hit.drawer.source).collect();
        let found: HashSet<&String> = sources.iter().collect();
        let recalled = question.evidence.iter().filter(|it| found.contains(it)).count();
        let first = sources.iter().position(|source| question.evidence.contains(source));
        let reciprocal = first.map_or(0.0, |at| 1.0 / (at + 1) as f64);
        scores.push((recalled as f64 / question.evidence.len() as f64, reciprocal));
    }
    Ok(scores)
}

/// Prints how often an answer is weak, by mode.
async fn print_weak(engine: &Engine, wings: &[Wing], options: &Options) -> Result<()> {
    let off_topic = match &options.off_topic {
        Some(file) => std::fs::read_to_string(file)?,
        None => String::new(),
    };
    for mode in SearchMode::ALL {
        let mut samples = Vec::new();
        for (group, wing) in wings.iter().enumerate() {
            let others = wings.iter().enumerate().filter(|(other, _)| *other != group);
            let others = others.flat_map(|(at, other)| other.questions.iter().skip(at));
            let others = others.step_by(OTHERS_STEP).map(|it| it.text.as_str());
            let own = wing.questions.iter().map(|it| (true, it.text.as_str()));
            let all = own.chain(others.chain(off_topic.lines()).map(|text| (false, text)));
            for (at, (own, text)) in all.enumerate() {
                let wing = wing.drawers.first().map(|drawer| drawer.wing.clone());
                let filter = DrawerFilter { wing, ..DrawerFilter::default() };
                let search = MemorySearch { mode, filter, ..MemorySearch::new(text, DEPTH as u32) };
                let found = engine.search_memory(&search).await?;
                let (strength, weak) = (found.fit.strength(mode), found.weak);
                let group = if wings.len() > 1 { group } else { at };
                samples.push(WeakSample { group, own, strength, weak });
            }
        }
        let (now, chosen) =
            (weak_rates(&samples), cross_validated_rates(&samples, options.weak_share));
        println!(
            "  {mode:<8} weak: own {:.3}, other {:.3}; thresholds of other halves: {:.3}, {:.3}",
            now.own, now.other, chosen.own, chosen.other
        );
    }
    Ok(())
}

/// Other sets of constants to score, by name.
fn variants(default: &MemoryWeights, options: &Options) -> Result<Vec<(String, MemoryWeights)>> {
    let mut variants = Vec::new();
    if options.ablation {
        let without = |name: &str, weights: MemoryWeights| (format!("without {name}"), weights);
        variants.push(without("keywords", MemoryWeights { keywords: 0.0, ..default.clone() }));
        variants.push(without("vectors", MemoryWeights { vector: 0.0, ..default.clone() }));
        variants.push(without("likeness", MemoryWeights { likeness: 0.0, ..default.clone() }));
        variants.push(without("neighbours", MemoryWeights { beside: [0.0; 4], ..default.clone() }));
        let always = MemoryWeights { coherent: 1e-9, ..default.clone() };
        variants.push(("neighbours always".to_owned(), always));
    }
    for json in &options.tries {
        variants.push((json.clone(), serde_json::from_str(json).context("--try")?));
    }
    Ok(variants)
}

fn print_by_category(questions: &[&Question], scores: &[Score]) {
    let mut groups: BTreeMap<&str, Vec<Score>> = BTreeMap::new();
    for (question, score) in questions.iter().zip(scores) {
        groups.entry(&question.category).or_default().push(*score);
    }
    groups.iter().for_each(|(category, scores)| print(category, scores));
    print("all", scores);
}

fn print(name: &str, scores: &[Score]) {
    let (recall, reciprocal): (Vec<f64>, Vec<f64>) = scores.iter().copied().unzip();
    let count = scores.len();
    println!(
        "  {name:<20} {count:>5}  recall@10 {:.3}  MRR@10 {:.3}",
        mean(&recall),
        mean(&reciprocal)
    );
}

fn read(set: &Path) -> Result<Vec<Wing>> {
    if set.extension().is_some_and(|extension| extension == "jsonl") {
        return Ok(vec![notes(&std::fs::read_to_string(set)?)?]);
    }
    let mut conversations: Vec<(String, Value)> = Vec::new();
    if set.is_dir() {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(set)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        for file in files {
            let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            conversations.push((name, serde_json::from_slice(&std::fs::read(&file)?)?));
        }
    } else {
        let all: Vec<Value> = serde_json::from_slice(&std::fs::read(set)?)?;
        let named = all.into_iter().enumerate();
        conversations.extend(named.map(|(at, conversation)| (format!("conv{at}"), conversation)));
    }
    conversations.iter().map(|(name, whole)| conversation(name, whole)).collect()
}

fn notes(text: &str) -> Result<Wing> {
    let wing = "notes".to_owned();
    let (mut drawers, mut questions) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let Note { id, note, question } = serde_json::from_str(line)?;
        questions.extend(question.map(|text| Question {
            text,
            wing: wing.clone(),
            evidence: HashSet::from([id.clone()]),
            category: "paraphrase".to_owned(),
        }));
        let (wing, room, source) = (wing.clone(), wing.clone(), Some(id));
        drawers.push(NewDrawer { text: note, wing, room, source, ..NewDrawer::default() });
    }
    Ok(Wing { drawers, questions })
}

fn conversation(wing: &str, whole: &Value) -> Result<Wing> {
    let talk = whole.get("conversation").unwrap_or(whole).as_object();
    let talk = talk.context("the conversation is not an object")?;
    let mut drawers = Vec::new();
    // In the order of the session numbers.
    let mut sessions: Vec<(u32, &String)> = talk
        .keys()
        .filter_map(|key| Some((key.strip_prefix("session_")?.parse().ok()?, key)))
        .collect();
    sessions.sort();
    for (_, key) in sessions {
        let date = talk.get(&format!("{key}_date_time")).and_then(Value::as_str);
        for turn in talk[key].as_array().into_iter().flatten() {
            let turn: Turn = serde_json::from_value(turn.clone())?;
            let caption = turn.blip_caption.unwrap_or_default();
            let text = format!("{}: {} {caption}", turn.speaker, turn.text).trim().to_owned();
            drawers.push(NewDrawer {
                text,
                wing: wing.to_owned(),
                room: key.clone(),
                source: Some(turn.dia_id),
                date_text: date.map(str::to_owned).or(turn.date_time),
                ..NewDrawer::default()
            });
        }
    }
    let questions = whole["qa"].as_array().into_iter().flatten();
    let questions = questions.filter_map(|question| question_from(wing, question)).collect();
    Ok(Wing { drawers, questions })
}

/// Parses a question; `None` if it has no evidence.
fn question_from(wing: &str, question: &Value) -> Option<Question> {
    let text = question["question"].as_str()?.to_owned();
    let evidence: HashSet<String> = turns_in(&question["evidence"].to_string());
    let category = question["category"].to_string();
    (!evidence.is_empty()).then(|| Question { text, wing: wing.to_owned(), evidence, category })
}

/// The ids of turns in a text: `D`, a number, a colon, a number.
fn turns_in(text: &str) -> HashSet<String> {
    let parts = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != ':');
    let is_turn = |part: &&str| {
        let numbers = part.strip_prefix('D').and_then(|rest| rest.split_once(':'));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        numbers.is_some_and(|(session, turn)| digits(session) && digits(turn))
    };
    parts.filter(is_turn).map(str::to_owned).collect()
}
