"""Processes that die while files are loaded."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import isolith
from isolith.pipeline import IsolatedChromaDBWorker
from pipeline.pipeline_files import is_exact, killing, ready
from support import is_alive, wait_until

ROWS = range(30_000)


def server_of(worker: IsolatedChromaDBWorker) -> int:
    assert worker._kept is not None
    pid: int | None = worker._kept._transport.server.process_id  # type: ignore[union-attr]
    assert pid is not None
    return pid


def count_in(db: isolith.Client) -> int:
    try:
        return db.collection("rag_documents").count()
    except isolith.NotFound:
        return 0


def test_killed_workers_lose_nothing(store: Path, tmp_path: Path) -> None:
    file = ready(tmp_path / "ready.json", ROWS)
    with IsolatedChromaDBWorker(persist_directory=store) as worker:
        with killing(store, "store-writer", "intake", limit=6) as killer:
            results = [worker.ingest_from_chromadb_ready_file(file)]
            while not results[-1]["success"] and len(results) < 5:
                assert results[-1]["graceful_recovery"], results
                results.append(worker.ingest_from_chromadb_ready_file(file))
        assert killer.kills
        assert results[-1]["success"], results
        assert results[-1]["stats"]["document_count"] == len(ROWS)
        assert worker.ingest_from_chromadb_ready_file(file)["stats"]["unchanged"] == len(ROWS)
    assert is_exact(store, ROWS)


def test_a_killed_server_loses_nothing(store: Path, tmp_path: Path) -> None:
    file = ready(tmp_path / "ready.json", ROWS)
    with IsolatedChromaDBWorker(persist_directory=store) as worker, isolith.open(store) as db:
        small = ready(tmp_path / "small.json", range(1))
        assert worker.ingest_from_chromadb_ready_file(small)["success"]
        pid = server_of(worker)
        counts: list[int] = []

        def kill() -> None:
            while count_in(db) < 1000:
                pass
            os.kill(pid, signal.SIGKILL)
            counts.append(count_in(db))

        killer = threading.Thread(target=kill)
        killer.start()
        result = worker.ingest_from_chromadb_ready_file(file)
        killer.join()
        assert result["success"], result
        assert server_of(worker) != pid
        assert counts[0] < len(ROWS), "the server was killed too late"
        assert result["stats"]["document_count"] == len(ROWS)
    assert is_exact(store, ROWS)


def test_a_segmentation_fault_is_reported(store: Path, tmp_path: Path) -> None:
    file = ready(tmp_path / "ready.json", range(100_000))
    with IsolatedChromaDBWorker(persist_directory=store) as worker:
        # On a busy machine a load may end before one of its jobs was hit often enough, or it is
        # refused for a moment, because workers died too often.
        results: list[dict[str, Any]] = []

        def has_crashed() -> bool:
            collection = f"documents_{len(results)}"
            with killing(store, "intake", number=signal.SIGSEGV, limit=1000):
                results.append(worker.ingest_from_chromadb_ready_file(file, collection))
            return results[-1].get("error_type") in ("Quarantined", "WorkerCrashed")

        assert wait_until(has_crashed, 60), results
        result = results[-1]
        assert result["segmentation_fault"] is True
        assert result["exit_code"] == -signal.SIGSEGV
        assert result["graceful_recovery"] is True
        other = ready(tmp_path / "other.json", range(10))
        assert worker.ingest_from_chromadb_ready_file(other, "others")["success"]


def test_a_load_that_takes_too_long_is_continued(store: Path, tmp_path: Path) -> None:
    rows = range(100_000)
    file = ready(tmp_path / "ready.json", rows)
    with IsolatedChromaDBWorker(persist_directory=store) as worker:
        small = ready(tmp_path / "small.json", range(1))
        assert worker.ingest_from_chromadb_ready_file(small)["success"]
        worker.timeout = 0.3
        result = worker.ingest_from_chromadb_ready_file(file)
        assert result["timeout"] is True, result
        assert result["error_type"] == "Timeout"
        assert result["graceful_recovery"] is True
        assert 0 < result["stats"]["document_count"] < len(rows)
        worker.timeout = 60
        result = worker.ingest_from_chromadb_ready_file(file)
        assert result["success"]
        assert result["stats"]["document_count"] == len(rows)
    assert is_exact(store, rows)


@pytest.fixture
def private_tmpdir() -> Iterator[str]:
    """For processes that are killed: the next server that starts there would clean it up."""
    folder = tempfile.mkdtemp(prefix="ipk-", dir="/tmp")
    yield folder
    shutil.rmtree(folder)


PROGRAM = """
import json, sys
from isolith.pipeline import IsolatedChromaDBWorker

with IsolatedChromaDBWorker(persist_directory=sys.argv[1]) as worker:
    for result in worker.ingest_files(sys.argv[2:]):
        print(json.dumps(result), flush=True)
"""


def program(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_two_processes_on_one_store(store: Path, tmp_path: Path) -> None:
    files = [
        ready(tmp_path / f"{part}.json", range(part * 1000, part * 1000 + 2000))
        for part in range(8)
    ]
    programs = [program(store, *files), program(store, *reversed(files))]
    outputs = [one.communicate(timeout=50)[0] for one in programs]
    assert [one.returncode for one in programs] == [0, 0]
    assert sum(output.count('"success": true') for output in outputs) == 16
    assert is_exact(store, range(9000))


def test_a_killed_process_leaves_nothing_running(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private_tmpdir: str
) -> None:
    monkeypatch.setenv("TMPDIR", private_tmpdir)
    files = [ready(tmp_path / f"{part}.json", ROWS) for part in range(3)]
    process = program(store, *files)
    assert process.stdout is not None
    with isolith.open(store) as db:
        assert wait_until(lambda: count_in(db) > 0, 20)
        own = db._transport.server.process_id  # type: ignore[union-attr]
        others = [
            one.pid for status in db.status().stores for one in status.processes if one.pid != own
        ]
        assert others
        process.kill()
        process.wait()
        process.stdout.close()
        assert wait_until(lambda: not any(is_alive(pid) for pid in others), 10)
    with IsolatedChromaDBWorker(persist_directory=store) as worker:
        assert worker.ingest_from_chromadb_ready_file(files[0])["success"]
    assert is_exact(store, ROWS)
