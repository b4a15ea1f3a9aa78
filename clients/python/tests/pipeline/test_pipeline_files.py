"""Loading files: results, repetition, and files that cannot be loaded."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Callable

import pytest

import isolith
from isolith import _pipeline
from isolith.pipeline import IsolatedChromaDBWorker, get_isolated_chromadb_worker
from pipeline.pipeline_files import DIMENSION, ids_in, is_exact, ready

SUCCESS = {"success", "processing_time", "embeddings_file_path", "stats", "worker_pid"}
FAILURE = SUCCESS | {
    "error",
    "error_type",
    "error_code",
    "segmentation_fault",
    "exit_code",
    "timeout",
    "graceful_recovery",
}


@pytest.fixture
def worker(store: Path) -> Iterator[IsolatedChromaDBWorker]:
    with IsolatedChromaDBWorker(persist_directory=store) as worker:
        yield worker


def test_a_result_has_the_counts_of_the_server(
    worker: IsolatedChromaDBWorker, store: Path, tmp_path: Path
) -> None:
    file = ready(tmp_path / "ready.json", range(500))
    result = worker.ingest_from_chromadb_ready_file(str(file))
    assert set(result) == SUCCESS
    assert result["success"] is True
    assert result["processing_time"] > 0
    stats = result["stats"]
    assert stats["collection_name"] == "rag_documents"
    assert stats["document_count"] == stats["rows"] == stats["inserted"] == 500
    assert stats["persist_directory"] == str(store)
    assert stats["created_at"].startswith("20")
    assert stats["worker_pid"] == result["worker_pid"] != os.getpid()
    assert is_exact(store, range(500))


def test_the_same_file_again_changes_nothing(
    worker: IsolatedChromaDBWorker, store: Path, tmp_path: Path
) -> None:
    file = ready(tmp_path / "ready.json", range(500))
    first = worker.ingest_from_chromadb_ready_file(file)
    again = worker.ingest_from_chromadb_ready_file(file)
    assert again["success"]
    assert again["stats"]["unchanged"] == 500
    assert again["stats"]["inserted"] == again["stats"]["updated"] == 0
    assert again["stats"]["created_at"] == first["stats"]["created_at"]
    assert is_exact(store, range(500))


def test_a_collection_is_that_of_chroma(worker: IsolatedChromaDBWorker, tmp_path: Path) -> None:
    file = ready(tmp_path / "ready.json", range(5))
    result = worker.ingest_from_chromadb_ready_file(file, "others")
    assert result["stats"]["collection_name"] == "others"
    with isolith.open(worker.persist_directory) as db:
        assert db.collection("others").info().metric == "l2"


def test_a_collection_that_exists_keeps_its_metric(store: Path, tmp_path: Path) -> None:
    with isolith.open(store) as db:
        db.create_collection("rag_documents", metric="cosine")
        with IsolatedChromaDBWorker(persist_directory=store) as worker:
            file = ready(tmp_path / "ready.json", range(5))
            result = worker.ingest_from_chromadb_ready_file(file)
        assert result["success"]
        assert result["stats"]["created_at"] is None
        assert db.collection("rag_documents").info().metric == "cosine"


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-2000])


def with_nan(file: Path) -> None:
    file.write_text(file.read_text().replace("7.5", "NaN", 1))


def with_another_dimension(file: Path) -> None:
    ready(file, range(100), dimension=DIMENSION + 1)


def on_one_line(file: Path) -> None:
    with open(file, "wb") as output:
        output.write(b'{"chromadb_ready":{"ids":["a"],"embeddings":[[1]],"documents":["')
        for _ in range(100):
            output.write(b"x" * (1 << 20))
        output.write(b'"],"metadatas":[null]}}')


def without_lists(file: Path) -> None:
    file.write_text('{"chromadb_ready": {"ids": ["a"], "embeddings": [[1], [2]]}}')


def empty(file: Path) -> None:
    file.write_bytes(b"")


def binary(file: Path) -> None:
    file.write_bytes(bytes(range(256)) * 100)


def missing(file: Path) -> None:
    file.unlink()


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def a_link_to_nothing(file: Path) -> None:
    file.unlink()
    file.symlink_to("nothing")


def unreadable(file: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root can read every file")
    file.chmod(0)


@pytest.mark.parametrize(
    "damage",
    [
        truncated,
        with_nan,
        with_another_dimension,
        on_one_line,
        without_lists,
        empty,
        binary,
        missing,
        a_folder,
        a_pipe,
        a_link_to_nothing,
        unreadable,
    ],
)
def test_nothing_of_a_bad_file_is_stored(
    worker: IsolatedChromaDBWorker, store: Path, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    good = ready(tmp_path / "good.json", range(10))
    assert worker.ingest_from_chromadb_ready_file(good)["success"]
    bad = ready(tmp_path / "bad.json", range(100))
    damage(bad)
    result = worker.ingest_from_chromadb_ready_file(bad)
    assert set(result) == FAILURE
    assert result["success"] is False
    assert str(bad) in result["error"]
    assert result["error_type"] in ("BadInput", "NotFound", "TooLarge"), result
    assert result["stats"]["document_count"] == 10
    assert not (result["timeout"] or result["segmentation_fault"] or result["graceful_recovery"])
    assert is_exact(store, range(10))
    assert worker.ingest_from_chromadb_ready_file(good)["success"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_an_unreadable_file_is_refused_for_root(tmp_path: Path) -> None:
    file = ready(tmp_path / "ready.json", range(5))
    os.seteuid(65534)
    try:
        with pytest.raises(isolith.BadInput, match="Permission denied"):
            _pipeline.checked_file(file)
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("argument", [None, 7, "", "a\0b", b"\xff"])
def test_nothing_is_raised_for_what_is_no_path(
    worker: IsolatedChromaDBWorker, argument: Any
) -> None:
    result = worker.ingest_from_chromadb_ready_file(argument)
    assert result["success"] is False
    assert result["error"]
    assert result["stats"]["document_count"] is None


def test_a_bad_name_is_refused(worker: IsolatedChromaDBWorker, tmp_path: Path) -> None:
    file = ready(tmp_path / "ready.json", range(5))
    result = worker.ingest_from_chromadb_ready_file(file, "?")
    assert result["error_type"] == "BadInput"
    assert result["error"].startswith("Validation error: name")


def test_a_file_that_is_missing_creates_no_collection(
    worker: IsolatedChromaDBWorker, tmp_path: Path
) -> None:
    worker.ingest_from_chromadb_ready_file(tmp_path / "missing.json")
    with isolith.open(worker.persist_directory) as db:
        assert db.collections() == []


def test_a_batch_of_files(worker: IsolatedChromaDBWorker, store: Path, tmp_path: Path) -> None:
    files = [
        ready(tmp_path / f"{part}.json", range(part * 100, part * 100 + 100)) for part in range(10)
    ]
    truncated(files[3])
    taken: list[Path] = []

    def source() -> Iterator[Path]:
        for file in [*files, *files]:
            taken.append(file)
            yield file

    results = worker.ingest_files(source(), threads=3)
    first = next(results)
    assert len(taken) <= 4
    done = [first, *results]
    assert len(done) == 20
    failed = [one["embeddings_file_path"] for one in done if not one["success"]]
    assert failed == [str(files[3])] * 2
    assert len(ids_in(store)) == 900
    counts = [one["stats"] for one in done if one["success"]]
    assert sum(one["inserted"] for one in counts) == 900
    assert sum(one["unchanged"] for one in counts) == 900


def test_a_batch_that_is_given_up(worker: IsolatedChromaDBWorker, tmp_path: Path) -> None:
    files = [ready(tmp_path / f"{part}.json", range(5)) for part in range(10)]
    results = worker.ingest_files(files, threads=2)
    assert next(results)["success"]
    results.close()  # type: ignore[attr-defined]


def test_a_folder_of_chroma_is_not_touched(tmp_path: Path) -> None:
    old = tmp_path / "chroma"
    old.mkdir()
    (old / "chroma.sqlite3").write_bytes(b"SQLite format 3\0")
    file = ready(tmp_path / "ready.json", range(5))
    with IsolatedChromaDBWorker(persist_directory=old) as worker:
        result = worker.ingest_from_chromadb_ready_file(file)
    assert "holds a database of Chroma" in result["error"]
    assert [path.name for path in old.iterdir()] == ["chroma.sqlite3"]


@pytest.mark.parametrize("arguments", [{"timeout": 0}, {"timeout": "1"}, {"space": "dot"}])
def test_bad_arguments_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(isolith.BadInput):
        IsolatedChromaDBWorker(**arguments)


def test_threads_are_limited() -> None:
    with pytest.raises(isolith.BadInput):
        IsolatedChromaDBWorker().ingest_files([], threads=9)


def test_the_default_store(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert IsolatedChromaDBWorker().persist_directory == str(tmp_path / "data" / "isolith")
    monkeypatch.setenv("ISOLITH_STORE", str(store))
    assert IsolatedChromaDBWorker().persist_directory == str(store)
    assert get_isolated_chromadb_worker() is get_isolated_chromadb_worker()


def test_a_program_that_is_missing(tmp_path: Path) -> None:
    file = ready(tmp_path / "ready.json", range(5))
    with IsolatedChromaDBWorker(binary=tmp_path / "nothing") as worker:
        result = worker.ingest_from_chromadb_ready_file(file)
    assert result["error_type"] == "StartFailed"
    assert result["graceful_recovery"] is False
