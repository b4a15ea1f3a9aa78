//! Facts and entities in the graph: always up to date, and read-only for Cypher.

use isolith_graph::Datum;
use isolith_protocol::{AddFact, ChangeGraph, CypherQuery, InvalidateFact, Key, Write};
use isolith_store::{Check, Checkpoint, StoreFolder};
use isolith_types::{Code, EntityPatch, Hint, NewFact, Provenance};

use crate::common::{TestStore, database, writer};
use crate::doctor::{problems, salvage};
use crate::facts::{Facts, fact, id};

const FACTS: &str = "MATCH (s)-[r]->(o) RETURN r.id, s.name, type(r), o.name, r.valid_from, \
    r.valid_to, r.confidence, r.superseded_by ORDER BY r.id";
const ENTITIES: &str = "MATCH (e:Entity) RETURN e.name, e.type, e.aliases ORDER BY e.name";

fn query(text: &str) -> CypherQuery {
    CypherQuery { text: text.to_owned(), ..CypherQuery::default() }
}

/// Rows with their values as text.
fn rows(store: &TestStore, text: &str) -> Vec<String> {
    let answer = store.reader().snapshot().unwrap().cypher(&query(text), None).unwrap();
    let line = |row: Vec<Datum>| row.iter().map(shown).collect::<Vec<_>>().join(" | ");
    answer.rows().map(|row| line(row.unwrap())).collect()
}

fn shown(datum: &Datum) -> String {
    match datum {
        Datum::Null => "-".to_owned(),
        Datum::Integer(number) => number.to_string(),
        Datum::Float(number) => number.to_string(),
        Datum::Text(text) => text.clone(),
        Datum::List(list) => list.iter().map(shown).collect::<Vec<_>>().join(","),
        other => format!("{other:?}"),
    }
}

fn change(store: &mut TestStore, text: &str) -> Result<(), isolith_types::Failure> {
    let changed = store.one(ChangeGraph { query: query(text) });
    changed.map(|_| ()).map_err(|error| error.to_failure())
}

fn assert_sound(folder: &StoreFolder, what: &str) {
    for check in Check::ALL {
        assert_eq!(problems(folder, check), 0, "{what}: {check:?}");
    }
}

fn patch(name: &str) -> EntityPatch {
    EntityPatch { name: name.to_owned(), ..EntityPatch::default() }
}

#[test]
fn a_fact_is_an_edge_between_entities() {
    let mut facts = Facts::new();
    facts.add("Max lives_in Berlin", "2020-01-01/2024-01-01");
    facts.add("MAX lives_in Paris", "2024-01-01T09:30:00+01:00");
    let visit = NewFact { confidence: Some(0.5), ..fact("Max met Max", "2021-05-05/2021-05-05") };
    facts.try_add(visit).unwrap();
    assert_eq!(
        rows(&facts.0, FACTS),
        [
            "f1 | Max | lives_in | Berlin | 2020-01-01 | 2024-01-01 | 1 | -",
            "f2 | Max | lives_in | Paris | 2024-01-01T08:30:00.000Z | - | 1 | -",
            // True on that day: the end is the first moment at which it is no longer true.
            "f3 | Max | met | Max | 2021-05-05 | 2021-05-06 | 0.5 | -",
        ]
    );
    assert_eq!(rows(&facts.0, ENTITIES), ["Berlin | - | -", "Max | - | -", "Paris | - | -"]);
    // What is true then, as `fact query --as-of` would say.
    let as_of = |at: &str| {
        let then = format!(
            "MATCH (:Entity {{name: 'Max'}})-[r]->(o) \
             WHERE coalesce(r.valid_from <= '{at}', true) AND coalesce('{at}' < r.valid_to, true) \
             RETURN o.name ORDER BY r.id"
        );
        rows(&facts.0, &then)
    };
    assert_eq!(as_of("2021-05-05"), ["Berlin", "Max"]);
    assert_eq!(as_of("2021-05-05T23:59:59.999Z"), ["Berlin", "Max"]);
    assert_eq!(as_of("2024-01-01"), [""; 0]);
    assert_eq!(as_of("2024-01-01T08:30:00.000Z"), ["Paris"]);
    assert_sound(&facts.0.folder, "added");
}

#[test]
fn the_graph_follows_every_change_of_a_fact() {
    let mut facts = Facts::new();
    facts.add("Max works_at Acme", "2020-01-01");
    facts.add("max WORKS_AT acme", "2019-01-01");
    let now = |facts: &Facts| rows(&facts.0, FACTS);
    assert_eq!(now(&facts), ["f1 | Max | works_at | Acme | 2019-01-01 | - | 1 | -"]);
    facts.supersede(id("f1"), "Zeta", "2023-01-01").unwrap();
    let superseded = "f1 | Max | works_at | Acme | 2019-01-01 | 2023-01-01 | 1 | f2";
    assert_eq!(now(&facts), [superseded, "f2 | Max | works_at | Zeta | 2023-01-01 | - | 1 | -"]);
    let at = Some("2024-01-01".parse().unwrap());
    facts.0.one(InvalidateFact { which: id("f2"), at }).unwrap();
    let ended = "f2 | Max | works_at | Zeta | 2023-01-01 | 2024-01-01 | 1 | -";
    assert_eq!(now(&facts), [superseded, ended]);
    // A refused write leaves nothing.
    facts.try_add(fact("Max works_at Zeta", "2023-06-01/2025-01-01")).unwrap_err();
    facts.supersede(id("f1"), "Nowhere", "2022-01-01").unwrap_err();
    assert_eq!(now(&facts), [superseded, ended]);
    assert_eq!(rows(&facts.0, ENTITIES).len(), 3);
    assert_sound(&facts.0.folder, "changed");
}

#[test]
fn the_graph_shows_all_sources_of_a_fact() {
    let mut facts = Facts::new();
    let said = |drawer: &str, file: &str, agent: &str| {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let provenance =
            Provenance { drawer: given(drawer), file: given(file), agent: given(agent) };
        NewFact { provenance, ..fact("Ann owns src/a.rs", "") }
    };
    let sources = "MATCH ()-[r:owns]->() RETURN r.drawers, r.files, r.agents";
    facts.try_add(said("", "notes.md", "")).unwrap();
    assert_eq!(rows(&facts.0, sources), ["- | notes.md | -"]);
    facts.try_add(said("d1", "notes.md", "codex")).unwrap();
    facts.try_add(said("d2", "", "codex")).unwrap();
    assert_eq!(rows(&facts.0, sources), ["d1,d2 | notes.md | codex"]);
    assert_sound(&facts.0.folder, "said");
}

#[test]
fn entities_are_found_by_their_properties() {
    let mut facts = Facts::new();
    let typed = NewFact { subject_type: Some("person".to_owned()), ..fact("Max knows Ann", "") };
    facts.try_add(typed).unwrap();
    let described = EntityPatch {
        r#type: Some("cat".to_owned()),
        add_aliases: vec!["Annie".to_owned(), "A.".to_owned()],
        ..patch("ann")
    };
    facts.describe(described).unwrap();
    facts.describe(patch("Alone")).unwrap();
    assert_eq!(
        rows(&facts.0, ENTITIES),
        ["Alone | - | -", "Ann | cat | Annie,A.", "Max | person | -"]
    );
    let found =
        |facts: &Facts, text: &str| rows(&facts.0, &format!("MATCH (e) {text} RETURN e.name"));
    assert_eq!(found(&facts, "WHERE e.type = 'cat'"), ["Ann"]);
    assert_eq!(found(&facts, "WHERE 'Annie' IN e.aliases"), ["Ann"]);
    let taken = vec!["annie".to_owned(), "A.".to_owned()];
    facts
        .describe(EntityPatch {
            r#type: Some(String::new()),
            remove_aliases: taken,
            ..patch("Ann")
        })
        .unwrap();
    assert_eq!(rows(&facts.0, ENTITIES), ["Alone | - | -", "Ann | - | -", "Max | person | -"]);
    assert_eq!(found(&facts, "WHERE e.type = 'cat'"), [""; 0]);
    assert_sound(&facts.0.folder, "described");
}

#[test]
fn a_repeated_write_changes_nothing() {
    let mut facts = Facts::new();
    let add = || Write {
        key: Key::of_text("once"),
        keep: true,
        action: AddFact { fact: fact("Max likes tea", "") }.into(),
    };
    facts.0.writer.apply(&[add()], &[]).unwrap().remove(0).unwrap();
    let number = |facts: &Facts| {
        let db = database(&facts.0.folder);
        db.query_row("SELECT change FROM graph", [], |row| row.get::<_, i64>(0)).unwrap()
    };
    let (before, change) = (rows(&facts.0, FACTS), number(&facts));
    assert!(facts.0.writer.apply(&[add()], &[]).unwrap().remove(0).unwrap().repeated);
    facts.add("max LIKES tea", "");
    facts.describe(patch("Tea")).unwrap();
    assert_eq!((rows(&facts.0, FACTS), number(&facts)), (before, change));
    facts.add("Max likes milk", "");
    assert_eq!(number(&facts), change + 1);
}

#[test]
fn cypher_cannot_change_facts() {
    let mut facts = Facts::new();
    facts.add("Max likes tea", "");
    let store = &mut facts.0;
    for (text, what) in [
        ("MATCH (e:Entity) SET e.name = 'x'", "the node"),
        ("MATCH (e:Entity {name: 'tea'}) SET e:Drink", "the node"),
        ("MATCH (e:Entity {name: 'tea'}) REMOVE e:Entity", "the node"),
        ("MATCH (e:Entity {name: 'tea'}) DELETE e", "the node"),
        ("MATCH (e:Entity {name: 'tea'}) DETACH DELETE e", "the node"),
        ("MATCH ()-[r:likes]->() SET r.confidence = 0.1", "the relationship"),
        ("MATCH ()-[r:likes]->() DELETE r", "the relationship"),
    ] {
        let refused = change(store, text).unwrap_err();
        assert_eq!(refused.code, Code::BadInput, "{text}");
        let message = format!("{what} belongs to the facts, which queries cannot change");
        assert_eq!(refused.message, message, "{text}");
        assert_eq!(refused.hint, Some(Hint::UseFacts), "{text}");
    }
    // Users' own edges may point to entities, and stay when an entity changes.
    change(store, "MATCH (e:Entity {name: 'tea'}) CREATE (:Note {text: 'hot'})-[:ABOUT]->(e)")
        .unwrap();
    let described = EntityPatch { add_aliases: vec!["chai".to_owned()], ..patch("tea") };
    facts.describe(described).unwrap();
    let about = "MATCH (n:Note)-[:ABOUT]->(e:Entity) RETURN n.text, e.aliases";
    assert_eq!(rows(&facts.0, about), ["hot | chai"]);
    // Labels of facts cannot be set by users.
    change(&mut facts.0, "CREATE (:Entity {name: 'mine'})").unwrap();
    change(&mut facts.0, "MATCH (e:Entity {name: 'mine'}) SET e.type = 'own' DELETE e").unwrap();
    assert_eq!(rows(&facts.0, ENTITIES), ["Max | - | -", "tea | - | chai"]);
    assert_sound(&facts.0.folder, "read");
}

#[test]
fn a_graph_that_differs_from_the_facts_is_detected_and_repaired() {
    let mut facts = Facts::new();
    for fact in ["Max likes tea", "Max likes milk", "Ann likes tea"] {
        facts.add(fact, "2020-01-01");
    }
    change(&mut facts.0, "MATCH (e:Entity {name: 'tea'}) CREATE (:Note)-[:ABOUT]->(e)").unwrap();
    let before = (rows(&facts.0, FACTS), rows(&facts.0, ENTITIES));
    assert!(facts.0.writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
    let Facts(TestStore { place, folder, writer: open }) = facts;
    drop(open);
    let db = database(&folder);
    db.execute_batch(
        "UPDATE entity SET type = 'drink' WHERE name = 'tea';
         UPDATE fact SET confidence = 0.5 WHERE id = 2;
         DELETE FROM edge WHERE owner = -1;
         INSERT INTO edge SELECT 900, type, src, dst, properties, -77 FROM edge WHERE owner = -2;
         INSERT INTO edge SELECT 901, type, src, dst, properties, -3 FROM edge WHERE owner = -3;",
    )
    .unwrap();
    drop(db);
    let mut reader = isolith_store::Truth::open_reader(&folder, crate::common::token()).unwrap();
    let found = reader.check(Check::Fields, 100).unwrap();
    let details: Vec<&str> = found.iter().map(|problem| problem.detail.as_str()).collect();
    assert_eq!(
        details,
        [
            "edge 900 is not indexed by its endpoints",
            "edge 901 is not indexed by its endpoints",
            "the graph is out of date for entity 2",
            "the graph is out of date for fact f1",
            "the graph is out of date for fact f2",
            "edge has rows for missing facts: 1",
        ]
    );
    drop(reader);
    assert_eq!(salvage(&folder).lost, []);
    assert_sound(&folder, "salvaged");
    let store = TestStore { writer: writer(&folder).unwrap(), place, folder };
    let (mut facts, mut entities) = before;
    facts[1] = facts[1].replace("| 1 |", "| 0.5 |");
    entities[3] = "tea | drink | -".to_owned();
    assert_eq!((rows(&store, FACTS), rows(&store, ENTITIES)), (facts, entities));
    assert_eq!(rows(&store, "MATCH (:Note)-[:ABOUT]->(e) RETURN e.type"), ["drink"]);
}
