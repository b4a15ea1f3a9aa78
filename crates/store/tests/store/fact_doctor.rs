//! Checks and salvage of facts.

use isolith_protocol::{AddFact, DeclarePredicate, RetractFact, Write};
use isolith_store::{Check, Checkpoint, Extent, StoreFolder, Truth};
use isolith_types::{EntityPatch, Fact, FactQuery, FactStats, NewFact};

use crate::common::{database, one, token, write, writer};
use crate::doctor::{damage_page, named, pages_of, problems, salvage};
use crate::facts::{Facts, fact, id};

const FACTS: usize = 600;

/// A closed store with many facts, some ended, superseded or with two sources.
fn closed() -> (tempfile::TempDir, StoreFolder) {
    let mut facts = Facts::new();
    let said = |number: usize| {
        let said = format!("subject-{number:04} works_at company-{:02}", number % 50);
        fact(&said, "2020-01-01")
    };
    let again = |number| NewFact { confidence: Some(0.5), ..said(number) };
    let all = (0..FACTS).map(said).chain((0..FACTS).step_by(100).map(again));
    let writes: Vec<Write> = all.map(|fact| write(AddFact { fact })).collect();
    facts.0.writer.apply(&writes, &[]).unwrap();
    facts.supersede(id("f7"), "company-99", "2024-01-01").unwrap();
    facts
        .describe(EntityPatch {
            name: "subject-0001".to_owned(),
            r#type: Some("person".to_owned()),
            add_aliases: vec!["the first".to_owned()],
            remove_aliases: Vec::new(),
        })
        .unwrap();
    assert!(facts.0.writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
    (facts.0.place, facts.0.folder)
}

fn read(folder: &StoreFolder) -> (Vec<Fact>, FactStats) {
    let mut reader = Truth::open_reader(folder, token()).unwrap();
    let snapshot = reader.snapshot().unwrap();
    let all = FactQuery { limit: 10_000, ..FactQuery::default() };
    let mut facts = snapshot.facts(&all).unwrap();
    facts.sort_by_key(|fact| fact.id[1..].parse::<u64>().unwrap());
    (facts, snapshot.fact_stats(None).unwrap())
}

#[test]
fn salvage_keeps_intact_facts() {
    let (_place, folder) = closed();
    for check in Check::ALL {
        assert_eq!(problems(&folder, check), 0, "{check:?}");
    }
    let before = read(&folder);
    let report = salvage(&folder);
    assert_eq!((report.facts, report.lost), (FACTS as u64 + 1, vec![]));
    assert_eq!(read(&folder), before);
    let mut reader = Truth::open_reader(&folder, token()).unwrap();
    let first = reader.snapshot().unwrap().entity("The FIRST").unwrap().unwrap();
    assert_eq!((first.name.as_str(), first.r#type.as_deref()), ("subject-0001", Some("person")));
    drop(reader);
    // New facts get the next numbers.
    let mut writer = writer(&folder).unwrap();
    let add = AddFact { fact: fact("a p b", "") };
    let added = one(&mut writer, add).unwrap().reply.fact;
    assert_eq!(added.id, format!("f{}", FACTS + 2));
}

#[test]
fn salvage_keeps_what_was_retracted_and_declared() {
    let (_place, folder) = closed();
    let mut store = writer(&folder).unwrap();
    one(&mut store, RetractFact { which: id("f11") }).unwrap();
    let declare = DeclarePredicate { name: "works_at".to_owned(), single_valued: true };
    one(&mut store, declare).unwrap();
    drop(store);
    let before = read(&folder);
    assert_eq!((before.1.facts, before.1.retracted), (FACTS as u64, 1));
    assert_eq!(salvage(&folder).lost, vec![]);
    assert_eq!(read(&folder), before);
    for check in Check::ALL {
        assert_eq!(problems(&folder, check), 0, "{check:?}");
    }
    let mut reader = Truth::open_reader(&folder, token()).unwrap();
    assert!(reader.snapshot().unwrap().predicates(10, 0).unwrap()[0].single_valued);
}

#[test]
fn damage_loses_only_the_facts_on_the_page() {
    let tables = ["fact", "entity", "predicate", "alias", "fact_source", "fact_subject"];
    for table in tables.into_iter().chain(["node", "edge", "graph_name"]) {
        let (_place, folder) = closed();
        let before = read(&folder).0;
        let leaves = pages_of(&folder, table, "leaf");
        damage_page(&folder.truth(), leaves[leaves.len() / 2]);
        let report = salvage(&folder);
        for check in Check::ALL {
            assert_eq!(problems(&folder, check), 0, "{table}: {check:?}");
        }
        let (after, stats) = read(&folder);
        assert_eq!((report.facts, after.len() as u64), (stats.facts, stats.facts), "{table}");
        // The index and the graph still hold the page's content.
        assert_eq!(after.len(), FACTS + 1, "{table}");
        let needless = ["fact_subject", "alias", "graph_name", "node", "edge"];
        let lossless = needless.contains(&table);
        assert_eq!(report.lost.is_empty(), lossless, "{table}: {:?}", report.lost);
        let partial = named(&report, "fact", Extent::Partial);
        for fact in &after {
            let old = before.iter().find(|old| old.id == fact.id).unwrap();
            let sources = |fact: &Fact| fact.sources.len();
            match table {
                "fact_source" => assert!(sources(fact) <= sources(old), "{fact:?} {old:?}"),
                "fact" if partial.contains(&fact.id) => assert_eq!(
                    (&fact.valid_from, &fact.valid_to, fact.confidence, &fact.superseded_by),
                    (&old.valid_from, &old.valid_to, old.confidence, &old.superseded_by)
                ),
                _ => assert_eq!(fact, old, "{table}"),
            }
            let said =
                |fact: &Fact| (fact.subject.clone(), fact.predicate.clone(), fact.object.clone());
            assert_eq!(said(fact), said(old), "{table}");
        }
        assert_eq!(table == "fact", !partial.is_empty(), "{table}");
    }
}

#[test]
fn random_damage_leaves_consistent_facts() {
    for seed in 0..6 {
        let (_place, folder) = closed();
        let before = read(&folder).0;
        let mut random = fastrand::Rng::with_seed(seed);
        let pages = std::fs::metadata(folder.truth()).unwrap().len() / 8192;
        for _ in 0..3 {
            damage_page(&folder.truth(), random.u64(1..=pages));
        }
        salvage(&folder);
        for fact in read(&folder).0 {
            let old = before.iter().find(|old| old.id == fact.id).unwrap();
            assert_eq!(fact.valid_from, old.valid_from, "{seed}");
        }
    }
}

#[test]
fn checks_name_problems_of_facts() {
    let (_place, folder) = closed();
    let db = database(&folder);
    db.execute_batch(
        "PRAGMA foreign_keys = OFF;
         UPDATE entity SET folded = 'x y' WHERE id = 1;
         UPDATE alias SET name = 'a ', folded = 'b';
         INSERT INTO alias (entity, name, folded) VALUES (3, 'company-01', 'company-01');
         UPDATE predicate SET folded = 'works_at';
         UPDATE fact SET until = 5 WHERE id = 2;
         UPDATE fact SET valid_from = valid_from + 1 WHERE id = 3;
         UPDATE fact SET confidence = 1.5 WHERE id = 4;
         UPDATE fact SET object = 9999 WHERE id = 5;
         UPDATE fact SET superseded_by = 9999 WHERE id = 6;
         UPDATE fact_source SET confidence = -1 WHERE id = 1;",
    )
    .unwrap();
    drop(db);
    let mut reader = Truth::open_reader(&folder, token()).unwrap();
    let mut found = |check| -> Vec<String> {
        let problems = reader.check(check, 100).unwrap();
        problems.into_iter().map(|problem| problem.detail).collect()
    };
    assert_eq!(
        found(Check::Fields),
        [
            "entity \"subject-0000\" is looked up as \"x y\"",
            "alias \"a \" is looked up as \"b\"",
            "predicate \"works_at\" is looked up as \"works_at\"",
            "\"company-01\" is the name of one entity and an alias of another",
            "fact f2 is malformed",
            "fact f3 is malformed",
            "fact f4 is malformed",
            "a source of fact f1 is malformed",
            "the graph is out of date for entity 3",
            "the graph is out of date for fact f2",
            "the graph is out of date for fact f4",
            "the graph is out of date for fact f5",
            "the graph is out of date for fact f6",
        ]
    );
    assert_eq!(
        found(Check::References),
        [
            "fact row 5 refers to a missing row in entity",
            "fact row 6 refers to a missing row in fact"
        ]
    );
    drop(reader);
    let report = salvage(&folder);
    assert_eq!(report.facts, FACTS as u64 + 1 - 3);
    let facts = read(&folder).0;
    let of = |id: &str| facts.iter().find(|fact| fact.id == id).unwrap();
    assert_eq!(
        (of("f1").subject.as_str(), of("f1").predicate.as_str()),
        ("subject-0000", "works_at")
    );
    assert_eq!(of("f5").object, "recovered-entity-9999");
    assert_eq!((of("f6").superseded_by.clone(), of("f7").superseded_by.is_some()), (None, true));
}
