//! Long answers of the graph, page by page.

use std::path::Path;

use isolith_engine::{CypherQuery, Datum, Engine, GraphPage, PageSize};
use isolith_types::Code;
use libtest_mimic::Trial;

use crate::support::{open, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("pages_contain_every_row_once", paged),
        trial("all_pages_show_the_same_snapshot", of_one_moment),
        trial("a_cursor_returns_row_after_row", row_after_row),
        trial("tokens_of_other_engines_are_expired", expired),
    ]
}

const TEN: PageSize = PageSize { rows: 10, bytes: 1 << 20 };

fn query(text: &str) -> CypherQuery {
    CypherQuery { text: text.to_owned(), ..CypherQuery::default() }
}

fn numbers(page: &GraphPage) -> Vec<i64> {
    let number = |row: &Vec<Datum>| match row[0] {
        Datum::Integer(number) => number,
        ref other => panic!("{other:?}"),
    };
    page.rows.iter().map(number).collect()
}

async fn fill(engine: &Engine) {
    let made = engine.cypher(query("UNWIND range(1, 95) AS n CREATE (:N {n: n})"), None);
    assert_eq!(made.await.unwrap().stats.nodes_created, 95);
}

async fn paged(folder: &Path) {
    let engine = open(folder);
    let all = query("UNWIND range(1, 95) AS n CREATE (:N {n: n}) RETURN n");
    let mut page = engine.cypher_page(all, None, TEN).await.unwrap();
    assert_eq!((page.stats.nodes_created, page.columns.clone()), (95, vec!["n".to_owned()]));
    let (mut seen, mut sizes) = (Vec::new(), Vec::new());
    loop {
        seen.extend(numbers(&page));
        sizes.push(page.rows.len());
        let Some(token) = page.next else { break };
        page = engine.next_page(&token, TEN).await.unwrap();
        assert_eq!(page.stats.nodes_created, 0, "a page changes nothing");
        assert_eq!(engine.next_page(&token, TEN).await.unwrap(), page, "asked again");
    }
    assert_eq!(seen, (1..=95).collect::<Vec<_>>());
    assert_eq!(sizes, [10, 10, 10, 10, 10, 10, 10, 10, 10, 5]);

    // A row longer than a page is a page of its own.
    let small = PageSize { rows: 10, bytes: 100 };
    let long = "UNWIND [1, 2, 3] AS n RETURN n, reduce(s = '', x IN range(1, 9999) | s + 'x')";
    let first = engine.cypher_page(query(long), None, small).await.unwrap();
    let second = engine.next_page(&first.next.clone().unwrap(), small).await.unwrap();
    assert_eq!((numbers(&first), numbers(&second)), (vec![1], vec![2]));
    // An answer of at most one page has no next page.
    let one = engine.cypher_page(query("MATCH (n:N) RETURN count(n)"), None, TEN).await.unwrap();
    assert_eq!((numbers(&one), one.next), (vec![95], None));
    engine.close().await;
}

async fn of_one_moment(folder: &Path) {
    let engine = open(folder);
    fill(&engine).await;
    let sorted = query("MATCH (n:N) RETURN n.n ORDER BY n.n");
    let first = engine.cypher_page(sorted, None, TEN).await.unwrap();
    engine.cypher(query("MATCH (n:N) DELETE n"), None).await.unwrap();
    let rest = engine.next_page(&first.next.unwrap(), PageSize { rows: 100, ..TEN }).await;
    assert_eq!(numbers(&rest.unwrap()), (11..=95).collect::<Vec<_>>());
    engine.close().await;
}

async fn row_after_row(folder: &Path) {
    let engine = open(folder);
    fill(&engine).await;
    let all = query("UNWIND range(1, 2500) AS n RETURN n");
    let mut cursor = engine.cypher_rows(all, None).await.unwrap();
    let mut seen = 0;
    while cursor.has_next() {
        seen += 1;
        assert_eq!(cursor.get_next().await.unwrap(), Some(vec![Datum::Integer(seen)]));
    }
    assert_eq!((seen, cursor.get_next().await.unwrap()), (2500, None));
    engine.close().await;
}

async fn expired(folder: &Path) {
    let engine = open(folder);
    fill(&engine).await;
    let page = engine.cypher_page(query("MATCH (n:N) RETURN n.n"), None, TEN).await.unwrap();
    let token = page.next.unwrap();
    let other = open(folder);
    for (engine, token) in [(&other, token.as_str()), (&engine, "1-0-00"), (&engine, "x")] {
        let refused = engine.next_page(token, TEN).await.unwrap_err();
        assert_eq!(refused.code, Code::CursorExpired, "{token}");
    }
    assert_eq!(engine.next_page(&token, TEN).await.unwrap().rows.len(), 10);
    engine.close().await;
    other.close().await;
}
