use std::time::{Duration, Instant};

use isolith_graph::{Error, MemoryGraph, prepare};
use isolith_types::Failure;

use super::ask;

fn problem(text: &str) -> String {
    match ask(&MemoryGraph::new(), text) {
        Err(Error::Query(problem)) => format!("{:?}", problem.detail),
        Err(error) => format!("{error}"),
        Ok(rows) => format!("{rows:?}"),
    }
}

#[test]
fn invalid_queries_are_refused_with_a_tck_detail() {
    let table = [
        ("RETURN 1/0", "DivisionByZero"),
        ("RETURN 1%0", "DivisionByZero"),
        ("RETURN 9223372036854775807 + 1", "IntegerOverflow"),
        ("RETURN -(-9223372036854775807 - 1)", "IntegerOverflow"),
        ("RETURN 9223372036854775808", "IntegerOverflow"),
        ("RETURN - -9223372036854775808", "IntegerOverflow"),
        ("RETURN 'ab' =~ 'a)(b'", "InvalidArgumentValue"),
        ("MATCH (a) RETURN b", "UndefinedVariable"),
        ("MATCH (a)-[a]->() RETURN a", "VariableTypeConflict"),
        ("MATCH (a) CREATE (a)", "VariableAlreadyBound"),
        ("CREATE (a)-[:A|B]->(b)", "NoSingleRelationshipType"),
        ("CREATE (a)-[:A]-(b)", "RequiresDirectedRelationship"),
        ("CREATE (a)-[:A*2]->(b)", "CreatingVarLength"),
        ("MATCH (a) WHERE count(a) > 1 RETURN a", "InvalidAggregation"),
        ("RETURN count(count(*))", "NestedAggregation"),
        ("MATCH (a) RETURN a.x + a.y + count(*)", "AmbiguousAggregationExpression"),
        ("RETURN 1 AS a, 2 AS a", "ColumnNameConflict"),
        ("WITH 1 + 1 RETURN 2", "NoExpressionAlias"),
        ("RETURN foo(1)", "UnknownFunction"),
        ("RETURN abs(1, 2)", "InvalidNumberOfArguments"),
        ("MATCH (n $p) RETURN n", "InvalidParameterUse"),
        ("RETURN $p", "MissingParameter"),
        ("MATCH (n) RETURN n LIMIT -1", "NegativeIntegerArgument"),
        ("RETURN [1] + true AND 1", "InvalidArgumentType"),
        ("CREATE ({x: {y: 1}})", "InvalidPropertyType"),
        ("CREATE ({x: [[1]]})", "InvalidPropertyType"),
        ("MATCH (a)", "InvalidClauseComposition"),
        ("CREATE (a) MATCH (b) RETURN b", "InvalidClauseComposition"),
        ("RETURN 1 UNION RETURN 2 AS b", "DifferentColumnsInUnion"),
        ("", "UnexpectedSyntax"),
        ("RETURN 'abc", "UnexpectedSyntax"),
        ("RETURN `abc", "UnexpectedSyntax"),
        ("RETURN /* abc", "UnexpectedSyntax"),
        ("RETURN '\\u12'", "InvalidUnicodeLiteral"),
    ];
    for (text, expected) in table {
        assert_eq!(problem(text), expected, "{text}");
    }
}

#[test]
fn unsupported_features_are_refused_by_name() {
    let table = [
        ("CALL apoc.help('x')", "the procedure apoc.help"),
        (
            "CALL db.index.fulltext.queryNodes('x', 'y') YIELD node RETURN node",
            "the procedure db.index.fulltext.queryNodes",
        ),
        ("MATCH (n) CALL { CREATE () } IN TRANSACTIONS", "CALL { … } IN TRANSACTIONS"),
        ("MATCH ((a)-->(b))+ RETURN a", "quantified path patterns"),
        ("MATCH p = SHORTEST 2 (a)-->(b) RETURN p", "SHORTEST, ANY and ALL before a pattern"),
        ("MATCH (n:$('A')) RETURN n", "dynamic labels and types ($(…))"),
        ("MATCH ()-[r:T*2 WHERE r.x = 1]->() RETURN r", "WHERE in a variable-length relationship"),
        ("LOAD CSV FROM 'x' AS l RETURN l", "LOAD CSV"),
        ("CREATE INDEX FOR (n:A) ON (n.x)", "CREATE INDEX"),
        ("RETURN point({x: 1, y: 2})", "spatial functions"),
    ];
    for (text, expected) in table {
        let error = prepare(text).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{text}: {error}");
        assert!(error.to_string().contains(expected), "{text}: {error}");
    }
}

#[test]
fn errors_show_their_position() {
    let failure = Failure::from(prepare("MATCH (n)\nRETURN n.x +\n").unwrap_err());
    assert_eq!(
        failure.message,
        "expected an expression, found the end of the query (line 3, column 1)\n\n^"
    );
    let failure = Failure::from(prepare("MATCH (n)\n  RETRUN n").unwrap_err());
    assert!(
        failure.message.ends_with("(line 2, column 3)\n  RETRUN n\n  ^"),
        "{}",
        failure.message
    );
}

#[test]
fn overly_deep_and_large_queries_are_refused_quickly() {
    let deep = |open: &str, close: &str, count: usize| {
        format!("RETURN {}1{}", open.repeat(count), close.repeat(count))
    };
    let start = Instant::now();
    let texts = [
        deep("(", ")", 10_000),
        deep("[", "]", 10_000),
        deep("{a: ", "}", 10_000),
        deep("-", "", 10_000),
        deep("NOT ", "", 10_000),
        deep("abs(", ")", 10_000),
        deep("[x IN ", "| x]", 10_000),
        deep("CASE WHEN true THEN ", " END", 10_000),
        format!("RETURN 1{}", " + 1".repeat(200_000)),
        format!("RETURN 1{}", "[0]".repeat(100_000)),
        format!("MATCH (a){} RETURN a", "-->()".repeat(100_000)),
        format!("MATCH (a){} RETURN 1", ", ()".repeat(100_000)),
        format!("{}RETURN 1", "MATCH (n) WHERE EXISTS { ".repeat(10_000)),
    ];
    for text in &texts {
        assert!(ask(&MemoryGraph::new(), text).is_err(), "{}", &text[..40]);
    }
    for unbalanced in ["(", ")", "[", "((((((((((((((((((((", "((((((((((()))))))))))))))))))"] {
        assert!(prepare(&format!("RETURN {}", unbalanced.repeat(20))).is_err());
        assert!(prepare(&format!("MATCH {} RETURN 1", unbalanced.repeat(20))).is_err());
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn large_queries_within_the_limits_are_answered() {
    let graph = MemoryGraph::new();
    let many = |part: &str, between: &str, count: usize| vec![part; count].join(between);
    let table = [
        (format!("RETURN size([{}])", many("1", ",", 100_000)), "100000"),
        (format!("RETURN {}", many("true", " AND ", 50_000)), "true"),
        (format!("WITH 1 AS x {} RETURN x", many("WITH x", " ", 3000)), "1"),
        (format!("{} RETURN 7", many("CREATE ()", " ", 3000)), "7"),
        (format!("CREATE {} RETURN 7", many("()", ", ", 3000)), "7"),
        (format!("RETURN size('{}')", "x".repeat(1 << 20)), "1048576"),
        (format!("RETURN {}1{}", "(".repeat(50), ")".repeat(50)), "1"),
        (format!("RETURN {}", many("1", " + ", 290)), "290"),
    ];
    for (text, expected) in table {
        assert_eq!(ask(&graph, &text).unwrap(), [expected], "{}", &text[..40]);
    }
    let chain = super::graph(&format!("CREATE (:S){}", many("-[:T]->()", "", 600)));
    let long = format!("MATCH (a:S){} RETURN count(*)", many("-->()", "", 190));
    assert_eq!(ask(&chain, &long).unwrap(), ["1"]);
    let walk = "MATCH (a:S)-[r*]->(b) RETURN max(size(r))";
    assert_eq!(ask(&chain, walk).unwrap(), ["600"]);
}
