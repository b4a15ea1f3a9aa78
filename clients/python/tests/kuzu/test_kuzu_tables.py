"""Tables: how they are declared, described, changed and dropped."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import isolith
from isolith import kuzu
from kuzu_support import declare, fill, rows


def constraints(database: kuzu.Database) -> list[str]:
    assert database._client is not None
    return [row[0] for row in database._client.graph.query("SHOW CONSTRAINTS")]


def message(conn: kuzu.Connection, statement: str) -> str:
    ((text,),) = conn.execute(statement).get_all()
    assert isinstance(text, str)
    return text


def test_tables_are_constraints_of_the_graph(
    conn: kuzu.Connection, database: kuzu.Database
) -> None:
    declare(conn)
    assert constraints(database) == [
        "User.name",
        "User.age",
        "User.height",
        "User.tags",
        "User",
        "City.name",
        "City.population",
        "City",
        "Follows.since",
        "Follows",
        "LivesIn",
    ]
    # Other programs are held to them, too.
    assert database._client is not None
    with pytest.raises(isolith.BadInput, match="age of a :User must be INTEGER"):
        database._client.graph.query("CREATE (:User {name: 'a', age: 'old'})")
    with pytest.raises(isolith.BadInput, match="must go from :User to :City"):
        database._client.graph.query("CREATE (:User {name: 'a'})-[:LivesIn]->(:User {name: 'b'})")


def test_messages(conn: kuzu.Connection) -> None:
    assert (
        message(conn, "CREATE NODE TABLE T(a STRING, PRIMARY KEY (a))")
        == "Table T has been created."
    )
    assert (
        message(conn, "CREATE NODE TABLE IF NOT EXISTS T(a STRING, PRIMARY KEY (a))")
        == "Table T already exists."
    )
    assert message(conn, "CREATE REL TABLE R(FROM T TO T)") == "Table R has been created."
    assert message(conn, "ALTER TABLE T ADD b INT64") == "Property b added to table T."
    assert (
        message(conn, "ALTER TABLE T ADD IF NOT EXISTS b INT64")
        == "T table already has property b."
    )
    assert message(conn, "ALTER TABLE T DROP b") == "Property b has been dropped from table T."
    assert message(conn, "ALTER TABLE T DROP IF EXISTS b") == "T table does not have property b."
    assert message(conn, "DROP TABLE R") == "Table R has been dropped."
    assert message(conn, "DROP TABLE IF EXISTS R") == "Table R does not exist."


@pytest.mark.parametrize(
    ("statement", "text", "code"),
    [
        (
            "CREATE NODE TABLE User(a STRING, PRIMARY KEY (a))",
            "User already exists",
            "already_exists",
        ),
        ("CREATE REL TABLE USER(FROM City TO City)", "USER already exists", "already_exists"),
        ("CREATE REL TABLE R(FROM User TO Dog)", "Table Dog does not exist.", "not_found"),
        ("CREATE REL TABLE R(FROM User TO Follows)", "Follows is not of type NODE.", "bad_input"),
        ("DROP TABLE Dog", "Table Dog does not exist.", "not_found"),
        ("DROP TABLE User", "referenced by relationship table Follows.", "bad_input"),
        ("ALTER TABLE Dog ADD a INT64", "Table Dog does not exist.", "not_found"),
        ("ALTER TABLE User ADD AGE INT64", "User table already has property AGE.", "bad_input"),
        ("ALTER TABLE User DROP nope", "User table does not have property nope.", "bad_input"),
        ("ALTER TABLE User DROP name", "it is used as primary key.", "bad_input"),
    ],
)
def test_errors(conn: kuzu.Connection, statement: str, text: str, code: str) -> None:
    declare(conn)
    with pytest.raises(RuntimeError, match=text) as caught:
        conn.execute(statement)
    assert isinstance(caught.value, kuzu.KuzuError)
    assert caught.value.code == code


def test_descriptions(conn: kuzu.Connection) -> None:
    declare(conn)
    conn.execute("CREATE NODE TABLE T(a UUID, b INT32, c FLOAT[3], d DATE, PRIMARY KEY (a))")
    conn.execute("CREATE REL TABLE R(FROM User TO City, FROM City TO User, w DECIMAL(9, 2))")
    tables = conn.execute("CALL show_tables() RETURN *")
    assert tables.get_column_names() == ["id", "name", "type", "database name", "comment"]
    assert tables.get_all() == [
        [0, "User", "NODE", "local(kuzu)", ""],
        [1, "City", "NODE", "local(kuzu)", ""],
        [2, "Follows", "REL", "local(kuzu)", ""],
        [3, "LivesIn", "REL", "local(kuzu)", ""],
        [4, "T", "NODE", "local(kuzu)", ""],
        [5, "R", "REL", "local(kuzu)", ""],
    ]
    info = conn.execute("CALL table_info('T') RETURN *")
    assert info.get_column_names() == [
        "property id",
        "name",
        "type",
        "default expression",
        "primary key",
    ]
    assert info.get_all() == [
        [0, "a", "UUID", "NULL", True],
        [1, "b", "INT32", "NULL", False],
        [2, "c", "FLOAT[3]", "NULL", False],
        [3, "d", "DATE", "NULL", False],
    ]
    assert rows(conn, "CALL table_info('R') RETURN *") == [
        [1, "w", "DECIMAL(9, 2)", "NULL", "both"]
    ]
    assert rows(conn, "CALL show_connection('R') RETURN *") == [
        ["User", "City", "name", "name"],
        ["City", "User", "name", "name"],
    ]
    assert rows(conn, "CALL db_version() RETURN *") == [["0.11.3"]]
    with pytest.raises(kuzu.KuzuError, match="Nope does not exist in catalog"):
        conn.execute("CALL table_info('Nope') RETURN *")
    with pytest.raises(kuzu.KuzuError, match="can only be called on a rel table"):
        conn.execute("CALL show_connection('User') RETURN *")


def test_descriptions_that_other_packages_use(conn: kuzu.Connection) -> None:
    declare(conn)
    conn.execute("CREATE NODE TABLE T(a UUID, v FLOAT[3], PRIMARY KEY (a))")
    assert conn._get_node_table_names() == ["User", "City", "T"]
    assert conn._get_rel_table_names() == [
        {"name": "Follows", "src": "User", "dst": "User"},
        {"name": "LivesIn", "src": "User", "dst": "City"},
    ]
    assert conn._get_node_property_names("T") == {
        "a": {"type": "UUID", "dimension": 0, "is_primary_key": True},
        "v": {"type": "FLOAT", "dimension": 1, "is_primary_key": False, "shape": (3,)},
    }


def test_descriptions_are_rows_of_queries(conn: kuzu.Connection) -> None:
    declare(conn)
    query = "CALL show_tables() WHERE type = 'NODE' RETURN name AS n ORDER BY n LIMIT 1"
    assert rows(conn, query) == [["City"]]
    query = "CALL table_info('User') WITH name, `primary key` AS k WHERE NOT k RETURN count(*)"
    result = conn.execute(query)
    assert result.get_column_names() == ["COUNT_STAR()"]
    assert result.get_all() == [[3]]
    query = "CALL show_tables() YIELD name AS n, type AS t WHERE t = 'REL' RETURN *"
    assert rows(conn, query) == [["Follows", "REL"], ["LivesIn", "REL"]]


def test_columns_are_added_and_dropped(conn: kuzu.Connection) -> None:
    fill(conn)
    conn.execute("ALTER TABLE User ADD email STRING; ALTER TABLE Follows ADD weight DOUBLE")
    conn.execute("MATCH (u:User) SET u.email = u.name + '@example.org'")
    conn.execute("MATCH ()-[f:Follows]->() SET f.weight = 1")
    assert rows(conn, "MATCH (u:User {name: 'Adam'}) RETURN u.email") == [["Adam@example.org"]]
    conn.execute("ALTER TABLE User DROP email; ALTER TABLE Follows DROP weight")
    (node,) = rows(conn, "MATCH (u:User {name: 'Adam'}) RETURN u")[0]
    assert isinstance(node, dict)
    assert "email" not in node
    with pytest.raises(kuzu.KuzuError, match=r"Cannot find property email for u."):
        conn.execute("MATCH (u:User) RETURN u.email")
    # With its values: another column of this name is empty.
    conn.execute("ALTER TABLE User ADD email INT64; ALTER TABLE Follows ADD weight STRING")
    assert rows(conn, "MATCH (u:User)-[f]->() RETURN DISTINCT u.email, f.weight") == [[None, None]]


def test_dropping_a_table_deletes_its_rows(
    conn: kuzu.Connection, database: kuzu.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isolith.kuzu._tables._BATCH", 2)
    fill(conn)
    conn.execute("DROP TABLE Follows")
    assert rows(conn, "MATCH ()-[r]->() RETURN label(r)") == [["LivesIn"]]
    conn.execute("DROP TABLE LivesIn; DROP TABLE User")
    assert rows(conn, "MATCH (n) RETURN n.name ORDER BY n.name") == [["Guelph"], ["Waterloo"]]
    assert constraints(database) == ["City.name", "City.population", "City"]
    with pytest.raises(kuzu.KuzuError, match=r"Table User does not exist."):
        conn.execute("MATCH (u:User) RETURN u")


def test_names_can_be_quoted(conn: kuzu.Connection) -> None:
    conn.execute("CREATE NODE TABLE `a.b`(`the ``key``` STRING, PRIMARY KEY (`the ``key```))")
    conn.execute("CREATE NODE TABLE a(b STRING, PRIMARY KEY (b))")
    conn.execute("CREATE REL TABLE `from to`(FROM `a.b` TO a, `x y` INT8)")
    conn.execute("CREATE (:`a.b` {`the ``key```: '1'})-[:`from to` {`x y`: 2}]->(:a {b: '2'})")
    result = conn.execute("MATCH (n:`a.b`)-[r:`from to`]->() RETURN n.*, r.`x y`")
    assert result.get_column_names() == ["n.the `key`", "r.x y"]
    assert result.get_column_data_types() == ["STRING", "INT8"]
    assert result.get_all() == [["1", 2]]
    conn.execute("DROP TABLE `from to`; DROP TABLE `a.b`")
    assert rows(conn, "CALL show_tables() RETURN name") == [["a"]]


# What a statement leaves behind if it is killed after some of its queries.
LEFT = [
    "CREATE CONSTRAINT `T.a` FOR (n:T) REQUIRE n.a IS :: STRING",
    "CREATE CONSTRAINT `T.b INT32` FOR (n:T) REQUIRE n.b IS :: INTEGER",
]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("columns", ["a STRING, b INT32", "a STRING, c DOUBLE", "a INT64"])
def test_an_interrupted_statement_can_be_repeated(
    conn: kuzu.Connection, database: kuzu.Database, count: int, columns: str
) -> None:
    assert database._client is not None
    for query in LEFT[:count]:
        database._client.graph.query(query)
    assert rows(conn, "CALL show_tables() RETURN *") == []
    conn.execute(f"CREATE NODE TABLE T({columns}, PRIMARY KEY (a))")
    found = rows(conn, "CALL table_info('T') RETURN name, type")
    assert found == [column.split() for column in columns.split(", ")]
    assert len(constraints(database)) == len(found) + 1


def test_an_interrupted_drop_can_be_repeated(
    conn: kuzu.Connection, database: kuzu.Database
) -> None:
    fill(conn)
    assert database._client is not None
    database._client.graph.query("MATCH ()-[r:LivesIn]->() DELETE r")
    database._client.graph.query("DROP CONSTRAINT `User.age`")
    conn.execute("DROP TABLE LivesIn; DROP TABLE Follows; DROP TABLE User")
    assert constraints(database) == ["City.name", "City.population", "City"]


def test_constraints_of_others_are_tables_or_left_alone(
    conn: kuzu.Connection, database: kuzu.Database
) -> None:
    assert database._client is not None
    query = database._client.graph.query
    query("CREATE CONSTRAINT mine FOR (n:Thing) REQUIRE n.id IS NODE KEY")
    query("CREATE CONSTRAINT other FOR (n:Thing) REQUIRE n.size IS :: FLOAT")
    query("CREATE CONSTRAINT loose FOR (n:Loose) REQUIRE n.a IS :: STRING")
    query("CREATE CONSTRAINT unique FOR (n:Loose) REQUIRE n.b IS UNIQUE")
    assert rows(conn, "CALL show_tables() RETURN name, type") == [["Thing", "NODE"]]
    assert rows(conn, "CALL table_info('Thing') RETURN name, type") == [
        ["id", "ANY"],
        ["size", "DOUBLE"],
    ]
    conn.execute("COPY Thing FROM $rows", {"rows": [{"id": 1, "size": 2}, {"id": "x"}]})
    assert rows(conn, "MATCH (t:Thing) RETURN t.size ORDER BY t.size") == [[2.0], [None]]
    conn.execute("MATCH (t:Thing) DELETE t")
    conn.execute("CREATE NODE TABLE Loose(b INT64, PRIMARY KEY (b))")
    assert {"loose", "unique"} <= set(constraints(database))
    # Kuzu has words for the keys of tables only.
    query("CREATE CONSTRAINT needed FOR (n:Thing) REQUIRE n.size IS NOT NULL")
    with pytest.raises(kuzu.KuzuError, match="would violate the constraint needed: a :Thing must"):
        conn.execute("CREATE (:Thing {id: 3})")
    query("DROP CONSTRAINT needed")
    conn.execute("DROP TABLE Thing")
    assert not {"mine", "other"} & set(constraints(database))


def test_rows_that_exist_can_prevent_a_table(
    conn: kuzu.Connection, database: kuzu.Database
) -> None:
    assert database._client is not None
    database._client.graph.query("CREATE (:T {a: 1}), (:T {a: 1})")
    with pytest.raises(kuzu.KuzuError, match="a of a :T must be STRING, not 1"):
        conn.execute("CREATE NODE TABLE T(a STRING, PRIMARY KEY (a))")
    with pytest.raises(kuzu.KuzuError, match="Found duplicated primary key value 1"):
        conn.execute("CREATE NODE TABLE T(a INT64, PRIMARY KEY (a))")
    database._client.graph.query("MATCH (t:T) DELETE t")
    conn.execute("CREATE NODE TABLE T(a INT64, PRIMARY KEY (a))")


def test_tables_of_other_processes_are_noticed(
    conn: kuzu.Connection, database: kuzu.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(conn)
    fill_query = "MATCH (u:User) RETURN u"
    conn.execute("CREATE (:User {name: 'a'})")
    assert "extra" not in str(rows(conn, fill_query))
    with kuzu.Database(database.database_path) as other, kuzu.Connection(other) as connection:
        connection.execute("CREATE NODE TABLE Dog(name STRING, PRIMARY KEY (name))")
        connection.execute("ALTER TABLE User ADD extra STRING")
    # A table that is not known is looked for at once, other changes are noticed within a second.
    assert rows(conn, "MATCH (d:Dog) RETURN d") == []
    monkeypatch.setattr("isolith.kuzu._session._MAX_AGE", 0.0)
    assert "'extra': None" in str(rows(conn, fill_query))


def test_a_table_is_declared_by_many_at_the_same_time(
    database: kuzu.Database, conn: kuzu.Connection
) -> None:
    problems: list[BaseException] = []

    def declare_both() -> None:
        try:
            with kuzu.Connection(database) as connection:
                connection.execute(
                    "CREATE NODE TABLE IF NOT EXISTS A(a STRING, b INT32, PRIMARY KEY (a))"
                )
                connection.execute("CREATE REL TABLE IF NOT EXISTS R(FROM A TO A, w DOUBLE)")
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=declare_both) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert constraints(database) == ["A.a", "A.b INT32", "A", "R.w", "R"]


def test_tables_stay(store: Path) -> None:
    with kuzu.Database(store) as db, kuzu.Connection(db) as connection:
        fill(connection)
    with kuzu.Database(str(store), read_only=True) as db, kuzu.Connection(db) as connection:
        assert len(rows(connection, "CALL show_tables() RETURN *")) == 4
        assert rows(connection, "MATCH (:User)-[f:Follows]->() RETURN count(*)") == [[3]]
