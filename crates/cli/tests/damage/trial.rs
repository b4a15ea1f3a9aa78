//! One trial: a copy, a damage, the questions again, the doctor.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context, Result};
use fastrand::Rng;
use serde::Serialize;

use crate::harm::Harm;
use crate::questions::{QUESTIONS, says_so};
use crate::store::{Answer, Template};

/// How a trial ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// All answers are as before.
    Same,
    /// Every changed answer reports a problem.
    ReportedByRead,
    /// The doctor reports a problem.
    ReportedByDoctor,
    /// An answer changed and nothing reports it.
    Silent(Silent),
}

/// A damage that went unnoticed.
#[derive(Debug, Serialize)]
pub(crate) struct Silent {
    pub(crate) seed: u64,
    pub(crate) trial: u32,
    pub(crate) file: String,
    pub(crate) harm: String,
    /// The questions whose answers changed.
    pub(crate) questions: Vec<String>,
}

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, trial, file, harm, questions } = self;
        write!(
            f,
            "--seed {seed} --trial {trial}: {file}: {harm}; changed: {}",
            questions.join("; ")
        )
    }
}

pub(crate) fn run(
    template: &Template,
    before: &[Answer],
    seed: u64,
    number: u32,
) -> Result<Outcome> {
    let mut random = Rng::with_seed(seed.wrapping_mul(0x9E37_79B9).wrapping_add(number.into()));
    let file = choose_file(template, &mut random)?;
    let length = template.store().join(&file).metadata()?.len();
    let harm = Harm::choose(&mut random, length);
    let place = tempfile::tempdir()?;
    let store = template.copy(place.path())?;
    harm.apply(&store.join(&file)).with_context(|| format!("{}: {harm}", file.display()))?;
    let after = template.ask(&store)?;
    let changed: Vec<usize> = (0..before.len()).filter(|at| after[*at] != before[*at]).collect();
    let silently: Vec<usize> = changed
        .iter()
        .copied()
        .filter(|at| after[*at].status == Some(0) && !says_so(&after[*at].value))
        .collect();
    if changed.is_empty() {
        return Ok(Outcome::Same);
    }
    if silently.is_empty() {
        return Ok(Outcome::ReportedByRead);
    }
    if template.doctor_complains(&store)? {
        return Ok(Outcome::ReportedByDoctor);
    }
    Ok(Outcome::Silent(Silent {
        seed,
        trial: number,
        file: file.display().to_string(),
        harm: harm.to_string(),
        questions: silently.iter().map(|at| QUESTIONS[*at].join(" ")).collect(),
    }))
}

/// Truth, log, segments and the rest, each as often as it matters.
fn choose_file(template: &Template, random: &mut Rng) -> Result<PathBuf> {
    let files = template.files()?;
    let is = |file: &PathBuf, name: &str| file.to_string_lossy().contains(name);
    let kind = |file: &PathBuf| match () {
        () if is(file, "-wal") => 1,
        () if is(file, "truth.sqlite") && !is(file, "-shm") => 0,
        () if is(file, "segments/") => 2,
        () => 3,
    };
    let wanted = [0, 0, 0, 0, 1, 1, 2, 2, 2, 3][random.usize(..10)];
    let fitting: Vec<&PathBuf> = files.iter().filter(|file| kind(file) == wanted).collect();
    let all: Vec<&PathBuf> = files.iter().collect();
    let pick = random.choice(if fitting.is_empty() { all } else { fitting });
    Ok(pick.context("the store has no files")?.clone())
}
