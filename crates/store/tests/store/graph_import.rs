//! Importing tables of nodes and edges.

use isolith_protocol::{
    ChangeGraph, CypherQuery, GraphImported, GraphTable, ImportGraph, StoreError, TableEnd,
    TableHolds,
};
use isolith_store::Check;

use crate::common::{TestStore, Written};
use crate::doctor::problems;

struct Imported(TestStore);

impl Imported {
    fn new() -> Self {
        Self(TestStore::empty())
    }

    fn table(&mut self, table: GraphTable) -> Result<Written<GraphImported>, StoreError> {
        self.0.one(ImportGraph { table })
    }

    fn nodes(
        &mut self,
        id: Option<&str>,
        text: &str,
    ) -> Result<Written<GraphImported>, StoreError> {
        self.table(table(people(id), text))
    }

    fn edges(&mut self, text: &str) -> Result<Written<GraphImported>, StoreError> {
        self.table(table(knows("id", "id"), text))
    }

    fn change(&mut self, query: &str) {
        let query = CypherQuery { text: query.to_owned(), ..CypherQuery::default() };
        self.0.one(ChangeGraph { query }).unwrap();
    }

    /// The rows of a query's answer, as text. Also checks the store.
    fn rows(&self, query: &str) -> Vec<String> {
        for check in [Check::Counts, Check::Orphans, Check::Fields] {
            assert_eq!(problems(&self.0.folder, check), 0, "{check:?}");
        }
        let query = CypherQuery { text: query.to_owned(), ..CypherQuery::default() };
        let answer = self.0.reader().snapshot().unwrap().cypher(&query, None).unwrap();
        let rows = answer.rows().map(|row| {
            let cells = row.unwrap().into_iter().map(|cell| cell.to_json().to_string());
            cells.collect::<Vec<_>>().join(" ")
        });
        rows.collect()
    }
}

fn people(id: Option<&str>) -> TableHolds {
    TableHolds::Nodes { label: "Person".to_owned(), key: id.map(str::to_owned) }
}

fn knows(from: &str, to: &str) -> TableHolds {
    let end = |key: &str| TableEnd { label: "Person".to_owned(), key: key.to_owned() };
    TableHolds::Edges { kind: "KNOWS".to_owned(), from: end(from), to: end(to) }
}

fn table(holds: TableHolds, text: &str) -> GraphTable {
    let (header, rows) = text.split_once('\n').unwrap();
    GraphTable {
        holds,
        header: header.to_owned(),
        delimiter: b',',
        skip_bad: false,
        rows_before: 0,
        rows: rows.as_bytes().to_vec().into(),
        is_last: true,
    }
}

fn refused(outcome: Result<Written<GraphImported>, StoreError>) -> String {
    match outcome.unwrap_err() {
        StoreError::Query(failure) => failure.message,
        other => panic!("{other}"),
    }
}

const PEOPLE: &str = "id:int,name,height:float,active:bool\n\
    1,Ann,1.7,true\n2,\"Bob, the other\",,false\n3,Cid,,\n";
const ALL_PEOPLE: &str = "MATCH (p:Person) RETURN p.id, p.name, p.height, p.active ORDER BY p.id";
const ALL_KNOWN: &str =
    "MATCH (a)-[k:KNOWS]->(b) RETURN a.name, k.since, b.name ORDER BY a.id, b.id, k.since";

#[test]
fn rows_become_nodes_and_edges() {
    let mut graph = Imported::new();
    let made = graph.nodes(Some("id"), PEOPLE).unwrap();
    let stats = made.stats;
    assert_eq!((stats.nodes_created, stats.properties_set), (3, 9));
    assert_eq!(made.table.rows, 3);
    let expected = ["1 \"Ann\" 1.7 true", "2 \"Bob, the other\" null false", "3 \"Cid\" null null"];
    assert_eq!(graph.rows(ALL_PEOPLE), expected);
    let made = graph.edges("from:int,to:int,since:int\n1,2,1999\n2,1,\n1,2,1998\n3,3,7\n").unwrap();
    let stats = made.stats;
    assert_eq!((stats.relationships_created, stats.properties_set), (4, 3));
    let expected = [
        "\"Ann\" 1998 \"Bob, the other\"",
        "\"Ann\" 1999 \"Bob, the other\"",
        "\"Bob, the other\" null \"Ann\"",
        "\"Cid\" 7 \"Cid\"",
    ];
    assert_eq!(graph.rows(ALL_KNOWN), expected);
    // Queries find and change them like any other nodes.
    graph.change("MATCH (p:Person {name: 'Ann'}) DETACH DELETE p");
    assert_eq!(graph.rows(ALL_KNOWN), ["\"Cid\" 7 \"Cid\""]);
    assert_eq!(graph.rows("MATCH (p:Person {active: false}) RETURN p.id"), ["2"]);
}

#[test]
fn a_row_updates_an_existing_node() {
    let mut graph = Imported::new();
    graph.change("CREATE (:Person {id: 2, name: 'Bo', age: 7}), (:Robot {id: 1})");
    let text = "id:int,name,kind\n1,Ann,a\n2,Bob,\n1,,b\n2,Bobby,\n";
    let made = graph.nodes(Some("id"), text).unwrap().stats;
    assert_eq!((made.nodes_created, made.properties_set), (1, 5));
    let all = "MATCH (p:Person) RETURN p.id, p.name, p.kind, p.age ORDER BY p.id";
    let expected = ["1 \"Ann\" \"b\" null", "2 \"Bobby\" null 7"];
    assert_eq!(graph.rows(all), expected);
    // Importing the same again changes nothing.
    let again = graph.nodes(Some("id"), "id:int,name,kind\n1,Ann,b\n2,Bobby,\n").unwrap();
    assert_eq!(again.stats, isolith_graph::Stats::default());
    assert_eq!(graph.rows(all), expected);
    // Without a key, every row is a new node.
    graph.nodes(None, "id:int\n1\n1\n").unwrap();
    assert_eq!(graph.rows("MATCH (p:Person {id: 1}) RETURN count(p)"), ["3"]);
    let several = graph.nodes(Some("id"), "id:int\n1\n");
    assert_eq!(refused(several), "row 1: several nodes match (:Person {id: 1})");
}

#[test]
fn nodes_can_be_named_by_text_of_any_length() {
    let mut graph = Imported::new();
    let long = "x".repeat(300);
    let text = format!("name\n{long}1\n{long}2\nshort\n");
    graph.nodes(Some("name"), &text).unwrap();
    let rows = format!("from,to\nshort,{long}2\n{long}1,short\n");
    graph.table(table(knows("name", "name"), &rows)).unwrap();
    let ends = "MATCH (a)-[:KNOWS]->(b) RETURN right(a.name, 1), right(b.name, 1) ORDER BY b.name";
    assert_eq!(graph.rows(ends), ["\"1\" \"t\"", "\"t\" \"2\""]);
    graph.nodes(Some("name"), &text).unwrap();
    assert_eq!(graph.rows("MATCH (n) RETURN count(n)"), ["3"]);
}

#[test]
fn a_bad_row_fails_the_batch_or_is_skipped() {
    let mut graph = Imported::new();
    let bad = "id:int,name\n1,Ann\ntwo,Bob\n3\n,Dee\n5,Eve\n";
    let message = "row 2: id is \"two\", which is not a whole number";
    assert_eq!(refused(graph.nodes(Some("id"), bad)), message);
    assert_eq!(graph.rows("MATCH (n) RETURN count(n)"), ["0"]);
    let skipping = |holds: TableHolds, text: &str| GraphTable {
        skip_bad: true,
        rows_before: 10,
        ..table(holds, text)
    };
    let made = graph.table(skipping(people(Some("id")), bad)).unwrap();
    let left_out: Vec<u64> = made.rejected.iter().map(|(row, _)| *row).collect();
    assert_eq!((made.rejected_count, left_out), (3, vec![12, 13, 14]));
    assert_eq!(graph.rows("MATCH (n) RETURN n.name ORDER BY n.id"), ["\"Ann\"", "\"Eve\""]);
    let edges = "a:int,b:int\n1,5\n1,7\n,1\n";
    let message = "row 2: no such node: (:Person {id: 7})";
    assert_eq!(refused(graph.edges(edges)), message);
    assert_eq!(graph.rows("MATCH ()-[k]->() RETURN count(k)"), ["0"]);
    let made = graph.table(skipping(knows("id", "id"), edges)).unwrap();
    assert_eq!((made.rejected_count, made.stats.relationships_created), (2, 1));
    assert_eq!(graph.rows("MATCH (a)-[:KNOWS]->(b) RETURN a.id, b.id"), ["1 5"]);
}

#[test]
fn invalid_tables_are_refused() {
    let mut graph = Imported::new();
    let nobody = "no node has the label Person and a property id";
    assert_eq!(refused(graph.edges("a:int,b:int\n1,2\n")), nobody);
    graph.nodes(Some("id"), PEOPLE).unwrap();
    let two = "a table of edges needs at least two columns";
    assert_eq!(refused(graph.edges("a:int\n1\n")), two);
    let boolean = "column b cannot be a node key";
    assert_eq!(refused(graph.edges("a:int,b:bool\n1,true\n")), boolean);
    assert_eq!(refused(graph.nodes(Some("active"), PEOPLE)), "column active cannot be a node key");
    let missing = "no column \"key\"; the table has id, name, height, active";
    assert_eq!(refused(graph.nodes(Some("key"), PEOPLE)), missing);
}

#[test]
fn incomplete_rows_are_completed_by_the_next_batch() {
    let mut graph = Imported::new();
    let whole = table(people(Some("id")), PEOPLE);
    let cut = 20;
    let (first, _) = whole.rows.split_at(cut);
    let part = |rows: &[u8], rows_before, is_last| GraphTable {
        rows: rows.to_vec().into(),
        rows_before,
        is_last,
        ..whole.clone()
    };
    let taken = graph.table(part(first, 0, false)).unwrap().table;
    assert_eq!((taken.rows, taken.bytes), (1, 15));
    let taken = graph.table(part(&whole.rows[15..], 1, true)).unwrap().table;
    assert_eq!(taken.rows, 2);
    assert_eq!(graph.rows("MATCH (n) RETURN count(n)"), ["3"]);
}

#[test]
fn many_rows_are_all_found_from_both_ends() {
    let mut graph = Imported::new();
    let count: i64 = 3_000;
    let nodes: String = (0..count).rev().map(|id| format!("{id},p{}\n", id % 7)).collect();
    graph.nodes(Some("id"), &format!("id:int,name\n{nodes}")).unwrap();
    let edges = (0..count).map(|id| format!("{},{}\n", id * 17 % count, id * 29 % count));
    let edges: String = edges.collect();
    graph.edges(&format!("from:int,to:int\n{edges}")).unwrap();
    let found = "MATCH (a:Person)-[k:KNOWS]->(b:Person) \
        RETURN count(k), count(DISTINCT a), count(DISTINCT b), sum(a.id), sum(b.id)";
    let sum = (0..count).sum::<i64>();
    assert_eq!(graph.rows(found), [format!("{count} {count} {count} {sum} {sum}")]);
    let back = "MATCH (b:Person {id: 29})<-[:KNOWS]-(a) RETURN a.id";
    assert_eq!(graph.rows(back), ["17"]);
    assert_eq!(graph.rows("MATCH (p:Person {name: 'p3'}) RETURN count(p)"), ["429"]);
    // A few edges of many nodes.
    graph.edges("from:int,to:int\n29,5\n29,29\n").unwrap();
    let out = "MATCH (a:Person {id: 29})-[:KNOWS]->(b) RETURN b.id ORDER BY b.id";
    let there = (0..count).find(|id| id * 17 % count == 29).unwrap() * 29 % count;
    assert_eq!(graph.rows(out), ["5".to_owned(), "29".to_owned(), there.to_string()]);
}

/// More than a transaction buffers.
#[test]
fn more_nodes_than_are_buffered_are_all_found() {
    let mut graph = Imported::new();
    let count: i64 = (1 << 17) + 500;
    let nodes: String = (0..count).map(|id| format!("{}\n", id * 7_919 % count)).collect();
    graph.nodes(None, &format!("id:int\n{nodes}")).unwrap();
    let sum = (0..count).sum::<i64>();
    let all = "MATCH (p:Person) RETURN count(p), sum(p.id)";
    assert_eq!(graph.rows(all), [format!("{count} {sum}")]);
    let some = "UNWIND range(0, 131571, 1000) AS id MATCH (p:Person {id: id}) RETURN count(p)";
    assert_eq!(graph.rows(some), ["132"]);
}

#[test]
fn rows_that_violate_a_constraint_are_refused() {
    let mut store = Imported::new();
    store.change("CREATE CONSTRAINT FOR (p:Person) REQUIRE p.id IS NODE KEY");
    store.change("CREATE CONSTRAINT FOR ()-[k:KNOWS]-() REQUIRE k.since IS NOT NULL");
    store.nodes(None, "id,name\n1,Ann\n2,Bob\n").unwrap();
    let twice = refused(store.nodes(None, "id,name\n3,Eve\n1,Ann\n"));
    assert!(twice.contains("is also a :Person with id = \"1\""), "{twice}");
    let many: String = (1..100).map(|id| format!("{id},x\n")).collect();
    let twice = refused(store.nodes(None, &format!("id,name\n{many}")));
    assert!(twice.contains("constraint Person_id_key"), "{twice}");
    let without = refused(store.nodes(None, "id,name\n,Eve\n"));
    assert!(without.contains("must have the property id"), "{without}");
    let without = refused(store.edges("from,to,since:int\n1,2,\n"));
    assert!(without.contains("must have the property since"), "{without}");
    store.nodes(Some("id"), "id,name\n1,Anna\n3,Eve\n").unwrap();
    store.edges("from,to,since:int\n1,2,2019\n").unwrap();
    let names = store.rows("MATCH (p:Person) RETURN p.name ORDER BY p.id");
    assert_eq!(names, ["\"Anna\"", "\"Bob\"", "\"Eve\""]);
}

#[test]
fn cells_may_be_json() {
    let mut store = Imported::new();
    let text = "id,tags:json,note:json,vector:json\n\
                a,\"[\"\"x\"\", \"\"y, z\"\"]\",\"\"\"\"\"\",\"[1.0, 2.5]\"\n\
                b,[],null,\n";
    store.nodes(Some("id"), text).unwrap();
    let cells = store.rows("MATCH (p:Person) RETURN p.tags, p.note, p.vector");
    assert_eq!(cells, [r#"["x","y, z"] "" [1.0,2.5]"#, "[] null null"]);
    for cell in ["x", "\"{\"\"a\"\": 1}\"", "[[1]]", "[null]", "99999999999999999999"] {
        let reason = refused(store.nodes(None, &format!("tags:json\n{cell}\n")));
        assert!(reason.contains("JSON: a string, a number, a boolean or a flat list"), "{reason}");
    }
}

/// Nodes that must not exist yet, identified by `id`.
fn new_people(text: &str) -> GraphTable {
    let (label, key) = ("Person".to_owned(), "id".to_owned());
    table(TableHolds::NewNodes { label, key }, text)
}

#[test]
fn new_nodes_must_not_exist() {
    let mut store = Imported::new();
    store.change("CREATE CONSTRAINT FOR (p:Person) REQUIRE p.id IS NODE KEY");
    store.change("CREATE CONSTRAINT FOR (p:Person) REQUIRE p.name IS :: STRING");
    store.change("CREATE (:Robot {id: 7})");
    let made = store.table(new_people("id:int,name\n7,Ann\n8,\n")).unwrap();
    assert_eq!((made.stats.nodes_created, made.stats.properties_set), (2, 3));
    for (rows, expected) in [
        ("9,x\n8,y\n", "row 2: (:Person {id: 8}) exists already"),
        ("9,x\n10,y\n9,z\n", "row 3: (:Person {id: 9}) is in row 1"),
        ("9,x\n,y\n", "row 2: the key id is empty"),
    ] {
        let refused = refused(store.table(new_people(&format!("id:int,name\n{rows}"))));
        assert_eq!(refused, expected);
    }
    let skipped = GraphTable {
        skip_bad: true,
        rows_before: 10,
        ..new_people("id:int,name\n9,x\n8,y\n9,z\n")
    };
    let made = store.table(skipped).unwrap();
    let rejected: Vec<&str> = made.rejected.iter().map(|(_, reason)| reason.as_str()).collect();
    assert_eq!(rejected, ["(:Person {id: 8}) exists already", "(:Person {id: 9}) is in row 11"]);
    let all = store.rows("MATCH (p:Person) RETURN p.id, p.name ORDER BY p.id");
    assert_eq!(all, ["7 \"Ann\"", "8 null", "9 \"x\""]);
}

#[test]
fn a_violation_names_its_row() {
    let mut store = Imported::new();
    store.change("CREATE CONSTRAINT FOR (p:Person) REQUIRE p.name IS UNIQUE");
    store.change("CREATE CONSTRAINT FOR (p:Person) REQUIRE p.age IS :: INTEGER");
    store.change("CREATE CONSTRAINT FOR ()-[k:KNOWS]->() REQUIRE (:Person)-[k]->(:Robot)");
    let named = |outcome, row: &str, rule: &str| {
        let message = refused(outcome);
        assert!(message.starts_with(row) && message.contains(rule), "{message}");
    };
    named(store.table(new_people("id,name\na,Ann\nb,Ann\n")), "row 2: node ", "Person_name_unique");
    named(store.table(new_people("id,age\na,\nb,seven\n")), "row 2: node ", "Person_age_type");
    store.nodes(Some("id"), "id,name\na,Ann\nb,Bob\n").unwrap();
    named(store.nodes(Some("id"), "id,name\na,Ann\nb,Ann\n"), "row 2: node ", "name_unique");
    named(store.edges("from,to\na,b\n"), "row 1: relationship ", "KNOWS_ends");
    assert_eq!(store.rows("MATCH (p:Person) RETURN count(p), count(p.age)"), ["2 0"]);
}

#[test]
fn nodes_may_be_named_by_any_number_or_text() {
    let mut store = Imported::new();
    store.table(new_people("id:float\n1\n1.5\n-2e300\n")).unwrap();
    let again = refused(store.table(new_people("id:float\n1.5\n")));
    assert_eq!(again, "row 1: (:Person {id: 1.5}) exists already");
    store.edges("from:float,to:int\n1.5,1\n-2e300,1\n").unwrap();
    let ends = "MATCH (a)-[:KNOWS]->(b) RETURN a.id > 0, b.id ORDER BY a.id DESC";
    assert_eq!(store.rows(ends), ["true 1.0", "false 1.0"]);
    // JSON can be an empty text, which no other cell can.
    store.table(new_people("id:json\n\"\"\"\"\"\"\n")).unwrap();
    assert_eq!(store.rows("MATCH (p:Person {id: ''}) RETURN count(p)"), ["1"]);
    assert_eq!(refused(store.table(new_people("id:json\n[1]\n"))), "row 1: the key id is empty");
}
