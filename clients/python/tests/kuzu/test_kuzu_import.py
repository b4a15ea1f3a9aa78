"""``isolith graph import --from-kuzu`` copies a database of the real Kuzu, as its users see it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from isolith import kuzu
from isolith._binary import find_binary
from kuzu_support import has_kuzu
from support import run_python

FILL = r"""
import sys
import kuzu
conn = kuzu.Connection(kuzu.Database(sys.argv[1]))
conn.execute(
    "CREATE NODE TABLE P(k STRING PRIMARY KEY, age INT32, tags STRING[], d DATE, t TIMESTAMP, "
    "v FLOAT[2], x DOUBLE, ok BOOL, m MAP(STRING, INT64))"
)
conn.execute("CREATE NODE TABLE `a city`(n INT64 PRIMARY KEY, name STRING)")
conn.execute("CREATE REL TABLE E(FROM P TO P, FROM P TO `a city`, since INT64)")
conn.execute(
    "CREATE (:P {k: 'a, \"b\"\nc', age: 1, tags: ['x', ''], d: date('2020-01-02'), "
    "t: timestamp('2020-01-02 03:04:05'), v: [1.5, 2], x: 0.1, ok: true, m: map(['k'], [1])})"
)
conn.execute("CREATE (:P {k: 'ä'}), (:`a city` {n: 7, name: ''})")
conn.execute("MATCH (p:P {age: 1}), (q:P {k: 'ä'}) CREATE (p)-[:E {since: 3}]->(q)")
conn.execute("MATCH (p:P {k: 'ä'}), (c:`a city`) CREATE (p)-[:E]->(c)")
conn.execute("UNWIND range(1, 3000) AS n CREATE (:`a city` {n: 100 + n, name: 'city'})")
"""


def copy(database: Path, store: Path) -> subprocess.CompletedProcess[str]:
    command = [find_binary(), "graph", "import", "--from-kuzu", str(database)]
    command += ["--store", str(store), "--python", sys.executable, "--json", "--quiet"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture
def copied(environment: None, tmp_path: Path) -> Path:
    """The folder of a store with a copy."""
    if not has_kuzu():
        pytest.skip("kuzu is not installed")
    run_python(FILL, str(tmp_path / "graph.kuzu"))
    # The second copy adds nothing.
    for _ in range(2):
        done = copy(tmp_path / "graph.kuzu", tmp_path / "store")
        assert done.returncode == 0, done.stderr
    return tmp_path / "store"


def rows(conn: kuzu.Connection, query: str) -> list[list[Any]]:
    found: list[list[Any]] = conn.execute(query).get_all()
    return found


def test_a_database_is_copied_with_its_tables(copied: Path) -> None:
    with kuzu.Database(copied) as database, kuzu.Connection(database) as conn:
        names = rows(conn, "CALL show_tables() RETURN name, type ORDER BY name")
        assert names == [["E", "REL"], ["P", "NODE"], ["a city", "NODE"]]
        columns = rows(conn, "CALL table_info('P') RETURN name, type")
        assert columns == [
            ["k", "STRING"],
            ["age", "INT32"],
            ["tags", "STRING[]"],
            ["d", "DATE"],
            ["t", "TIMESTAMP"],
            ["v", "FLOAT[2]"],
            ["x", "DOUBLE"],
            ["ok", "BOOL"],
            # What has no counterpart is text.
            ["m", "STRING"],
        ]
        assert rows(conn, "MATCH (p:P) RETURN p.* ORDER BY p.age") == [
            [
                'a, "b"\nc',
                1,
                ["x", ""],
                "2020-01-02",
                "2020-01-02T03:04:05",
                [1.5, 2.0],
                0.1,
                True,
                '{"k": 1}',
            ],
            ["ä", *[None] * 8],
        ]
        assert rows(conn, "MATCH (c:`a city`) RETURN count(*), min(c.name)") == [[3001, ""]]
        query = "MATCH (p:P)-[e:E]->(q) RETURN p.age, e.since, label(q) ORDER BY p.age"
        assert rows(conn, query) == [[1, 3, "P"], [None, None, "a city"]]
        with pytest.raises(RuntimeError, match="duplicated primary key value"):
            conn.execute("CREATE (:P {k: 'ä'})")


def test_what_is_not_a_database_is_refused(environment: None, tmp_path: Path) -> None:
    if not has_kuzu():
        pytest.skip("kuzu is not installed")
    (tmp_path / "graph.kuzu").write_bytes(b"not a database of Kuzu " * 100)
    done = copy(tmp_path / "graph.kuzu", tmp_path / "store")
    assert done.returncode != 0
    assert '"message"' in done.stdout
    assert not (tmp_path / "store" / "truth.sqlite").exists()
