"""Queries: what they return, and what they refuse."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any

import pytest

from isolith import kuzu
from kuzu_support import declare, fill, rows


def single(conn: kuzu.Connection, query: str, **parameters: object) -> Any:
    ((value,),) = rows(conn, query, **parameters)
    return value


def test_nodes(conn: kuzu.Connection) -> None:
    fill(conn)
    node = single(conn, "MATCH (u:User {name: 'Karissa'}) RETURN u")
    offset = node["_id"]["offset"]
    assert node == {
        "_id": {"offset": offset, "table": 0},
        "_label": "User",
        "name": "Karissa",
        "age": 40,
        "height": None,
        "tags": None,
    }
    assert list(node) == ["_id", "_label", "name", "age", "height", "tags"]
    assert single(conn, "OPTIONAL MATCH (u:User {name: 'Nobody'}) RETURN u") is None
    assert single(conn, "MATCH (u:User {name: 'Adam'}) RETURN {a: [u]}")["a"][0]["name"] == "Adam"
    assert single(conn, "MATCH (c:City {name: 'Guelph'}) RETURN c")["_id"]["table"] == 1


def test_relationships(conn: kuzu.Connection) -> None:
    fill(conn)
    ((start, rel, end),) = rows(conn, "MATCH (a)-[r:LivesIn]->(b) RETURN a, r, b")
    assert rel == {
        "_src": start["_id"],
        "_dst": end["_id"],
        "_label": "LivesIn",
        "_id": {"offset": rel["_id"]["offset"], "table": 3},
    }
    query = "MATCH (:User {name: 'Karissa'})-[f:Follows]->() RETURN f"
    assert single(conn, query)["since"] is None
    # Without its nodes in the row, the tables of its ends are known from its own.
    assert single(conn, "MATCH ()-[r:LivesIn]->() RETURN r") == rel


def test_ends_in_several_tables(conn: kuzu.Connection) -> None:
    fill(conn)
    conn.execute("CREATE REL TABLE Likes(FROM User TO City, FROM User TO User)")
    conn.execute(
        "MATCH (a:User {name: 'Adam'}), (b:User {name: 'Zhang'}), (c:City {name: 'Guelph'}) "
        "CREATE (a)-[:Likes]->(b), (a)-[:Likes]->(c)"
    )
    found = rows(conn, "MATCH ()-[l:Likes]->(x) RETURN l ORDER BY x.name")
    assert [(rel["_src"]["table"], rel["_dst"]["table"]) for (rel,) in found] == [(0, 1), (0, 0)]


def test_paths(conn: kuzu.Connection) -> None:
    fill(conn)
    query = (
        "MATCH p = (:User {name: 'Adam'})-[:Follows]->({name: 'Karissa'})-[:Follows]->() RETURN p"
    )
    path = single(conn, query)
    assert list(path) == ["_nodes", "_rels"]
    assert [node["name"] for node in path["_nodes"]] == ["Adam", "Karissa", "Zhang"]
    assert [rel["since"] for rel in path["_rels"]] == [2020, None]
    ids = [node["_id"] for node in path["_nodes"]]
    assert [(rel["_src"], rel["_dst"]) for rel in path["_rels"]] == list(zip(ids, ids[1:]))


def test_relationships_of_variable_length(conn: kuzu.Connection) -> None:
    fill(conn)
    query = "MATCH (:User {name: 'Adam'})-[f:Follows*1..2]->(z {name: 'Zhang'}) RETURN f"
    found = sorted((value for (value,) in rows(conn, query)), key=lambda value: len(value["_rels"]))
    assert [len(value["_rels"]) for value in found] == [1, 2]
    assert [[node["name"] for node in value["_nodes"]] for value in found] == [[], ["Karissa"]]
    # The same against the direction.
    query = "MATCH ({name: 'Zhang'})<-[f:Follows*2..2]-(a) RETURN f"
    assert [node["name"] for node in single(conn, query)["_nodes"]] == ["Karissa"]


def test_other_nodes_of_the_store(conn: kuzu.Connection, database: kuzu.Database) -> None:
    declare(conn)
    assert database._client is not None
    database._client.graph.query(
        "CREATE (:User:Admin {name: 'a', secret: 1})-[:KNOWS {x: 1}]->(:Dog {b: 2}), ({c: 3})"
    )
    user, rel, dog = rows(conn, "MATCH (a:Admin)-[r:KNOWS]->(b:Dog) RETURN a, r, b")[0]
    assert (user["_label"], user["secret"], user["age"]) == ("User", 1, None)
    assert (dog["_label"], dog["b"], dog["_id"]["table"]) == ("Dog", 2, -1)
    assert (rel["_label"], rel["x"], rel["_src"]["table"]) == ("KNOWS", 1, 0)
    assert single(conn, "MATCH (n) WHERE n.c = 3 RETURN n")["_label"] == ""
    # They can be read, but not created.
    with pytest.raises(kuzu.KuzuError, match=r"Table Dog does not exist."):
        conn.execute("CREATE (:Dog {b: 3})")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("MATCH (d:Dog) RETURN d", "Binder exception: Table Dog does not exist."),
        ("MATCH (u:User)-[:Nope]->() RETURN u", "Binder exception: Table Nope does not exist."),
        ("CREATE (:Dog)", "Binder exception: Table Dog does not exist."),
        ("MATCH (u:User) RETURN u.nope", "Binder exception: Cannot find property nope for u."),
        (
            "CREATE (:User {name: 'Adam'})",
            "Runtime exception: Found duplicated primary key value Adam, which violates the "
            "uniqueness constraint of the primary key column.",
        ),
        (
            "CREATE (:User {age: 3})",
            "Runtime exception: Found NULL, which violates the non-null constraint of the primary "
            "key column.",
        ),
        (
            "MATCH (u:User {name: 'Adam'}) SET u.age = 'old'",
            'Runtime exception: .* age of a :User must be INTEGER, not "old"',
        ),
        (
            "MATCH (u:User), (c:City) CREATE (c)-[:LivesIn]->(u)",
            "Runtime exception: Query violates schema: a LivesIn must go from :User to :City.",
        ),
        (
            "MATCH (u:User {name: 'Adam'}) DELETE u",
            r"Runtime exception: Node\(nodeOffset: \d+\) has connected edges, which cannot be "
            "deleted. Please delete the edges first or try DETACH DELETE.",
        ),
        ("RETRUN 1", r"Parser exception: expected a clause, found 'RETRUN' \(line 1, column 1\)"),
        ("RETURN list_sum([1])", "Binder exception: unknown function list_sum"),
        ("RETURN point({x: 1, y: 2})", "Binder exception: not supported: spatial functions"),
        ("RETURN date('yesterday')", "Conversion exception: Error occurred during parsing date."),
        ("RETURN $x", "Runtime exception: the parameter \\$x has no value"),
        ("CREATE (:User {name: 'x', height: $h})", "the parameter \\$h has no value"),
        ("RETURN 1 / 0", "Runtime exception: integer division by zero"),
    ],
)
def test_errors(conn: kuzu.Connection, query: str, message: str) -> None:
    fill(conn)
    with pytest.raises(RuntimeError, match=message) as caught:
        conn.execute(query)
    assert isinstance(caught.value, kuzu.KuzuError)
    # Nothing of it is kept.
    assert single(conn, "MATCH (n) RETURN count(*)") == 5


def test_errors_show_the_text_that_was_given(conn: kuzu.Connection) -> None:
    declare(conn)
    for _ in range(2):
        with pytest.raises(kuzu.KuzuError) as caught:
            conn.execute("MATCH (u:User {name: 'it is me'}) RETRUN u")
        assert "(line 1, column 35)" in caught.value.message
        assert "it is me" in caught.value.message
    query = "MATCH (u:user)\nRETURN u.tags[1], u.*, 'it is me', nope(u.name)"
    for _ in range(2):
        with pytest.raises(kuzu.KuzuError) as caught:
            conn.execute(query)
        head, line, caret = caught.value.message.split("\n")
        assert head == "Binder exception: unknown function nope (line 2, column 36)"
        assert line == query.split("\n")[1]
        assert line[caret.index("^") :].startswith("nope(")


def test_errors_have_codes_hints_and_causes(conn: kuzu.Connection) -> None:
    import isolith

    with pytest.raises(kuzu.KuzuError) as caught:
        conn.execute("RETURN nope(1)")
    assert caught.value.code == "bad_input"
    assert isinstance(caught.value.__cause__, isolith.BadInput)
    assert isinstance(caught.value, isolith.Error)
    with pytest.raises(kuzu.KuzuError) as caught:
        conn.execute("CREATE SEQUENCE numbers")
    assert caught.value.hint


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (7, 7),
        (1.5, 1.5),
        ("ä'\"\\", "ä'\"\\"),
        ([1, None, "a"], [1, None, "a"]),
        ((1, 2), [1, 2]),
        ({"a": {"b": [1]}}, {"a": {"b": [1]}}),
        (datetime.date(2020, 1, 2), "2020-01-02"),
        (datetime.datetime(2020, 1, 2, 3, 4, 5, 6), "2020-01-02T03:04:05.000006"),
        (
            datetime.datetime(2020, 1, 2, 3, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
            "2020-01-02T01:00:00+00:00",
        ),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (decimal.Decimal("1.5"), 1.5),
        ([datetime.date(2020, 1, 2)], ["2020-01-02"]),
    ],
)
def test_parameters(conn: kuzu.Connection, value: object, expected: object) -> None:
    assert single(conn, "RETURN $value AS x", value=value) == expected


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"x": 1, "y": 2}, "Parameter y not found."),
        ({1: 1}, "Parameter name must be of type string but got <class 'int'>"),
        ([("x", 1)], "Parameters must be a dict"),
        ({"x": object()}, "Unknown parameter type <class 'object'>"),
        ({"x": datetime.timedelta(1)}, "not supported: parameters of type timedelta"),
        ({"x": b"a"}, "not supported: parameters of type bytes"),
        ({"x": float("nan")}, "cannot be sent as JSON"),
        ({"x": 1 << 64}, "does not fit into a 64-bit integer"),
    ],
)
def test_parameters_that_are_refused(conn: kuzu.Connection, parameters: Any, message: str) -> None:
    with pytest.raises(kuzu.KuzuError, match=message):
        conn.execute("RETURN $x AS x", parameters)


def test_parameters_are_those_of_one_statement(conn: kuzu.Connection) -> None:
    with pytest.raises(kuzu.KuzuError, match="We do not support prepare multiple statements"):
        conn.execute("RETURN $x AS x; RETURN 2", {"x": 1})
    assert single(conn, "RETURN $1 AS x", **{"1": 5}) == 5


def test_integers_become_floats_in_columns_of_floats(conn: kuzu.Connection) -> None:
    conn.execute("CREATE NODE TABLE P(k INT64 PRIMARY KEY, x DOUBLE, v FLOAT[2])")
    conn.execute("CREATE (:P {k: 1, x: 2, v: [1, 2.5]})")
    conn.execute("CREATE (:P {k: 2, x: $x, v: $v})", {"x": 3, "v": [1, 0.5]})
    batch = [{"k": 3, "x": 4, "v": [1, 2]}, {"k": 4, "x": 0.5, "v": None}]
    conn.execute("UNWIND $rows AS r CREATE (:P {k: r.k, x: r.x, v: r.v})", {"rows": batch})
    conn.execute("MATCH (p:P {k: 4}) SET p.v = $v, p.x = p.x + 1", {"v": [7, 8]})
    conn.execute("MERGE (p:P {k: 5}) ON CREATE SET p.x = 6 ON MATCH SET p.x = 7")
    found = rows(conn, "MATCH (p:P) RETURN p.x, p.v ORDER BY p.k")
    assert repr(found) == repr(
        [[2.0, [1.0, 2.5]], [3.0, [1.0, 0.5]], [4.0, [1.0, 2.0]], [1.5, [7.0, 8.0]], [6.0, None]]
    )


def test_dates_are_text(conn: kuzu.Connection) -> None:
    conn.execute("CREATE NODE TABLE E(k INT64 PRIMARY KEY, d DATE, t TIMESTAMP)")
    query = "CREATE (:E {k: $k, d: date($d), t: timestamp($t)})"
    conn.execute(query, {"k": 1, "d": "2020-1-2", "t": "2020-01-02 03:04:05"})
    moment = datetime.datetime(2021, 1, 2, 3, 4, 5)
    conn.execute(query, {"k": 2, "d": moment.date(), "t": moment})
    conn.execute(query, {"k": 3, "d": None, "t": None})
    found = rows(conn, "MATCH (e:E) WHERE e.d < date('2021-01-03') RETURN e.d, e.t ORDER BY e.d")
    assert found == [["2020-01-02", "2020-01-02T03:04:05"], ["2021-01-02", "2021-01-02T03:04:05"]]
    with pytest.raises(kuzu.KuzuError, match=r"Conversion exception: .* parsing date"):
        conn.execute(query, {"k": 4, "d": "soon", "t": None})


def test_literals_do_not_mix(conn: kuzu.Connection) -> None:
    fill(conn)
    for _ in range(2):
        for name, age in (("Adam", 30), ("Karissa", 40)):
            assert single(conn, f"MATCH (u:User {{name: '{name}'}}) RETURN u.age") == age
            query = (
                f"MATCH (u:User) WHERE u.age = {age} RETURN u.name + ' is {age}' AS x, {age} AS y"
            )
            assert rows(conn, query) == [[f"{name} is {age}", age]]
            query = f"MATCH (u:User) WHERE u.age >= {age} RETURN u.name ORDER BY u.name"
            query += f" LIMIT {age // 30}"
            assert rows(conn, query) == [[min(name, "Karissa") if age == 30 else "Karissa"]]
    assert single(conn, "MATCH (u:User {age: 9223372036854775807}) RETURN count(*)") == 0
    with pytest.raises(kuzu.KuzuError, match="too large for an integer"):
        conn.execute("MATCH (u:User {age: 9223372036854775808}) RETURN count(*)")


def test_strings_of_queries_have_escapes(conn: kuzu.Connection) -> None:
    declare(conn)
    conn.execute(r"CREATE (:User {name: 'it\'s \"\\ \n'})")
    assert single(conn, "MATCH (u:User) RETURN u.name") == "it's \"\\ \n"
    assert single(conn, r"MATCH (u:User) WHERE u.name = 'it\'s \"\\ \n' RETURN count(*)") == 1


def test_nodes_of_several_tables(conn: kuzu.Connection) -> None:
    fill(conn)
    # What is said where several labels are refused.
    with pytest.raises(kuzu.KuzuError) as caught:
        conn.execute("MATCH (n:User:City) RETURN n")
    _, _, condition = caught.value.hint.partition("use ")
    assert single(conn, f"MATCH (n) {condition} RETURN count(*)") == 5
    assert single(conn, "MATCH (n) WHERE label(n) IN ['City'] RETURN count(*)") == 2


def test_several_statements(conn: kuzu.Connection) -> None:
    declare(conn)
    results = conn.execute(
        "CREATE (:User {name: 'a;b'}); MATCH (u:User) RETURN u.name; // the end;\n RETURN 2;"
    )
    assert [result.get_all() for result in results] == [[], [["a;b"]], [[2]]]
    # Each of them is a transaction of its own.
    with pytest.raises(kuzu.KuzuError, match="duplicated primary key value x"):
        conn.execute(
            "CREATE (:User {name: 'x'}); CREATE (:User {name: 'x'}); CREATE (:User {name: 'y'})"
        )
    assert rows(conn, "MATCH (u:User) RETURN u.name ORDER BY u.name") == [["a;b"], ["x"]]
    # One that cannot be parsed keeps all of them from running.
    with pytest.raises(kuzu.KuzuError, match="not supported: BEGIN"):
        conn.execute("CREATE (:User {name: 'z'}); BEGIN TRANSACTION")
    assert single(conn, "MATCH (u:User) RETURN count(*)") == 2


def test_an_empty_database_answers(conn: kuzu.Connection) -> None:
    with kuzu.Database() as db, kuzu.Connection(db) as connection:
        assert rows(connection, "RETURN 1 AS x") == [[1]]
        assert rows(connection, "MATCH (n) RETURN n") == []
        assert rows(connection, "CALL show_tables() RETURN *") == []


@pytest.mark.parametrize(
    ("expression", "instead"),
    [
        ("list_contains([1], 1)", "value IN list"),
        ("CAST('1' AS INT64)", "toInteger()"),
        ("concat('a', 'b')", "a + b"),
        ("current_timestamp()", "as a parameter"),
        ("array_cosine_similarity([1.0], [1.0])", "collection"),
    ],
)
def test_functions_are_refused_with_what_to_do(
    conn: kuzu.Connection, expression: str, instead: str
) -> None:
    with pytest.raises(RuntimeError, match="not supported: the function") as caught:
        conn.execute(f"RETURN {expression} AS x")
    assert instead in str(caught.value.hint)  # type: ignore[attr-defined]
