//! Facts that were never true, and predicates with one object at a time: cases of docs/facts.md,
//! each under the name it has there.

use isolith_protocol::{AddFacts, DeclarePredicate, RetractFact, StoreError};
use isolith_store::Check;
use isolith_types::{Code, FactOutcome, FactQuery, FactState, Predicate, RetractedFact, WhichFact};

use crate::doctor::problems;
use crate::facts::{Facts, about, fact, id, ids, moment};

impl Facts {
    fn assert_healthy(&self) {
        for check in Check::ALL {
            assert_eq!(problems(&self.0.folder, check), 0, "{check:?}");
        }
    }

    fn retract(&mut self, which: WhichFact) -> Result<RetractedFact, StoreError> {
        self.0.one(RetractFact { which }).map(|written| written.reply.retracted_fact)
    }

    fn declare(&mut self, name: &str, single_valued: bool) -> Result<Predicate, StoreError> {
        let declare = DeclarePredicate { name: name.to_owned(), single_valued };
        self.0.one(declare).map(|written| written.reply.predicate)
    }

    fn search(&self, text: &str) -> String {
        let text = Some(text.to_owned());
        ids(&self.query(&FactQuery { text, limit: 100, ..FactQuery::default() }))
    }

    fn in_state(&self, state: FactState, as_of: &str) -> String {
        let query = FactQuery { state: Some(state), as_of: moment(as_of), ..about("Max") };
        ids(&self.query(&query))
    }
}

#[test]
fn a_retracted_fact_was_never_true() {
    let mut facts = Facts::new();
    facts.add("Max lives_in Berlin", "2020-01-01");
    facts.add("Max lives_in Rome", "2021-01-01");
    let done = facts.retract(id("f1")).unwrap();
    assert_eq!((done.id.as_str(), done.changed), ("f1", true));
    let again = facts.retract(id("f1")).unwrap();
    assert_eq!((again.changed, again.retracted_at), (false, done.retracted_at));

    assert_eq!(facts.all("Max"), "f2");
    assert_eq!(facts.in_state(FactState::Retracted, ""), "f1");
    assert_eq!(facts.in_state(FactState::Current, "2020-06-01"), "");
    let mut reader = facts.0.reader();
    let snapshot = reader.snapshot().unwrap();
    let history = snapshot.fact_timeline(Some("Max"), None, 10, 0).unwrap();
    assert_eq!(ids(&history), "f1 f2");
    assert_eq!((history[0].state, history[0].current), (FactState::Retracted, false));
    let stats = snapshot.fact_stats(None).unwrap();
    assert_eq!((stats.facts, stats.current, stats.retracted), (1, 1, 1));
    drop(snapshot);

    // It neither ends nor merges with a new one; by content it is not found.
    let refused = facts.0.one(isolith_protocol::InvalidateFact { which: id("f1"), at: None });
    assert_eq!(refused.unwrap_err().to_failure().code, Code::BadInput);
    let said = || WhichFact::Said {
        subject: "Max".to_owned(),
        predicate: "lives_in".to_owned(),
        object: Some("Berlin".to_owned()),
    };
    assert_eq!(facts.retract(said()).unwrap_err().to_failure().code, Code::NotFound);
    assert!(facts.add("Max lives_in Berlin", "2020-01-01").created);
    assert_eq!(facts.retract(said()).unwrap().id, "f3");
    assert!(facts.retract(id("f9")).is_err());
    facts.assert_healthy();
}

#[test]
fn a_retracted_successor_can_be_replaced() {
    let mut facts = Facts::new();
    facts.add("Max lives_in Berlin", "2020-01-01");
    facts.supersede(id("f1"), "Rome", "2024-01-01").unwrap();
    assert!(facts.supersede(id("f1"), "Bonn", "2024-01-01").is_err());
    facts.retract(id("f2")).unwrap();
    let (old, new) = facts.supersede(id("f1"), "Bonn", "2024-01-01").unwrap();
    assert_eq!((old.as_str(), new.id.as_str()), ("f1", "f3"));
    assert_eq!(facts.all("Max"), "f3 f1");
    facts.assert_healthy();
}

#[test]
fn a_single_valued_predicate_has_one_object_at_a_time() {
    let mut facts = Facts::new();
    facts.add("Max works_at Acme", "2020-01-01/2022-01-01");
    let declared = facts.declare("works at", true).unwrap();
    assert_eq!((declared.name.as_str(), declared.single_valued), ("works_at", true));
    facts.add("Max works_at Initech", "2022-01-01");
    for dates in ["2021-01-01/2021-06-01", "2021-12-31/2022-01-02", "2023-01-01", ""] {
        let error = facts.try_add(fact("Max works_at Umbrella", dates)).unwrap_err();
        let StoreError::FactContradicts { id, .. } = &error else { panic!("{error}") };
        assert!(["f1", "f2"].contains(&id.as_str()), "{dates}: {error}");
        assert_eq!(error.to_failure().code, Code::AlreadyExists);
    }
    // An earlier start would overlap, too; nothing of a refused fact is stored.
    facts.try_add(fact("Max works_at Initech", "2021-01-01")).unwrap_err();
    assert!(facts.0.reader().snapshot().unwrap().entity("Umbrella").unwrap().is_none());
    // Others, other times and other predicates are free; so is a replacement.
    assert!(facts.add("Eva works_at Umbrella", "2021-01-01").created);
    assert!(facts.add("Max works_at Umbrella", "2010-01-01/2012-01-01").created);
    assert!(facts.add("Max knows Acme", "").created && facts.add("Max knows Eva", "").created);
    facts.supersede(id("f2"), "Globex", "2025-01-01").unwrap();

    facts.declare("works_at", false).unwrap();
    facts.add("Max works_at Umbrella", "2025-02-01");
    let refused = facts.declare("works_at", true).unwrap_err();
    assert_eq!(refused.to_failure().code, Code::AlreadyExists);
    facts.assert_healthy();
}

#[test]
fn several_facts_are_added_and_refused_one_by_one() {
    let mut facts = Facts::new();
    facts.declare("works_at", true).unwrap();
    let all = || AddFacts {
        facts: vec![
            fact("Max works_at Acme", "2020-01-01"),
            fact("Max works_at Initech", "2021-01-01"),
            fact("Max works_at  ", ""),
            fact("Max lives_in Berlin", "2020-01-01"),
        ],
    };
    let reply = facts.0.one(all()).unwrap().reply;
    assert_eq!((reply.created, reply.updated, reply.refused), (2, 0, 2));
    let refused: Vec<bool> =
        reply.facts.iter().map(|one| matches!(one, FactOutcome::Refused(_))).collect();
    assert_eq!(refused, [false, true, true, false]);
    let again = facts.0.one(all()).unwrap().reply;
    assert_eq!((again.created, again.updated, again.refused), (0, 0, 2));
    let many = AddFacts { facts: vec![fact("Max likes tea", ""); 501] };
    assert!(facts.0.one(many).is_err());
    facts.assert_healthy();
}

#[test]
fn as_of_shows_the_state_at_that_time() {
    let mut facts = Facts::new();
    facts.add("Max lives_in Berlin", "2020-01-01/2021-01-01");
    facts.add("Max lives_in Bonn", "2022-01-01");
    let at = |state, as_of: &str| facts.in_state(state, as_of);
    assert_eq!(at(FactState::Current, "2020-06-01"), "f1");
    assert_eq!(at(FactState::Future, "2020-06-01"), "f2");
    assert_eq!(at(FactState::Past, "2021-01-01"), "f1");
    assert_eq!(at(FactState::Current, "2021-01-01"), "");
    assert_eq!(at(FactState::Past, ""), "f1");
    let then = facts.query(&FactQuery { as_of: moment("2020-06-01"), ..about("Max") });
    assert_eq!((then[0].state, then[0].current), (FactState::Current, false));
    let mut reader = facts.0.reader();
    let snapshot = reader.snapshot().unwrap();
    let begun = snapshot.fact_timeline(None, moment("2021-06-01"), 10, 0).unwrap();
    assert_eq!((ids(&begun), begun[0].state), ("f1".to_owned(), FactState::Past));
    let stats = snapshot.fact_stats(moment("2020-06-01")).unwrap();
    assert_eq!((stats.facts, stats.current, stats.past, stats.future), (2, 1, 0, 1));
}

#[test]
fn facts_are_found_by_words() {
    let mut facts = Facts::new();
    facts.add("Max lives_in Berlin", "");
    facts.add("Eva works_at Deploy_Tools", "");
    let maxi = isolith_types::EntityPatch {
        name: "Max".to_owned(),
        add_aliases: vec!["Maximilian".to_owned()],
        ..isolith_types::EntityPatch::default()
    };
    facts.describe(maxi).unwrap();
    assert_eq!(facts.search("berlin MAXIMIL"), "f1");
    assert_eq!(facts.search("lives in"), "f1");
    assert_eq!(facts.search("works_at deploy"), "f2");
    assert_eq!(facts.search("max deploy"), "");
    let none = FactQuery { text: Some(" ".to_owned()), ..FactQuery::default() };
    assert!(facts.0.reader().snapshot().unwrap().facts(&none).is_err());
}
