//! A store with a little of everything: the content of the schema fixtures.

use isolith_protocol::{
    AddFact, ChangeGraph, CypherQuery, DeclarePredicate, DescribeEntity, FinishIndex, IndexKind,
    Key, Level, LinkFiles, NoteGitFacts, RememberPoison, RetractFact, SegmentEntry, SupersedeFact,
    SwapPlan, SwapSegments, Write,
};
use isolith_types::{EntityPatch, ParsedFile, WhichFact};

use crate::code_graph::python;
use crate::common::{TestStore, add_root, file, put_files, records};
use crate::facts::{fact, superseding};
use crate::folding::delete;
use crate::memory::{add, drawer};

/// The key of a write whose receipt is kept.
pub(crate) const KEPT: Key = Key([7; 16]);

pub(crate) const LONG_WORD: &str = "remembered ";
pub(crate) const LONG_WORDS: usize = 200;

/// A filled store, with the last changes still in the log.
pub(crate) fn filled() -> TestStore {
    let mut store = TestStore::new();
    fill_records(&mut store);
    fill_code(&mut store);
    fill_facts(&mut store);
    let long = LONG_WORD.repeat(LONG_WORDS);
    store.one(add(vec![drawer("We met at noon."), drawer(&long)])).unwrap();
    fill_graph(&mut store);
    store
}

/// Three records in a generation; one of them is replaced later, and one removed.
fn fill_records(store: &mut TestStore) {
    store.upsert(records(&[
        ("a", "alpha", r#"{"n":1,"tags":["x","y"]}"#, [1.0, 2.0]),
        ("b", "beta", r#"{"n":"1"}"#, [3.0, 4.0]),
        ("c", "gamma", "{}", [5.0, 6.0]),
    ]));
    let base = SegmentEntry {
        level: Level::Base,
        kind: IndexKind::Vector,
        file: "c1-1-base-0123abcd.vec".to_owned(),
        rows: 3,
        bytes: 100,
        checksum: 0xFFFF_FFFF,
        quarantined: None,
    };
    let plan = SwapPlan {
        collection: 1,
        from_generation: 0,
        level: Level::Base,
        complete_to: 3,
        segments: vec![base],
    };
    store.one(SwapSegments { plan }).unwrap();
    let poison = r#"{"class":"crash"}"#.to_owned();
    let remember = RememberPoison { role: "parse".to_owned(), input: vec![1; 32], poison };
    let kept = Write { key: KEPT, keep: true, action: remember.into() };
    store.writer.apply(&[kept], &[]).unwrap().remove(0).unwrap();
    store.upsert(records(&[("b", "bêta", r#"{"n":2.5,"ok":true}"#, [3.0, -4.0])]));
    delete(store, "c");
}

/// Two Python files, one of which calls the other.
fn fill_code(store: &mut TestStore) {
    let root = add_root(store, "/project");
    let with = |path: &str, texts: &[&str], graph| ParsedFile { graph, ..file(path, texts) };
    let main = python(&[("main", &["helper"])], &[("app.util", "helper")]);
    let files = [
        with("app/main.py", &["import helper", "fn main"], main),
        with("app/util.py", &["fn helper"], python(&[("helper", &[])], &[])),
    ];
    store.one(put_files(root, &files, 1.0)).unwrap();
    while store.one(LinkFiles { root }).unwrap().more {}
    let facts = vec![("app/main.py".to_owned(), Some("Ada".to_owned()), 1_600_000_000_000)];
    store.one(NoteGitFacts { root, facts }).unwrap();
    store.one(FinishIndex { root }).unwrap();
}

/// A superseded fact, and an entity with an alias.
fn fill_facts(store: &mut TestStore) {
    let add = AddFact { fact: fact("Max lives_in Berlin", "2020-01-01") };
    let old = WhichFact::Id(store.one(add).unwrap().reply.fact.id);
    store.one(SupersedeFact { change: superseding(old, "Köln", "2022-05-01") }).unwrap();
    let wrong = AddFact { fact: fact("Eva lives_in Rome", "2019-01-01") };
    let which = WhichFact::Id(store.one(wrong).unwrap().reply.fact.id);
    store.one(RetractFact { which }).unwrap();
    store.one(DeclarePredicate { name: "lives_in".to_owned(), single_valued: true }).unwrap();
    let patch = EntityPatch {
        name: "Max".to_owned(),
        add_aliases: vec!["Maxi".to_owned()],
        ..EntityPatch::default()
    };
    store.one(DescribeEntity { patch }).unwrap();
}

fn fill_graph(store: &mut TestStore) {
    let text = "CREATE (:Person {name: 'Ada', age: 36, tags: ['x', 2.5, true]})\
                -[:KNOWS {since: 1833}]->(:Person:Engineer {name: 'Charles'})";
    let query = CypherQuery { text: text.to_owned(), ..CypherQuery::default() };
    store.one(ChangeGraph { query }).unwrap();
    let text = "MATCH (a:Engineer) SET a.born = date('1791-12-26'), \
        a.met = [datetime('1833-06-05T20:00[Europe/London]'), time('20:00Z')], \
        a.worked = duration('P1Y2M3DT4.5S')";
    let query = CypherQuery { text: text.to_owned(), ..CypherQuery::default() };
    store.one(ChangeGraph { query }).unwrap();
    let text = "CREATE CONSTRAINT FOR (p:Person) REQUIRE p.name IS UNIQUE";
    let query = CypherQuery { text: text.to_owned(), ..CypherQuery::default() };
    store.one(ChangeGraph { query }).unwrap();
}
