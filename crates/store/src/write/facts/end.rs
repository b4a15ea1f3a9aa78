use isolith_protocol::{FactSuperseded, StoreError};
use isolith_sql::params;
use isolith_types::{EndedFact, Moment, Supersede, WhichFact};

use super::super::Work;
use super::{attribution, entities, state};
use crate::facts::names::{self, FactName};
use crate::facts::validity::Validity;
use crate::facts::{id_of, number_of};
use crate::read::facts::{
    StoredFact, entity_number, predicate_number, retracted_at, stored_fact, stored_facts,
};
use crate::sqlite::During;

/// Ends a fact.
pub(super) fn invalidate(
    work: Work<'_>,
    which: &WhichFact,
    at: Option<Moment>,
) -> Result<EndedFact, StoreError> {
    let at = at.unwrap_or(Moment::instant(work.now));
    end(work, &find(work, which, at)?, at)
}

/// Ends a fact and replaces it with another.
pub(super) fn supersede(work: Work<'_>, change: &Supersede) -> Result<FactSuperseded, StoreError> {
    let object = FactName::of_entity("object", &change.object)?;
    let object_type = names::type_of(change.object_type.as_deref())?;
    let attribution = attribution(change.confidence, &change.provenance)?;
    let at = change.at.unwrap_or(Moment::instant(work.now));
    let old = find(work, &change.old, at)?;
    let (object, _) = entities::find_or_make(work, &object, object_type)?;
    if object == old.object {
        let reason = format!("{} already has this object: give another one", id_of(old.id));
        return Err(StoreError::Invalid(reason));
    }
    let ended = end(work, &old, at)?;
    let statement = state::Statement { subject: old.subject, predicate: old.predicate, object };
    let placed = state::state(work, statement, Validity::new(Some(at), None)?, &attribution)?;
    let by = old.superseded_by.filter(|by| *by != placed.id);
    let by = match by {
        // What was never true can be replaced.
        Some(by) if retracted_at(work.db, by)?.is_some() => None,
        by => by,
    };
    if let Some(by) = by {
        let (old, by) = (id_of(old.id), id_of(by));
        let reason = format!("{old} is already superseded by {by}: supersede that one");
        return Err(StoreError::Invalid(reason));
    }
    work.db
        .prepare_cached("UPDATE fact SET superseded_by = ?2 WHERE id = ?1")
        .and_then(|mut statement| statement.execute([old.id, placed.id]))
        .during(work.db, "supersede a fact")?;
    Ok(FactSuperseded { fact: placed.added(), ended_fact: ended })
}

/// Ends a fact at this time, unless it already ended then. Never postpones an end.
fn end(work: Work<'_>, fact: &StoredFact, at: Moment) -> Result<EndedFact, StoreError> {
    let (id, before) = (id_of(fact.id), fact.validity);
    let as_it_was = |id| Ok(EndedFact { id, valid_to: before.to.unwrap_or(at), changed: false });
    if before.until == Some(at.start()) {
        return as_it_was(id);
    }
    if !before.outlasts(at.start()) {
        let reason = format!("{id} is true {before}: it ended before {at}");
        return Err(StoreError::Invalid(reason));
    }
    let after = before.ended(at)?;
    if after == before {
        return as_it_was(id);
    }
    work.db
        .prepare_cached(
            "UPDATE fact SET valid_to = ?2, to_day = ?3, until = ?4, changed_at = ?5 WHERE id = ?1",
        )
        .and_then(|mut statement| {
            statement.execute(params![fact.id, at.start(), at.is_day(), after.until, work.now])
        })
        .during(work.db, "end a fact")?;
    Ok(EndedFact { id, valid_to: at, changed: true })
}

/// The fact with this id, retracted or not.
pub(super) fn find_by_id(work: Work<'_>, id: &str) -> Result<StoredFact, StoreError> {
    let number = number_of(id)?;
    let missing = || StoreError::NoFact { what: id_of(number) };
    stored_fact(work.db, number)?.ok_or_else(missing)
}

/// The fact that the request refers to, which is not retracted.
fn find(work: Work<'_>, which: &WhichFact, at: Moment) -> Result<StoredFact, StoreError> {
    match which {
        WhichFact::Id(id) => {
            let fact = find_by_id(work, id)?;
            if retracted_at(work.db, fact.id)?.is_some() {
                let reason = format!("{} was retracted: add what is true", id_of(fact.id));
                return Err(StoreError::Invalid(reason));
            }
            Ok(fact)
        }
        WhichFact::Said { subject, predicate, object } => {
            find_said(work, subject, predicate, object.as_deref(), at)
        }
    }
}

/// The only fact that says this, whether or not it has ended.
pub(super) fn find_said_ever(
    work: Work<'_>,
    subject: &str,
    predicate: &str,
    object: Option<&str>,
) -> Result<StoredFact, StoreError> {
    let (mut there, missing) = facts_that_say(work, subject, predicate, object)?;
    match there.len() {
        0 => Err(missing),
        1 => Ok(there.remove(0)),
        _ => Err(several(&there)),
    }
}

fn find_said(
    work: Work<'_>,
    subject: &str,
    predicate: &str,
    object: Option<&str>,
    at: Moment,
) -> Result<StoredFact, StoreError> {
    let (there, missing) = facts_that_say(work, subject, predicate, object)?;
    choose(there, object.is_none(), at.start())?.ok_or_else(|| match missing {
        StoreError::NoFact { what } => {
            StoreError::NoFact { what: format!("{what} that has not ended") }
        }
        other => other,
    })
}

/// The facts that say this and are not retracted, and the error if none is meant.
fn facts_that_say(
    work: Work<'_>,
    subject: &str,
    predicate: &str,
    object: Option<&str>,
) -> Result<(Vec<StoredFact>, StoreError), StoreError> {
    let subject = FactName::of_entity("subject", subject)?;
    let predicate = FactName::of_predicate(predicate)?;
    let object = object.map(|object| FactName::of_entity("object", object)).transpose()?;
    let written = object.as_ref().map_or("…", |object| object.written.as_str());
    let what = format!("\"{} {} {written}\"", subject.written, predicate.written);
    let missing = StoreError::NoFact { what };
    let number = |name: &FactName| entity_number(work.db, &name.folded);
    let of = match &object {
        None => None,
        Some(object) => match number(object)? {
            Some(number) => Some(number),
            None => return Ok((Vec::new(), missing)),
        },
    };
    let known = (number(&subject)?, predicate_number(work.db, &predicate.folded)?);
    let (Some(subject), Some(predicate)) = known else { return Ok((Vec::new(), missing)) };
    Ok((stored_facts(work.db, subject, predicate, of)?, missing))
}

fn several(facts: &[StoredFact]) -> StoreError {
    let ids: Vec<String> = facts.iter().take(5).map(|fact| id_of(fact.id)).collect();
    StoreError::Invalid(format!("several facts match ({}): give an id", ids.join(", ")))
}

/// Prefers facts without an end, then those true at that time, then future ones, and last those
/// that ended at that very moment: the request may be repeated.
fn choose(
    there: Vec<StoredFact>,
    ambiguous: bool,
    at: i64,
) -> Result<Option<StoredFact>, StoreError> {
    let rank = |fact: &StoredFact| {
        let validity = fact.validity;
        match validity.until {
            None => Some(0),
            Some(_) if validity.is_true(at) => Some(1),
            Some(until) if until > at => Some(2),
            Some(until) if until == at => Some(3),
            Some(_) => None,
        }
    };
    let Some(best) = there.iter().filter_map(rank).min() else { return Ok(None) };
    let mut meant: Vec<StoredFact> =
        there.into_iter().filter(|fact| rank(fact) == Some(best)).collect();
    if ambiguous && meant.len() > 1 {
        return Err(several(&meant));
    }
    Ok(meant.pop())
}
