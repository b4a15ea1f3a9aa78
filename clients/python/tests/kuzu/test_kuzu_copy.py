"""Copying rows into tables."""

from __future__ import annotations

import datetime
import decimal
import uuid
from pathlib import Path
from typing import Any

import pytest

from isolith import kuzu
from isolith.kuzu._columns import of_text
from isolith.kuzu._convert import ConversionError, object_converter, text_converter
from kuzu_support import declare, fill, rows

ALL = "MATCH (u:User) RETURN u.* ORDER BY u.name"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def copy(conn: kuzu.Connection, text: str, statement: str, name: str = "rows.csv") -> str:
    Path(name).write_text(text)
    ((message,),) = conn.execute(statement).get_all()
    assert isinstance(message, str)
    return message


def test_nodes(conn: kuzu.Connection) -> None:
    declare(conn)
    text = 'Adam,30,1.8,"[a, b]"\nKarissa,40,,\n"Zhang, X",50,2,[]\n\n'
    assert (
        copy(conn, text, "COPY User FROM 'rows.csv'")
        == "3 tuples have been copied to the User table."
    )
    assert rows(conn, ALL) == [
        ["Adam", 30, 1.8, ["a", "b"]],
        ["Karissa", 40, None, None],
        ["Zhang, X", 50, 2.0, []],
    ]
    assert repr(rows(conn, ALL)[2][2]) == "2.0"


def test_relationships(conn: kuzu.Connection) -> None:
    fill(conn)
    conn.execute("MATCH ()-[r]->() DELETE r")
    text = "from,to,since\nAdam,Karissa,2020\nKarissa,Zhang,\nAdam,Karissa,2021\n"
    assert (
        copy(conn, text, "COPY Follows FROM 'rows.csv' (HEADER=true)")
        == "3 tuples have been copied to the Follows table."
    )
    query = "MATCH (a)-[f:Follows]->(b) RETURN a.name, b.name, f.since ORDER BY a.name, f.since"
    assert rows(conn, query) == [
        ["Adam", "Karissa", 2020],
        ["Adam", "Karissa", 2021],
        ["Karissa", "Zhang", None],
    ]


def test_relationships_between_several_tables(conn: kuzu.Connection) -> None:
    fill(conn)
    conn.execute("CREATE REL TABLE Likes(FROM User TO City, FROM User TO User, much DOUBLE)")
    Path("rows.csv").write_text("Adam,Guelph,1\n")
    with pytest.raises(kuzu.KuzuError, match="Likes has multiple FROM and TO pairs"):
        conn.execute("COPY Likes FROM 'rows.csv'")
    with pytest.raises(kuzu.KuzuError, match="does not contain City-City from-to pair"):
        conn.execute("COPY Likes FROM 'rows.csv' (FROM='City', TO='City')")
    conn.execute("COPY Likes FROM 'rows.csv' (FROM='user', TO='city')")
    query = "MATCH (u)-[l:Likes]->(x) RETURN u.name, label(x), l.much"
    assert rows(conn, query) == [["Adam", "City", 1.0]]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("Adam,30\nZhang,50\n", ""),
        ("Adam,30\nZhang,50", "(HEADER=false, PARALLEL=false)"),
        ("name,age\nAdam,30\nZhang,50\n", "(HEADER=true)"),
        # Found out from the cells of the first line.
        ("name,age\nAdam,30\nZhang,50\n", ""),
        ("Adam;30\nZhang;50\n", ""),
        ("Adam\t30\nZhang\t50\n", ""),
        ("Adam|30\nZhang|50\n", "(DELIM='|')"),
        ("Adam\t30\nZhang\t50\n", "(DELIMITER='\\t')"),
        ("'Adam',30\n'Zhang',50\n", '(QUOTE="\'")'),
        ('"Ad\\am",30\n"Zhang",50\n', "(ESCAPE='\\\\')"),
        ("# made today\nAdam,30\nZhang,50\n", "(SKIP=1)"),
        ("\ufeffAdam,30\r\nZhang,50\r\n", ""),
        ("Adam, 30 ,\nZhang,50,\n", ""),
    ],
)
def test_options(conn: kuzu.Connection, text: str, options: str) -> None:
    declare(conn)
    copy(conn, text, f"COPY User(name, age) FROM 'rows.csv' {options}")
    assert rows(conn, "MATCH (u:User) RETURN u.name, u.age ORDER BY u.age") == [
        ["Adam", 30],
        ["Zhang", 50],
    ]


def test_strings_for_null(conn: kuzu.Connection) -> None:
    declare(conn)
    copy(conn, "a,NA\nb,\nc,3\n", "COPY User(name, age) FROM 'rows.csv' (NULL_STRINGS=['NA', ''])")
    assert rows(conn, "MATCH (u:User) RETURN u.age ORDER BY u.name") == [[None], [None], [3]]


def test_several_files(conn: kuzu.Connection) -> None:
    declare(conn)
    Path("b.csv").write_text("name\nb\n")
    Path("c.tsv").write_text("name\nc\tC\n")
    copy(conn, "name\na\n", "COPY User(name) FROM ['a.csv', 'b.csv'] (HEADER=true)", "a.csv")
    assert rows(conn, "MATCH (u:User) RETURN u.name ORDER BY u.name") == [["a"], ["b"]]
    conn.execute("MATCH (u:User) DELETE u")
    conn.execute("COPY User(name) FROM '*.csv' (HEADER=true)")
    assert rows(conn, "MATCH (u:User) RETURN u.name ORDER BY u.name") == [["a"], ["b"]]
    conn.execute("MATCH (u:User) DELETE u")
    conn.execute("COPY User(name) FROM glob('?.csv') (HEADER=true)")
    assert rows(conn, "MATCH (u:User) RETURN count(*)") == [[2]]


@pytest.mark.parametrize(
    ("statement", "text", "message"),
    [
        ("COPY Dog FROM 'rows.csv'", "", "Binder exception: Table Dog does not exist."),
        ("COPY User(nope) FROM 'rows.csv'", "", "Table User does not contain column nope."),
        ("COPY User(age) FROM 'rows.csv'", "", "Copy into User expects primary key name"),
        ("COPY User FROM 'other.csv'", "", "No file found that matches the pattern: other.csv."),
        ("COPY User FROM '*.tsv'", "", r"No file found that matches the pattern: \*.tsv."),
        ("COPY User FROM 'rows.csv' (FOO=1)", "", "Unrecognized csv parsing option: FOO."),
        ("COPY User FROM 'rows.csv' (HEADER=1)", "", "HEADER must be a boolean"),
        ("COPY User FROM 'rows.csv' (DELIM='ab')", "", "DELIM must be a single character"),
        ("COPY User FROM 'rows.csv' (IGNORE_ERRORS=true)", "", "not supported: IGNORE_ERRORS"),
        (
            "COPY User FROM 'rows.csv'",
            "a,1,1,\nb,1,1",
            "Error in file rows.csv on line 2: expected 4 values per row, but got 3.",
        ),
        (
            "COPY User FROM 'rows.csv'",
            "a,1,1,\nb,x,1,\n",
            'Error in file rows.csv on line 2: Conversion exception: .* convert "x" to INT64.',
        ),
        (
            "COPY User(name, age) FROM 'rows.csv'",
            "a,1\nAdam,2\n",
            "Found duplicated primary key value Adam",
        ),
        ("COPY User FROM 'rows.csv'", 'a,1,1,"[x,,y]"\n', "lists cannot contain null in Isolith"),
        (
            "COPY User(name) FROM 'rows.csv'",
            "Adam\n",
            "Copy exception: Found duplicated primary key value Adam, which violates the",
        ),
        ("COPY User(name, age) FROM 'rows.csv'", "new,1\nnew,2\n", "primary key value new"),
        (
            "COPY User(name, age) FROM 'rows.csv'",
            "a,1\n,2\n",
            "Copy exception: Found NULL, which violates the non-null constraint of the primary key "
            r"column. \(error in file rows.csv on line 2\)",
        ),
        (
            "COPY Follows FROM 'rows.csv'",
            "Adam,Karissa,1\nAdam,Nobody,2\n",
            "Copy exception: Unable to find primary key value Nobody.",
        ),
        ("COPY Follows FROM 'rows.csv'", "Nobody,Adam,1\n", "primary key value Nobody."),
        ("COPY Follows FROM 'rows.csv'", "Adam,,1\n", "Found NULL"),
        ("COPY User(name) FROM 'rows.csv'", 'a"b\n"c" d\n', "Error in file rows.csv on line 2"),
        ("COPY User FROM frame", "", "Variable frame is not in scope."),
        ("COPY User FROM $frame", "", "Parameter frame not found."),
        ("COPY User(name) FROM (MATCH (c:City) RETURN c.name, 1)", "", "Query returns 2 columns"),
        ("COPY User(name) FROM (CHECKPOINT)", "", "takes a query"),
    ],
)
def test_errors(conn: kuzu.Connection, statement: str, text: str, message: str) -> None:
    fill(conn)
    Path("rows.csv").write_text(text)
    before = rows(conn, "MATCH (n) RETURN count(*)")
    with pytest.raises(RuntimeError, match=message):
        conn.execute(statement)
    assert rows(conn, "MATCH (n) RETURN count(*)") == before


def test_a_file_that_is_not_utf_8(conn: kuzu.Connection) -> None:
    declare(conn)
    Path("rows.csv").write_bytes(b"a\n\xff\n")
    with pytest.raises(kuzu.KuzuError, match="Invalid UTF8-encoded string"):
        conn.execute("COPY User(name) FROM 'rows.csv'")


def test_many_rows_are_several_transactions(
    conn: kuzu.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(conn)
    monkeypatch.setattr("isolith.kuzu._copy._MAX_ROWS", 100)
    data: list[Any] = [{"name": f"u{number}", "age": number} for number in range(250)]
    conn.execute("COPY User FROM $data", {"data": data})
    query = "MATCH (u:User) RETURN count(*), min(u.age), max(u.age)"
    assert rows(conn, query) == [[250, 0, 249]]
    data = [{"name": f"v{number}"} for number in range(150)] + [{"name": "u3"}]
    with pytest.raises(kuzu.KuzuError, match="duplicated primary key value u3") as caught:
        conn.execute("COPY User FROM $data", {"data": data})
    assert caught.value.hint == "100 rows were copied before"
    assert rows(conn, "MATCH (u:User) RETURN count(*)") == [[350]]


def test_large_values_are_several_transactions(conn: kuzu.Connection) -> None:
    conn.execute("CREATE NODE TABLE Text(k INT64 PRIMARY KEY, t STRING, v FLOAT[3])")
    Path("rows.csv").write_text(
        "".join(f'{number},{"x" * 300_000},"[1,{number},0.5]"\n' for number in range(30))
    )
    conn.execute("COPY Text FROM 'rows.csv'")
    query = "MATCH (t:Text) RETURN count(*), sum(size(t.t)), max(t.v[2])"
    assert rows(conn, query) == [[30, 9_000_000, 29.0]]


def test_numbers_that_are_not_finite(conn: kuzu.Connection) -> None:
    declare(conn)
    copy(conn, "a,nan\nb,-Infinity\n", "COPY User(name, height) FROM 'rows.csv'")
    frame = [{"name": "c", "height": float("inf")}, {"name": "d", "height": float("nan")}]
    conn.execute("COPY User FROM $frame", {"frame": frame})
    query = "MATCH (u:User) WHERE u.height {} RETURN u.name ORDER BY u.name"
    assert rows(conn, query.format("IS NULL")) == [["d"]]
    assert rows(conn, query.format("> 1e308")) == [["c"]]
    assert rows(conn, query.format("< -1e308")) == [["b"]]


def parts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has files read row by row."""
    monkeypatch.setattr("isolith.kuzu._copy._kind_of_text", lambda type: None)


@pytest.mark.parametrize("most", [40, 64, 1000, 8 << 20])
@pytest.mark.parametrize("is_plain", [True, False])
def test_files_are_read_in_blocks(
    conn: kuzu.Connection, monkeypatch: pytest.MonkeyPatch, most: int, is_plain: bool
) -> None:
    conn.execute("CREATE NODE TABLE T(k INT64 PRIMARY KEY, t STRING, b BOOL, n INT16)")
    monkeypatch.setattr("isolith.kuzu._copy._MAX_BYTES", most)
    if not is_plain:
        parts_only(monkeypatch)
    text = '1,ä,true,\r\n2,"a\n""b"",",f,-5\n\n3,,0,7\n4,"",T,\n5, x ,,1\n6,end,,2'
    copy(conn, text, "COPY T FROM 'rows.csv'")
    assert rows(conn, "MATCH (t:T) RETURN t.* ORDER BY t.k") == [
        [1, "ä", True, None],
        [2, 'a\n"b",', False, -5],
        [3, None, False, 7],
        [4, None, True, None],
        [5, " x ", None, 1],
        [6, "end", None, 2],
    ]


@pytest.mark.parametrize("is_plain", [True, False])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x,1", 'on line 503: Conversion exception: Cast failed. Could not convert "x" to INT64'),
        ("700,40000", "on line 503: Conversion exception: .* to INT16"),
        ("700", "on line 503: expected 2 values per row, but got 1"),
        ('700,"1"x', "on line 503"),
        (",1", r"Found NULL, .* \(error in file rows.csv on line 503\)"),
        ("7,1", "Found duplicated primary key value 7, which violates the uniqueness"),
    ],
)
def test_errors_in_the_middle_of_a_file(
    conn: kuzu.Connection, monkeypatch: pytest.MonkeyPatch, is_plain: bool, line: str, message: str
) -> None:
    conn.execute("CREATE NODE TABLE T(k INT64 PRIMARY KEY, n INT16)")
    monkeypatch.setattr("isolith.kuzu._copy._MAX_BYTES", 1000)
    if not is_plain:
        parts_only(monkeypatch)
    lines = ["k,n", "", *(f"{number},1" for number in range(500)), line, "600,1", ""]
    Path("rows.csv").write_text("\n".join(lines))
    with pytest.raises(kuzu.KuzuError, match=message) as caught:
        conn.execute("COPY T FROM 'rows.csv'")
    ((kept,),) = rows(conn, "MATCH (t:T) RETURN count(*)")
    assert caught.value.hint == (f"{kept} rows were copied before" if kept else "")
    assert rows(conn, "MATCH (t:T) WHERE t.k > 500 RETURN t.k") == []


def test_what_only_python_reads_is_copied(conn: kuzu.Connection) -> None:
    conn.execute("CREATE NODE TABLE T(k INT64 PRIMARY KEY, n INT16)")
    # Digits of another script, and delimiters at the ends of lines.
    copy(conn, "1,1\n2,\u0663\n3,3,\n", "COPY T FROM 'rows.csv'")
    assert rows(conn, "MATCH (t:T) RETURN t.n ORDER BY t.k") == [[1], [3], [3]]


def test_keys_that_are_not_whole(conn: kuzu.Connection) -> None:
    conn.execute("CREATE NODE TABLE T(k DOUBLE PRIMARY KEY); CREATE REL TABLE R(FROM T TO T)")
    copy(conn, "1.5\n2\n", "COPY T FROM 'rows.csv'")
    copy(conn, "1.5,2\n", "COPY R FROM 'rows.csv'")
    assert rows(conn, "MATCH (a:T)-[:R]->(b:T) RETURN a.k, b.k") == [[1.5, 2.0]]


def test_relationships_of_empty_tables(conn: kuzu.Connection) -> None:
    declare(conn)
    Path("rows.csv").write_text("Adam,Karissa,1\n")
    with pytest.raises(kuzu.KuzuError, match=r"Unable to find primary key value Adam."):
        conn.execute("COPY Follows FROM 'rows.csv'")


def test_columns_that_are_named_like_the_ends(conn: kuzu.Connection) -> None:
    conn.execute("CREATE NODE TABLE T(k INT64 PRIMARY KEY)")
    conn.execute("CREATE REL TABLE R(FROM T TO T, `from` INT64, `to` STRING)")
    conn.execute("CREATE (:T {k: 1}), (:T {k: 2})")
    copy(conn, "1,2,3,x\n", "COPY R FROM 'rows.csv'")
    assert rows(conn, "MATCH (:T)-[r:R]->(:T) RETURN r.`from`, r.`to`") == [[3, "x"]]


def test_empty_texts_are_not_null(conn: kuzu.Connection) -> None:
    declare(conn)
    people = [{"name": ""}, {"name": 'a"b,\r\n'}, {"name": "null"}]
    conn.execute("COPY User FROM people")
    assert people
    found = rows(conn, "MATCH (u:User) RETURN u.name ORDER BY u.name")
    assert found == [[""], ['a"b,\r\n'], ["null"]]


def test_large_floats(conn: kuzu.Connection) -> None:
    declare(conn)
    copy(conn, "a,1e300\nb,-9223372036854775808\n", "COPY User(name, height) FROM 'rows.csv'")
    found = rows(conn, "MATCH (u:User) RETURN u.height ORDER BY u.name")
    assert found == [[1e300], [-9223372036854775808.0]]


def test_queries(conn: kuzu.Connection) -> None:
    fill(conn)
    conn.execute("CREATE NODE TABLE Copied(name STRING PRIMARY KEY, x DOUBLE)")
    conn.execute("COPY Copied FROM (MATCH (u:User) WHERE u.age > 30 RETURN u.name, u.age)")
    query = "MATCH (c:Copied) RETURN c.name, c.x ORDER BY c.name"
    assert rows(conn, query) == [["Karissa", 40.0], ["Zhang", 50.0]]
    conn.execute("CREATE REL TABLE Older(FROM Copied TO User)")
    conn.execute(
        "COPY Older FROM (MATCH (a:Copied), (b:User) WHERE a.x > b.age RETURN a.name, b.name)"
    )
    assert rows(conn, "MATCH (:Copied)-[o:Older]->(:User) RETURN count(o)") == [[3]]


def test_lists_of_dictionaries(conn: kuzu.Connection) -> None:
    declare(conn)
    people = [{"name": "a", "height": 2, "tags": ["x"]}, {"age": 3, "name": "b"}]
    conn.execute("COPY User FROM people")
    conn.execute("COPY Follows FROM $rows", {"rows": [{"from": "a", "to": "b", "since": 1}]})
    assert people
    assert rows(conn, ALL) == [["a", None, 2.0, ["x"]], ["b", 3, None, None]]
    assert rows(conn, "MATCH (:User)-[f:Follows]->(:User) RETURN f.since") == [[1]]
    with pytest.raises(kuzu.KuzuError, match=r"Cannot find property nope. Rows have name, age"):
        conn.execute("COPY User FROM $rows", {"rows": [{"nope": 1}]})
    assert "0 tuples" in rows(conn, "COPY User FROM $rows", rows=[])[0][0]


MODULE_ROWS = [{"name": "from the module"}]


def test_variables_of_callers(conn: kuzu.Connection) -> None:
    declare(conn)

    def run(name: str) -> None:
        conn.execute(f"COPY User FROM {name}")

    outer = [{"name": "outer"}]
    run("outer")
    run("MODULE_ROWS")
    assert outer
    assert len(rows(conn, ALL)) == 2
    something = 5
    with pytest.raises(kuzu.KuzuError, match="unsupported python object"):
        run("something")
    assert something


def frames() -> list[Any]:
    """The same table as objects of each of the packages that are installed."""
    columns: dict[str, Any] = {
        "name": ["a", "b"],
        "age": [1, None],
        "height": [1.5, None],
        "tags": [["x", "y"], None],
    }
    found = []
    for package in ("pandas", "polars", "pyarrow"):
        try:
            module = __import__(package)
        except ImportError:
            reason = f"{package} is not installed"
            found.append(pytest.param(None, id=package, marks=pytest.mark.skip(reason)))
            continue
        make = module.table if package == "pyarrow" else module.DataFrame
        found.append(pytest.param(make(columns), id=package))
    return found


@pytest.mark.parametrize("frame", frames())
def test_frames(conn: kuzu.Connection, frame: Any) -> None:
    declare(conn)
    conn.execute("COPY User FROM frame")
    assert rows(conn, ALL) == [["a", 1, 1.5, ["x", "y"]], ["b", None, None, None]]
    with pytest.raises(kuzu.KuzuError, match=r"frame has 4 columns but 2 columns were expected."):
        conn.execute("COPY User(name, age) FROM frame")
    with pytest.raises(kuzu.KuzuError, match=r"\$f has 4 columns"):
        conn.execute("COPY User(name) FROM $f", {"f": frame})


def test_frames_with_moments(conn: kuzu.Connection) -> None:
    pandas = pytest.importorskip("pandas")
    conn.execute(
        "CREATE NODE TABLE E("
        "k UUID PRIMARY KEY, d DATE, t TIMESTAMP, z TIMESTAMP_TZ, n DECIMAL(9, 2))"
    )
    frame = pandas.DataFrame(
        {
            "k": [uuid.UUID(int=1), str(uuid.UUID(int=2)).upper()],
            "d": [datetime.date(2020, 1, 2), None],
            "t": pandas.to_datetime(["2020-01-02 03:04:05.000006", None]),
            "z": pandas.to_datetime(["2020-01-02T03:04:05+02:00", None]),
            "n": [decimal.Decimal("1.25"), None],
        }
    )
    conn.execute("COPY E FROM $frame", {"frame": frame})
    assert rows(conn, "MATCH (e:E) RETURN e.* ORDER BY e.k") == [
        [
            "00000000-0000-0000-0000-000000000001",
            "2020-01-02",
            "2020-01-02T03:04:05.000006",
            "2020-01-02T01:04:05+00:00",
            1.25,
        ],
        ["00000000-0000-0000-0000-000000000002", None, None, None, None],
    ]


def test_parquet(conn: kuzu.Connection) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    declare(conn)
    parquet.write_table(pyarrow.table({"n": ["a", "b"], "a": [1, None]}), "rows.parquet")
    conn.execute("COPY User(name, age) FROM 'rows.parquet'")
    assert rows(conn, "MATCH (u:User) RETURN u.name, u.age ORDER BY u.name") == [
        ["a", 1],
        ["b", None],
    ]
    Path("bad.parquet").write_text("no")
    with pytest.raises(kuzu.KuzuError, match=r"cannot read bad.parquet"):
        conn.execute("COPY User(name, age) FROM 'bad.parquet'")
    Path("rows.npy").write_text("no")
    with pytest.raises(kuzu.KuzuError, match=r"not supported: COPY from files like rows.npy"):
        conn.execute("COPY User FROM 'rows.npy'")


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        ("INT64", " -7 ", -7),
        ("INT8", "127", 127),
        ("UINT8", "255", 255),
        ("DOUBLE", "1e3", 1000.0),
        ("FLOAT", "2", 2.0),
        ("DECIMAL(4, 1)", "2.5", 2.5),
        ("BOOL", "TRUE", True),
        ("BOOL", "f", False),
        ("STRING", " a ", " a "),
        ("UUID", "{A0EEBC999C0B4EF8BB6D6BB9BD380A11}", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        ("DATE", "2020/1/2", "2020-01-02"),
        ("TIMESTAMP", "2020-01-02", "2020-01-02T00:00:00"),
        ("TIMESTAMP", "2020-01-02 03:04:05.5", "2020-01-02T03:04:05.500000"),
        ("TIMESTAMP_TZ", "2020-01-02T03:04:05.5Z", "2020-01-02T03:04:05.500000+00:00"),
        ("TIMESTAMP_TZ", "2020-01-02 03:04:05-01:30", "2020-01-02T04:34:05+00:00"),
        ("INT64[]", "[1, 2]", [1, 2]),
        ("STRING[]", "[a, 'b, c']", ["a", "'b, c'"]),
        ("FLOAT[2]", "[1, 2.5]", [1.0, 2.5]),
        ("STRING[]", "[]", []),
    ],
)
def test_values_of_text(type: str, text: str, value: object) -> None:
    assert repr(text_converter(of_text(type))(text)) == repr(value)


@pytest.mark.parametrize(
    ("type", "text"),
    [
        ("INT64", "1.5"),
        ("INT64", "1_000"),
        ("INT64", ""),
        ("INT64", "9223372036854775808"),
        ("INT8", "128"),
        ("UINT8", "-1"),
        ("DOUBLE", "a"),
        ("FLOAT[]", "[inf]"),
        ("BOOL", "yes"),
        ("UUID", "a"),
        ("DATE", "2020-13-01"),
        ("DATE", "2020"),
        ("TIMESTAMP", "yesterday"),
        ("INT64[]", "1"),
        ("INT64[]", "[a]"),
        ("FLOAT[2]", "[1]"),
    ],
)
def test_text_without_a_value(type: str, text: str) -> None:
    with pytest.raises(ConversionError):
        text_converter(of_text(type))(text)


@pytest.mark.parametrize(
    ("type", "given", "value"),
    [
        ("INT64", 5.0, 5),
        ("INT64", True, 1),
        ("INT32", "7", 7),
        ("DOUBLE", 5, 5.0),
        ("DOUBLE", decimal.Decimal("0.5"), 0.5),
        ("BOOL", False, False),
        ("STRING", 5, "5"),
        ("STRING", datetime.date(2020, 1, 2), "2020-01-02"),
        ("UUID", uuid.UUID(int=3), "00000000-0000-0000-0000-000000000003"),
        ("DATE", datetime.datetime(2020, 1, 2, 3), "2020-01-02"),
        ("TIMESTAMP", datetime.date(2020, 1, 2), "2020-01-02T00:00:00"),
        ("INT64[]", (1, 2.0), [1, 2]),
        ("FLOAT[2]", [1, 2], [1.0, 2.0]),
    ],
)
def test_values_of_objects(type: str, given: object, value: object) -> None:
    assert repr(object_converter(of_text(type))(given)) == repr(value)


@pytest.mark.parametrize(
    ("type", "given"),
    [
        ("INT64", 5.5),
        ("INT8", 300),
        ("BOOL", 1),
        ("DATE", 5),
        ("DOUBLE", [1.0]),
        ("DOUBLE[]", [float("inf")]),
        ("STRING[]", "a"),
        ("FLOAT[2]", [1.0]),
    ],
)
def test_objects_without_a_value(type: str, given: object) -> None:
    with pytest.raises(ConversionError):
        object_converter(of_text(type))(given)
