"""Servers, workers and processes that die while clients of Chroma use them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import isolith
from isolith import chroma
from support import is_alive, processes_with, wait_until

pytest.importorskip("chromadb", reason="needs chromadb-client or chromadb")


@pytest.fixture
def client(store: Path) -> Iterator[Any]:
    with chroma.PersistentClient(store) as client:
        yield client


def lease(client: Any) -> Any:
    return client._end.peek()[2][1]


def kill_server(client: Any) -> None:
    server = lease(client).server
    pid = server.process_id
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not is_alive(pid))


def test_the_next_request_starts_another_server(client: Any, store: Path) -> None:
    collection = client.get_or_create_collection("notes", embedding_function=None)
    collection.add(ids=["a"], embeddings=[[1, 0]])
    first = lease(client).server.process_id
    kill_server(client)
    assert collection.count() == 1
    second = lease(client).server.process_id
    assert second != first
    kill_server(client)
    client.set_database("default_database")
    kill_server(client)
    collection.add(ids=["b"], embeddings=[[0, 1]])
    kill_server(client)
    with chroma.PersistentClient(store) as other:
        assert other.get_collection("notes", embedding_function=None).count() == 2
        assert lease(other).server is lease(client).server


def test_an_ephemeral_store_survives_its_server() -> None:
    with chroma.EphemeralClient() as client:
        collection = client.create_collection("notes", embedding_function=None)
        collection.add(ids=["a"], embeddings=[[1, 0]])
        kill_server(client)
        assert collection.count() == 1


def wait_for_writes(written: list[str], problems: list[BaseException]) -> None:
    enough = len(written) + 300
    assert wait_until(lambda: len(written) > enough or bool(problems), 10)


def test_servers_killed_during_requests_lose_nothing(client: Any) -> None:
    collection = client.get_or_create_collection("notes", embedding_function=None)
    collection.add(ids=["start"], embeddings=[[0.5] * 16])
    stop = threading.Event()
    problems: list[BaseException] = []
    written: list[str] = []

    def write(name: str) -> None:
        batch = 0
        try:
            while not stop.is_set():
                ids = [f"{name}-{batch}-{row}" for row in range(50)]
                collection.upsert(ids=ids, embeddings=[[random.random()] * 16 for _ in ids])
                written.extend(ids)
                assert len(collection.get(ids=ids, include=[])["ids"]) == len(ids)
                batch += 1
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=write, args=(f"writer{n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    kills = 0
    for _ in range(5):
        wait_for_writes(written, problems)
        with suppress(ProcessLookupError, TypeError):
            os.kill(lease(client).server.process_id, signal.SIGKILL)
            kills += 1
    stop.set()
    for thread in threads:
        thread.join()
    assert not problems, problems
    assert kills >= 3
    assert collection.count() == len(set(written)) + 1
    assert len(written) == len(set(written))


def test_killed_workers_lose_nothing(client: Any, store: Path) -> None:
    collection = client.get_or_create_collection("notes", embedding_function=None)
    killed = 0
    with isolith.open(store) as db:
        for batch in range(10):
            ids = [f"{batch}-{row}" for row in range(100)]
            collection.add(ids=ids, embeddings=[[float(row + 1), 1.0] for row in range(100)])
            for one in db.status().stores:
                for worker in one.workers:
                    if worker.pid and worker.role.startswith("store-"):
                        with suppress(ProcessLookupError):
                            os.kill(worker.pid, signal.SIGKILL)
                            killed += 1
            assert collection.query(query_embeddings=[[1.0, 1.0]], n_results=1)["ids"]
    assert killed
    assert collection.count() == 1000


def test_a_forked_child_has_connections_of_its_own(client: Any) -> None:
    collection = client.get_or_create_collection("notes", embedding_function=None)
    collection.add(ids=["parent"], embeddings=[[1, 0]])
    children = []
    for number in range(3):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                for row in range(20):
                    collection.add(ids=[f"{number}-{row}"], embeddings=[[0, 1]])
                status = 0
            finally:
                os._exit(status)
        children.append(pid)
    for row in range(20):
        collection.add(ids=[f"parent-{row}"], embeddings=[[1, 0]])
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0, 0, 0]
    assert collection.count() == 81


PROGRAM = """
import sys, threading
from isolith import chroma

client = chroma.PersistentClient(sys.argv[1])
temporary = chroma.EphemeralClient()
collection = client.get_or_create_collection("notes", embedding_function=None)
for row in range(int(sys.argv[2])):
    collection.add(ids=[f"{sys.argv[3]}-{row}"], embeddings=[[row + 1.0, 1.0]])
print("done", flush=True)
if sys.argv[3] == "killed":
    threading.Event().wait()
"""


def program(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_share_a_store(store: Path) -> None:
    programs = [program(store, 50, name) for name in ("a", "b")]
    assert [one.communicate(timeout=40)[0] for one in programs] == ["done\n"] * 2
    assert [one.returncode for one in programs] == [0, 0]
    with chroma.PersistentClient(store) as client:
        assert client.get_collection("notes", embedding_function=None).count() == 100


def test_a_killed_process_leaves_nothing_running(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The next server that starts there would clean it up.
    with tempfile.TemporaryDirectory(prefix="ipk-", dir="/tmp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        process = program(store, 1, "killed")
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
        process.kill()
        process.wait()
        process.stdout.close()
        monkeypatch.undo()

        def servers() -> list[int]:
            return [*processes_with(str(store)), *processes_with(folder)]

        assert wait_until(lambda: not servers(), 10), servers()
