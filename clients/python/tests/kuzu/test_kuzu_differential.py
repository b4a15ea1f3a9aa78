"""The same statements on Kuzu and on Isolith give the same results."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from isolith import kuzu
from kuzu_support import has_kuzu
from support import run_python

# What both are asked, one statement after the other. Queries without ORDER BY return one row, or
# rows in any order.
STATEMENTS = r"""
CREATE NODE TABLE User(name STRING PRIMARY KEY, age INT64, height DOUBLE, tags STRING[], ok BOOL)
CREATE NODE TABLE User(name STRING, PRIMARY KEY (name))
CREATE NODE TABLE IF NOT EXISTS User(name STRING, PRIMARY KEY (name))
CREATE NODE TABLE City(name STRING PRIMARY KEY, population INT32, area FLOAT)
CREATE REL TABLE Follows(FROM User TO User, since INT64)
CREATE REL TABLE LivesIn(FROM User TO City)
CREATE REL TABLE Likes(FROM User TO City, FROM User TO User, much DOUBLE)
CREATE REL TABLE Bad(FROM User TO Nope)
CREATE REL TABLE User(FROM User TO City)
CALL show_tables() WHERE type = 'REL' RETURN name ORDER BY name
CALL show_tables() RETURN count(*)
CALL table_info('User') RETURN *
CALL table_info('Likes') RETURN name, type
CALL show_connection('Likes') RETURN *
CALL table_info('Nope') RETURN *
CREATE (:User {name: 'Adam', age: 30, height: 1.75, tags: ['a', 'b'], ok: true})
CREATE (u:User {name: 'Karissa', age: 40, height: 2}) RETURN u.name, u.height
CREATE (:User {name: 'Zhang', age: 50}), (:User {name: 'Noura', age: 25})
CREATE (:City {name: 'Waterloo', population: 150000, area: 64.5}), (:City {name: 'Guelph'})
CREATE (:User {name: 'Adam'})
CREATE (:User {age: 1, name: NULL})
CREATE (:User {nope: 1})
CREATE (:Nope {name: 'a'})
CREATE (u {name: 'a'})
MATCH (a:User {name: 'Adam'}), (b:User {name: 'Karissa'}) CREATE (a)-[:Follows {since: 2020}]->(b)
MATCH (a:User {name: 'Karissa'}), (b:User {name: 'Zhang'}) CREATE (a)-[:Follows {since: 2021}]->(b)
MATCH (a:User {name: 'Adam'}), (b:User {name: 'Zhang'}) CREATE (a)-[:Follows]->(b)
MATCH (a:User {name: 'Adam'}), (c:City {name: 'Waterloo'}) CREATE (a)-[:LivesIn]->(c)
MATCH (a:User {name: 'Adam'}), (c:City {name: 'Waterloo'}) CREATE (a)-[:Likes {much: 3}]->(c)
MATCH (u:User) RETURN u.name, u.age ORDER BY u.age
MATCH (u:User) RETURN u.* ORDER BY u.name
MATCH (u:USER) RETURN u.NAME, u.Age ORDER BY u.name
MATCH (u:User) WHERE u.age > 28 AND NOT u.name = 'Zhang' RETURN u.name ORDER BY u.name DESC
MATCH (u:User {name: 'Adam'}) RETURN u
MATCH (u:User {name: 'Karissa'}) RETURN u
MATCH (:User {name: 'Adam'})-[f:LivesIn]->(c:City) RETURN f, c
MATCH (a:User)-[f:Follows]->(b:User) RETURN a.name, f.since, b.name ORDER BY a.name, b.name
MATCH (a:User)-[f:Follows]->(b:User) RETURN f ORDER BY a.name, b.name
MATCH (a:User)-[f:Follows]->(b:User) RETURN a.name AS x, f.* ORDER BY x, f.since
MATCH p = (a:User {name: 'Adam'})-[f:LivesIn]->(c:City) RETURN length(p) AS x
MATCH (a:User {name: 'Adam'})-[f:Follows*1..2]->(b:User) RETURN DISTINCT b.name ORDER BY b.name
MATCH (a:User {name: 'Adam'})-[f:Follows*2..2]->(b:User) RETURN f
MATCH (a:User)-[:Follows]->(b:User)-[:Follows]->(c:User) RETURN a.name, b.name, c.name
MATCH (:User)-[r]->(x) RETURN label(r) AS a, label(x) AS b, count(*) AS n ORDER BY a, b
MATCH (u:User) RETURN count(*), count(u), count(u.height), min(u.age), max(u.age), avg(u.age)
MATCH (u:User) RETURN count(DISTINCT u.age) AS n, collect(u.name) AS names
MATCH (u:User) WITH u ORDER BY u.age DESC LIMIT 2 RETURN u.name
MATCH (u:User) RETURN u.name ORDER BY u.height, u.name
MATCH (u:User) RETURN u.name ORDER BY u.height DESC, u.name
MATCH (u:User) OPTIONAL MATCH (u)-[:LivesIn]->(c:City) RETURN u.name, c.name ORDER BY u.name
OPTIONAL MATCH (u:User {name: 'Nobody'}) RETURN u, u.name
MATCH (u:User) WHERE EXISTS { MATCH (u)-[:Follows]->(:User) } RETURN u.name ORDER BY u.name
MATCH (u:User) WHERE NOT (u)-[:Follows]->(:User) RETURN u.name ORDER BY u.name
MATCH (u:User) WHERE u.name IN ['Adam', 'Zhang'] RETURN u.name ORDER BY u.name
MATCH (u:User) WHERE u.name STARTS WITH 'K' OR u.name CONTAINS 'our' RETURN u.name ORDER BY u.name
MATCH (u:User) WHERE u.name =~ '.*a.*a' RETURN u.name
MATCH (u:User {name: 'Adam'}) RETURN u.tags[1] AS x, u.tags[-1] AS y, u.tags[1:1] AS z
MATCH (u:User {name: 'Adam'}) RETURN size(u.tags) AS n, label(u) AS l
MATCH (u:User {name: 'Adam'}) RETURN substring(u.name, 2, 2) AS a, upper(u.name) AS b
MATCH (u:User {name: 'Adam'}) RETURN CASE WHEN u.age > 20 THEN 'old' ELSE 'young' END AS x
MATCH (u:User {name: 'Adam'}) RETURN u.age / 7 AS a, u.age % 7 AS b, u.age * 1.5 AS c
MATCH (u:User {name: 'Adam'}) RETURN -u.age AS a, u.age ^ 2 AS b, 7.5 % 2 AS c
MATCH (u:User {name: 'Adam'}) SET u.age = 31, u.height = 2 RETURN u.age, u.height
MATCH (u:User {name: 'Adam'}) SET u.height = NULL RETURN u.height
MATCH (u:User {name: 'Adam'}) SET u.nope = 1
MATCH (u:User {name: 'Adam'})-[f:Follows]->() SET f.since = 1999
MATCH (u:User)-[f:Follows]->(v) RETURN f.since ORDER BY f.since
MERGE (u:User {name: 'New'}) ON CREATE SET u.age = 1 ON MATCH SET u.age = 2 RETURN u.age
MERGE (u:User {name: 'New'}) ON CREATE SET u.age = 1 ON MATCH SET u.age = 2 RETURN u.age
MATCH (a:User {name: 'New'}), (b:User {name: 'Adam'}) MERGE (a)-[f:Follows]->(b) RETURN f.since
MATCH (c:City), (u:User {name: 'New'}) CREATE (c)-[:LivesIn]->(u)
MATCH (u:User {name: 'New'}) DELETE u
MATCH (u:User {name: 'New'})-[f]->() DELETE f
MATCH (u:User {name: 'New'}) DELETE u
MATCH (u:User {name: 'Adam'}) DETACH DELETE u
MATCH (n) RETURN count(*) AS n
MATCH ()-[r]->() RETURN label(r) AS l, count(*) AS n ORDER BY l
UNWIND [3, 1, 2] AS x RETURN x, x * 2 AS y ORDER BY x SKIP 1 LIMIT 1
UNWIND [1, 1, 2] AS x RETURN DISTINCT x ORDER BY x
UNWIND [1, 2] AS x WITH x WHERE x > 1 RETURN x
RETURN 1 AS a, 'b' AS b, [1, 2] AS c, {d: 1} AS d, true AS e, 1.5 AS f, null AS g
RETURN log(100) AS a, ln(1) AS b, abs(-2) AS c, sqrt(16) AS d, round(2.567, 1) AS e
RETURN coalesce(null, 3) AS a, nullif(1, 2) AS b, lower('A') AS c, lcase('B') AS d
RETURN [1, 2, 3][2] AS a, [1, 2, 3][2:3] AS b, [1, 2, 3][:2] AS c, [1, 2, 3][-2:] AS d
RETURN any(x IN [1, 2] WHERE x > 1) AS a, all(x IN [1, 2] WHERE x > 1) AS b
RETURN [1, 2, 3][0]
RETURN 1 AS x; RETURN 2 AS x
ALTER TABLE User ADD email STRING
ALTER TABLE User ADD email STRING
ALTER TABLE User ADD IF NOT EXISTS email STRING
MATCH (u:User {name: 'Zhang'}) SET u.email = 'z' RETURN u.email
MATCH (u:User {name: 'Noura'}) RETURN u
ALTER TABLE User DROP email
ALTER TABLE User DROP email
ALTER TABLE User DROP IF EXISTS email
ALTER TABLE User DROP name
DROP TABLE User
DROP TABLE Likes
DROP TABLE Likes
DROP TABLE IF EXISTS Likes
COPY User(name, age) FROM 'users.csv' (HEADER=true)
COPY Follows FROM 'follows.csv'
COPY City FROM 'cities.csv'
COPY City FROM 'bad.csv'
MATCH (u:User) RETURN u.name, u.age ORDER BY u.name
MATCH (c:City) RETURN c.* ORDER BY c.name
MATCH (a:User)-[f:Follows]->(b) RETURN a.name, b.name, f.since ORDER BY a.name, b.name
MATCH (a:User)-[f:Follows]->(b) RETURN a.name, count(*) ORDER BY a.name
MATCH (u:User) WHERE u.name = $name RETURN u.age
CHECKPOINT
DROP TABLE Follows
DROP TABLE LivesIn
DROP TABLE User
MATCH (u:User) RETURN u
""".strip().splitlines()

FILES = {
    "users.csv": 'name,age\nLi,1\n"O\'Neil, Ann",\n',
    "follows.csv": "Li,Zhang,7\nZhang,Li,\n",
    "cities.csv": 'Kitchener,2,"3.5"\nElora,,\n',
    "bad.csv": "Toronto,1,1.0\nOttawa,many,1.0\n",
}

# Runs the statements on the module that it is given, and prints their results.
PROGRAM = r"""
import datetime, importlib, json, sys
kuzu = importlib.import_module(sys.argv[1])
conn = kuzu.Connection(kuzu.Database(":memory:"))
with open("statements.json") as file:
    statements = json.load(file)
for statement in statements:
    parameters = {"name": "Li"} if "$name" in statement else None
    try:
        results = conn.execute(statement, parameters)
        results = results if isinstance(results, list) else [results]
        found = [
            [result.get_column_names(), result.get_column_data_types(), result.get_all()]
            for result in results
        ]
    except RuntimeError as error:
        found = getattr(error, "message", None) or str(error)
    print(json.dumps(found, default=str))
"""

# Errors whose texts differ; what both have in common.
SAME_ERRORS = {
    "violates schema": "violates schema",
    "connected edges": "connected edges",
    "Conversion exception": "Conversion exception: Cast failed. Could not convert",
    "Number of columns": "expected",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, Any, Any]]:
    """Each statement with the results of both."""
    if not has_kuzu():
        pytest.skip("kuzu is not installed")
    folder = tmp_path_factory.mktemp("differential")
    (folder / "statements.json").write_text(json.dumps(STATEMENTS))
    for name, text in FILES.items():
        (folder / name).write_text(text)
    program = f"import os; os.chdir({str(folder)!r})\n{PROGRAM}"
    # Kuzu runs in a process of its own, as its native code may crash.
    theirs = run_python(program, "kuzu").splitlines()
    ours = run_python(program, "isolith.kuzu").splitlines()
    assert len(ours) == len(theirs) == len(STATEMENTS)
    return [
        (statement, json.loads(their), json.loads(our))
        for statement, their, our in zip(STATEMENTS, theirs, ours)
    ]


@pytest.mark.parametrize(
    "number", range(len(STATEMENTS)), ids=lambda number: STATEMENTS[number][:60]
)
def test_results_are_the_same(number: int, answers: list[tuple[str, Any, Any]]) -> None:
    statement, theirs, ours = answers[number]
    if isinstance(theirs, str):
        assert isinstance(ours, str), f"{statement}: Kuzu refuses it: {theirs}"
        assert common(ours) == common(theirs)
        return
    assert not isinstance(ours, str), f"{statement}: {ours}"
    assert len(ours) == len(theirs)
    for our, their in zip(ours, theirs):
        our_names, our_types, our_rows = our
        their_names, their_types, their_rows = their
        assert our_names == their_names
        assert [plain_type(type) for type in our_types] == [plain_type(it) for it in their_types]
        assert in_order(statement, our_rows) == in_order(statement, their_rows)


# Writes the tables of a database of Kuzu to files, as the page about this module says.
EXPORT = r"""
import kuzu
conn = kuzu.Connection(kuzu.Database(":memory:"))
conn.execute("CREATE NODE TABLE P(k INT64 PRIMARY KEY, s STRING, x DOUBLE, l INT64[], d DATE)")
conn.execute("CREATE REL TABLE E(FROM P TO P, since INT64, note STRING)")
conn.execute("CREATE (:P {k: 1, s: 'a, \"b\"\nc', x: 1.5, l: [1, 2], d: date('2020-01-02')})")
conn.execute("CREATE (:P {k: 2, s: 'ä', x: -1e300}), (:P {k: 3, s: ' ', l: []})")
conn.execute("MATCH (a:P {k: 1}), (b:P {k: 2}) CREATE (a)-[:E {since: 7, note: 'x;y'}]->(b)")
conn.execute("MATCH (a:P {k: 2}), (b:P {k: 2}) CREATE (a)-[:E]->(b)")
conn.execute("COPY (MATCH (p:P) RETURN p.*) TO 'p.csv' (HEADER=true)")
conn.execute("COPY (MATCH (a:P)-[e:E]->(b:P) RETURN a.k, b.k, e.*) TO 'e.csv' (HEADER=true)")
"""


def test_files_of_kuzu_can_be_copied(
    conn: kuzu.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_kuzu():
        pytest.skip("kuzu is not installed")
    monkeypatch.chdir(tmp_path)
    run_python(EXPORT)
    conn.execute("CREATE NODE TABLE P(k INT64 PRIMARY KEY, s STRING, x DOUBLE, l INT64[], d DATE)")
    conn.execute("CREATE REL TABLE E(FROM P TO P, since INT64, note STRING)")
    conn.execute("COPY P FROM 'p.csv' (HEADER=true)")
    conn.execute("COPY E FROM 'e.csv' (HEADER=true)")
    assert conn.execute("MATCH (p:P) RETURN p.* ORDER BY p.k").get_all() == [
        [1, 'a, "b"\nc', 1.5, [1, 2], "2020-01-02"],
        [2, "ä", -1e300, None, None],
        [3, " ", None, [], None],
    ]
    query = "MATCH (a:P)-[e:E]->(b:P) RETURN a.k, b.k, e.since, e.note ORDER BY a.k"
    assert conn.execute(query).get_all() == [[1, 2, 7, "x;y"], [2, 2, None, None]]


def common(message: str) -> str:
    """What both have to say."""
    for part, whole in SAME_ERRORS.items():
        if part in message:
            return whole
    return re.sub(r"Node\(nodeOffset: \d+\)", "Node", message)


def plain_type(type: str) -> str:
    """Types without their sizes: Isolith computes with 64 bits."""
    return re.sub(r"U?INT\d+", "INT64", type)


def in_order(statement: str, rows: list[Any]) -> Any:
    rows = [plain(row) for row in rows]
    return rows if "ORDER BY" in statement else sorted(rows, key=repr)


def plain(value: Any) -> Any:
    """A value without the numbers of nodes, and without columns of other tables."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {
            key: plain(item)
            for key, item in value.items()
            if key not in ("_id", "_src", "_dst") and item is not None
        }
    return value


def test_the_page_does_not_exaggerate() -> None:
    page = Path(__file__).resolve().parents[4] / "docs" / "python-kuzu.md"
    if page.exists():
        (count,) = re.findall(r"(\d+) statements", page.read_text())
        assert int(count) <= len(STATEMENTS)
