//! Random patterns on small random graphs, compared with a brute-force search.
//!
//! `PATTERN_QUERIES=50000 cargo test -p isolith-graph --test patterns` tries more of them.

#![allow(clippy::unwrap_used, clippy::panic)]

mod brute;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use brute::{Binding, Bound, Clause, Filter, NodeP, PathP, RelP, Small, Way};
use fastrand::Rng;
use isolith_graph::{Budget, Datum, Flow, MemoryGraph, prepare};

#[test]
fn random_patterns_match_brute_force() {
    let queries: u64 =
        std::env::var("PATTERN_QUERIES").ok().and_then(|it| it.parse().ok()).unwrap_or(2000);
    let seed: Option<u64> = std::env::var("PATTERN_SEED").ok().and_then(|it| it.parse().ok());
    let seeds = seed.map_or(0..queries, |seed| seed..seed + 1);
    let (mut asked, mut rows) = (0, 0);
    for seed in seeds.clone() {
        if let Some(found) = one(seed) {
            asked += 1;
            rows += found;
        }
    }
    let all = seeds.end - seeds.start;
    println!("{asked} of {all} queries compared, {rows} rows");
    assert!(asked * 20 >= all * 19, "only {asked} of {all} queries could be compared");
    assert!(rows > 0, "no rows found");
}

/// Compares one query on one graph; returns the number of rows, or `None` if there are too many.
fn one(seed: u64) -> Option<usize> {
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let small = graph(&mut rng);
    let mut memory = build(&small);
    if rng.bool() {
        memory.freeze();
    }
    match rng.u8(..10) {
        0 => return one_shortest(&mut rng, &small, &memory, seed),
        1 | 2 => return one_shortcut(&mut rng, &small, &memory, seed),
        3 | 4 => return one_subquery(&mut rng, &small, &memory, seed),
        _ => {}
    }
    let clauses = clauses(&mut rng);
    let mut text = String::new();
    for clause in &clauses {
        write_clause(&mut text, clause);
    }
    let found = brute::answer(&small, &clauses)?;
    let mut names: Vec<String> = clauses.iter().flat_map(brute::names).collect();
    names.sort();
    names.dedup();
    let (ending, mut expected) = ending(&mut rng, &names, &found);
    text += &ending;
    let mut got = ask(&memory, &text, seed);
    got.sort();
    expected.sort();
    assert_eq!(got, expected, "seed {seed}: {text}\n{small:?}");
    Some(got.len())
}

/// Patterns of which only the ends or the count matter, for which the planner has shortcuts.
fn one_shortcut(rng: &mut Rng, small: &Small, memory: &MemoryGraph, seed: u64) -> Option<usize> {
    let plain = |name: &str| NodeP { name: Some(name.to_owned()), label: None, k: None };
    let mut walk = rel(rng, None);
    let counted = rng.u8(..3) == 0;
    if counted {
        walk.length = None;
        walk.name = rng.bool().then(|| "r".to_owned());
    } else {
        let min = rng.usize(0..3);
        walk.length = Some((min, if rng.bool() { None } else { Some(min + rng.usize(0..4)) }));
    }
    let mut end = plain("b");
    if counted || rng.u8(..4) == 0 {
        end.name = None;
    } else if rng.u8(..4) == 0 {
        end.label = Some('A');
    }
    let mut start = plain("a");
    start.k = rng.bool().then(|| rng.i64(0..3));
    let path = PathP { name: None, start, steps: vec![(walk.clone(), end.clone())] };
    let mut clauses = vec![Clause { optional: false, paths: vec![path], filter: None }];
    if rng.u8(..4) == 0 {
        let steps = vec![(rel(rng, None), plain("a"))];
        let path = PathP { name: None, start: plain("c"), steps };
        clauses.insert(0, Clause { optional: false, paths: vec![path], filter: None });
    }
    let mut text = String::new();
    for clause in &clauses {
        write_clause(&mut text, clause);
    }
    let found = brute::answer(small, &clauses)?;
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in &found {
        let end = if end.name.is_some() { show(&row["b"]) } else { String::new() };
        groups.entry(show(&row["a"])).or_default().push(end);
    }
    let mut expected: Vec<String> = Vec::new();
    for (start, mut ends) in groups {
        let count = ends.len();
        ends.sort();
        ends.dedup();
        if counted || end.name.is_none() {
            expected.push(format!("{start} {count}"));
        } else {
            expected.push(format!("{start} {}", ends.len()));
        }
    }
    text += match (counted, &walk.name, &end.name) {
        (true, Some(_), _) => "RETURN a.i, count(r)",
        (_, _, None) => "RETURN a.i, count(*)",
        _ => "RETURN a.i, count(DISTINCT b)",
    };
    let mut got = ask(memory, &text, seed);
    got.sort();
    expected.sort();
    assert_eq!(got, expected, "seed {seed}: {text}\n{small:?}");
    Some(got.len())
}

/// The same clauses in subqueries of all kinds.
fn one_subquery(rng: &mut Rng, small: &Small, memory: &MemoryGraph, seed: u64) -> Option<usize> {
    let clauses = clauses(rng);
    let found = brute::answer(small, &clauses)?.len();
    let mut texts = Vec::new();
    for clause in &clauses {
        let mut text = String::new();
        write_clause(&mut text, clause);
        texts.push(text);
    }
    let all = texts.concat();
    let compare = |text: String, expected: Vec<String>| {
        assert_eq!(ask(memory, &text, seed), expected, "seed {seed}: {text}\n{small:?}");
    };
    let one = |count: usize| vec![count.to_string()];
    compare(format!("RETURN COUNT {{ {all} }}"), one(found));
    compare(format!("RETURN size(COLLECT {{ {all} RETURN 1 AS one }})"), one(found));
    let exists = format!("RETURN CASE WHEN EXISTS {{ {all} }} THEN 1 ELSE 0 END");
    compare(exists, one(usize::from(found > 0)));
    compare(format!("CALL {{ {all} RETURN count(*) AS n }} RETURN n"), one(found));
    let twice = format!("UNWIND [0, 5] AS u CALL (u) {{ {all} RETURN u AS v }} RETURN count(v)");
    compare(twice, one(2 * found));
    let union =
        format!("CALL {{ {all} RETURN 1 AS v UNION ALL {all} RETURN 2 AS v }} RETURN sum(v)");
    compare(union, one(3 * found));
    // The last clause as a subquery for every row of the first ones.
    let (last, first) = texts.split_last()?;
    if !first.is_empty() {
        let first = first.concat();
        let split = format!("{first} CALL (*) {{ {last} RETURN count(*) AS n }} RETURN sum(n)");
        compare(split, one(found));
        let inner = format!("{first} RETURN sum(COUNT {{ {last} }})");
        compare(inner, one(found));
    }
    Some(found)
}

fn one_shortest(rng: &mut Rng, small: &Small, memory: &MemoryGraph, seed: u64) -> Option<usize> {
    let mut rel = rel(rng, None);
    rel.length = Some((rng.usize(0..2), if rng.bool() { None } else { Some(rng.usize(1..4)) }));
    let (from, to) = (rng.usize(0..small.nodes.len()), rng.usize(0..small.nodes.len()));
    let expected = brute::shortest(small, &rel, from, to)?;
    let mut pattern = String::from("(a)");
    write_rel(&mut pattern, &rel);
    pattern += "(b)";
    for all in [false, true] {
        let function = if all { "allShortestPaths" } else { "shortestPath" };
        let text = format!(
            "MATCH (a {{i: {from}}}), (b {{i: {to}}}) MATCH p = {function}({pattern}) \
             RETURN length(p), count(p)"
        );
        let got = ask(memory, &text, seed);
        let expected: Vec<String> = expected
            .iter()
            .map(|(length, count)| format!("{length} {}", if all { *count } else { 1 }))
            .collect();
        assert_eq!(got, expected, "seed {seed}: {text}\n{small:?}");
    }
    Some(usize::from(expected.is_some()))
}

fn graph(rng: &mut Rng) -> Small {
    let count = rng.usize(1..6);
    let label = |rng: &mut Rng| [None, Some('A'), Some('B')][rng.usize(0..3)];
    let nodes = (0..count).map(|_| (label(rng), rng.i64(0..3))).collect();
    let edges = rng.usize(0..8);
    let edge = |rng: &mut Rng| (rng.usize(0..count), rng.usize(0..count), rng.usize(0..2));
    Small { nodes, edges: (0..edges).map(|_| edge(rng)).collect() }
}

fn build(small: &Small) -> MemoryGraph {
    let memory = MemoryGraph::new();
    let mut text = String::from("CREATE ");
    for (i, (label, k)) in small.nodes.iter().enumerate() {
        let label = label.map(|label| format!(":{label}")).unwrap_or_default();
        let _ = write!(text, "(n{i}{label} {{i: {i}, k: {k}}}), ");
    }
    for (i, (from, to, kind)) in small.edges.iter().enumerate() {
        let _ = write!(text, "(n{from})-[:T{kind} {{i: {i}}}]->(n{to}), ");
    }
    let text = text.trim_end_matches(", ");
    let query = prepare(text).unwrap();
    let sink = &mut |_| Ok(Flow::Continue);
    query.run_mut(&memory, &BTreeMap::new(), &Budget::unbounded(), sink).unwrap();
    memory
}

fn clauses(rng: &mut Rng) -> Vec<Clause> {
    let count = [1, 1, 1, 2, 2][rng.usize(0..5)];
    let mut known = Vec::new();
    let mut taken: Vec<String> = Vec::new();
    (0..count)
        .map(|at| {
            let paths = (0..[1, 1, 1, 2][rng.usize(0..4)])
                .map(|_| path(rng, &mut known, &mut taken))
                .collect();
            let mut clause = Clause { optional: at > 0 && rng.bool(), paths, filter: None };
            if rng.u8(..3) == 0 && !known.is_empty() {
                clause.filter = Some(filter(rng, &known));
            }
            clause
        })
        .collect()
}

fn filter(rng: &mut Rng, known: &[String]) -> Filter {
    let mut name = || known[rng.usize(0..known.len())].clone();
    let (a, b) = (name(), name());
    match rng.u8(..5) {
        0 => Filter::Same(a, b),
        1 => Filter::Not(a, rng.i64(0..3)),
        2 => Filter::In(a, rng.i64(0..3), rng.i64(0..3)),
        3 => Filter::Edge(a, b, rng.bool()),
        _ => Filter::Walk(a),
    }
}

fn path(rng: &mut Rng, known: &mut Vec<String>, taken: &mut Vec<String>) -> PathP {
    let fresh = |rng: &mut Rng, letter: char, taken: &mut Vec<String>| {
        if rng.bool() {
            return None;
        }
        let name = format!("{letter}{}", taken.len());
        taken.push(name.clone());
        Some(name)
    };
    let start = node(rng, known);
    let mut steps = Vec::new();
    for _ in 0..[0, 1, 1, 2, 2, 3][rng.usize(0..6)] {
        let name = fresh(rng, 'r', taken);
        steps.push((rel(rng, name), node(rng, known)));
    }
    PathP { name: fresh(rng, 'p', taken), start, steps }
}

fn node(rng: &mut Rng, known: &mut Vec<String>) -> NodeP {
    let name = match rng.u8(..4) {
        0 => None,
        _ => {
            let name = ["a", "b", "c", "d"][rng.usize(0..4)].to_owned();
            if !known.contains(&name) {
                known.push(name.clone());
            }
            Some(name)
        }
    };
    let label = if rng.u8(..4) == 0 { Some(['A', 'B'][rng.usize(0..2)]) } else { None };
    let k = if rng.u8(..5) == 0 { Some(rng.i64(0..3)) } else { None };
    NodeP { name, label, k }
}

fn rel(rng: &mut Rng, name: Option<String>) -> RelP {
    let types = match rng.u8(..4) {
        0 => vec![rng.usize(0..2)],
        1 => vec![0, 1],
        _ => Vec::new(),
    };
    let way = [Way::Out, Way::In, Way::Both][rng.usize(0..3)];
    let length = if rng.u8(..3) == 0 {
        let min = rng.usize(0..3);
        Some((min, if rng.u8(..4) == 0 { None } else { Some(min + rng.usize(0..3)) }))
    } else {
        None
    };
    RelP { name, types, way, length }
}

fn write_clause(text: &mut String, clause: &Clause) {
    *text += if clause.optional { "OPTIONAL MATCH " } else { "MATCH " };
    for (at, path) in clause.paths.iter().enumerate() {
        if at > 0 {
            *text += ", ";
        }
        if let Some(name) = &path.name {
            let _ = write!(text, "{name} = ");
        }
        write_node(text, &path.start);
        for (rel, node) in &path.steps {
            write_rel(text, rel);
            write_node(text, node);
        }
    }
    let _ = match &clause.filter {
        None => Ok(()),
        Some(Filter::Same(a, b)) => write!(text, " WHERE {a}.k = {b}.k"),
        Some(Filter::Not(a, n)) => write!(text, " WHERE NOT ({a}.k = {n})"),
        Some(Filter::In(a, m, n)) => write!(text, " WHERE {a}.k IN [{m}, {n}]"),
        Some(Filter::Edge(a, b, true)) => write!(text, " WHERE ({a})-[:T0]->({b})"),
        Some(Filter::Edge(a, b, false)) => write!(text, " WHERE NOT ({a})-[:T0]->({b})"),
        Some(Filter::Walk(a)) => write!(text, " WHERE ({a})-[:T1*1..2]-()"),
    };
    *text += " ";
}

fn write_node(text: &mut String, node: &NodeP) {
    *text += "(";
    *text += node.name.as_deref().unwrap_or_default();
    if let Some(label) = node.label {
        // The same condition as an expression, for some of the patterns.
        let other = if label == 'A' { 'B' } else { 'A' };
        let _ = match text.len() % 4 {
            0 => write!(text, ":!{other}&%"),
            1 => write!(text, ":{label}|({label}&{other})"),
            _ => write!(text, ":{label}"),
        };
    }
    if let Some(k) = node.k {
        let _ = write!(text, " {{k: {k}}}");
    }
    *text += ")";
}

fn write_rel(text: &mut String, rel: &RelP) {
    *text += if rel.way == Way::In { "<-[" } else { "-[" };
    *text += rel.name.as_deref().unwrap_or_default();
    for (at, kind) in rel.types.iter().enumerate() {
        let _ = write!(text, "{}T{kind}", if at == 0 { ":" } else { "|" });
    }
    if let Some((min, max)) = rel.length {
        let max = max.map(|max| max.to_string()).unwrap_or_default();
        let _ = write!(text, "*{min}..{max}");
    }
    *text += if rel.way == Way::Out { "]->" } else { "]-" };
}

/// A `RETURN` clause, and its result by brute force.
fn ending(rng: &mut Rng, names: &[String], found: &[Binding]) -> (String, Vec<String>) {
    let nodes: Vec<&String> = names.iter().filter(|name| "abcd".contains(&name[..1])).collect();
    let choice = if nodes.is_empty() { rng.u8(..2) } else { rng.u8(..6) };
    match choice {
        0 => ("RETURN count(*)".to_owned(), vec![found.len().to_string()]),
        1 if !names.is_empty() => {
            let columns: Vec<String> = names.iter().map(|name| column(name)).collect();
            let rows = found
                .iter()
                .map(|row| names.iter().map(|name| show(&row[name])).collect::<Vec<_>>().join(" "));
            (format!("RETURN {}", columns.join(", ")), rows.collect())
        }
        1 => ("RETURN 7".to_owned(), found.iter().map(|_| "7".to_owned()).collect()),
        2 | 3 => {
            let name = nodes[rng.usize(0..nodes.len())];
            let mut rows: Vec<String> = found.iter().map(|row| show(&row[name])).collect();
            rows.sort();
            rows.dedup();
            if choice == 2 {
                return (format!("RETURN DISTINCT {}", column(name)), rows);
            }
            rows.retain(|row| row != "null");
            (format!("RETURN count(DISTINCT {name})"), vec![rows.len().to_string()])
        }
        4 => {
            let name = nodes[rng.usize(0..nodes.len())];
            let mut groups: BTreeMap<String, usize> = BTreeMap::new();
            for row in found {
                *groups.entry(show(&row[name])).or_default() += 1;
            }
            let rows = groups.iter().map(|(key, count)| format!("{key} {count}")).collect();
            (format!("RETURN {}, count(*)", column(name)), rows)
        }
        _ => {
            let name = nodes[rng.usize(0..nodes.len())];
            let limit = rng.usize(0..4);
            let mut numbers: Vec<(bool, String)> =
                found.iter().map(|row| (row[name] == Bound::Null, show(&row[name]))).collect();
            numbers.sort();
            let rows = numbers.into_iter().take(limit).map(|(_, row)| row).collect();
            let column = column(name);
            (format!("RETURN {column} AS x ORDER BY x LIMIT {limit}"), rows)
        }
    }
}

fn column(name: &str) -> String {
    match &name[..1] {
        "r" => name.to_owned(),
        "p" => format!("[[x IN nodes({name}) | x.i], [x IN relationships({name}) | x.i]]"),
        _ => format!("{name}.i"),
    }
}

fn show(bound: &Bound) -> String {
    let list = |items: &[usize]| {
        format!("[{}]", items.iter().map(usize::to_string).collect::<Vec<_>>().join(","))
    };
    match bound {
        Bound::Null => "null".to_owned(),
        Bound::Node(node) => node.to_string(),
        Bound::Edge(edge) => edge.to_string(),
        Bound::Edges(edges) => list(edges),
        Bound::Path(nodes, edges) => format!("[{},{}]", list(nodes), list(edges)),
    }
}

fn ask(memory: &MemoryGraph, text: &str, seed: u64) -> Vec<String> {
    let query = prepare(text).unwrap_or_else(|error| panic!("seed {seed}: {text}: {error}"));
    let mut rows = Vec::new();
    let result = query.run(memory, &BTreeMap::new(), &Budget::unbounded(), &mut |row| {
        rows.push(row.iter().map(cell).collect::<Vec<_>>().join(" "));
        Ok(Flow::Continue)
    });
    result.unwrap_or_else(|error| panic!("seed {seed}: {text}: {error}"));
    rows
}

fn cell(datum: &Datum) -> String {
    match datum {
        Datum::Integer(number) => number.to_string(),
        Datum::Relationship(edge) => cell(&edge.properties["i"]),
        Datum::List(list) => {
            let items: Vec<String> = list.iter().map(cell).collect();
            // The nodes and relationships of a null path.
            if items == ["null", "null"] {
                "null".to_owned()
            } else {
                format!("[{}]", items.join(","))
            }
        }
        Datum::Null => "null".to_owned(),
        other => panic!("{other:?}"),
    }
}
