"""Code, memory, facts, the graph and maintenance, against a real server."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

import isolith


def test_code_is_indexed_and_found(db: isolith.Client, project: Path) -> None:
    with pytest.raises(isolith.NoStore):
        db.code.search("anything")
    seen: list[isolith.Progress] = []
    report = db.code.index(project, progress=seen.append)
    assert (report.files.indexed, report.interrupted) == (2, False)
    assert report.path == str(project) and report.seconds.total > 0
    assert db.code.index(project).files.unchanged == 2
    hits = db.code.search("price with tax", limit=2)
    assert hits[0].path == "prices.py" and hits[0].root == str(project)
    assert len(hits) == 2 and hits.degraded is None and hits.took_ms >= 0
    matches = db.code.search("gross(", mode="exact")
    assert matches.matches is not None and matches.matches.total == 2
    assert {hit.line for hit in matches} == {6}
    assert db.code.search("Cart", kind="class")[0].path == "cart.py"
    similar = db.code.similar(project / "prices.py", line=1)
    assert [hit.path for hit in similar] == ["prices.py"] * len(similar)
    chunks = db.code.chunks(project / "prices.py", line=6)
    assert "def gross" in chunks[0].text
    assert [root.root for root in db.code.roots()] == [str(project)]
    with pytest.raises(isolith.BadInput):
        db.code.search("anything", mode="unknown")
    with pytest.raises(isolith.Error):
        db.code.index(project / "missing")


def test_only_allowed_folders_are_read(store: Path, project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    with isolith.open(store, allow=[other]) as client, pytest.raises(isolith.ForbiddenPath):
        client.code.index(project)


def test_questions_about_code(db: isolith.Client, project: Path) -> None:
    db.code.index(project)
    callers = db.graph.callers("net", depth=2)
    assert [one.qualified_name for one in callers] == ["gross", "Cart.total"]
    assert callers.symbol.id == "prices.py#net" and callers[1].depth == 2
    assert [one.name for one in db.graph.callees("Cart.total")] == ["gross"]
    path = db.graph.path("Cart.total", "net").path
    assert path is not None and path[-1].id == "prices.py#net"
    assert db.graph.path("net", "Cart.total").path is None
    assert "gross" in [one.name for one in db.graph.impact("net").impact]
    assert len(db.graph.cycles()) == 0
    assert "Cart" in [one.name for one in db.graph.unused(exported=True)]
    assert db.graph.hotspots(by="callers", limit=1)[0].count >= 1
    stats = db.graph.stats()
    assert stats.nodes > 0 and "CALLS" in [one.type for one in stats.types]
    with pytest.raises(isolith.NotFound):
        db.graph.callers("nobody_has_this_name")


def test_rows_are_imported_into_the_graph(db: isolith.Client) -> None:
    nodes = {"label": "Person", "key": "id", "existing": "refuse"}
    text = '1,Ann\n2,"Bob, the other"\n3,C'
    made = db.graph.import_csv(text, ["id:int", "name"], nodes=nodes, more=True)
    assert (made.rows, made.nodes_created, text[made.bytes :]) == (2, 2, "3,C")
    end = {"label": "Person", "key": "id"}
    knows = {"type": "KNOWS", "from": end, "to": end}
    columns = ["from:int", "to:int"]
    with pytest.raises(isolith.BadInput, match="row 12: no such node"):
        db.graph.import_csv(
            "1;2\n2;9\n", columns, relationships=knows, delimiter=";", rows_before=10
        )
    for repeated in (False, True):
        made = db.graph.import_csv(
            "1,2\n2,9\n", columns, relationships=knows, skip_bad=True, key="import"
        )
        assert (made.relationships_created, made.repeated) == (1, repeated)
        assert [row.row for row in made.rejected] == [2]
    assert db.graph.query("MATCH (:Person)-[k:KNOWS]->() RETURN count(k)").value() == 1


def test_memory(db: isolith.Client) -> None:
    assert list(db.memory.list()) == []
    day = datetime.date(2026, 1, 31)
    added = db.memory.add(
        "Deploys go out on Tuesdays.",
        wing="acme",
        room="deploys",
        author="Ada",
        date=day,
        tags=["ops"],
        metadata={"year": 2026},
    )
    assert added.created and db.memory.add(
        "Deploys go out on Tuesdays.", wing="acme", room="deploys"
    ) == isolith.api.memory.Added(added.id, False, added.id)
    drawer = db.memory.get(added.id)
    assert (drawer.author, drawer.date, drawer.tags) == ("Ada", "2026-01-31", ["ops"])
    assert drawer.metadata == {"year": 2026}
    noon = datetime.datetime(2026, 2, 1, 12, tzinfo=datetime.timezone.utc)
    db.memory.add("Ann took the train.", wing="ann", date=noon)
    hits = db.memory.search("when do we ship", wing="acme", since="2026-01-01", until=day)
    assert hits[0].id == added.id and hits[0].passage and not hits.degraded
    assert db.memory.update(added.id, author="Bob", metadata={"year": None}).changed
    assert db.memory.get(added.id).author == "Bob"
    assert db.memory.taxonomy() == {"acme": {"deploys": 1}, "ann": {"general": 1}}
    check = db.memory.duplicates("Deploys go out on Tuesdays!")
    assert check.duplicate and check.similar[0].id == added.id
    assert db.memory.delete(added.id).deleted == 1
    assert db.memory.delete(added.id).missing == 1
    with pytest.raises(isolith.NotFound):
        db.memory.get(added.id)
    db.memory.add("x", source="file.txt")
    assert db.memory.delete_source("file.txt").deleted == 1


def test_drawers_are_iterated_page_by_page(db: isolith.Client) -> None:
    for number in range(7):
        db.memory.add(f"text {number}", room="many")
    assert len(list(db.memory.list(room="many", page_size=3))) == 7
    assert len(list(db.memory.list(room="none"))) == 0


def test_diaries(db: isolith.Client) -> None:
    db.memory.write_diary("claude", "Moved the build.", topic="build", date="2026-02-01")
    db.memory.write_diary("claude", "Moved it back.", date="2026-02-02")
    entries = db.memory.read_diary("claude")
    assert [(entry.text, entry.topic) for entry in entries] == [
        ("Moved the build.", "build"),
        ("Moved it back.", None),
    ]
    assert len(db.memory.read_diary("claude", date="2026-02-01")) == 1


def test_facts(db: isolith.Client) -> None:
    added = db.facts.add("Max", "lives_in", "Berlin", valid_from="2020-01-01", agent="claude")
    assert added.created and not db.facts.add("max", "lives in", "Berlin").created
    moved = db.facts.supersede(added.id, object="Hamburg", at=datetime.date(2024, 6, 1))
    assert moved.old == added.id
    now, before = list(db.facts.query("Max", page_size=1))
    assert (now.object, now.current, before.object) == ("Hamburg", True, "Berlin")
    assert before.valid_to == "2024-06-01" and before.sources[0].agent == "claude"
    (then,) = db.facts.query("Max", as_of="2023-05-05")
    assert then.object == "Berlin"
    assert [fact.object for fact in db.facts.timeline("Max")] == ["Berlin", "Hamburg"]
    assert [fact.object for fact in db.facts.timeline("Max", as_of="2023-05-05")] == ["Berlin"]
    declared = db.facts.declare_predicate("lives_in", single_valued=True)
    assert declared.single_valued and [one.name for one in db.facts.predicates()] == ["lives_in"]
    several = db.facts.add_many(
        [
            {"subject": "Max", "predicate": "knows", "object": "Hamburg"},
            {"subject": "Max", "predicate": "lives_in", "object": "Berlin"},
        ]
    )
    assert (several.created, several.rejected_count) == (1, 1)
    assert [(one.row, one.code) for one in several.rejected] == [(1, "already_exists")]
    (knows,) = db.facts.query(text="max knows", state="current")
    assert db.facts.retract(knows.id).changed and not db.facts.retract(knows.id).changed
    (knows,) = db.facts.query("Max", state="retracted")
    assert (knows.state, knows.current, knows.retracted_at is None) == ("retracted", False, False)
    assert db.facts.stats(as_of="2023-05-05").current == 1
    ended = db.facts.invalidate(subject="Max", predicate="lives_in", at="2026-01-01")
    assert ended.changed and ended.valid_to == "2026-01-01"
    stats = db.facts.stats()
    assert (stats.facts, stats.past, stats.entities) == (2, 2, 3)
    assert [one.name for one in db.facts.entities(like="a", page_size=1)] == ["Hamburg", "Max"]
    entity = db.facts.update_entity("Max", type="person", add_aliases=["Maximilian"])
    assert (entity.type, entity.aliases) == ("person", ["Maximilian"])
    assert db.facts.entity("maximilian").name == "Max"
    assert db.facts.update_entity("Max", remove_aliases=["Maximilian"]).aliases == []
    with pytest.raises(isolith.BadInput, match="list of strings"):
        db.facts.update_entity("Max", add_aliases="Maximilian")
    with pytest.raises(isolith.AlreadyExists):
        db.facts.add("Max", "lives_in", "Berlin", valid_from="2019-01-01", valid_to="2021-01-01")


def test_cypher(db: isolith.Client) -> None:
    made = db.graph.query(
        "CREATE (a:Person {name: $name, tags: ['x']})-[k:KNOWS {since: 2019}]->(b:Person) "
        "RETURN a, k, b",
        {"name": "Ann"},
    )
    ann, knows, bob = made.rows[0]
    assert isinstance(ann, isolith.Node) and ann.properties == {"name": "Ann", "tags": ["x"]}
    assert isinstance(knows, isolith.Relationship) and knows.type == "KNOWS"
    assert (knows.start, knows.end) == (ann.id, bob.id)
    assert made.stats["nodes_created"] == 2
    path = db.graph.query("MATCH p = (:Person)-[:KNOWS]->(:Person) RETURN p").value()
    assert isinstance(path, isolith.Path)
    assert [node.id for node in path.nodes] == [ann.id, bob.id]
    assert path.relationships == [knows]
    nested = db.graph.query("MATCH (a:Person {name: 'Ann'}) RETURN [{person: a}] AS list")
    assert nested.columns == ["list"]
    assert nested.value() == [{"person": ann}]
    assert json.dumps(made.to_dict())
    assert db.graph.query("MATCH (n:Nobody) RETURN n").value() is None
    with pytest.raises(isolith.BadInput, match="RETRUN"):
        db.graph.query("MATCH (n) RETRUN n")


def test_rows_of_a_query_are_read_page_by_page(db: isolith.Client) -> None:
    db.graph.query("CREATE (:Started)")
    query = "UNWIND range(1, 25000) AS number RETURN number"
    result = db.graph.query(query)
    assert len(result) == 25000 and result[-1] == [25000]
    rows = db.graph.rows("UNWIND range(1, $n) AS number RETURN number", {"n": 25}, page_size=10)
    assert [row[0] for row in rows] == list(range(1, 26))
    assert result.to_dicts()[0] == {"number": 1}


def test_a_cypher_write_takes_effect_once(db: isolith.Client) -> None:
    for _ in range(3):
        db.graph.query("CREATE (:Once)", key="once")
    assert db.graph.query("MATCH (n:Once) RETURN count(n)").value() == 1


def test_values_of_all_types_survive(db: isolith.Client) -> None:
    values: list[Any] = [None, True, -(2**63), 2**63 - 1, 1.5, "ä\n\u2028", [1, [2]], {"a": 1}]
    db.graph.query("CREATE (:Started)")
    result = db.graph.query("RETURN $values AS values", {"values": values})
    assert result.value() == values
    with pytest.raises(isolith.BadInput):
        db.graph.query("RETURN $n", {"n": 2**63})
    with pytest.raises(isolith.BadInput):
        db.graph.query("RETURN $n", {"n": float("nan")})


def test_tables(db: isolith.Client) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    db.graph.query("CREATE (:P {n: 1, name: 'a'}), (:P {n: 2})")
    result = db.graph.query("MATCH (p:P) RETURN p.n AS n, p.name AS name ORDER BY n")
    frame = result.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["n", "name"] and frame["n"].tolist() == [1, 2]
    table = result.to_arrow()
    assert table.column_names == ["n", "name"]
    assert table.to_pylist() == [{"n": 1, "name": "a"}, {"n": 2, "name": None}]
    empty = db.graph.query("MATCH (p:None) RETURN p.n AS n")
    assert list(empty.to_pandas().columns) == ["n"] and empty.to_arrow().column_names == ["n"]
    db.memory.add("text")
    assert db.memory.search("text").to_pandas()["text"].tolist() == ["text"]


def test_a_missing_library_is_named(db: isolith.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    db.graph.query("CREATE (:P)")
    result = db.graph.query("RETURN 1")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        result.to_pandas()


def test_maintenance(db: isolith.Client) -> None:
    assert db.status().ok and db.status().stores == []
    db.memory.add("text")
    (store,) = db.status().stores
    assert store.drawers == 1 and store.error is None and store.workers[0].role
    report = db.doctor()
    assert report.ok and report.stores[0].checks
    assert db.doctor(full=True, repair=True).ok
    assert db.reconnect()
    jobs = db.jobs.list()
    assert {job.operation for job in jobs} == {"repair"}
    assert db.jobs.get(jobs[0].id, wait=1).state == "succeeded"
    assert db.jobs.cancel(jobs[0].id).state == "succeeded"
    with pytest.raises(isolith.NotFound):
        db.jobs.get(jobs[0].id)


def test_text_that_is_not_unicode_is_refused(db: isolith.Client) -> None:
    for text in ("\ud800", "a\udfffb"):
        with pytest.raises(isolith.BadInput, match="UTF-8"):
            db.memory.add(text)
        with pytest.raises(isolith.BadInput, match="UTF-8"):
            db.memory.get(text)
        with pytest.raises(isolith.BadInput, match="UTF-8"):
            list(db.facts.query(text))
        with pytest.raises(isolith.BadInput, match="UTF-8"):
            db.graph.query("RETURN $a", {"a": [text]})
    strange = "\x00 \x7f \u202e 👍🏽 \uffff"
    assert db.memory.get(db.memory.add("text " + strange).id).text == "text " + strange


def test_unknown_fields_of_a_newer_server_are_ignored() -> None:
    data = {"id": "a", "wing": "w", "room": "r", "text": "t", "mood": {"new": True}}
    drawer = isolith.Drawer.from_json(data)
    assert drawer.text == "t" and "mood" not in drawer.to_dict()
