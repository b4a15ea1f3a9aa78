//! Facts, and the entities that they are about.

mod end;
mod entities;
mod predicates;
mod retract;
mod state;

use isolith_protocol::{
    AddFact, AddFacts, DescribeEntity, Done, EntityDescribed, FactAdded, FactEnded, FactsAdded,
    InvalidateFact, StoreError, SupersedeFact,
};
use isolith_types::{AddedFact, FactOutcome, NewFact, Provenance};

use super::{Perform, Work};
use crate::facts::names::{self, FactName};
use crate::facts::number_of;
use crate::facts::validity::Validity;
use crate::graph::{TruthGraph, query_failed};
use crate::read::facts::{entity_named, entity_number, predicate_number};
use state::{Attribution, Statement};

impl Perform for AddFact {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        let fact = add(work, &self.fact)?;
        sync_facts(work, [&fact.id])?;
        Ok(FactAdded { fact }.into())
    }
}

/// Maximum number of facts per call.
const MAX_FACTS: usize = 500;

impl Perform for AddFacts {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        if self.facts.len() > MAX_FACTS {
            let given = self.facts.len();
            let reason = format!("{given} facts in one call, at most {MAX_FACTS} are allowed");
            return Err(StoreError::Invalid(reason));
        }
        let mut reply = FactsAdded::default();
        for fact in &self.facts {
            work.deadline.check("add facts")?;
            reply.facts.push(match add(work, fact) {
                Ok(added) => {
                    reply.created += u64::from(added.created);
                    reply.updated += u64::from(added.updated);
                    FactOutcome::Stored(added)
                }
                Err(error) if concerns_one_fact(&error) => {
                    reply.refused += 1;
                    FactOutcome::Refused(error.to_failure())
                }
                Err(error) => return Err(error),
            });
        }
        let changed = reply.facts.iter().filter_map(|outcome| match outcome {
            FactOutcome::Stored(fact) if fact.created || fact.updated => Some(&fact.id),
            FactOutcome::Stored(_) | FactOutcome::Refused(_) => None,
        });
        sync_facts(work, changed)?;
        Ok(reply.into())
    }

    fn shorten(reply: &mut FactsAdded) -> bool {
        let had = !reply.facts.is_empty();
        reply.facts.clear();
        had
    }
}

/// Whether only the fact itself is at fault. Such an error is found before anything is written.
fn concerns_one_fact(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Invalid(_)
            | StoreError::TooLong { .. }
            | StoreError::FactOverlaps { .. }
            | StoreError::FactContradicts { .. }
    )
}

impl Perform for InvalidateFact {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        let ended_fact = end::invalidate(work, &self.which, self.at)?;
        sync_facts(work, [&ended_fact.id])?;
        Ok(FactEnded { ended_fact }.into())
    }
}

impl Perform for SupersedeFact {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        let reply = end::supersede(work, &self.change)?;
        sync_facts(work, [&reply.fact.id, &reply.ended_fact.id])?;
        Ok(reply.into())
    }
}

impl Perform for DescribeEntity {
    fn perform(&self, work: Work<'_>) -> Result<Done<Self::Reply>, StoreError> {
        let (number, reply) = entities::describe(work, &self.patch)?;
        let graph = TruthGraph::begin(work.db)?;
        graph.sync_entity(number).map_err(query_failed)?;
        graph.finish()?;
        Ok(reply.into())
    }

    fn complete(&self, work: Work<'_>, reply: &mut EntityDescribed) -> Result<(), StoreError> {
        reply.entity = entity_named(work.db, &self.patch.name)?;
        Ok(())
    }

    fn shorten(reply: &mut EntityDescribed) -> bool {
        reply.entity.take().is_some()
    }
}

/// Updates the graph for changed facts and their entities.
fn sync_facts<'a>(
    work: Work<'_>,
    ids: impl IntoIterator<Item = &'a String>,
) -> Result<(), StoreError> {
    let graph = TruthGraph::begin(work.db)?;
    for id in ids {
        graph.sync_fact(number_of(id)?).map_err(query_failed)?;
    }
    graph.finish()
}

/// Adds facts, all or none: an error says which one is to blame.
pub(super) fn add_facts(work: Work<'_>, facts: &[NewFact]) -> Result<Vec<AddedFact>, StoreError> {
    let mut added = Vec::with_capacity(facts.len());
    for (at, fact) in facts.iter().enumerate() {
        work.deadline.check("add facts")?;
        let fact = add(work, fact).map_err(|error| match error {
            StoreError::Invalid(reason) => {
                StoreError::Invalid(format!("fact {}: {reason}", at + 1))
            }
            error => error,
        });
        added.push(fact?);
    }
    if !added.is_empty() {
        sync_facts(work, added.iter().map(|fact| &fact.id))?;
    }
    Ok(added)
}

/// Adds a fact, or returns the existing one with the same statement.
fn add(work: Work<'_>, fact: &NewFact) -> Result<AddedFact, StoreError> {
    let subject = FactName::of_entity("subject", &fact.subject)?;
    let predicate = FactName::of_predicate(&fact.predicate)?;
    let object = FactName::of_entity("object", &fact.object)?;
    let validity = Validity::new(fact.valid_from, fact.valid_to)?;
    let attribution = attribution(fact.confidence, &fact.provenance)?;
    let subject_type = names::type_of(fact.subject_type.as_deref())?;
    let object_type = names::type_of(fact.object_type.as_deref())?;
    let known =
        (entity_number(work.db, &subject.folded)?, predicate_number(work.db, &predicate.folded)?);
    if let (Some(subject), Some(predicate)) = known {
        let object = entity_number(work.db, &object.folded)?;
        state::check(work, (subject, predicate), object, validity)?;
    }
    let statement = Statement {
        subject: entities::find_or_make(work, &subject, subject_type)?.0,
        predicate: entities::predicate(work, &predicate)?,
        object: entities::find_or_make(work, &object, object_type)?.0,
    };
    let placed = state::state(work, statement, validity, &attribution)?;
    Ok(placed.added())
}

/// Validates who states a fact and with what confidence.
fn attribution(
    confidence: Option<f64>,
    provenance: &Provenance,
) -> Result<Attribution<'_>, StoreError> {
    if let Some(confidence) = confidence.filter(|given| !(0.0..=1.0).contains(given)) {
        let reason = format!("a confidence is a number from 0 to 1, not {confidence}");
        return Err(StoreError::Invalid(reason));
    }
    let Provenance { drawer, file, agent } = provenance;
    Ok(Attribution {
        confidence,
        drawer: names::label("drawer", drawer.as_deref())?,
        file: names::path(file.as_deref())?,
        agent: names::label("agent", agent.as_deref())?,
    })
}
