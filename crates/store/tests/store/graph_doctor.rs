//! Checks and salvage of the graph.

use isolith_graph::Datum;
use isolith_protocol::{ChangeGraph, CypherQuery, GraphAnswer, Recount};
use isolith_store::{Check, Checkpoint, Extent, StoreFolder, Truth};

use crate::common::{TestStore, database, one, token, writer};
use crate::doctor::{damage_page, named, pages_of, problems, salvage};

const PAIRS: i64 = 2_000;

fn cypher(text: &str) -> CypherQuery {
    CypherQuery { text: text.to_owned(), ..CypherQuery::default() }
}

/// A closed store with many pairs of nodes.
fn closed() -> (tempfile::TempDir, StoreFolder) {
    let mut store = TestStore::empty();
    for query in [
        &format!(
            "UNWIND range(1, {PAIRS}) AS n CREATE (:Left {{n: n, name: 'left ' + n, is: true}})\
             -[:PAIR {{n: n, of: [1, 'a']}}]->(:Right:Side {{n: n, f: n / 2.0}})"
        ),
        "MATCH (a:Left {n: 1}) SET a:Side, a.more = ['x'] REMOVE a.is",
        "MATCH (a:Left {n: 2}) DETACH DELETE a",
    ] {
        store.one(ChangeGraph { query: cypher(query) }).unwrap();
    }
    assert!(store.writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
    (store.place, store.folder)
}

fn rows(folder: &StoreFolder, query: &str) -> Vec<Vec<Datum>> {
    let mut reader = Truth::open_reader(folder, token()).unwrap();
    let answer: GraphAnswer = reader.snapshot().unwrap().cypher(&cypher(query), None).unwrap();
    answer.rows().collect::<Result<_, _>>().unwrap()
}

/// All that there is, and whether it is found by labels and values.
fn all(folder: &StoreFolder) -> Vec<Vec<Vec<Datum>>> {
    [
        "MATCH (n) RETURN n ORDER BY id(n)",
        "MATCH ()-[r]->() RETURN r ORDER BY id(r)",
        "MATCH (n:Side) RETURN id(n) ORDER BY id(n)",
        "MATCH (n:Left {name: 'left 77'})-->(m) RETURN m",
        "MATCH (n {f: 38.5}) RETURN n",
    ]
    .iter()
    .map(|query| rows(folder, query))
    .collect()
}

fn assert_sound(folder: &StoreFolder, what: &str) {
    for check in Check::ALL {
        assert_eq!(problems(folder, check), 0, "{what}: {check:?}");
    }
}

#[test]
fn salvage_keeps_an_intact_graph() {
    let (_place, folder) = closed();
    assert_sound(&folder, "before");
    let before = all(&folder);
    assert_eq!(before.iter().map(Vec::len).collect::<Vec<_>>(), [3999, 1999, 2001, 1, 1]);
    assert_eq!(salvage(&folder).lost, []);
    assert_sound(&folder, "after");
    assert_eq!(all(&folder), before);
    // Numbers go on where they were: that of a deleted node is not given again.
    let mut writer = writer(&folder).unwrap();
    one(&mut writer, ChangeGraph { query: cypher("CREATE (:New)") }).unwrap();
    drop(writer);
    let new = rows(&folder, "MATCH (n:New) RETURN id(n)");
    assert_eq!(new, [[Datum::Integer(2 * PAIRS + 1)]]);
}

#[test]
fn damage_to_the_graph_loses_only_the_damaged_pages() {
    let tables =
        ["node", "edge", "node_label", "node_value", "edge_out", "edge_in", "graph_name", "graph"];
    for table in tables {
        let (_place, folder) = closed();
        let before = all(&folder);
        let leaves = pages_of(&folder, table, "leaf");
        damage_page(&folder.truth(), leaves[leaves.len() / 2]);
        let report = salvage(&folder);
        assert_sound(&folder, table);
        let after = all(&folder);
        let partial = ["node", "edge", "graph"].contains(&table);
        assert_eq!(report.lost.is_empty(), !partial, "{table}: {:?}", report.lost);
        let changed = |at: usize| -> Vec<String> {
            let id = |row: &Vec<Datum>| match &row[0] {
                Datum::Node(node) => node.id.to_string(),
                Datum::Relationship(edge) => edge.id.to_string(),
                other => panic!("{other:?}"),
            };
            assert_eq!(after[at].len(), before[at].len(), "{table}");
            let pairs = after[at].iter().zip(&before[at]);
            pairs.filter(|(after, before)| after != before).map(|(after, _)| id(after)).collect()
        };
        // What the tables beside them do not know is lost: lists, and properties of edges.
        let (nodes, edges) = (changed(0), changed(1));
        assert!(nodes.iter().all(|id| named(&report, "node", Extent::Partial).contains(id)));
        assert!(edges.iter().all(|id| named(&report, "edge", Extent::Partial).contains(id)));
        match table {
            "node" => assert!(nodes.len() <= 1 && edges.is_empty(), "{nodes:?}"),
            "edge" => assert!(nodes.is_empty() && (50..1_000).contains(&edges.len())),
            _ => assert_eq!(after, before, "{table}"),
        }
        assert_eq!(after[2..], before[2..], "{table}");
    }
}

#[test]
fn a_recount_corrects_graph_counts() {
    let (_place, folder) = closed();
    let db = database(&folder);
    db.execute_batch(
        "UPDATE graph SET nodes = 1, edges = 1, last_node = 1; UPDATE graph_name SET uses = 9",
    )
    .unwrap();
    drop(db);
    assert_eq!(problems(&folder, Check::Counts), 7);
    one(&mut writer(&folder).unwrap(), Recount).unwrap();
    assert_sound(&folder, "recounted");
}

#[test]
fn checks_name_problems_of_the_graph() {
    let (_place, folder) = closed();
    let db = database(&folder);
    db.execute_batch(
        "UPDATE edge SET dst = 99999 WHERE id = 1;
         UPDATE edge SET properties = x'01' WHERE id = 3;
         UPDATE edge SET type = 77 WHERE id = 4;
         DELETE FROM edge_out WHERE edge = 20;
         DELETE FROM edge_in WHERE edge = 21;
         INSERT INTO edge_in SELECT dst, type, src, 99999 FROM edge;
         UPDATE node SET properties = x'0109' WHERE id = 10;
         UPDATE node SET labels = x'4d' WHERE id = 11;
         DELETE FROM node_label WHERE node = 12;
         DELETE FROM node_value WHERE node = 13;
         INSERT INTO node_label SELECT id, 88888 FROM graph_name WHERE name = 'Side';
         INSERT INTO node_value SELECT id, 'x', 88888 FROM graph_name WHERE name = 'name';
         UPDATE node SET owner = 5, name = 'f' WHERE id = 14;
         UPDATE graph SET nodes = 7, edges = 8, last_node = 9;
         UPDATE graph_name SET uses = 3 WHERE name = 'Left';",
    )
    .unwrap();
    drop(db);
    let mut reader = Truth::open_reader(&folder, token()).unwrap();
    let mut found = |check| -> Vec<String> {
        let problems = reader.check(check, 100).unwrap();
        problems.into_iter().map(|problem| problem.detail).collect()
    };
    assert_eq!(
        found(Check::Counts),
        [
            "the graph says 7 nodes, there are 3999",
            "the graph says 8 edges, there are 1999",
            "the graph has given fewer numbers than there are",
            "label 'Left' says 3 nodes, there are 1999",
            "label 'Right' says 2000 nodes, there are 1999",
            "type 'PAIR' says 1999 edges, there are 1998",
        ]
    );
    assert_eq!(
        found(Check::Orphans),
        [
            "edge 1 ends nowhere",
            "a label of node 88888 has no node",
            "a value of node 88888 has no node",
            "node 14 is made from a file that is gone",
        ]
    );
    let fields = found(Check::Fields);
    let expected = [
        "node 10 is malformed",
        "node 11 is malformed",
        "node 12 is not indexed by one of its labels",
        "node 13 is not indexed by one of its properties",
        "edge 3 is malformed",
        "edge 4 is malformed",
        "edge 20 is not indexed by its endpoints",
        "edge 21 is not indexed by its endpoints",
        "edge_in has surplus rows for missing edges: 1998",
    ];
    for detail in expected {
        assert!(fields.iter().any(|it| it == detail), "{detail}: {fields:?}");
    }
    drop(reader);
    let report = salvage(&folder);
    assert!(!report.lost.is_empty());
    assert_sound(&folder, "after");
    assert_eq!(
        rows(&folder, "MATCH (n:Left {n: 7}) RETURN n.name"),
        [[Datum::Text("left 7".to_owned())]]
    );
}

#[test]
fn salvage_keeps_constraints_and_drops_malformed_ones() {
    let (_place, folder) = closed();
    let mut writer = writer(&folder).unwrap();
    for rule in ["(l:Left) REQUIRE l.n IS UNIQUE", "()-[p:PAIR]->() REQUIRE (:Left)-[p]->(:Right)"]
    {
        let query = cypher(&format!("CREATE CONSTRAINT FOR {rule}"));
        one(&mut writer, ChangeGraph { query }).unwrap();
    }
    assert!(writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
    drop(writer);
    assert_sound(&folder, "with constraints");
    let before = rows(&folder, "SHOW CONSTRAINTS");
    assert_eq!(before.len(), 2);
    assert_eq!(salvage(&folder).lost, []);
    assert_eq!(rows(&folder, "SHOW CONSTRAINTS"), before);

    let db = database(&folder);
    db.execute("UPDATE graph_constraint SET statement = 'nonsense' WHERE id = 1", []).unwrap();
    drop(db);
    assert!(Check::ALL.iter().any(|check| problems(&folder, *check) == 1));
    let report = salvage(&folder);
    assert_eq!(named(&report, "graph_constraint", Extent::Lost), ["Left_n_unique"]);
    assert_eq!(rows(&folder, "SHOW CONSTRAINTS"), before[1..]);
    assert_sound(&folder, "after salvage");
}
