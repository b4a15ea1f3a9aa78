"""Collections: records with vectors, documents and metadata."""

from __future__ import annotations

import json
import math
import os
import threading
from array import array
from pathlib import Path
from typing import Any

import pytest

import isolith
from isolith._batches import MAX_RECORDS

RECORDS: list[dict[str, Any]] = [
    {
        "id": "fox",
        "document": "The quick brown fox jumps over the fence.",
        "vector": [0.9, 0.1, 0.1],
        "metadata": {"kind": "animal", "year": 2021},
    },
    {
        "id": "dog",
        "document": "The lazy dog sleeps in the sun.",
        "vector": [0.1, 0.9, 0.2],
        "metadata": {"kind": "animal", "year": 2022},
    },
    {
        "id": "oak",
        "document": "An oak grows slowly.",
        "vector": [0.1, 0.2, 0.9],
        "metadata": {"kind": "plant", "year": 2020},
    },
]


@pytest.fixture
def notes(db: isolith.Client) -> isolith.Collection:
    """A collection of three records."""
    notes = db.create_collection("notes", dimension=3)
    stored = notes.add(RECORDS)
    assert stored == isolith.Stored(inserted=3, updated=0, unchanged=0, count=3)
    return notes


def test_a_collection_is_created_once(db: isolith.Client) -> None:
    db.create_collection("a", dimension=2, metric="dot", model="mine")
    with pytest.raises(isolith.AlreadyExists):
        db.create_collection("a", dimension=2)
    assert db.get_or_create("a", dimension=2, metric="dot", model="mine").count() == 0
    with pytest.raises(isolith.Error):
        db.get_or_create("a", dimension=3)
    info = db.collection("a").info()
    assert (info.name, info.dimension, info.metric, info.model) == ("a", 2, "dot", "mine")
    assert db.collections() == [info]


def test_adding_creates_the_collection(db: isolith.Client) -> None:
    new = db.collection("new")
    with pytest.raises(isolith.NotFound) as caught:
        new.count()
    assert caught.value.status == 404
    new.add(ids=["a", "b"], vectors=[[1, 2], [3, 4]], documents=["one", None])
    assert new.info().dimension == 2
    assert [record.document for record in new.get(["b", "a"])] == [None, "one"]


def test_records_are_added_replaced_and_refused(notes: isolith.Collection) -> None:
    assert notes.add(RECORDS).unchanged == 3
    changed = {**RECORDS[0], "document": "Another fox."}
    with pytest.raises(isolith.AlreadyExists):
        notes.add([changed])
    assert notes.upsert([changed]).updated == 1
    assert notes.get_one("fox").document == "Another fox."


def test_records_are_read(notes: isolith.Collection) -> None:
    fox = notes.get_one("fox")
    assert isinstance(fox.vector, array)
    assert fox.vector.tolist() == pytest.approx([0.9, 0.1, 0.1])
    assert fox.metadata == {"kind": "animal", "year": 2021}
    found = notes.get(["oak", "nobody", "fox"])
    assert [record.id for record in found] == ["oak", "fox"]
    assert found[0].vector is None
    assert notes.get(["oak"], vectors=True)[0].vector == array("f", [0.1, 0.2, 0.9])
    assert [one.id for one in notes.get(where={"year": {"$gte": 2021}})] == ["fox", "dog"]
    assert [one.id for one in notes.get(where_document={"$contains": "oak"})] == ["oak"]
    assert [one.id for one in notes.get(sort="year", limit=2)] == ["oak", "fox"]
    assert [one.id for one in notes.get(sort="year", descending=True, offset=2)] == ["oak"]
    with pytest.raises(isolith.NotFound):
        notes.get_one("nobody")
    assert json.dumps(fox.to_dict())


def test_all_records_are_iterated_page_by_page(db: isolith.Client) -> None:
    many = db.collection("many")
    many.add(ids=[str(n) for n in range(25)], vectors=[[float(n), 1.0] for n in range(25)])
    assert [record.id for record in many.records(page_size=10)] == [str(n) for n in range(25)]
    assert len(list(many.records(page_size=25))) == 25
    assert len(many.get([str(n) for n in range(25)])) == 25
    assert next(many.records(vectors=True)).vector == array("f", [0.0, 1.0])


def test_records_are_found(notes: isolith.Collection) -> None:
    hits = notes.query(vector=[0.1, 0.9, 0.2], limit=2)
    assert [hit.id for hit in hits] == ["dog", "oak"]
    assert len(hits) == 2 and hits[0].distance == pytest.approx(0, abs=1e-5)
    assert hits.degraded is None
    assert hits[0].document == "The lazy dog sleeps in the sun."
    keywords = notes.query(keywords="quick fox", where={"kind": "animal"})
    assert keywords[0].id == "fox" and keywords[0].score is not None
    both = notes.query(vector=[0.1, 0.9, 0.2], keywords="oak")
    assert both[0].fused is not None and both[0].why
    with pytest.raises(isolith.BadInput):
        notes.query()
    with pytest.raises(isolith.ModelUnavailable):
        notes.query(text="sleepy animals")


def test_documents_are_embedded_by_the_server(db: isolith.Client) -> None:
    texts = db.create_collection("texts", model="built-in")
    texts.add(ids=["a", "b"], documents=["how to roast coffee", "a garden in summer"])
    assert texts.query(text="making espresso")[0].id == "a"
    with pytest.raises(isolith.ModelMismatch):
        texts.add(ids=["c"], vectors=[[1.0, 2.0]])


def test_records_are_changed(notes: isolith.Collection) -> None:
    changed = notes.update(
        [
            {"id": "fox", "metadata": {"year": 2024, "kind": None}},
            {"id": "dog", "document": None},
            {"id": "nobody", "document": "x"},
        ]
    )
    assert (changed.updated, changed.unchanged, changed.missing) == (2, 0, 1)
    assert notes.get_one("fox").metadata == {"year": 2024}
    assert notes.get_one("dog").document is None
    notes.update(ids=["oak"], vectors=[[1.0, 0.0, 0.0]])
    assert notes.get_one("oak").vector == array("f", [1.0, 0.0, 0.0])


def test_records_are_deleted(notes: isolith.Collection) -> None:
    assert notes.delete(["fox", "nobody"]) == isolith.Deleted(deleted=1, missing=1)
    assert notes.delete(where={"kind": "plant"}).deleted == 1
    assert notes.delete_one("dog").deleted == 1
    assert notes.count() == 0
    assert notes.drop() == 0
    with pytest.raises(isolith.NotFound):
        notes.drop()


def test_values_are_counted(notes: isolith.Collection) -> None:
    values = notes.values("kind")
    assert [(one.value, one.count) for one in values] == [("animal", 2), ("plant", 1)]
    assert values.total == 2
    assert len(notes.values("year", where={"kind": "animal"}, limit=1)) == 1


def test_a_collection_is_renamed(notes: isolith.Collection, db: isolith.Client) -> None:
    assert notes.rename("renamed").name == "renamed"
    assert notes.name == "renamed"
    assert notes.count() == 3
    assert [one.name for one in db.collections()] == ["renamed"]


@pytest.mark.parametrize("name", ["a/b", "ä ö", "100 %", "a?b#c", "日本", "..x"])
def test_names_and_ids_can_have_any_characters(db: isolith.Client, name: str) -> None:
    odd = db.create_collection(name)
    odd.upsert([{"id": name, "vector": [1.0], "metadata": {name: name}}])
    assert odd.get_one(name).metadata == {name: name}
    assert odd.values(name)[0].value == name
    assert odd.delete_one(name).deleted == 1


def test_large_uploads_are_split(db: isolith.Client) -> None:
    many = db.collection("many")
    count = 2 * MAX_RECORDS + 500
    ids = [f"record {number}" for number in range(count)]
    vectors = [[float(number % 97), 1.0, 2.0, 3.0] for number in range(count)]
    stored = many.add(ids=ids, vectors=vectors)
    assert (stored.inserted, stored.count) == (count, count)
    assert many.upsert(ids=ids[:10], vectors=vectors[:10]).unchanged == 10
    assert len(many.get(ids[:2500])) == 2500
    assert many.delete(ids[: MAX_RECORDS + 1]).deleted == MAX_RECORDS + 1
    assert many.count() == count - MAX_RECORDS - 1


def test_large_documents_are_split_by_size(db: isolith.Client) -> None:
    big = db.collection("big")
    records = ({"id": str(n), "vector": [1.0], "document": "text " * 100_000} for n in range(24))
    assert big.add(records).inserted == 24
    with pytest.raises(isolith.TooLarge):
        big.add([{"id": "too large", "vector": [1.0], "document": "x" * (5 << 20)}])
    assert big.count() == 24


def test_a_key_makes_a_write_take_effect_once(db: isolith.Client) -> None:
    once = db.collection("once")
    first = once.upsert([{"id": "a", "vector": [1.0]}], key="upload-1")
    assert first.inserted == 1
    assert once.upsert([{"id": "a", "vector": [1.0]}], key="upload-1") == first
    with pytest.raises(isolith.KeyReused):
        once.upsert([{"id": "b", "vector": [1.0]}], key="upload-1")
    with pytest.raises(isolith.BadInput):
        once.upsert([{"id": "b", "vector": [1.0]}], key="with spaces")


def test_invalid_vectors_are_refused(notes: isolith.Collection) -> None:
    for vector in ([1.0, math.nan, 0.0], [math.inf, 0.0, 0.0], [1e39, 0.0, 0.0], [1.0, 2.0]):
        with pytest.raises(isolith.BadInput):
            notes.add([{"id": "bad", "vector": vector}])
        with pytest.raises(isolith.BadInput):
            notes.query(vector=vector)
    invalid: list[Any] = ["text", b"bytes", 5, [[1.0, 2.0, 3.0]], ["a", "b", "c"], {"a": 1}]
    for vector in invalid:
        with pytest.raises(isolith.BadInput):
            notes.add([{"id": "bad", "vector": vector}])
    assert notes.count() == 3


def test_invalid_records_are_refused(notes: isolith.Collection) -> None:
    invalid: list[Any] = [
        [{"id": "bad", "vectors": [1.0, 2.0, 3.0]}],
        ["text"],
        "text",
        {"id": "bad"},
        [{"id": "bad", "vector": [1.0, 2.0, 3.0], "metadata": {"a": math.nan}}],
        [{"id": "bad", "vector": [1.0, 2.0, 3.0], "metadata": {"a": object()}}],
        [{"id": "bad", "vector": [1.0, 2.0, 3.0], "document": "\ud800"}],
        [{"id": 5, "vector": [1.0, 2.0, 3.0]}],
    ]
    for records in invalid:
        with pytest.raises(isolith.BadInput):
            notes.add(records)
    with pytest.raises(isolith.BadInput):
        notes.add(RECORDS, ids=["a"])
    with pytest.raises(isolith.BadInput):
        notes.add(ids=["a", "b"], vectors=[[1.0, 2.0, 3.0]])
    with pytest.raises(isolith.BadInput):
        notes.add()
    with pytest.raises(isolith.BadInput):
        notes.get("fox")
    assert notes.count() == 3
    # Nothing to do is no error.
    assert notes.add([]) == isolith.Stored(0, 0, 0, 0)
    assert notes.get([]) == []


def test_vectors_of_numpy(notes: isolith.Collection) -> None:
    numpy = pytest.importorskip("numpy")
    matrix = numpy.array([[1, 0, 0], [0, 1, 0]], dtype=numpy.float64)
    notes.add(ids=["x", "y"], vectors=matrix)
    notes.add([{"id": "z", "vector": numpy.asfortranarray(matrix)[1][::1]}])
    notes.upsert(ids=["w"], vectors=numpy.array([[2, 3, 4]], dtype=numpy.int32))
    hit = notes.query(vector=matrix[0], limit=1)[0]
    assert hit.id == "x"
    vector = notes.get_one("w").vector
    assert numpy.frombuffer(vector, dtype=numpy.float32).tolist() == [2.0, 3.0, 4.0]
    with pytest.raises(isolith.BadInput, match="one dimension"):
        notes.query(vector=matrix)
    assert notes.upsert([{"id": "m", "vector": matrix[0], "metadata": {"n": numpy.int64(7)}}])
    assert notes.get_one("m").metadata == {"n": 7}


def test_a_file_is_loaded(db: isolith.Client, tmp_path: Path) -> None:
    rows = [{"id": str(n), "embedding": [n, 1.0], "document": f"row {n}"} for n in range(3000)]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    seen: list[isolith.Progress] = []
    receipt = db.collection("loaded").ingest(file, progress=seen.append)
    assert (receipt.rows, receipt.inserted, receipt.count_after) == (3000, 3000, 3000)
    assert all(0 <= step.fraction <= 1 for step in seen)
    assert db.collection("loaded").ingest(file).unchanged == 3000
    file.write_text('{"id": "ok", "embedding": [1, 2]}\n{"id": "bad", "embedding": ["x", 2]}\n')
    with pytest.raises(isolith.BadInput):
        db.collection("loaded").ingest(file)
    receipt = db.collection("loaded").ingest(file, skip_bad=True)
    assert (receipt.inserted, receipt.rejected_rows, receipt.rejected[0].row) == (1, 1, 2)
    with pytest.raises(isolith.Error):
        db.collection("loaded").ingest(tmp_path / "missing.jsonl")


def test_an_exception_in_a_progress_callback_cancels_the_job(
    db: isolith.Client, tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    with file.open("w") as rows:
        for number in range(60_000):
            rows.write(json.dumps({"id": str(number), "embedding": [number + 1] * 32}) + "\n")

    class Stop(Exception):
        pass

    def stop(progress: isolith.Progress) -> None:
        raise Stop

    with pytest.raises(Stop):
        db.collection("loaded").ingest(file, progress=stop)
    assert all(job.state != "running" for job in db.jobs.list()) or _cancelled(db)


def _cancelled(db: isolith.Client) -> bool:
    from support import wait_until

    return wait_until(lambda: all(job.state != "running" for job in db.jobs.list()))


def test_relative_paths_are_those_of_this_process(
    db: isolith.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "rows.jsonl").write_text('{"id": "a", "embedding": [1, 2]}\n')
    monkeypatch.chdir(elsewhere)
    assert db.collection("loaded").ingest("rows.jsonl").inserted == 1


def test_writes_and_reads_of_many_threads_are_consistent(db: isolith.Client) -> None:
    counted = db.collection("counted")
    keys = [os.urandom(8).hex() for _ in range(4)]

    def write(key: str) -> None:
        for _ in range(5):
            counted.upsert([{"id": key, "vector": [1.0]}], key=key)

    threads = [threading.Thread(target=write, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted.count() == 4
