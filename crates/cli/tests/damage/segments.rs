//! A segment that cannot be used costs time, and no answer: the same hits come in the same
//! order with the same scores.

use std::path::Path;

use anyhow::{Result, ensure};
use libtest_mimic::Failed;
use serde_json::Value;

use crate::harm::Harm;
use crate::questions::{QUESTIONS, SEARCHES, says_so};
use crate::store::{Answer, Template};

/// Damages every segment in several ways, and compares all searches.
pub(crate) fn change_no_answer() -> Result<(), Failed> {
    let run = || -> Result<()> {
        let place = tempfile::tempdir()?;
        let template = Template::open(&place.path().join("template"))?;
        let before: Vec<Answer> = template.ask_everything()?.into_iter().map(healthy).collect();
        let files = template.files()?;
        let segments = files.iter().filter(|file| file.starts_with("segments"));
        let segments: Vec<_> = segments.collect();
        // Base and delta, vectors and texts, of three collections.
        ensure!(segments.len() >= 8, "too few segments: {segments:?}");
        for file in segments {
            let length = template.store().join(file).metadata()?.len();
            for harm in [
                Harm::Flip { at: length / 2, bit: 3 },
                Harm::Truncate { to: length / 3 },
                Harm::Delete,
            ] {
                compare(&template, &before, file, harm)?;
            }
        }
        Ok(())
    };
    run().map_err(|error| Failed::from(format!("{error:#}")))
}

fn compare(template: &Template, before: &[Answer], file: &Path, harm: Harm) -> Result<()> {
    let place = tempfile::tempdir()?;
    let store = template.copy(place.path())?;
    harm.apply(&store.join(file))?;
    let mut said = false;
    for (question, before) in QUESTIONS[..SEARCHES].iter().zip(before) {
        let after = template.answer(&store, question)?;
        said |= says_so(&after.value);
        let after = healthy(after);
        ensure!(
            after == *before,
            "{}: {harm}: {question:?}: {:#} {:#}",
            file.display(),
            before.value,
            after.value
        );
    }
    ensure!(said, "{}: {harm}: nothing was degraded", file.display());
    Ok(())
}

/// An answer without the fields about how it was computed.
fn healthy(mut answer: Answer) -> Answer {
    if let Value::Object(fields) = &mut answer.value {
        fields.remove("degraded");
    }
    answer
}
