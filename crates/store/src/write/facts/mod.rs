//! Facts, and the entities that they are about.

mod end;
mod entities;
mod say;

use isolith_types::{NewFact, Provenance};

use super::Work;
use super::request::Outcome;
use crate::error::StoreError;
use crate::facts::names::{self, Name};
use crate::facts::validity::Validity;
use crate::facts::{FactWrite, number_of};
use crate::graph::{TruthGraph, query_failed};
use crate::read::facts::entity_number;
use say::{Said, Word};

/// Does what is asked.
pub(super) fn perform(work: Work<'_>, write: &FactWrite) -> Result<Outcome, StoreError> {
    let outcome = match write {
        FactWrite::Add(fact) => add(work, fact),
        FactWrite::Invalidate { which, at } => end::invalidate(work, which, *at),
        FactWrite::Supersede(change) => end::supersede(work, change),
        FactWrite::Describe(patch) => entities::describe(work, patch),
    }?;
    show(work, &outcome)?;
    Ok(outcome)
}

/// Has the graph show what has changed: all that a write touches is in its outcome, or is
/// named by a fact that is.
fn show(work: Work<'_>, outcome: &Outcome) -> Result<(), StoreError> {
    let graph = TruthGraph::begin(work.db)?;
    let added = outcome.fact.iter().map(|fact| &fact.id);
    for id in added.chain(outcome.ended_fact.iter().map(|fact| &fact.id)) {
        graph.show_fact(number_of(id)?).map_err(query_failed)?;
    }
    if let Some(entity) = &outcome.entity {
        let number = entity_number(work.db, &names::fold(&entity.name))?;
        number.map(|number| graph.show_entity(number)).transpose().map_err(query_failed)?;
    }
    graph.finish()
}

/// Adds a fact, or finds the one that says the same.
fn add(work: Work<'_>, fact: &NewFact) -> Result<Outcome, StoreError> {
    let subject = Name::of_entity("subject", &fact.subject)?;
    let predicate = Name::of_predicate(&fact.predicate)?;
    let object = Name::of_entity("object", &fact.object)?;
    let validity = Validity::new(fact.valid_from, fact.valid_to)?;
    let word = word(fact.confidence, &fact.provenance)?;
    let subject_type = names::type_of(fact.subject_type.as_deref())?;
    let object_type = names::type_of(fact.object_type.as_deref())?;
    let said = Said {
        subject: entities::find_or_make(work, &subject, subject_type)?.0,
        predicate: entities::predicate(work, &predicate)?,
        object: entities::find_or_make(work, &object, object_type)?.0,
    };
    let placed = say::say(work, said, validity, &word)?;
    Ok(Outcome {
        created: placed.created,
        inserted: u64::from(placed.created),
        updated: u64::from(placed.updated),
        unchanged: u64::from(!placed.created && !placed.updated),
        fact: Some(placed.added()),
        ..Outcome::default()
    })
}

/// What somebody says of a fact, if it can be accepted.
fn word(confidence: Option<f64>, provenance: &Provenance) -> Result<Word<'_>, StoreError> {
    if let Some(confidence) = confidence.filter(|given| !(0.0..=1.0).contains(given)) {
        let reason = format!("a confidence is a number from 0 to 1, not {confidence}");
        return Err(StoreError::Invalid(reason));
    }
    let Provenance { drawer, file, agent } = provenance;
    Ok(Word {
        confidence,
        drawer: names::label("drawer", drawer.as_deref())?,
        file: names::path(file.as_deref())?,
        agent: names::label("agent", agent.as_deref())?,
    })
}
