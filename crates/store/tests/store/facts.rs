//! Adding, ending and replacing facts: cases of docs/facts.md, each under the name it has there.

use isolith_protocol::{
    AddFact, DescribeEntity, InvalidateFact, Key, StoreError, SupersedeFact, Write, WriteOperation,
};
use isolith_types::{
    AddedFact, Code, EndedFact, Entity, EntityPatch, Fact, FactQuery, Hint, Moment, NewFact,
    Provenance, Supersede, WhichFact,
};

use crate::common::{TestStore, Written, key, write};

/// A store with shortcuts for facts.
pub(crate) struct Facts(pub(crate) TestStore);

impl Facts {
    pub(crate) fn new() -> Self {
        Self(TestStore::empty())
    }

    pub(crate) fn try_add(&mut self, fact: NewFact) -> Result<AddedFact, StoreError> {
        self.0.one(AddFact { fact }).map(|written| written.reply.fact)
    }

    pub(crate) fn add(&mut self, said: &str, dates: &str) -> AddedFact {
        self.try_add(fact(said, dates)).unwrap()
    }

    fn end(&mut self, which: WhichFact, at: &str) -> Result<EndedFact, StoreError> {
        let end = InvalidateFact { which, at: moment(at) };
        self.0.one(end).map(|written| written.reply.ended_fact)
    }

    pub(crate) fn supersede(
        &mut self,
        old: WhichFact,
        object: &str,
        at: &str,
    ) -> Result<(String, AddedFact), StoreError> {
        let written = self.0.one(SupersedeFact { change: superseding(old, object, at) })?;
        Ok((written.reply.ended_fact.id, written.reply.fact))
    }

    pub(crate) fn describe(&mut self, patch: EntityPatch) -> Result<Entity, StoreError> {
        self.0.one(DescribeEntity { patch }).map(|written| written.reply.entity.unwrap())
    }

    pub(crate) fn query(&self, query: &FactQuery) -> Vec<Fact> {
        self.0.reader().snapshot().unwrap().facts(query).unwrap()
    }

    /// The ids of all facts about an entity.
    pub(crate) fn all(&self, entity: &str) -> String {
        ids(&self.query(&about(entity)))
    }

    /// The ids of the facts about an entity that are true at a time.
    fn as_of(&self, entity: &str, at: &str) -> String {
        ids(&self.query(&FactQuery { as_of: moment(at), ..about(entity) }))
    }

    fn current(&self, entity: &str) -> String {
        let facts = self.query(&about(entity));
        ids(&facts.into_iter().filter(|fact| fact.current).collect::<Vec<_>>())
    }

    fn one(&self, id: &str) -> Fact {
        let all = self.query(&FactQuery { limit: 1000, ..FactQuery::default() });
        all.into_iter().find(|fact| fact.id == id).unwrap()
    }
}

pub(crate) fn moment(text: &str) -> Option<Moment> {
    (!text.is_empty()).then(|| text.parse().unwrap())
}

/// `subject predicate object`, and `from/to`.
pub(crate) fn fact(said: &str, dates: &str) -> NewFact {
    let mut words = said.splitn(3, ' ').map(str::to_owned);
    let mut word = || words.next().unwrap();
    let (from, to) = dates.split_once('/').unwrap_or((dates, ""));
    NewFact {
        subject: word(),
        predicate: word(),
        object: word(),
        valid_from: moment(from),
        valid_to: moment(to),
        ..NewFact::default()
    }
}

fn by(agent: &str, fact: NewFact) -> NewFact {
    let provenance = Provenance { agent: Some(agent.to_owned()), ..Provenance::default() };
    NewFact { provenance, ..fact }
}

pub(crate) fn superseding(old: WhichFact, object: &str, at: &str) -> Supersede {
    Supersede {
        old,
        object: object.to_owned(),
        object_type: None,
        at: moment(at),
        confidence: None,
        provenance: Provenance::default(),
    }
}

pub(crate) fn id(id: &str) -> WhichFact {
    WhichFact::Id(id.to_owned())
}

fn said(said: &str) -> WhichFact {
    let mut words = said.splitn(3, ' ').map(str::to_owned);
    WhichFact::Said {
        subject: words.next().unwrap(),
        predicate: words.next().unwrap(),
        object: words.next(),
    }
}

pub(crate) fn about(entity: &str) -> FactQuery {
    FactQuery { entity: Some(entity.to_owned()), limit: 1000, ..FactQuery::default() }
}

pub(crate) fn ids(facts: &[Fact]) -> String {
    facts.iter().map(|fact| fact.id.as_str()).collect::<Vec<_>>().join(" ")
}

pub(crate) fn code(error: &StoreError) -> Code {
    error.to_failure().code
}

#[test]
fn adding_again_finds_the_open_fact() {
    let mut facts = Facts::new();
    let first = facts.add("Max loves chess", "2025-10-01");
    assert_eq!(first, AddedFact { id: "f1".to_owned(), created: true, updated: false });
    for (again, dates) in [
        ("Max loves chess", "2025-10-01"),
        ("  mAX  Loves CHESS ", ""),
        ("Max loves chess", "2026-01-01"),
    ] {
        let words: Vec<&str> = again.split_whitespace().collect();
        let again = facts.add(&words.join(" "), dates);
        assert_eq!(again, AddedFact { id: "f1".to_owned(), created: false, updated: false });
    }
    // The first spelling stays, and so does the start.
    let fact = facts.one("f1");
    assert_eq!(fact.subject, "Max");
    assert_eq!(fact.valid_from, moment("2025-10-01"));
}

#[test]
fn adding_again_moves_the_start_earlier() {
    let mut facts = Facts::new();
    facts.add("Ann works_at Acme", "");
    let learnt = facts.add("Ann works_at Acme", "2024-03-01");
    assert_eq!(learnt, AddedFact { id: "f1".to_owned(), created: false, updated: true });
    facts.add("Ann works_at Acme", "2024-01-01");
    assert!(!facts.add("Ann works_at Acme", "2024-02-01").updated);
    assert_eq!(facts.one("f1").valid_from, moment("2024-01-01"));
}

#[test]
fn adding_again_keeps_every_source() {
    let mut facts = Facts::new();
    let sure = |confidence, fact| NewFact { confidence: Some(confidence), ..fact };
    let it = || fact("Max loves chess", "");
    facts.try_add(sure(0.5, by("ann", it()))).unwrap();
    assert!(!facts.try_add(sure(0.5, by("ann", it()))).unwrap().updated);
    assert!(facts.try_add(by("bob", it())).unwrap().updated);
    assert!(facts.try_add(sure(0.9, by("ann", it()))).unwrap().updated);
    assert!(!facts.try_add(it()).unwrap().updated, "it has nothing to add");
    let words = |fact: &Fact| -> Vec<(String, f64)> {
        let sources = fact.sources.iter();
        sources.map(|it| (it.agent.clone().unwrap_or_default(), it.confidence)).collect()
    };
    let named = |agent: &str, confidence| (agent.to_owned(), confidence);
    let kept = facts.one("f1");
    assert_eq!(words(&kept), [named("ann", 0.5), named("bob", 0.5), named("ann", 0.9)]);
    assert_eq!(kept.confidence, 0.9);
    // The last confidence counts, whether the source is new or not.
    assert!(facts.try_add(sure(0.5, by("ann", it()))).unwrap().updated);
    let kept = facts.one("f1");
    assert_eq!((kept.confidence, words(&kept).len()), (0.5, 3));
    for number in 0..30 {
        facts.try_add(by(&format!("agent {number}"), it())).unwrap();
    }
    let kept = words(&facts.one("f1"));
    assert_eq!(kept.len(), 20);
    assert_eq!((&kept[0], &kept[19]), (&named("ann", 0.5), &named("agent 29", 0.5)));
}

#[test]
fn a_closed_interval_before_an_open_one_is_kept() {
    for open in ["2024-01-01", "2021-01-01", ""] {
        let mut facts = Facts::new();
        facts.add("Ann works_at Acme", open);
        let before = facts.add("Ann works_at Acme", "2020-01-01/2021-01-01");
        assert_eq!((before.id.as_str(), before.created), ("f2", true), "{open}");
        assert_eq!(facts.current("Ann"), "f1", "{open}");
        assert!(facts.as_of("Ann", "2020-06-01").contains("f2"), "{open}");
        // Each of them is found again.
        assert_eq!(facts.add("Ann works_at Acme", "2020-01-01/2021-01-01").id, "f2");
        assert_eq!(facts.add("Ann works_at Acme", "").id, "f1");
    }
}

#[test]
fn after_its_end_it_can_become_true_again() {
    let mut facts = Facts::new();
    facts.add("Ann works_at Acme", "2020-01-01/2021-01-01");
    let again = facts.add("Ann works_at Acme", "");
    assert_eq!((again.id.as_str(), again.created), ("f2", true));
    facts.end(id("f2"), "").unwrap();
    assert_eq!(facts.add("Ann works_at Acme", "").id, "f3");
    assert_eq!(facts.current("Ann"), "f3");
}

#[test]
fn without_dates_it_is_found_while_it_is_true() {
    let mut facts = Facts::new();
    facts.add("Max has membership", "2020-01-01/2999-01-01");
    let again = facts.add("Max has membership", "");
    assert_eq!((again.id.as_str(), again.created), ("f1", false));
    facts.add("Max will retire", "2999-01-01");
    let clash = facts.try_add(fact("Max will retire", "")).unwrap_err();
    assert_eq!(code(&clash), Code::AlreadyExists, "{clash}");
}

#[test]
fn overlapping_intervals_are_refused() {
    let mut facts = Facts::new();
    facts.add("Ann works_at Acme", "2020-01-01/2022-01-01");
    facts.add("Ann works_at Acme", "2024-01-01");
    for (dates, with) in [
        ("2021-01-01/2023-01-01", "f1"),
        ("2020-06-01/2020-07-01", "f1"),
        ("2019-01-01/2020-01-02", "f1"),
        ("2019-01-01/2022-01-01", "f1"),
        ("2024-06-01/2025-01-01", "f2"),
        ("2023-01-01/2025-01-01", "f2"),
        // It would make f2 start before f1 ends.
        ("2021-01-01", "f1"),
    ] {
        let clash = facts.try_add(fact("Ann works_at Acme", dates)).unwrap_err();
        let failure = clash.to_failure();
        assert_eq!(failure.code, Code::AlreadyExists, "{dates}");
        assert!(failure.message.starts_with(with), "{dates}: {}", failure.message);
        let is_open = with == "f2";
        let invalidate = Some(Hint::InvalidateFact { id: "f2".to_owned() });
        assert_eq!(failure.hint == invalidate, is_open, "{:?}", failure.hint);
    }
    // Adjacent periods do not overlap.
    assert!(facts.add("Ann works_at Acme", "2022-01-01/2024-01-01").created);
    assert_eq!(facts.all("Ann"), "f2 f3 f1");
    // Facts with different objects may overlap.
    assert!(facts.add("Ann works_at Other", "2021-01-01/2023-01-01").created);
}

#[test]
fn an_inverted_interval_is_refused() {
    let mut facts = Facts::new();
    for dates in [
        "2024-01-02/2024-01-01",
        "2024-01-01T10:00:00Z/2024-01-01T09:00:00Z",
        "2024-01-01T10:00:00+02:00/2024-01-01T07:59:59Z",
        "2024-01-01T10:00:00Z/2024-01-01",
    ] {
        let error = facts.try_add(fact("Max loves chess", dates)).unwrap_err();
        assert_eq!(code(&error), Code::BadInput, "{dates}: {error}");
    }
    facts.add("Max loves chess", "2024-01-02");
    assert_eq!(code(&facts.end(id("f1"), "2024-01-01").unwrap_err()), Code::BadInput);
    let early = facts.supersede(id("f1"), "go", "2024-01-01").unwrap_err();
    assert_eq!(code(&early), Code::BadInput);
    assert_eq!(facts.all("Max"), "f1");
    assert_eq!(facts.one("f1").valid_to, None);
}

#[test]
fn an_instant_fact_is_visible_at_its_instant() {
    let mut facts = Facts::new();
    facts.add("deploy hit production", "2024-05-01T09:30:00Z/2024-05-01T11:30:00+02:00");
    for (at, seen) in [
        ("2024-05-01T09:30:00Z", true),
        ("2024-05-01T09:30:00.001Z", false),
        ("2024-05-01T09:29:59.999Z", false),
        ("2024-05-01", true),
        ("2024-05-02", false),
    ] {
        assert_eq!(facts.as_of("deploy", at) == "f1", seen, "{at}");
    }
}

#[test]
fn the_same_day_twice_means_that_day() {
    let mut facts = Facts::new();
    facts.add("Max visited Rome", "2024-05-01/2024-05-01");
    for (at, seen) in [
        ("2024-05-01", true),
        ("2024-05-01T23:59:59Z", true),
        ("2024-04-30", false),
        ("2024-05-02", false),
    ] {
        assert_eq!(facts.as_of("Max", at) == "f1", seen, "{at}");
    }
}

#[test]
fn a_day_covers_all_of_the_day() {
    let mut facts = Facts::new();
    facts.add("Max was awake", "2024-05-01T08:00:00Z/2024-05-01T09:00:00Z");
    facts.add("Max was asleep", "2024-05-01T22:00:00Z/2024-05-02T06:00:00Z");
    for (at, seen) in [
        ("2024-04-30", ""),
        ("2024-05-01", "f2 f1"),
        ("2024-05-02", "f2"),
        ("2024-05-03", ""),
        ("2024-05-01T08:59:59Z", "f1"),
        ("2024-05-01T09:00:00Z", ""),
        // 23:00 in UTC.
        ("2024-05-02T01:00:00+02:00", "f2"),
    ] {
        assert_eq!(facts.as_of("Max", at), seen, "{at}");
    }
}

#[test]
fn ending_and_starting_on_one_day_leaves_one() {
    let mut facts = Facts::new();
    facts.add("Max lives_in Berlin", "2020-01-01");
    facts.end(said("Max lives_in Berlin"), "2024-06-01").unwrap();
    facts.add("Max lives_in Hamburg", "2024-06-01");
    for at in ["2024-06-01", "2024-06-01T00:00:00Z", "2024-06-02"] {
        assert_eq!(facts.as_of("Max", at), "f2", "{at}");
    }
    assert_eq!(facts.as_of("Max", "2024-05-31"), "f1");
    assert_eq!(facts.current("Max"), "f2");
}

#[test]
fn a_fact_that_ends_on_its_first_day_is_not_current() {
    let today = Moment::day_of(now()).to_string();
    let mut facts = Facts::new();
    facts.add("Max lives_in Berlin", &today);
    facts.supersede(id("f1"), "Hamburg", &today).unwrap();
    // It was true on that day, but is not now.
    assert_eq!(facts.current("Max"), "f2");
    assert_eq!(facts.as_of("Max", &today), "f2 f1");
    assert!(!facts.end(id("f1"), &today).unwrap().changed);
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

#[test]
fn invalidating_an_unknown_fact_is_not_found() {
    let mut facts = Facts::new();
    facts.add("Max loves chess", "2020-01-01/2021-01-01");
    for which in [id("f7"), said("Max loves go"), said("Eva loves chess"), said("Max hates chess")]
    {
        assert_eq!(code(&facts.end(which, "").unwrap_err()), Code::NotFound);
    }
    // It has ended.
    assert_eq!(code(&facts.end(said("Max loves chess"), "").unwrap_err()), Code::NotFound);
    for wrong in ["", "7", "fact 7"] {
        assert_eq!(code(&facts.end(id(wrong), "").unwrap_err()), Code::BadInput);
    }
}

#[test]
fn invalidating_ends_it_and_may_be_repeated() {
    let mut facts = Facts::new();
    facts.add("Max loves chess", "2020-01-01");
    let ended = facts.end(said("max LOVES chess"), "2024-01-01").unwrap();
    let expected =
        EndedFact { id: "f1".to_owned(), valid_to: moment("2024-01-01").unwrap(), changed: true };
    assert_eq!(ended, expected);
    for which in [id("f1"), said("Max loves chess"), said("Max loves")] {
        let again = facts.end(which, "2024-01-01").unwrap();
        assert_eq!(again, EndedFact { changed: false, ..expected.clone() });
    }
    // An end can be moved earlier, never later.
    assert_eq!(code(&facts.end(id("f1"), "2025-01-01").unwrap_err()), Code::BadInput);
    assert!(facts.end(id("f1"), "2023-01-01").unwrap().changed);
    assert_eq!(facts.one("f1").valid_to, moment("2023-01-01"));
    // Without a time it ends now.
    facts.add("Max loves go", "2020-01-01/2999-01-01");
    assert_eq!(facts.current("Max"), "f2");
    facts.end(said("Max loves go"), "").unwrap();
    assert_eq!(facts.current("Max"), "");
}

#[test]
fn superseding_ends_one_fact_and_starts_another() {
    let mut facts = Facts::new();
    facts.add("Max lives_in Berlin", "2020-01-01");
    let (old, new) = facts.supersede(id("f1"), "Hamburg", "2024-06-01").unwrap();
    assert_eq!((old.as_str(), new.id.as_str(), new.created), ("f1", "f2", true));
    let (berlin, hamburg) = (facts.one("f1"), facts.one("f2"));
    assert_eq!(berlin.superseded_by.as_deref(), Some("f2"));
    assert_eq!(berlin.valid_to, hamburg.valid_from);
    assert_eq!((hamburg.subject.as_str(), hamburg.predicate.as_str()), ("Max", "lives_in"));
    assert_eq!(facts.as_of("Max", "2024-06-01"), "f2");
    // Without a time, the change happens now; the object can be omitted.
    facts.supersede(said("Max lives_in"), "Berlin", "").unwrap();
    assert_eq!(facts.current("Max"), "f3");
    assert_eq!(facts.one("f2").superseded_by.as_deref(), Some("f3"));
    // Repeating it changes nothing.
    let again = facts.supersede(id("f1"), "Hamburg", "2024-06-01");
    assert_eq!(code(&again.unwrap_err()), Code::AlreadyExists, "f2 has ended");
    assert_eq!(facts.all("Max"), "f3 f2 f1");
}

#[test]
fn superseding_is_all_or_nothing() {
    let mut facts = Facts::new();
    facts.add("Max lives_in Berlin", "2020-01-01");
    facts.add("Max lives_in Hamburg", "2021-01-01/2023-01-01");
    let clash = facts.supersede(id("f1"), "Hamburg", "2022-01-01").unwrap_err();
    assert_eq!(code(&clash), Code::AlreadyExists);
    let same = facts.supersede(id("f1"), "berlin", "2022-01-01").unwrap_err();
    assert_eq!(code(&same), Code::BadInput);
    let empty = facts.supersede(id("f1"), " ", "2022-01-01").unwrap_err();
    assert_eq!(code(&empty), Code::BadInput);
    assert_eq!(facts.one("f1").valid_to, None);
    // A fact has one successor.
    facts.supersede(id("f1"), "Rome", "2024-01-01").unwrap();
    let other = facts.supersede(id("f1"), "Paris", "2024-01-01").unwrap_err();
    assert!(other.to_string().contains("f3"), "{other}");
    assert!(!facts.supersede(id("f1"), "Rome", "2024-01-01").unwrap().1.created);
    assert_eq!(
        code(&facts.supersede(id("f1"), "Paris", "2025-01-01").unwrap_err()),
        Code::BadInput
    );
    // If several facts match, the object must be given.
    facts.add("Max likes tea", "");
    facts.add("Max likes coffee", "");
    let several = facts.supersede(said("Max likes"), "water", "").unwrap_err();
    assert!(several.to_string().contains("f4, f5"), "{several}");
}

#[test]
fn invalid_facts_are_refused() {
    let mut facts = Facts::new();
    let long = "x".repeat(1001);
    let it = || fact("Max loves chess", "");
    for wrong in [
        NewFact { subject: " ".to_owned(), ..it() },
        NewFact { predicate: "_".to_owned(), ..it() },
        NewFact { object: String::new(), ..it() },
        NewFact { subject: long.clone(), ..it() },
        NewFact { object: "two\nlines".to_owned(), ..it() },
        NewFact { confidence: Some(f64::NAN), ..it() },
        NewFact { confidence: Some(1.01), ..it() },
        NewFact { confidence: Some(-0.1), ..it() },
        NewFact { subject_type: Some(long.clone()), ..it() },
        by(&long, it()),
    ] {
        let error = facts.try_add(wrong.clone()).unwrap_err();
        assert_eq!(code(&error), Code::BadInput, "{wrong:?}");
    }
    let stats = facts.0.reader().snapshot().unwrap().fact_stats(None).unwrap();
    assert_eq!((stats.facts, stats.entities), (0, 0), "nothing is left of them");
    // The maximum length is accepted.
    let longest = "é".repeat(500);
    facts.add(&format!("{longest} is {longest}"), "");
    assert_eq!(facts.all(&longest), "f1");
}

#[test]
fn a_write_with_a_key_is_applied_once() {
    let mut facts = Facts::new();
    let add = || AddFact { fact: fact("Max loves chess", "2020-01-01") };
    let end = || InvalidateFact { which: id("f1"), at: None };
    let patch = EntityPatch {
        name: "Max".to_owned(),
        add_aliases: vec!["Maxi".to_owned()],
        ..EntityPatch::default()
    };
    let describe = || DescribeEntity { patch: patch.clone() };
    let (one, two, three) = (Key::of_text("one"), key(), key());
    let first = facts.0.keyed(one, add()).unwrap();
    let ended = facts.0.keyed(two, end()).unwrap();
    let described = facts.0.keyed(three, describe()).unwrap();
    // Without the key, this would be a new fact.
    assert_eq!(facts.0.keyed(one, add()).unwrap(), Written { repeated: true, ..first });
    assert_eq!(facts.0.keyed(two, end()).unwrap(), Written { repeated: true, ..ended });
    assert_eq!(facts.0.keyed(three, describe()).unwrap(), Written { repeated: true, ..described });
    assert_eq!(facts.0.keyed(one, end()).unwrap_err(), StoreError::KeyReused);
    assert_eq!(facts.all("maxi"), "f1");
}

#[test]
fn an_invalid_fact_in_a_batch_fails_alone() {
    let mut facts = Facts::new();
    let group: Vec<Write> = ["a p b", "a p b", "x p y"]
        .iter()
        .map(|said| {
            let mut fact = fact(said, "");
            if *said == "x p y" {
                fact.confidence = Some(2.0);
            }
            write(AddFact { fact })
        })
        .collect();
    let results = facts.0.writer.apply(&group, &[]).unwrap();
    let ids: Vec<Option<String>> = results
        .into_iter()
        .map(|result| Some(AddFact::reply_from(result.ok()?.reply)?.fact.id))
        .collect();
    assert_eq!(ids, [Some("f1".to_owned()), Some("f1".to_owned()), None]);
    assert_eq!(facts.all("x"), "");
}

#[test]
fn tests_named_in_facts_md_exist() {
    let page = include_str!("../../../../docs/facts.md");
    let tests =
        [include_str!("facts.rs"), include_str!("fact_queries.rs"), include_str!("fact_truth.rs")]
            .concat();
    let cases = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let cases: Vec<&str> = cases.map(|(name, _)| name).filter(|it| !it.contains(' ')).collect();
    assert!(cases.len() > 20, "{cases:?}");
    for case in cases {
        assert!(tests.contains(&format!("#[test]\nfn {case}() {{")), "{case}");
    }
}
