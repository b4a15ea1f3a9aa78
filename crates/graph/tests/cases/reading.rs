use isolith_graph::{Datum, MemoryGraph};

use super::{ask_with, check, graph};

#[test]
fn paths_use_no_relationship_twice() {
    let graph = graph(
        "CREATE (a {n: 'a'})-[:CALLS]->(b {n: 'b'})-[:CALLS]->(c {n: 'c'})-[:CALLS]->(a),
                (a)-[:CALLS]->(b)",
    );
    check(
        &graph,
        &[
            (
                "MATCH (a {n:'a'})-[r:CALLS*1..4]->(x) RETURN x.n, size(r) ORDER BY size(r), x.n",
                &[
                    r#""b" 1"#, r#""b" 1"#, r#""c" 2"#, r#""c" 2"#, r#""a" 3"#, r#""a" 3"#,
                    r#""b" 4"#, r#""b" 4"#,
                ],
            ),
            ("MATCH (a {n:'a'})-[:CALLS*1..4]->(x) RETURN count(DISTINCT x)", &["3"]),
            (
                "MATCH (a {n:'a'})-[:CALLS*0..]->(x) RETURN DISTINCT x.n ORDER BY x.n",
                &[r#""a""#, r#""b""#, r#""c""#],
            ),
            ("MATCH (a)-[r]->(b), (a)-[s]->(b) RETURN count(*)", &["2"]),
        ],
    );
}

#[test]
fn a_loop_is_one_relationship() {
    let graph = graph("CREATE (a {n: 1})-[:L]->(a)");
    check(
        &graph,
        &[
            ("MATCH (a)-[r]-(b) RETURN count(*)", &["1"]),
            ("MATCH (a)-[r]-() RETURN a.n, count(r)", &["1 1"]),
            ("MATCH (a)-[*]-(b) RETURN count(*)", &["1"]),
            ("MATCH (a)-[r]->(a) RETURN a.n", &["1"]),
        ],
    );
}

#[test]
fn null_is_neither_true_nor_false() {
    let graph = graph("CREATE ({n: 1, x: 1}), ({n: 2, x: 2}), ({n: 3})");
    check(
        &graph,
        &[
            ("MATCH (n) WHERE NOT (n.x = 1) RETURN n.n", &["2"]),
            ("MATCH (n) WHERE n.x IS NULL RETURN n.n", &["3"]),
            (
                "RETURN 3 IN [1, null], null IN [], null IN [1], 1 IN [1, null]",
                &["null false null true"],
            ),
            (
                "RETURN null = null, null <> 1, [1, null] = [1, 2], {a: null} = {a: null}",
                &["null null null null"],
            ),
            (
                "RETURN true OR null, false AND null, true AND null, NOT null, true XOR null",
                &["true false null null null"],
            ),
            (
                "RETURN null + 1, 'a' STARTS WITH null, [1, 2][null], coalesce(null, 7)",
                &["null null null 7"],
            ),
            ("OPTIONAL MATCH (x:None) RETURN x, x.y, labels(x)", &["null null null"]),
        ],
    );
}

#[test]
fn aggregates_over_no_rows_have_values() {
    check(
        &MemoryGraph::new(),
        &[
            ("MATCH (n) RETURN count(n), sum(n.x), collect(n), max(n.x)", &["0 0 [] null"]),
            ("MATCH (n) RETURN n.x, count(*)", &[]),
            (
                "MATCH (n) RETURN avg(n.x), min(n.x), stDev(n.x), percentileCont(n.x, 0.5)",
                &["null null 0.0 null"],
            ),
        ],
    );
}

#[test]
fn aggregates_group_by_the_other_columns() {
    let graph = graph("UNWIND range(1, 6) AS i CREATE ({i: i, odd: i % 2 = 1})");
    check(
        &graph,
        &[
            (
                "MATCH (n) RETURN n.odd AS odd, count(*), sum(n.i), avg(n.i) ORDER BY odd",
                &["false 3 12 4.0", "true 3 9 3.0"],
            ),
            (
                "MATCH (n) RETURN count(DISTINCT n.odd), collect(DISTINCT n.odd)",
                &["2 [true,false]"],
            ),
            (
                "MATCH (n) WITH n.odd AS odd, max(n.i) AS top WHERE top > 5 RETURN odd, top",
                &["false 6"],
            ),
            (
                "MATCH (n) RETURN n.odd, n.i + count(*) AS x, n.i ORDER BY x DESC LIMIT 1",
                &["false 7 6"],
            ),
            ("UNWIND [1, 1.0, 2] AS x RETURN x, count(*) ORDER BY x", &["1 2", "2 1"]),
            (
                "UNWIND [10, 20, 30, 40] AS x RETURN percentileDisc(x, 0.5), percentileCont(x, 0.5)",
                &["20 25.0"],
            ),
        ],
    );
}

#[test]
fn counts_need_no_rows() {
    let graph = graph("CREATE (a:A {x: 1})-[:R]->(b:B), (b)-[:S]->(b), (:A)");
    check(
        &graph,
        &[
            ("MATCH (n) RETURN count(*)", &["3"]),
            ("MATCH (n:A) RETURN count(n)", &["2"]),
            ("MATCH (n) RETURN count(n.x)", &["1"]),
            ("MATCH (n:None) RETURN count(n)", &["0"]),
            ("UNWIND [1, 2] AS x MATCH (n:A) RETURN x, count(n)", &["1 2", "2 2"]),
            ("UNWIND [1, 2] AS x MATCH (n:A) RETURN count(x)", &["4"]),
            ("MATCH ()-[r]->() RETURN count(r), count(*)", &["2 2"]),
            ("MATCH ()-[r]-() RETURN count(r)", &["3"]),
            ("MATCH ()-[r:R|None]->() RETURN count(*)", &["1"]),
            ("MATCH ()-[r:None]->() RETURN count(*)", &["0"]),
            ("MATCH (a)-[r]->(b) RETURN count(a), count(b), count(r)", &["2 2 2"]),
            ("MATCH (a)-[r]->(b) RETURN count(a.x), count(*)", &["1 2"]),
            ("MATCH (a)-->(b) RETURN count(b.x)", &["0"]),
            ("MATCH (a:A) OPTIONAL MATCH (a)-[r]->(b) RETURN count(a), count(r)", &["2 1"]),
        ],
    );
}

#[test]
fn arithmetic_follows_opencypher() {
    check(
        &MemoryGraph::new(),
        &[
            ("RETURN -7 / 2, -7 % 3, 7 / 2.0, 2 ^ 3, -2 ^ 2, 7 - 2 - 1", &["-3 -1 3.5 8.0 4.0 4"]),
            ("RETURN 1 + 2 * 3, (1 + 2) * 3, 1 < 2 < 3, 3 > 2 > 2", &["7 9 true false"]),
            (
                "RETURN 9223372036854775807, -9223372036854775808, 0x1F, 0o17, 1e3, .5",
                &["9223372036854775807 -9223372036854775808 31 15 1000.0 0.5"],
            ),
            (
                "RETURN round(2.5), round(-2.5), round(1.256, 2), sign(-3), abs(-3), toInteger('2.9')",
                &["3.0 -2.0 1.26 -1 3 2"],
            ),
            ("RETURN 1 = 1.0, 1 < 'a', 0.0 / 0.0 = 0.0 / 0.0", &["true null false"]),
        ],
    );
}

#[test]
fn lists_and_maps_are_values() {
    check(
        &MemoryGraph::new(),
        &[
            (
                "RETURN [1, 2, 3][-1], [1, 2, 3][1..], [1, 2, 3][..-1], range(5, 1, -2)",
                &["3 [2,3] [1,2] [5,3,1]"],
            ),
            (
                "RETURN [x IN range(1, 5) WHERE x % 2 = 0 | x * x], reduce(a = 0, x IN [1, 2] | a + x)",
                &["[4,16] 3"],
            ),
            (
                "RETURN all(x IN [1, 2] WHERE x > 0), any(x IN [] WHERE x > 0), \
                     none(x IN [1, null] WHERE x > 1), single(x IN [1, 2] WHERE x = 2)",
                &["true false null true"],
            ),
            (
                "WITH {a: 1, b: {c: [1, 2]}} AS m RETURN m.b.c[1], m['a'], keys(m), m {.a, d: 4}",
                &[r#"2 1 ["a","b"] {"a":1,"d":4}"#],
            ),
            (
                "RETURN [1] + 2 + [3], 'a' + 'b' + 1, head([]), last([1, 2]), tail([1, 2])",
                &[r#"[1,2,3] "ab1" null 2 [2]"#],
            ),
            (
                "RETURN split('a,b', ','), replace('abc', 'b', 'x'), substring('hello', 1, 3), \
                     toUpper('é'), reverse('ab'), size('añb'), left('abc', 2), right('abc', 2)",
                &[r#"["a","b"] "axc" "ell" "É" "ba" 3 "ab" "bc""#],
            ),
            (
                "RETURN 'main.rs' =~ '.*[.]rs', 'main.rs' =~ 'main', 'abc' CONTAINS 'b'",
                &["true false true"],
            ),
            (
                "RETURN CASE 2 WHEN 1 THEN 'a' WHEN 2 THEN 'b' END, CASE WHEN false THEN 1 ELSE 2 END",
                &[r#""b" 2"#],
            ),
        ],
    );
}

#[test]
fn clauses_can_be_chained() {
    let graph = graph(
        "CREATE (a:P {n: 'a'})-[:K {w: 1}]->(b:P {n: 'b'})-[:K {w: 2}]->(c:P {n: 'c'}), (:Q {n: 'q'})",
    );
    check(
        &graph,
        &[
            (
                "MATCH (x:P) OPTIONAL MATCH (x)-[r:K]->(y) RETURN x.n, r.w, y.n ORDER BY x.n",
                &[r#""a" 1 "b""#, r#""b" 2 "c""#, r#""c" null null"#],
            ),
            ("MATCH (x:P) WHERE NOT (x)-[:K]->() RETURN x.n", &[r#""c""#]),
            ("MATCH (x:P) WHERE EXISTS { (x)-[:K]->(y) WHERE y.n = 'c' } RETURN x.n", &[r#""b""#]),
            (
                "MATCH (x:P) RETURN x.n, [(x)-[:K]->(y) | y.n] AS next ORDER BY x.n",
                &[r#""a" ["b"]"#, r#""b" ["c"]"#, r#""c" []"#],
            ),
            (
                "MATCH p = (:P {n: 'a'})-[:K*]->(y) RETURN length(p), [n IN nodes(p) | n.n] ORDER BY length(p)",
                &[r#"1 ["a","b"]"#, r#"2 ["a","b","c"]"#],
            ),
            ("MATCH (x) RETURN x.n AS n ORDER BY n DESC SKIP 1 LIMIT 2", &[r#""c""#, r#""b""#]),
            (
                "MATCH (x:P) RETURN x.n AS n UNION MATCH (x:Q) RETURN x.n AS n UNION RETURN 'q' AS n",
                &[r#""a""#, r#""b""#, r#""c""#, r#""q""#],
            ),
            ("RETURN 1 AS x UNION ALL RETURN 1 AS x", &["1", "1"]),
            ("UNWIND [3, 1, 2] AS x WITH x ORDER BY x LIMIT 2 RETURN collect(x)", &["[1,2]"]),
            (
                "MATCH (x:P)-[r]->(y) RETURN type(r), startNode(r).n, endNode(r).n, x:P, r:K LIMIT 1",
                &[r#""K" "a" "b" true true"#],
            ),
            (
                "MATCH (a:P {n: 'a'}), (c:P {n: 'c'}) RETURN length(shortestPath((a)-[:K*]-(c)))",
                &["2"],
            ),
            ("MATCH (a:P {n: 'a'}), (q:Q) RETURN shortestPath((a)-[*]-(q))", &["null"]),
        ],
    );
}

#[test]
fn conditions_on_a_shortest_path_are_part_of_the_search() {
    let graph = graph(
        "CREATE (a {n: 'a'})-[:R {bad: true}]->(z {n: 'z'}), (a)-[:R]->(b {n: 'b'})-[:R]->(z)",
    );
    check(
        &graph,
        &[
            ("MATCH p = shortestPath(({n: 'a'})-[*]->({n: 'z'})) RETURN length(p)", &["1"]),
            (
                "MATCH p = shortestPath(({n: 'a'})-[*]->({n: 'z'})) \
              WHERE none(r IN relationships(p) WHERE r.bad = true) RETURN length(p)",
                &[],
            ),
            (
                "MATCH p = shortestPath(({n: 'a'})-[*]->({n: 'z'})) \
              WHERE all(r IN relationships(p) WHERE r.bad IS NULL) RETURN length(p)",
                &["2"],
            ),
        ],
    );
}

#[test]
fn parameters_are_values_not_query_text() {
    let graph = graph("CREATE ({k: 1}), ({k: 2})");
    let row = |k| Datum::Map([("k".to_owned(), Datum::Integer(k))].into());
    let rows = Datum::List(vec![row(2), row(1), row(7)]);
    let parameters = [("rows".to_owned(), rows), ("s".to_owned(), Datum::Text("') //".into()))];
    let text = "UNWIND $rows AS r MATCH (a {k: r.k}) RETURN a.k, $s";
    let found = ask_with(&graph, text, &parameters.into()).unwrap();
    assert_eq!(found, [r#"2 "') //""#, r#"1 "') //""#]);
}
