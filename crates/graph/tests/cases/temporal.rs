use isolith_graph::{Error, MemoryGraph};

use super::{ask, check, graph};

#[test]
fn temporal_values_are_stored_and_compared() {
    let graph = graph(
        "CREATE (:E {at: date('2024-02-29'), n: 1}), (:E {at: date('2023-12-31'), n: 2}),
                (:E {at: datetime('2024-02-29T10:00+01:00[Europe/Paris]'), n: 3}), (:E {n: 4})",
    );
    check(
        &graph,
        &[
            ("MATCH (e:E {at: date('2024-02-29')}) RETURN e.n", &["1"]),
            ("MATCH (e:E) WHERE e.at >= date('2024-01-01') RETURN e.n", &["1"]),
            (
                "MATCH (e:E) RETURN e.at ORDER BY e.at",
                &[
                    r#""2024-02-29T10:00+01:00[Europe/Paris]""#,
                    r#""2023-12-31""#,
                    r#""2024-02-29""#,
                    "null",
                ],
            ),
            ("MATCH (e:E) RETURN max(e.at.year), count(DISTINCT e.at)", &["2024 3"]),
            (
                "MATCH (e:E {n: 1}) RETURN {at: e.at, all: [e.at]}",
                &[r#"{"all":["2024-02-29"],"at":"2024-02-29"}"#],
            ),
            ("RETURN date('2024-02-29') = datetime('2024-02-29T00:00Z')", &["false"]),
            ("RETURN date('2024-02-29') < datetime('2024-02-29T00:00Z')", &["null"]),
            ("RETURN duration('P1M') < duration('P31D')", &["null"]),
            (
                "RETURN datetime('2024-01-01T12:00Z') < datetime('2024-01-01T12:00-01:00')",
                &["true"],
            ),
        ],
    );
}

#[test]
fn calendars_and_clocks_are_exact() {
    check(
        &MemoryGraph::new(),
        &[
            ("RETURN date('2024-01-31') + duration('P1M')", &[r#""2024-02-29""#]),
            ("RETURN date('2024-03-31') - duration({months: 1, days: 1})", &[r#""2024-02-28""#]),
            (
                "RETURN datetime('2024-03-30T12:00[Europe/Paris]') + duration('P1D') AS d,
                        datetime('2024-03-30T12:00[Europe/Paris]') + duration('PT24H') AS h",
                &[concat!(
                    r#""2024-03-31T12:00+02:00[Europe/Paris]" "#,
                    r#""2024-03-31T13:00+02:00[Europe/Paris]""#
                )],
            ),
            ("RETURN duration.inDays(date('2024-02-28'), date('2024-03-01')).days", &["2"]),
            ("RETURN duration({days: 0.7}) AS d", &[r#""PT16H48M""#]),
            (
                "RETURN duration('P1DT-1S') * 2 AS d, duration('PT3S') / 2",
                &[r#""P2DT-2S" "PT1.5S""#],
            ),
            (
                "RETURN date('-0044-03-15'), date('+12024-01-01')",
                &[r#""-0044-03-15" "+12024-01-01""#],
            ),
            ("RETURN 'on ' + date('2024-01-01')", &[r#""on 2024-01-01""#]),
            ("RETURN date() = date(), timestamp() = datetime().epochMillis", &["true true"]),
            (
                "RETURN datetime({epochSeconds: 86400}), datetime.fromEpochMillis(-1)",
                &[r#""1970-01-02T00:00Z" "1969-12-31T23:59:59.999Z""#],
            ),
            ("RETURN date.truncate('week', date('2024-05-05'))", &[r#""2024-04-29""#]),
            (
                "RETURN datetime({year: 2024, timezone: 'America/New York'}).timezone",
                &[r#""America/New_York""#],
            ),
        ],
    );
}

#[test]
fn impossible_temporal_values_are_errors() {
    for text in [
        "date('2023-02-29')",
        "date('2023-13-01')",
        "date('2021-W53')",
        "date({year: 2023, month: 2, day: 30})",
        "date({month: 2})",
        "date({year: 2023, day: 3})",
        "date({year: 2023, hour: 3})",
        "date({year: '2023'})",
        "date('2023-01-01').hour",
        "date(7)",
        "date('999999999-01-01T00')",
        "date('+999999999-12-31') + duration('P1D')",
        "date('+999999999-12-31') + duration({days: 9223372036854775807})",
        "datetime('+999999999-12-31T23:59-18:00') + duration('PT1M')",
        "time('25:00')",
        "time({minute: 3})",
        "time('10:00+19:00')",
        "datetime('2024-01-01T00:00[Mars/Olympus]')",
        "datetime('2024-01-01T00:00+05:00[Europe/Paris]')",
        "duration('P')",
        "duration('1D')",
        "duration({day: 1})",
        "duration({months: 9223372036854775807, years: 1})",
        "duration({years: 1e300})",
        "duration('P1D') * 9223372036854775807 * 2",
        "duration('P1D') / 0",
        "duration('P1D') * (0.0 / 0.0)",
        "duration.between(duration('P1D'), date())",
        "date.truncate('hour', date())",
        "date.truncate('fortnight', date())",
        "time.truncate('year', time())",
        "date() - date()",
        "date() + 1",
        "date() * 2",
    ] {
        let found = ask(&MemoryGraph::new(), &format!("RETURN {text} AS x"));
        assert!(matches!(found, Err(Error::Query(_))), "{text}: {found:?}");
    }
}

#[test]
fn properties_can_be_required_to_be_temporal() {
    let graph = graph("CREATE (:E {at: date('2024-02-29')})");
    let require =
        |kind: &str| ask(&graph, &format!("CREATE CONSTRAINT FOR (e:E) REQUIRE e.at IS :: {kind}"));
    assert!(require("ZONED DATETIME").is_err());
    require("DATE | LOCAL DATETIME").unwrap();
    let shown = ask(&graph, "SHOW CONSTRAINTS").unwrap();
    assert!(shown[0].contains("DATE | LOCAL DATETIME"), "{shown:?}");
    assert!(ask(&graph, "CREATE (:E {at: '2024-02-29'})").is_err());
}
