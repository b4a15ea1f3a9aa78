"""Files of ready embeddings, and faults, for the tests of the pipeline."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import isolith

DIMENSION = 8


def ready(path: Path, numbers: range, dimension: int = DIMENSION, text: str = "text") -> Path:
    """Writes a file with a record for each number."""
    tail = ",".join(["0.25"] * (dimension - 1))
    ids = ",".join(f'"chunk-{number}"' for number in numbers)
    vectors = ",".join(f"[{number % 1000}.5,{tail}]" for number in numbers)
    metadatas = ",".join(f'{{"number":{number}}}' for number in numbers)
    documents = ",".join(f'"{text} {number}"' for number in numbers)
    path.write_text(
        f'{{"chromadb_ready":{{"ids":[{ids}],"embeddings":[{vectors}],'
        f'"metadatas":[{metadatas}],"documents":[{documents}]}}}}'
    )
    return path


def ids_in(store: str | Path, collection: str = "rag_documents") -> list[str]:
    """The ids of all records."""
    with isolith.open(store) as db:
        return [record.id for record in db.collection(collection).records(page_size=10_000)]


def is_exact(store: str | Path, numbers: range, collection: str = "rag_documents") -> bool:
    """Whether each record is there exactly once, with its own content."""
    with isolith.open(store) as db:
        records = list(db.collection(collection).records(page_size=10_000))
    found = {record.id: record.metadata["number"] for record in records}
    return len(records) == len(found) and found == {f"chunk-{number}": number for number in numbers}


class Killer:
    """Kills workers of a store while something runs. ``kills`` are their roles."""

    def __init__(self, store: str | Path, roles: set[str], number: int, limit: int) -> None:
        self.kills: list[str] = []
        self._store, self._roles = str(store), roles
        self._signal, self._limit = number, limit
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with isolith.open(self._store) as db:
            killed: set[int] = set()
            while not self._stop.wait(0.001) and len(self.kills) < self._limit:
                with suppress(isolith.Error):
                    for pid, role in _busy(db):
                        if role in self._roles and pid not in killed:
                            # Rust ignores the first SIGSEGV that is no fault of memory.
                            if self._signal == signal.SIGKILL:
                                killed.add(pid)
                            with suppress(ProcessLookupError):
                                os.kill(pid, self._signal)
                                self.kills.append(role)


def _busy(db: isolith.Client) -> Iterator[tuple[int, str]]:
    for store in db.status().stores:
        for worker in store.workers:
            if worker.pid and worker.state == "busy":
                yield worker.pid, worker.role


@contextmanager
def killing(
    store: str | Path,
    *roles: str,
    number: int = signal.SIGKILL,
    limit: int = 3,
) -> Iterator[Killer]:
    """Kills busy workers that have one of the roles."""
    with Killer(store, set(roles), number, limit) as killer:
        yield killer
