use crate::{ask, change, check, graph};

const PEOPLE: &str = "CREATE (:Person {id: 1, name: 'Ann'})-[:KNOWS {since: 2019}]->\
                      (:Person {id: 2, name: 'Bob'}), (:City {id: 1})";

/// Runs on a copy, because a failed query may leave changes behind.
#[track_caller]
fn refused(graph: &isolith_graph::MemoryGraph, query: &str, message: &str) {
    let error = ask(&graph.clone(), query).expect_err(query).to_string();
    assert!(error.contains(message), "{query}: {error}");
}

#[test]
fn values_are_unique() {
    let graph = graph(PEOPLE);
    let added = change(&graph, "CREATE CONSTRAINT ids FOR (p:Person) REQUIRE p.id IS UNIQUE");
    assert_eq!(added.constraints_added, 1);
    let message = "would violate the constraint ids: node 0 is also a :Person with id = 1";
    refused(&graph, "CREATE (:Person {id: 1})", message);
    refused(&graph, "MATCH (c:City) SET c:Person", message);
    refused(&graph, "CREATE (:Person {id: 7}), (:Person {id: 7.0})", "is also a :Person");
    refused(&graph, "UNWIND range(1, 100) AS n CREATE (:Person {id: n})", "is also a :Person");
    // Nodes without the property are not compared, nor are those with other labels.
    change(&graph, "CREATE (:Person), (:Person), (:City {id: 1})");
}

#[test]
fn what_a_query_ends_with_counts() {
    let graph = graph(PEOPLE);
    change(&graph, "CREATE CONSTRAINT FOR (p:Person) REQUIRE p.id IS NODE KEY");
    change(&graph, "MATCH (a:Person {id: 1}), (b:Person {id: 2}) SET a.id = 2, b.id = 1");
    check(&graph, &[("MATCH (p:Person {id: 2}) RETURN p.name", &["\"Ann\""])]);
    change(&graph, "CREATE (p:Person) WITH p SET p.id = 3");
    change(&graph, "CREATE (p:Person {id: 1}) WITH p DELETE p");
    change(&graph, "CREATE (p:Person {id: 1}) WITH p REMOVE p:Person");
    refused(&graph, "MATCH (p:Person {id: 3}) REMOVE p.id", "a :Person must have the property id");
    refused(&graph, "CREATE (:Person {name: 'Eve'})", "a :Person must have the property id");
}

#[test]
fn several_properties_are_unique_together() {
    let graph = graph("CREATE (:Room {house: 1, door: 1}), (:Room {house: 1, door: 2})");
    change(&graph, "CREATE CONSTRAINT FOR (r:Room) REQUIRE (r.house, r.door) IS UNIQUE");
    change(&graph, "CREATE (:Room {house: 2, door: 1})");
    let message = "is also a :Room with house = 1 and door = 2";
    refused(&graph, "MATCH (r:Room {house: 2}) SET r.house = 1, r.door = 2", message);
}

#[test]
fn properties_exist_and_have_their_types() {
    let graph = graph(PEOPLE);
    change(&graph, "CREATE CONSTRAINT FOR (p:Person) REQUIRE p.name IS NOT NULL");
    change(&graph, "CREATE CONSTRAINT t FOR (p:Person) REQUIRE p.tall IS :: FLOAT | INTEGER");
    change(&graph, "CREATE CONSTRAINT l FOR (p:Person) REQUIRE p.tags IS :: LIST<STRING NOT NULL>");
    change(&graph, "CREATE CONSTRAINT s FOR ()-[k:KNOWS]-() REQUIRE k.since IS TYPED INTEGER");
    change(&graph, "CREATE (:Person {name: 'Eve', tall: 1.7, tags: []})");
    change(&graph, "MATCH (p:Person {name: 'Eve'}) SET p.tall = 2, p.tags = ['a', 'b']");
    let message = "constraint t: tall of a :Person must be FLOAT | INTEGER, not \"high\"";
    refused(&graph, "MATCH (p:Person) SET p.tall = 'high'", message);
    let message = "tags of a :Person must be LIST<STRING NOT NULL>, not a list";
    refused(&graph, "MATCH (p:Person) SET p += {tags: ['a', 1]}", message);
    refused(
        &graph,
        "MATCH ()-[k:KNOWS]->() SET k.since = 1.5",
        "since of a :KNOWS must be INTEGER",
    );
    refused(&graph, "MATCH (p:Person) SET p = {}", "must have the property name");
}

#[test]
fn relationships_connect_the_labels_named() {
    let graph = graph(PEOPLE);
    change(
        &graph,
        "CREATE CONSTRAINT ends FOR ()-[k:KNOWS]->() \
         REQUIRE (:Person)-[k]->(:Person) OR (:City)<-[k]-(:Person)",
    );
    change(&graph, "MATCH (p:Person {id: 1}), (c:City) CREATE (p)-[:KNOWS]->(c)");
    let message = "a :KNOWS must go from :Person to :Person, or from :Person to :City";
    refused(&graph, "MATCH (p:Person {id: 1}), (c:City) CREATE (c)-[:KNOWS]->(p)", message);
    refused(&graph, "MATCH (p:Person {id: 1}) REMOVE p:Person", message);
    change(&graph, "MATCH (p:Person {id: 1}) DETACH DELETE p");
}

#[test]
fn a_constraint_that_the_graph_violates_is_not_created() {
    let graph = graph("CREATE (:A {x: 1})-[:T]->(:A {x: 1}), (:A {y: 1})");
    for (rule, message) in [
        ("(a:A) REQUIRE a.x IS UNIQUE", "is also a :A with x = 1"),
        ("(a:A) REQUIRE a.x IS NOT NULL", "must have the property x"),
        ("(a:A) REQUIRE a.x IS :: STRING", "must be STRING, not 1"),
        ("()-[t:T]-() REQUIRE t.z IS NOT NULL", "a :T must have the property z"),
        ("()-[t:T]->() REQUIRE (:A)-[t]->(:B)", "a :T must go from :A to :B"),
    ] {
        refused(&graph, &format!("CREATE CONSTRAINT FOR {rule}"), message);
    }
    check(&graph, &[("SHOW CONSTRAINTS", &[])]);
}

#[test]
fn constraints_are_listed_and_dropped() {
    let graph = graph(PEOPLE);
    change(&graph, "CREATE CONSTRAINT FOR (p:Person) REQUIRE p.id IS NODE KEY;");
    let again = "CREATE CONSTRAINT other IF NOT EXISTS FOR (p:Person) REQUIRE p.id IS NODE KEY";
    assert_eq!(change(&graph, again).constraints_added, 0);
    let again = "CREATE CONSTRAINT other FOR (q:Person) REQUIRE q.id IS NODE KEY";
    refused(&graph, again, "the constraint Person_id_key already requires this");
    let other = "CREATE CONSTRAINT Person_id_key FOR (q:City) REQUIRE q.id IS UNIQUE";
    refused(&graph, other, "the constraint Person_id_key already exists");
    change(&graph, "CREATE CONSTRAINT k FOR ()-[k:KNOWS]->() REQUIRE (:Person)-[k]->(:Person)");
    check(
        &graph,
        &[(
            "SHOW CONSTRAINTS",
            &[
                "\"Person_id_key\" \"NODE_KEY\" \"NODE\" [\"Person\"] [\"id\"] null null \
                 \"CREATE CONSTRAINT Person_id_key FOR (n:Person) REQUIRE n.id IS NODE KEY\"",
                "\"k\" \"RELATIONSHIP_ENDS\" \"RELATIONSHIP\" [\"KNOWS\"] [] null \
                 [[\"Person\",\"Person\"]] \"CREATE CONSTRAINT k FOR ()-[r:KNOWS]->() \
                 REQUIRE (:Person)-[r]->(:Person)\"",
            ],
        )],
    );
    change(&graph, "CREATE CONSTRAINT FOR (c:City) REQUIRE c.size IS :: INTEGER");
    let second = "CREATE CONSTRAINT second FOR (c:City) REQUIRE c.size IS :: STRING";
    refused(&graph, second, "City_size_type already gives size a type");
    refused(&graph, "DROP CONSTRAINT nothing", "unknown constraint nothing");
    change(&graph, "DROP CONSTRAINT nothing IF EXISTS");
    assert_eq!(change(&graph, "DROP CONSTRAINT Person_id_key").constraints_removed, 1);
    change(&graph, "CREATE (:Person {id: 1})");
}
