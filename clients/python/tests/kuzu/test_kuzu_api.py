"""Databases, connections, results, and their life."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import isolith
from isolith import kuzu
from kuzu_support import declare, fill, rows
from support import is_alive, processes_with, run_python, server_pid, wait_until

# Runs for hours.
LONG = "UNWIND range(1, 1000000) AS x UNWIND range(1, 1000000) AS y RETURN count(x + y)"


def test_the_names_of_kuzu() -> None:
    names = {
        "AsyncConnection",
        "Connection",
        "Database",
        "PreparedStatement",
        "QueryResult",
        "Type",
    }
    assert names < set(kuzu.__all__)
    assert kuzu.__version__ == kuzu.version == kuzu.Database.get_version() == "0.11.3"
    assert kuzu.Type.INT64.value == "INT64"
    assert isolith.kuzu is kuzu
    # Programs import from the modules, too.
    from isolith.kuzu.connection import Connection
    from isolith.kuzu.database import Database
    from isolith.kuzu.query_result import QueryResult

    assert (Connection, Database, QueryResult) == (kuzu.Connection, kuzu.Database, kuzu.QueryResult)


def test_importing_it_is_quick() -> None:
    program = "import sys, isolith.kuzu\n"
    program += "heavy = ('pandas', 'pyarrow', 'numpy', 'kuzu', 'networkx', 'polars', 'asyncio')\n"
    program += "print([name for name in heavy if name in sys.modules])"
    assert run_python(program).strip() == "[]"


def test_a_database_in_a_folder(store: Path) -> None:
    db = kuzu.Database(store, buffer_pool_size=1 << 28, max_num_threads=2, compression=False)
    assert db.database_path == str(store)
    conn = kuzu.Connection(db, num_threads=2)
    conn.set_max_threads_for_exec(1)
    conn.execute("CREATE NODE TABLE T(a STRING, PRIMARY KEY (a)); CREATE (:T {a: 'x'})")
    assert db._client is not None
    pid = server_pid(db._client)
    conn.close()
    conn.close()
    assert conn.is_closed
    with pytest.raises(kuzu.KuzuError, match=r"Connection is closed.") as caught:
        conn.execute("RETURN 1")
    assert caught.value.code == "closed"
    db.close()
    db.close()
    assert db.is_closed
    assert not is_alive(pid)
    with pytest.raises(RuntimeError, match="Database is closed"):
        kuzu.Connection(db)


def test_connections_of_a_closed_database_are_of_no_use(store: Path) -> None:
    db = kuzu.Database(store)
    conn = kuzu.Connection(db)
    result = conn.execute("RETURN 1")
    db.close()
    with pytest.raises(RuntimeError, match="Database is closed"):
        conn.execute("RETURN 1")
    result.close()
    conn.close()


@pytest.mark.parametrize("path", [None, "", ":memory:"])
def test_a_database_in_memory(path: str | None, temporary_folder: Path) -> None:
    before = set(temporary_folder.glob("isolith-py-*"))
    with kuzu.Database(path) as db, kuzu.Connection(db) as conn:
        fill(conn)
        assert rows(conn, "MATCH (u:User) RETURN count(*)") == [[3]]
        assert len(set(temporary_folder.glob("isolith-py-*")) - before) == 2
    assert set(temporary_folder.glob("isolith-py-*")) == before


def test_a_lost_database_is_closed(temporary_folder: Path) -> None:
    before = set(temporary_folder.glob("isolith-py-*"))
    db = kuzu.Database()
    conn = kuzu.Connection(db)
    conn.execute("RETURN 1")
    assert db._client is not None
    pid = server_pid(db._client)
    del db, conn
    import gc

    gc.collect()
    assert wait_until(lambda: not is_alive(pid))
    assert set(temporary_folder.glob("isolith-py-*")) == before


def test_databases_of_a_program_that_ends(tmp_path: Path, temporary_folder: Path) -> None:
    program = """
import sys
from isolith import kuzu
memory = kuzu.Database()
conn = kuzu.Connection(memory)
conn.execute("CREATE NODE TABLE T(a STRING, PRIMARY KEY (a)); CREATE (:T {a: 'x'})")
other = kuzu.Connection(kuzu.Database(sys.argv[1]))
print(conn.execute("MATCH (t:T) RETURN t.a").get_next(), other.execute("RETURN 1").get_next())
"""
    before = set(temporary_folder.glob("isolith-py-*"))
    assert run_python(program, str(tmp_path / "other")).strip() == "['x'] [1]"
    assert set(temporary_folder.glob("isolith-py-*")) == before
    assert not processes_with(str(tmp_path / "other"))


def test_lazy_databases(store: Path) -> None:
    db = kuzu.Database(store, lazy_init=True)
    assert db._client is None
    with kuzu.Connection(db) as conn:
        assert rows(conn, "RETURN 1 AS x") == [[1]]
    db.close()


def test_read_only(store: Path) -> None:
    with pytest.raises(RuntimeError, match="Cannot create an empty database under READ ONLY"):
        kuzu.Database(store, read_only=True)
    with pytest.raises(RuntimeError, match="Cannot open an in-memory database under READ ONLY"):
        kuzu.Database(":memory:", read_only=True)
    with kuzu.Database(store) as db, kuzu.Connection(db) as conn:
        fill(conn)
    with kuzu.Database(store, read_only=True) as db, kuzu.Connection(db) as conn:
        assert rows(conn, "MATCH (u:User) RETURN count(*)") == [[3]]
        for statement in (
            "CREATE (:User {name: 'x'})",
            "MATCH (u:User) SET u.age = 1",
            "MATCH (u:User) DETACH DELETE u",
            "CREATE NODE TABLE T(a STRING, PRIMARY KEY (a))",
            "DROP TABLE Follows",
            "ALTER TABLE User ADD x STRING",
            "COPY User FROM 'a.csv'",
            "CALL show_tables() WITH name CREATE (:User {name: name})",
        ):
            with pytest.raises(RuntimeError, match="write operations in a read-only") as caught:
                conn.execute(statement)
            assert isinstance(caught.value, kuzu.KuzuError)
            assert caught.value.code == "read_only"


def test_databases_of_kuzu_are_refused(tmp_path: Path) -> None:
    (tmp_path / "new.kuzu").write_bytes(b"KUZU")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "catalog.kz").write_bytes(b"")
    for name in ("new.kuzu", "old"):
        with pytest.raises(kuzu.KuzuError, match="is not the folder of a store"):
            kuzu.Database(tmp_path / name)
    assert sorted(path.name for path in (tmp_path / "old").iterdir()) == ["catalog.kz"]


def test_a_store_that_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "truth.sqlite").write_bytes(b"no")
    with pytest.raises(RuntimeError) as caught:
        kuzu.Database(tmp_path / "store")
    assert isinstance(caught.value, kuzu.KuzuError)
    assert isinstance(caught.value.__cause__, isolith.Error)
    with pytest.raises(kuzu.KuzuError, match="nothing-here"):
        kuzu.Database(binary="/nothing-here")


@pytest.mark.parametrize(
    "call",
    [
        lambda db, conn: conn.create_function("f", len, ["STRING"], "INT64"),
        lambda db, conn: conn.remove_function("f"),
        lambda db, conn: conn.execute("RETURN 1").get_as_torch_geometric(),
        lambda db, conn: db.get_torch_geometric_remote_backend(),
        lambda db, conn: db.get_storage_version(),
    ],
)
def test_what_is_missing_is_refused_by_name(
    database: kuzu.Database, conn: kuzu.Connection, call: Any
) -> None:
    with pytest.raises(kuzu.KuzuError, match="not supported: "):
        call(database, conn)


def test_rows_are_read_one_by_one(conn: kuzu.Connection) -> None:
    result = conn.execute("UNWIND [1, 2, 3, 4] AS a RETURN a, a * 2 AS b")
    assert result.get_num_tuples() == 4
    assert result.has_next()
    assert result.get_next() == [1, 2]
    assert result.get_n(2) == [[2, 4], [3, 6]]
    assert result.get_all() == [[4, 8]]
    assert not result.has_next()
    with pytest.raises(RuntimeError, match="No more tuples in QueryResult"):
        result.get_next()
    result.reset_iterator()
    assert list(result.rows_as_dict())[-1] == {"a": 4, "b": 8}
    result.reset_iterator()
    assert result.get_next() == {"a": 1, "b": 2}
    assert result.rows_as_dict(False).get_next() == [2, 4]
    assert result.get_execution_time() > 0
    assert result.get_compiling_time() == 0


def test_closed_results(conn: kuzu.Connection) -> None:
    with conn.execute("RETURN 1 AS a") as result:
        assert not result.is_closed
    assert result.is_closed
    for method in (
        "has_next",
        "get_next",
        "get_all",
        "get_num_tuples",
        "get_column_names",
        "get_column_data_types",
        "get_schema",
        "get_as_df",
        "reset_iterator",
        "rows_as_dict",
    ):
        with pytest.raises(RuntimeError, match="Query result is closed"):
            getattr(result, method)()


def test_columns_have_names_and_types(conn: kuzu.Connection) -> None:
    fill(conn)
    result = conn.execute(
        "MATCH p = (u:User)-[f:Follows]->(v) RETURN u, f, p, u.name, u.age AS a, u.height, u.tags, "
        "v.age + 1 AS next, [1.5] AS list, {a: 1, b: 'x'} AS map, null AS nothing, true AS yes"
    )
    assert result.get_schema() == {
        "u": "NODE",
        "f": "REL",
        "p": "RECURSIVE_REL",
        "u.name": "STRING",
        "a": "INT64",
        "u.height": "DOUBLE",
        "u.tags": "STRING[]",
        "next": "INT64",
        "list": "DOUBLE[]",
        "map": "STRUCT(a INT64, b STRING)",
        "nothing": "STRING",
        "yes": "BOOL",
    }
    empty = conn.execute("MATCH (c:City {name: 'nowhere'}) RETURN c, c.population")
    assert empty.get_schema() == {"c": "NODE", "c.population": "INT64"}


def test_tables_of_pandas(conn: kuzu.Connection) -> None:
    pytest.importorskip("pandas")
    fill(conn)
    frame = conn.execute("MATCH (u:User) RETURN u.name, u.age, u.tags ORDER BY u.age").get_as_df()
    assert list(frame.columns) == ["u.name", "u.age", "u.tags"]
    assert frame["u.name"].tolist() == ["Adam", "Karissa", "Zhang"]
    assert str(frame["u.age"].dtype) == "int64"
    assert len(conn.execute("MATCH (u:User {name: ''}) RETURN u.name").get_as_df()) == 0


def test_tables_of_arrow(conn: kuzu.Connection) -> None:
    pytest.importorskip("pyarrow")
    fill(conn)
    result = conn.execute("MATCH (u:User) RETURN u, u.name, u.age, u.height ORDER BY u.age")
    table = result.get_as_arrow()
    assert table.column_names == ["u", "u.name", "u.age", "u.height"]
    assert [str(field.type) for field in table.schema][1:] == ["string", "int64", "double"]
    assert table.column("u").to_pylist()[1]["name"] == "Karissa"
    assert table.column("u.height").to_pylist() == [1.8, None, 2.0]
    assert result.get_as_arrow(chunk_size=2).column("u.age").num_chunks == 2
    assert result.get_as_arrow(chunk_size=-1).column("u.age").num_chunks == 1
    empty = conn.execute("MATCH (u:User {name: ''}) RETURN u.name, u.age").get_as_arrow()
    assert [str(field.type) for field in empty.schema] == ["string", "int64"]


def test_tables_of_polars(conn: kuzu.Connection) -> None:
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    fill(conn)
    frame = conn.execute("MATCH (u:User) RETURN u.name, u.age ORDER BY u.age").get_as_pl()
    assert frame["u.age"].to_list() == [30, 40, 50]


@pytest.mark.parametrize("directed", [True, False])
def test_graphs_of_networkx(conn: kuzu.Connection, directed: bool) -> None:
    pytest.importorskip("networkx")
    fill(conn)
    result = conn.execute("MATCH (a:User)-[f:Follows]->(b:User) RETURN a, f, b")
    graph = result.get_as_networkx(directed=directed)
    assert graph.is_directed() is directed
    assert sorted(graph.nodes) == ["User_Adam", "User_Karissa", "User_Zhang"]
    assert graph.nodes["User_Adam"]["age"] == 30
    assert graph.nodes["User_Adam"]["User"] is True
    since = {edge["since"] for _, _, edge in graph.edges(data=True)}
    assert since == {2020, 2021, None}
    paths = conn.execute("MATCH p = (:User)-[:LivesIn]->(:City) RETURN p").get_as_networkx()
    assert sorted(paths.edges()) == [("User_Adam", "City_Waterloo")]


def test_what_needs_a_package_says_so(
    conn: kuzu.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = conn.execute("RETURN 1 AS x")
    for package, method in (
        ("pandas", "get_as_df"),
        ("pyarrow", "get_as_arrow"),
        ("polars", "get_as_pl"),
        ("networkx", "get_as_networkx"),
    ):
        monkeypatch.setitem(__import__("sys").modules, package, None)
        with pytest.raises(ImportError, match=rf"{method}\(\) needs {package}: pip install"):
            getattr(result, method)()


def test_prepared_statements(conn: kuzu.Connection) -> None:
    fill(conn)
    statement = conn.prepare("MATCH (u:User {name: $name}) RETURN u.age")
    assert statement.is_success()
    assert statement.get_error_message() == ""
    for name, age in (("Adam", 30), ("Zhang", 50)):
        assert conn.execute(statement, {"name": name}).get_all() == [[age]]
    assert conn.prepare("CREATE NODE TABLE T(a STRING, PRIMARY KEY (a))").is_success()
    for text, message in (
        ("MATCH (d:Dog) RETURN d", "Binder exception: Table Dog does not exist."),
        ("MATCH (u:User) RETURN u.nope", "Binder exception: Cannot find property nope for u."),
        ("RETURN 1; RETURN 2", "We do not support prepare multiple statements."),
        ("COPY T", "Parser exception: expected FROM"),
    ):
        wrong = conn.prepare(text)
        assert not wrong.is_success()
        assert message in wrong.get_error_message()
        with pytest.raises(kuzu.KuzuError, match=message):
            conn.execute(wrong)


def test_a_time_limit_interrupts(conn: kuzu.Connection) -> None:
    conn.set_query_timeout(100)
    started = time.monotonic()
    with pytest.raises(RuntimeError, match=r"^Interrupted\.$") as caught:
        conn.execute(LONG)
    assert time.monotonic() - started < 10
    assert isinstance(caught.value, kuzu.KuzuError)
    assert caught.value.code == "interrupted"
    assert rows(conn, "RETURN 1 AS x") == [[1]]
    conn.execute("CALL timeout = 60000")
    assert rows(conn, "RETURN 1 AS x") == [[1]]
    conn.set_query_timeout(0)


def test_statements_are_interrupted(conn: kuzu.Connection) -> None:
    conn.interrupt()
    problems: list[BaseException] = []

    def run() -> None:
        try:
            conn.execute(LONG)
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert conn._graph is not None
    assert wait_until(lambda: conn._graph is not None and len(conn._graph._active) == 2)
    time.sleep(0.1)
    conn.interrupt()
    for thread in threads:
        thread.join(10)
    assert [str(problem) for problem in problems] == ["Interrupted."] * 2
    assert rows(conn, "RETURN 1 AS x") == [[1]]


def test_threads_share_a_connection(conn: kuzu.Connection) -> None:
    declare(conn)
    problems: list[BaseException] = []

    def write(thread: int) -> None:
        try:
            for number in range(20):
                conn.execute("CREATE (:User {name: $n})", {"n": f"{thread}-{number}"})
                query = f"MATCH (u:User {{name: '{thread}-{number}'}}) RETURN u.name"
                assert rows(conn, query) == [[f"{thread}-{number}"]]
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert rows(conn, "MATCH (u:User) RETURN count(*)") == [[160]]


def test_a_server_that_dies_is_replaced(store: Path) -> None:
    with kuzu.Database(store) as db, kuzu.Connection(db) as conn:
        fill(conn)
        assert db._client is not None
        os.kill(server_pid(db._client), 9)
        assert rows(conn, "MATCH (u:User) RETURN count(*)") == [[3]]
        conn.execute("CREATE (:User {name: 'x'})")
        assert rows(conn, "MATCH (u:User) RETURN count(*)") == [[4]]


def test_forked_children_go_on(store: Path) -> None:
    program = """
import os, sys
from isolith import kuzu
with kuzu.Database(sys.argv[1]) as db, kuzu.Connection(db) as conn:
    conn.execute("CREATE NODE TABLE T(a STRING, PRIMARY KEY (a))")
    child = os.fork()
    if child == 0:
        conn.execute("CREATE (:T {a: 'child'})")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    print(conn.execute("MATCH (t:T) RETURN t.a").get_all())
"""
    assert run_python(program, str(store)).strip() == "[['child']]"


def test_asyncio(database: kuzu.Database, conn: kuzu.Connection) -> None:
    fill(conn)

    async def main() -> None:
        async with kuzu.AsyncConnection(database, max_concurrent_queries=3) as connection:
            connection.set_query_timeout(60_000)
            results = await asyncio.gather(
                *(connection.execute("RETURN $x AS x", {"x": number}) for number in range(20))
            )
            assert [result.get_next() for result in results] == [[number] for number in range(20)]
            both = await connection.execute("RETURN 1; RETURN 2")
            assert [result.get_all() for result in both] == [[[1]], [[2]]]
            statement = await connection.prepare("MATCH (u:User {name: $n}) RETURN u.age")
            assert (await connection.execute(statement, {"n": "Adam"})).get_all() == [[30]]
            data = [{"name": "x"}]
            await connection.execute("COPY User FROM $data", {"data": data})
            with pytest.raises(kuzu.KuzuError, match=r"Table Dog does not exist."):
                await connection.execute("MATCH (d:Dog) RETURN d")
            assert connection.connections_counter == [0, 0, 0]
            acquired = connection.acquire_connection()
            assert connection.connections_counter == [1, 0, 0]
            assert acquired.execute("RETURN 1").get_next() == [1]
            connection.release_connection(acquired)
            assert connection.connections_counter == [0, 0, 0]
        with pytest.raises(kuzu.KuzuError, match=r"Connection is closed."):
            acquired.execute("RETURN 1")

    asyncio.run(main())


def test_a_cancelled_task_interrupts_its_statement(
    database: kuzu.Database, conn: kuzu.Connection
) -> None:
    async def main() -> None:
        with kuzu.AsyncConnection(database, max_concurrent_queries=1) as connection:
            task = asyncio.create_task(connection.execute(LONG))
            await asyncio.sleep(0.2)
            # It waits for the only thread, and is not interrupted with the other one.
            waiting = asyncio.create_task(connection.execute("RETURN 1"))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await asyncio.wait_for(waiting, 10)).get_next() == [1]

    asyncio.run(main())
