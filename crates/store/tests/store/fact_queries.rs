//! Reading facts and entities: cases of docs/facts.md, each under the name it has there.

use isolith_types::{Code, Entity, EntityPatch, EntityQuery, FactDirection, FactQuery, NewFact};

use crate::facts::{Facts, about, code, fact, ids};

#[test]
fn stats_count_past_current_and_future_facts() {
    let mut facts = Facts::new();
    let empty = facts.0.reader().snapshot().unwrap().fact_stats(None).unwrap();
    assert_eq!(empty, isolith_types::FactStats::default());
    facts.add("Max lives_in Berlin", "2020-01-01/2021-01-01");
    facts.add("Max lives_in Rome", "/2020-01-01");
    facts.add("Max lives_in Hamburg", "2021-01-01");
    facts.add("Max Lives_In Bonn", "2999-01-01");
    facts.add("Max has membership", "2020-01-01/2999-01-01");
    facts.add("Max is tall", "");
    let stats = facts.0.reader().snapshot().unwrap().fact_stats(None).unwrap();
    assert_eq!((stats.facts, stats.current, stats.past, stats.future), (6, 3, 2, 1));
    assert_eq!((stats.entities, stats.predicates), (7, 3));
}

#[test]
fn queries_return_current_facts_first() {
    let mut facts = Facts::new();
    facts.add("Max lives_in Berlin", "2020-01-01/2021-01-01");
    facts.add("Max lives_in Bonn", "2999-01-01");
    facts.add("Max lives_in Hamburg", "2021-01-01");
    facts.add("Eva knows Max", "2022-01-01");
    facts.add("Eva knows Eva", "");
    let shown = facts.query(&about("Max"));
    let flags: Vec<(&str, bool)> =
        shown.iter().map(|fact| (fact.id.as_str(), fact.current)).collect();
    assert_eq!(flags, [("f4", true), ("f3", true), ("f2", false), ("f1", false)]);
    let narrowed = |direction, predicate: Option<&str>| {
        let predicate = predicate.map(str::to_owned);
        ids(&facts.query(&FactQuery { direction, predicate, ..about("Max") }))
    };
    assert_eq!(narrowed(FactDirection::Out, None), "f3 f2 f1");
    assert_eq!(narrowed(FactDirection::In, None), "f4");
    assert_eq!(narrowed(FactDirection::Both, Some("KNOWS")), "f4");
    assert_eq!(narrowed(FactDirection::Both, Some("lives in")), "f3 f2 f1");
    assert_eq!(narrowed(FactDirection::Both, Some("nothing")), "");
    // A fact from an entity to itself is listed once; pages are consistent.
    assert_eq!(facts.all("Eva"), "f4 f5");
    let page = FactQuery { limit: 2, offset: 1, ..about("Max") };
    assert_eq!(ids(&facts.query(&page)), "f3 f2");
    assert_eq!(facts.all("nobody"), "");
    let of_all = FactQuery { predicate: Some("knows".to_owned()), ..about("") };
    assert_eq!(ids(&facts.query(&FactQuery { entity: None, ..of_all })), "f4 f5");
}

#[test]
fn the_timeline_goes_from_the_past_to_the_future() {
    let mut facts = Facts::new();
    facts.add("Max is tall", "");
    facts.add("Max lives_in Bonn", "2999-01-01");
    facts.add("Max lives_in Hamburg", "2021-01-01");
    facts.add("Max lives_in Berlin", "/2020-01-01");
    facts.add("Eva is tall", "2020-06-01");
    let reader = &mut facts.0.reader();
    let snapshot = reader.snapshot().unwrap();
    let timeline =
        |entity, limit, offset| ids(&snapshot.fact_timeline(entity, None, limit, offset).unwrap());
    assert_eq!(timeline(Some("max"), 10, 0), "f4 f3 f2 f1");
    assert_eq!(timeline(None, 10, 0), "f4 f5 f3 f2 f1");
    assert_eq!(timeline(None, 2, 1), "f5 f3");
    assert_eq!(timeline(Some("nobody"), 10, 0), "");
}

#[test]
fn an_entity_is_found_by_any_of_its_names() {
    let mut facts = Facts::new();
    let person = |name: &str, aliases: &[&str]| EntityPatch {
        name: name.to_owned(),
        r#type: Some("person".to_owned()),
        add_aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
        remove_aliases: Vec::new(),
    };
    facts.add("Robert knows Eva", "");
    let robert = facts.describe(person("robert", &["Bob", " bob ", "Rob", "Robert"])).unwrap();
    let expected = Entity {
        name: "Robert".to_owned(),
        r#type: Some("person".to_owned()),
        aliases: vec!["Bob".to_owned(), "Rob".to_owned()],
        facts: 1,
    };
    assert_eq!(robert, expected);
    let again = facts.add("BOB knows eva", "");
    assert_eq!((again.id.as_str(), again.created), ("f1", false));
    assert_eq!(facts.all("rob"), "f1");
    // A name has one owner.
    for taken in [person("Eva", &["BOB"]), person("Eva", &["robert"])] {
        assert_eq!(code(&facts.describe(taken).unwrap_err()), Code::AlreadyExists);
    }
    let remove = EntityPatch {
        name: "Bob".to_owned(),
        remove_aliases: vec!["ROB".to_owned(), "nothing".to_owned()],
        ..EntityPatch::default()
    };
    assert_eq!(facts.describe(remove).unwrap().aliases, ["Bob"]);
    let nobody = EntityPatch { r#type: Some(String::new()), ..person("Robert", &[]) };
    assert_eq!(facts.describe(nobody).unwrap().r#type, None);
    let many: Vec<String> = (0..100).map(|number| format!("alias {number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(code(&facts.describe(person("Robert", &many)).unwrap_err()), Code::BadInput);
    assert_eq!(facts.describe(person("Robert", &[])).unwrap().aliases.len(), 1);
}

#[test]
fn types_come_with_facts_and_are_not_overwritten_by_them() {
    let mut facts = Facts::new();
    let typed = |subject: &str, object: &str| NewFact {
        subject_type: Some(subject.to_owned()),
        object_type: Some(object.to_owned()),
        ..fact("Max works_on Isolith", "")
    };
    facts.add("Max works_on Isolith", "");
    facts.try_add(typed("person", "project")).unwrap();
    facts.try_add(typed("robot", "project")).unwrap();
    facts.add("Eva knows Max", "");
    let reader = &mut facts.0.reader();
    let snapshot = reader.snapshot().unwrap();
    let names = |of_type: Option<&str>, like: Option<&str>| {
        let (r#type, like) = (of_type.map(str::to_owned), like.map(str::to_owned));
        let query = EntityQuery { r#type, like, limit: 10, offset: 0 };
        let found = snapshot.entities(&query).unwrap();
        found.iter().map(|it| format!("{}:{}", it.name, it.facts)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(None, None), "Eva:1 Isolith:1 Max:2");
    assert_eq!(names(Some("Person"), None), "Max:2");
    assert_eq!(names(Some("robot"), None), "");
    assert_eq!(names(None, Some("A")), "Eva:1 Max:2");
    assert_eq!(names(Some("project"), Some("a")), "");
}
