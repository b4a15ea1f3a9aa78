"""The tokens of statements, and what statements say."""

from __future__ import annotations

from typing import Any

import pytest

from isolith import kuzu
from isolith.kuzu._columns import of_property_type, of_text
from isolith.kuzu._copying import CopyFrom, Files, Parameter, Subquery, Variable
from isolith.kuzu._ddl import AddColumn, CreateNodeTable, CreateRelTable, DropColumn, DropTable
from isolith.kuzu._procedures import CallTable, Setting
from isolith.kuzu._statements import Checkpoint, Query, Statement, parse
from isolith.kuzu._tokens import split, string_value, tokenize


def texts(text: str) -> list[str]:
    return [token.text for token in tokenize(text)]


def one(text: str) -> Statement:
    (statement,) = parse(text)
    return statement


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("RETURN 1", ["RETURN", "1"]),
        ("a.b<=$x // c\n+1.5e3", ["a", ".", "b", "<=", "$x", "+", "1.5e3"]),
        ("[:E*1..3]", ["[", ":", "E", "*", "1", "..", "3", "]"]),
        ("/* ' ; */ `a``b` \"it's\"", ["`a``b`", '"it\'s"']),
        (r"'it\'s' + 'a;b'", [r"'it\'s'", "+", "'a;b'"]),
        ("größe_2 .5 0xFF $`a b`", ["größe_2", ".5", "0xFF", "$`a b`"]),
        ("a=~b <> c", ["a", "=~", "b", "<>", "c"]),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert texts(text) == tokens


@pytest.mark.parametrize(
    ("text", "what"),
    [("RETURN 'a", "string"), ("RETURN `a", "quoted name"), ("RETURN 1 /* a", "comment")],
)
def test_what_does_not_end_is_refused(text: str, what: str) -> None:
    with pytest.raises(kuzu.KuzuError, match=f"Parser exception: the {what} does not end"):
        tokenize(text)


def test_strings_have_escapes() -> None:
    (token,) = tokenize(r"'a\'\n\x41\u00e4\\b'")
    assert string_value(token) == "a'\nAä\\b"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("RETURN 1", 1),
        ("RETURN 1;", 1),
        ("RETURN 1; RETURN 2 ;", 2),
        ("RETURN ';' // ;\n ; RETURN `;` /* ; */", 2),
        ("  ", 0),
    ],
)
def test_statements_end_with_semicolons(text: str, count: int) -> None:
    assert len(split(tokenize(text))) == count


def test_queries_keep_their_text() -> None:
    first, second = parse("CHECKPOINT; /* here */ MATCH (n:User)\n RETURN n ;")
    assert isinstance(first, Checkpoint)
    assert isinstance(second, Query)
    assert second.text == "MATCH (n:User)\n RETURN n"
    assert second.tokens[0].start == 0


def test_node_tables() -> None:
    statement = one(
        "CREATE NODE TABLE IF NOT EXISTS `My User` (id UUID, Age INT, score FLOAT[3], "
        "tags STRING[], price DECIMAL(10, 2), PRIMARY KEY(ID))"
    )
    assert isinstance(statement, CreateNodeTable)
    assert (statement.name, statement.key, statement.if_missing) == ("My User", "id", True)
    assert [(column.name, column.type.name) for column in statement.columns] == [
        ("id", "UUID"),
        ("Age", "INT32"),
        ("score", "FLOAT[3]"),
        ("tags", "STRING[]"),
        ("price", "DECIMAL(10, 2)"),
    ]
    inline = one("create node table City(name string primary key, population int64)")
    assert isinstance(inline, CreateNodeTable)
    assert (inline.key, inline.if_missing) == ("name", False)


def test_relationship_tables() -> None:
    statement = one("CREATE REL TABLE R(FROM A TO B, FROM A TO C, since INT64, MANY_MANY)")
    assert isinstance(statement, CreateRelTable)
    assert statement.ends == (("A", "B"), ("A", "C"))
    assert [column.name for column in statement.columns] == ["since"]
    # These words can be names of columns.
    named = one("CREATE REL TABLE R(FROM A TO B, from STRING, to STRING)")
    assert isinstance(named, CreateRelTable)
    assert [column.name for column in named.columns] == ["from", "to"]


def test_changes_of_tables() -> None:
    assert one("DROP TABLE IF EXISTS T") == DropTable("T", if_exists=True)
    assert one("ALTER TABLE T DROP IF EXISTS c") == DropColumn("T", "c", if_exists=True)
    added = one("ALTER TABLE T ADD IF NOT EXISTS c DOUBLE[]")
    assert isinstance(added, AddColumn)
    assert (added.table, added.column.name, added.if_missing) == ("T", "c", True)
    assert added.column.type.property_type == "LIST<FLOAT NOT NULL> | LIST<INTEGER NOT NULL>"


@pytest.mark.parametrize(
    ("text", "source", "columns", "options"),
    [
        ("COPY T FROM 'a.csv'", Files(("a.csv",)), None, {}),
        (
            "COPY T(a, b) FROM ['a.csv', 'b.csv'] (HEADER=true, delim='|', PARALLEL)",
            Files(("a.csv", "b.csv")),
            ("a", "b"),
            {"HEADER": True, "DELIM": "|", "PARALLEL": True},
        ),
        ("COPY T FROM glob('*.csv')", Files(("*.csv",)), None, {}),
        ("COPY T FROM frame (FROM='A', TO='B')", Variable("frame"), None, {"FROM": "A", "TO": "B"}),
        ("COPY T FROM $rows", Parameter("rows"), None, {}),
        (
            "COPY T FROM 'a.csv' (SKIP 3, NULL_STRINGS=['', 'NA'])",
            Files(("a.csv",)),
            None,
            {"SKIP": 3, "NULL_STRINGS": ["", "NA"]},
        ),
    ],
)
def test_copies(text: str, source: Any, columns: Any, options: Any) -> None:
    assert one(text) == CopyFrom("T", columns, source, options)


def test_copies_from_queries() -> None:
    statement = one("COPY T FROM (MATCH (n) RETURN count(n)) (HEADER=true)")
    assert isinstance(statement, CopyFrom)
    assert isinstance(statement.source, Subquery)
    assert [token.text for token in statement.source.tokens][:2] == ["MATCH", "("]
    assert [token.text for token in statement.source.tokens][-2:] == ["n", ")"]


def test_calls() -> None:
    assert one("CALL timeout = 5000") == Setting("timeout", 5000)
    assert one("CALL show_tables() RETURN *;") == CallTable("show_tables", (), None, "RETURN *")
    assert one("CALL table_info('T') YIELD name AS n, type WHERE n = 'a' RETURN n") == CallTable(
        "table_info", ("T",), (("name", "n"), ("type", "type")), "WHERE n = 'a' RETURN n"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE NODE TABLE T(a STRING)", "Can not find primary key"),
        ("CREATE NODE TABLE T(a STRING, PRIMARY KEY (b))", "Primary key b does not match"),
        ("CREATE NODE TABLE T(a STRING PRIMARY KEY, b INT64 PRIMARY KEY)", "multiple primary keys"),
        ("CREATE NODE TABLE T(a STRING, A INT64, PRIMARY KEY (a))", "Duplicated column name: A"),
        ("CREATE NODE TABLE T(a BOOL, PRIMARY KEY (a))", "Invalid primary key column type BOOL"),
        ("CREATE NODE TABLE T(a STRING[], PRIMARY KEY (a))", "Invalid primary key column type"),
        ("CREATE NODE TABLE T(_id STRING, PRIMARY KEY (_id))", "_id is a reserved property name"),
        ("CREATE NODE TABLE T(a TEXT, PRIMARY KEY (a))", "TEXT is neither an internal type"),
        ("CREATE NODE TABLE T(a STRING PRIMARY KEY", r"expected '\)', found the end"),
        ("CREATE NODE TABLE T a", r"expected '\(', found 'a' \(line 1, column 21\)"),
        ("CREATE REL TABLE R(FROM A TO B, FROM A TO B)", "Found duplicate FROM-TO A-B pairs"),
        ("CREATE REL TABLE R(FROM A TO B, SOME_THING)", "Cannot bind SOME_THING"),
        ("CREATE REL TABLE R(a INT64)", "expected FROM"),
        ("DROP TABLE", "expected the name of a table"),
        ("ALTER TABLE T SET a", "expected ADD or DROP"),
        ("COPY T FROM", "expected what to copy from"),
        ("COPY T(a, a) FROM 'b.csv'", "duplicate column name a"),
        ("COPY T FROM 'a.csv' nonsense", "expected the end of the statement, found 'nonsense'"),
        ("CALL show_tables()", "Only standalone table functions"),
        ("", "there is no statement"),
        (";", "there is no statement"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(kuzu.KuzuError, match=message) as caught:
        parse(text)
    assert caught.value.code == "bad_input"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("BEGIN TRANSACTION", "BEGIN"),
        ("COMMIT", "COMMIT"),
        ("ROLLBACK", "ROLLBACK"),
        ("LOAD FROM 'a.csv' RETURN *", "LOAD FROM"),
        ("LOAD WITH HEADERS (a INT64) FROM 'a.csv' RETURN *", "LOAD WITH"),
        ("MATCH (n) LOAD FROM 'a.csv' RETURN *", "LOAD FROM"),
        ("LOAD EXTENSION httpfs", "LOAD"),
        ("INSTALL httpfs", "INSTALL"),
        ("EXPORT DATABASE 'a'", "EXPORT DATABASE"),
        ("IMPORT DATABASE 'a'", "IMPORT DATABASE"),
        ("ATTACH 'a' AS b (dbtype duckdb)", "ATTACH"),
        ("DETACH b", "DETACH"),
        ("USE b", "USE"),
        ("CREATE SEQUENCE s", "CREATE SEQUENCE"),
        ("CREATE MACRO f(x) AS x + 1", "CREATE MACRO"),
        ("CREATE TYPE t AS INT64", "CREATE TYPE"),
        ("COMMENT ON TABLE T IS 'a'", "COMMENT ON"),
        ("COPY (MATCH (n) RETURN n) TO 'a.csv'", "COPY ... TO"),
        ("COPY T FROM ('a.npy', 'b.npy') BY COLUMN", "COPY ... BY COLUMN"),
        ("COPY T FROM read('a')", r"COPY from read\(\)"),
        ("COPY T FROM db.U", "COPY from an attached database"),
        ("EXPLAIN MATCH (n) RETURN n", "EXPLAIN"),
        ("PROFILE MATCH (n) RETURN n", "PROFILE"),
        ("CALL enable_checksums = true", "the setting enable_checksums"),
        ("CALL create_vector_index('T', 'i', 'c')", "CALL create_vector_index"),
        ("CALL show_functions() RETURN *", "CALL show_functions"),
        ("MATCH (n) CALL show_tables() RETURN *", "CALL after another clause"),
        ("CREATE NODE TABLE T(a SERIAL, PRIMARY KEY (a))", "columns of type SERIAL"),
        ("CREATE NODE TABLE T(a STRING PRIMARY KEY, b MAP(STRING, INT64))", "columns of type MAP"),
        ("CREATE NODE TABLE T(a STRING PRIMARY KEY, b STRUCT(c INT64))", "columns of type STRUCT"),
        ("CREATE NODE TABLE T(a STRING PRIMARY KEY, b UNION(c INT64))", "columns of type UNION"),
        ("CREATE NODE TABLE T(a STRING PRIMARY KEY, b BLOB)", "columns of type BLOB"),
        ("CREATE NODE TABLE T(a STRING PRIMARY KEY, b INTERVAL)", "columns of type INTERVAL"),
        ("CREATE NODE TABLE T(a STRING PRIMARY KEY, b INT64[][])", "lists of lists"),
        ("CREATE NODE TABLE T(a STRING PRIMARY KEY, b INT64 DEFAULT 1)", "DEFAULT"),
        ("CREATE NODE TABLE T AS MATCH (n) RETURN n", "CREATE NODE TABLE ... AS"),
        ("CREATE REL TABLE R(FROM A TO B, MANY_ONE)", "the multiplicity MANY_ONE"),
        ("CREATE REL TABLE R(FROM A TO B) WITH (storage_direction='fwd')", r"WITH \(...\)"),
        ("ALTER TABLE T RENAME TO U", "ALTER TABLE ... RENAME"),
        ("ALTER TABLE T ADD FROM A TO B", "changing the ends"),
    ],
)
def test_what_is_missing_is_refused_by_name(text: str, what: str) -> None:
    with pytest.raises(kuzu.KuzuError, match=f"not supported: {what}") as caught:
        parse(text)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["DETACH DELETE n", "MATCH (n:Call {call: 1, load: 2}) RETURN n"])
def test_words_of_statements_can_be_names(text: str) -> None:
    assert isinstance(one(text), Query)


@pytest.mark.parametrize(
    ("name", "property_type"),
    [
        ("INT64", "INTEGER"),
        ("UINT8", "INTEGER"),
        ("DOUBLE", "FLOAT | INTEGER"),
        ("STRING", "STRING"),
        ("UUID", "STRING"),
        ("TIMESTAMP_TZ", "STRING"),
        ("BOOL", "BOOLEAN"),
        ("STRING[]", "LIST<STRING NOT NULL>"),
        ("FLOAT[3]", "LIST<FLOAT NOT NULL> | LIST<INTEGER NOT NULL>"),
        ("DECIMAL(10, 2)", "FLOAT | INTEGER"),
    ],
)
def test_types_have_property_types(name: str, property_type: str) -> None:
    assert of_text(name).name == name
    assert of_text(name).property_type == property_type


def test_types_of_properties() -> None:
    assert of_property_type("INTEGER").name == "INT64"
    assert of_property_type("FLOAT").name == "DOUBLE"
    assert of_property_type("LIST<FLOAT NOT NULL> | LIST<INTEGER NOT NULL>").name == "DOUBLE[]"
    assert of_property_type("BOOLEAN | STRING").name == "ANY"
    assert of_property_type(None).name == "ANY"
