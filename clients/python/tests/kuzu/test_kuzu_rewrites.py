"""What becomes of queries, with tables but without a server."""

from __future__ import annotations

import pytest

from isolith import kuzu
from isolith.kuzu._binder import Bound, bind, undeclared
from isolith.kuzu._catalog import Catalog, Constraint, catalog_of
from isolith.kuzu._literals import movable, places, template_of, value_of
from isolith.kuzu._outline import Outline
from isolith.kuzu._tokens import tokenize


def constraint(
    label: str,
    column: str | None = None,
    type: str | None = None,
    name: str | None = None,
    ends: tuple[tuple[str, str], ...] = (),
    key: str | None = None,
) -> Constraint:
    is_node = not label.isupper()
    if column is not None:
        kind = "NODE_PROPERTY_TYPE" if is_node else "RELATIONSHIP_PROPERTY_TYPE"
        name = name or f"{label}.{column}"
        return Constraint(name, kind, label, (column,), type, (), is_node)
    if key is not None:
        return Constraint(label, "NODE_KEY", label, (key,), None, (), True)
    return Constraint(label, "RELATIONSHIP_ENDS", label, (), None, ends, False)


TABLES = catalog_of(
    [
        constraint("User", "name", "STRING"),
        constraint("User", "age", "INTEGER", name="User.age INT32"),
        constraint("User", "height", "FLOAT | INTEGER"),
        constraint("User", "scores", "LIST<FLOAT NOT NULL> | LIST<INTEGER NOT NULL>"),
        constraint("User", key="name"),
        constraint("City", "name", "STRING"),
        constraint("City", "first seen", "STRING", name="City.`first seen` DATE"),
        constraint("City", key="name"),
        constraint("LIVES", "since", "INTEGER"),
        constraint("LIVES", ends=(("User", "City"),)),
        constraint("Unfinished", "a", "STRING"),
    ]
)


def bound(text: str, catalog: Catalog = TABLES) -> Bound:
    return bind(text, Outline(tokenize(text)), catalog)


def test_tables_are_constraints() -> None:
    assert list(TABLES.tables) == ["User", "City", "LIVES"]
    assert TABLES.ids == {"User": 0, "City": 1, "LIVES": 2}
    user = TABLES.node_table("user")
    assert user is not None
    assert user.key == "name"
    assert [column.type.name for column in user.columns] == [
        "STRING",
        "INT32",
        "DOUBLE",
        "DOUBLE[]",
    ]
    city = TABLES.node_table("City")
    assert city is not None
    assert [column.type.name for column in city.columns] == ["STRING", "DATE"]
    lives = TABLES.rel_table("LIVES")
    assert lives is not None
    assert lives.ends == (("User", "City"),)
    assert TABLES.referring("City") == "LIVES"
    assert list(TABLES.unfinished) == ["Unfinished"]


def test_a_key_without_a_type_is_a_column() -> None:
    (table,) = catalog_of([constraint("Thing", key="id")]).tables.values()
    assert [(column.name, column.type.name) for column in table.columns] == [("id", "ANY")]


@pytest.mark.parametrize(
    "text",
    [
        "MATCH (u:User) RETURN u, u.name AS n ORDER BY n SKIP 1 LIMIT 2",
        "MATCH (u:User {name: $n})-[l:LIVES]->(c:City) WHERE l.since > 3 RETURN c.name",
        "UNWIND [1, 2] AS x WITH x WHERE x IN [1, 2] RETURN x + 1 AS y",
        "MATCH (n) RETURN n.anything",
        "MATCH (a:User)-[:LIVES*1..3]->(b) RETURN b",
        "MATCH (u:User) RETURN size(u.name)",
        "MATCH (u:User) RETURN {k: u.age}",
        "MATCH (u:User) WHERE any(u IN [1] WHERE u.other > 0) RETURN 1",
        "MATCH (u:User) WITH u.name AS u RETURN u",
        "RETURN {a: 1}.a, {a: 1}['a'], [1, 2]",
        "MATCH (o:Other) RETURN o.property",
        "MATCH (u:User) SET u.age = 3, u.name = 'a' RETURN 1",
        "MATCH (u:User)-[r]->() WHERE NOT (u)-[:LIVES]->(:City) RETURN r.since, u {.name, .*}",
    ],
)
def test_what_stays(text: str) -> None:
    assert bound(text).text == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Case.
        ("MATCH (u:USER {NAME: 1}) RETURN u", "MATCH (u:`User` {`name`: 1}) RETURN u"),
        ("MATCH (u:User) RETURN u.Name", "MATCH (u:User) RETURN u.`name` AS `u.name`"),
        ("MATCH ()-[l:lives]->() RETURN l", "MATCH ()-[l:`LIVES`]->() RETURN l"),
        # Columns.
        (
            "MATCH (c:City) RETURN c.*",
            "MATCH (c:City) RETURN `c`.`name` AS `c.name`, `c`.`first seen` AS `c.first seen`",
        ),
        (
            "MATCH (c:City)<-[l:LIVES]-() WITH c AS d, l RETURN d.*, l.*",
            "MATCH (c:City)<-[l:LIVES]-() WITH c AS d, l RETURN `d`.`name` AS `d.name`, "
            "`d`.`first seen` AS `d.first seen`, `l`.`since` AS `l.since`",
        ),
        ("MATCH (u:User) RETURN u . name", "MATCH (u:User) RETURN u . name AS `u.name`"),
        ("MATCH (u:User) RETURN count(*)", "MATCH (u:User) RETURN count(*) AS `COUNT_STAR()`"),
        (
            "MATCH (u:User) RETURN count(u), max(u.age), collect(DISTINCT u.name)",
            "MATCH (u:User) RETURN count(u) AS `COUNT(u._ID)`, max(u.age) AS `MAX(u.age)`, "
            "collect(DISTINCT u.name) AS `COLLECT(DISTINCT u.name)`",
        ),
        # Positions.
        ("RETURN [1, 2][1] AS x", "RETURN [1, 2][0] AS x"),
        ("RETURN [1, 2][-1] AS x", "RETURN [1, 2][-1] AS x"),
        ("MATCH (u:User) RETURN u.scores[2]", "MATCH (u:User) RETURN u.scores[1] AS `u.scores[2]`"),
        (
            "RETURN $list[$i] AS x",
            "RETURN $list[[x IN [$i] | CASE WHEN x > 0 THEN x - 1 ELSE x END][0]] AS x",
        ),
        ("RETURN $l[1:2] AS x", "RETURN $l[..2] AS x"),
        ("RETURN $l[2:3] AS x", "RETURN $l[1..3] AS x"),
        ("RETURN $l[2:] AS x", "RETURN $l[1..] AS x"),
        ("RETURN $l[-2:-1] AS x", "RETURN $l[-2..] AS x"),
        ("RETURN $l[:-2] AS x", "RETURN $l[..-1] AS x"),
        # Functions.
        ("MATCH (u:User) RETURN label(u) AS x", "MATCH (u:User) RETURN labels(u)[0] AS x"),
        (
            "MATCH ()-[l:LIVES]->() RETURN label(l)",
            "MATCH ()-[l:LIVES]->() RETURN type(l) AS `label(l)`",
        ),
        ("RETURN substring('abc', 2, 1) AS x", "RETURN substring('abc', 1, 1) AS x"),
        ("RETURN substr($s, $i, 1) AS x", "RETURN substring($s, ($i) - 1, 1) AS x"),
        ("RETURN log(10), ln(2) AS x", "RETURN log10(10) AS `log(10)`, log(2) AS x"),
        ("RETURN date('2020-1-2') AS x", 'RETURN "2020-01-02" AS x'),
        (
            'RETURN timestamp("2020-01-02 03:04:05")',
            'RETURN "2020-01-02T03:04:05" AS `timestamp("2020-01-02 03:04:05")`',
        ),
        ("RETURN date($d) AS a, uuid($u) AS b", "RETURN $date_d AS a, $uuid_u AS b"),
        # Floats.
        ("CREATE (:User {name: 'a', height: 2})", "CREATE (:User {name: 'a', height: 2.0})"),
        ("CREATE (:User {height: 2.5})", "CREATE (:User {height: 2.5})"),
        ("CREATE (:User {height: $h})", "CREATE (:User {height: $float_h})"),
        ("MERGE (u:User {height: $r.h})", "MERGE (u:User {height: ($r.h) * 1.0})"),
        (
            "MATCH (u:User) SET u.age = 1, u.height = u.age + 1 RETURN 1",
            "MATCH (u:User) SET u.age = 1, u.height = (u.age + 1) * 1.0 RETURN 1",
        ),
        (
            "CREATE (:User {scores: [1, 2.5]})",
            "CREATE (:User {scores: [x IN ([1, 2.5]) | x * 1.0]})",
        ),
        ("MATCH (u:User {height: 2}) RETURN 1", "MATCH (u:User {height: 2}) RETURN 1"),
    ],
)
def test_what_changes(text: str, expected: str) -> None:
    assert bound(text).text == expected


def test_types_of_columns() -> None:
    query = bound(
        "MATCH p = (u:User)-[l:LIVES]->(c), (a)-[r:LIVES*]->(b) "
        "RETURN p, u, l, r, u.age, c.name AS city, u.height AS h, u.*"
    )
    assert query.kinds["p"] == "RECURSIVE_REL"
    assert query.kinds["r"] == "RECURSIVE_REL"
    assert (query.kinds["u"], query.kinds["l"]) == ("NODE", "REL")
    assert (query.kinds["u.age"], query.kinds["h"]) == ("INT32", "DOUBLE")
    # Both tables of nodes have it, with the same type.
    assert query.kinds["city"] == "STRING"
    assert query.kinds["u.scores"] == "DOUBLE[]"
    assert query.recursive == {"r"}
    assert "n" not in bound("MATCH (n) RETURN count(*) AS n").kinds


def test_parameters_are_known() -> None:
    query = bound("CREATE (:User {name: $n, height: $h, scores: $s}) RETURN $h")
    assert query.parameters == {"n", "h"}
    assert query.derived == {"float_h": ("h", "DOUBLE"), "float_s": ("s", "DOUBLE")}
    assert query.is_write


@pytest.mark.parametrize(
    ("text", "is_write"),
    [
        ("MATCH (n) RETURN n.set, {create: 1}", False),
        ("MATCH (n:Delete)-[:MERGE]->() RETURN n", False),
        ("MATCH (n) WHERE n.name STARTS WITH 'a' RETURN n", False),
        ("MATCH (n) SET n.a = 1", True),
        ("MATCH (n) DETACH DELETE n", True),
        ("MERGE (:User {name: 'a'})", True),
        ("MATCH (n) REMOVE n.a", True),
        ("CREATE CONSTRAINT FOR (n:T) REQUIRE n.a IS UNIQUE", True),
    ],
)
def test_what_writes(text: str, is_write: bool) -> None:
    assert Outline(tokenize(text)).is_write is is_write


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("MATCH (u:User) RETURN u.nope", "Binder exception: Cannot find property nope for u."),
        ("MATCH (u:User {nope: 1}) RETURN u", "Cannot find property nope for u."),
        ("MATCH (u:User) WITH u AS v SET v.nope = 1", "Cannot find property nope for v."),
        ("MATCH ()-[l:LIVES]->() RETURN l.nope", "Cannot find property nope for l."),
        ("CREATE (u {name: 'a'})", "Create node u with multiple node labels is not supported."),
        ("CREATE ()", "Create node  with multiple node labels is not supported."),
        ("CREATE (u:User:City {name: 'a'})", "Create node u with multiple node labels"),
        ("MERGE (u)", "Create node u with multiple node labels"),
        ("MATCH (u:User:City) RETURN u", r"not supported: several labels of a node \(:User:City\)"),
        ("MATCH (u:User|City) RETURN u", "not supported: several labels of a node"),
        ("MATCH (a)-[r:LIVES* SHORTEST 1..2]->(b) RETURN r", "not supported: SHORTEST"),
        ("MATCH (a)-[r:LIVES* ALL SHORTEST 1..2]->(b) RETURN r", "not supported: ALL"),
        ("MATCH (a)-[r:LIVES* TRAIL 1..2]->(b) RETURN r", "not supported: TRAIL"),
        ("MATCH (a)-[r:LIVES*1..2 (r, n | WHERE r.since > 1)]->(b) RETURN r", "conditions and"),
        ("RETURN [1][0]", "List extract takes 1-based position."),
        ("RETURN $l[$a:2]", "not supported: parts of lists with computed positions"),
        ("RETURN substring('a', 0, 1)", "not supported: substring"),
        ("RETURN x.*", "Variable x is not in scope."),
        ("MATCH (u:User) RETURN date(u.name)", r"date\(\) of anything but a string or a parameter"),
        ("RETURN date('2020-13-01')", "Conversion exception: Error occurred during parsing date."),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(kuzu.KuzuError, match=message):
        bound(text)


def test_labels_that_are_not_tables() -> None:
    outline = Outline(tokenize("MATCH (:User)-[:KNOWS]->(d:Dog) CREATE (:Cat)-[:LIVES]->(:City)"))
    assert undeclared(outline, TABLES) == [
        ("KNOWS", False, False),
        ("Dog", True, False),
        ("Cat", True, True),
    ]
    # A relationship table is not a label.
    assert undeclared(Outline(tokenize("MATCH (n:LIVES) RETURN n")), TABLES)


@pytest.mark.parametrize(
    ("text", "template", "literals"),
    [
        ("MATCH (a:P {k: 5})", "MATCH (a:P {k: \0n})", ["5"]),
        ("WHERE a.b = 'it\\'s' OR 1.5", "WHERE a.b = \0s OR \0n", ["'it\\'s'", "1.5"]),
        ("[*1..3] $1 `5` x5 5x // 5", "[*1..3] $1 `5` x5 5x // 5", []),
        ("/* 1 */ 1e5 a.1 -7", "/* 1 */ 1e5 a.1 -\0n", ["7"]),
    ],
)
def test_templates(text: str, template: str, literals: list[str]) -> None:
    assert template_of(text) == (template, literals)


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("MATCH (a:P {k: 5, s: 'x'}) RETURN a.name", ["5", "'x'"]),
        ("MATCH (a) WHERE a.k = 5 AND (a.b > 'x') RETURN 5, a.b = 5", ["5", "'x'"]),
        ("MATCH (a) WHERE a.k = 5 + 1 RETURN a", []),
        ("MATCH (a)-[:E*1..3]->() WHERE a.l[1] = 2 RETURN 'x' LIMIT 3", ["2"]),
        ("CREATE (:P {k: 5, l: [1, 2], s: -1})", ["5"]),
        ("MATCH (a) SET a.k = 5, a.s = 'x'", ["5", "'x'"]),
        ("UNWIND [1, 2] AS x RETURN {k: 5}, substring('a', 1, 1)", []),
    ],
)
def test_literals_that_become_parameters(text: str, moved: list[str]) -> None:
    ranges = movable(Outline(tokenize(text)))
    assert [text[start : ranges[start]] for start in places(text) if start in ranges] == moved


@pytest.mark.parametrize(
    ("literal", "value"),
    [("5", 5), ("1.50", 1.5), ("'a'", "a"), (r'"a\n\"b"', 'a\n"b'), ("1" * 19, None)],
)
def test_values_of_literals(literal: str, value: object) -> None:
    assert value_of(literal) == value
