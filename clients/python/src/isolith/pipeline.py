"""Loading files of ready embeddings in a document pipeline.

:class:`IsolatedChromaDBWorker` loads files into a collection and reports what happened as a plain
dictionary. It raises nothing for a bad file or a crash::

    from isolith.pipeline import IsolatedChromaDBWorker

    with IsolatedChromaDBWorker(persist_directory="rag.isolith") as worker:
        result = worker.ingest_from_chromadb_ready_file("embeddings.json")
        if not result["success"]:
            print(result["error_type"], result["error"])

Files are read, checked and stored by supervised processes of a private server, never by this one.
All of a file is checked before anything of it is written. Records are replaced by their ids, so
that loading a file again changes nothing, and continues a load that was interrupted.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from datetime import datetime, timezone
from signal import SIGSEGV
from typing import Any, Union

from . import client as _client
from ._pipeline import (
    ask_chroma,
    checked_file,
    counts_of,
    created_at_of,
    creation_of,
    writer_of,
)
from .chroma import refuse_chroma_folder
from .errors import BadInput, Timeout

__all__ = ["IsolatedChromaDBWorker", "get_isolated_chromadb_worker"]

Result = dict[str, Any]
PathLike = Union[str, "os.PathLike[str]"]

_SPACES = ("l2", "cosine", "ip")

# How long the state of the store is asked for after a failure, in seconds.
_STATS_TIMEOUT = 10.0

# The server runs eight jobs at a time.
_MAX_THREADS = 8


class IsolatedChromaDBWorker:
    """Loads files of ready embeddings into collections of a store.

    Threads can share it. It is a context manager; ``close`` ends its server, and so does the end of
    this process, however it ends.

    :param timeout: how long loading a file may take, in seconds
    :param persist_directory: the folder of the store; by default that of ``ISOLITH_STORE``, else
        the user's
    :param space: how vectors of a new collection are compared: ``l2`` as by Chroma, ``cosine`` or
        ``ip``
    :param binary: the program to start, by default the one of this package
    :raises isolith.BadInput: if an argument is invalid
    """

    def __init__(
        self,
        timeout: float = 180,
        *,
        persist_directory: PathLike | None = None,
        space: str = "l2",
        binary: PathLike | None = None,
    ) -> None:
        if not (isinstance(timeout, (int, float)) and timeout > 0):
            raise BadInput(f"timeout must be a positive number of seconds, not {timeout!r}")
        if space not in _SPACES:
            raise BadInput(f"space must be one of {', '.join(_SPACES)}, not {space!r}")
        self.timeout = timeout
        self.persist_directory = os.path.realpath(persist_directory or _default_folder())
        self._space = space
        self._binary = binary
        self._lock = threading.Lock()
        # Keeps the server between calls.
        self._kept: _client.Client | None = None

    def ingest_from_chromadb_ready_file(
        self, embeddings_file_path: PathLike, collection_name: str = "rag_documents"
    ) -> Result:
        """Loads a file into a collection, which is created if it does not exist.

        The file is JSON with the lists ``ids``, ``embeddings``, ``metadatas`` and ``documents``, at
        the top or under ``chromadb_ready``, or JSONL. The result has these keys:

        - ``success``: whether all of the file is stored durably; ``processing_time`` in seconds
        - ``stats``: ``collection_name``, ``document_count`` (after the call), ``created_at`` (of
          the collection, if a worker or a client of Chroma has noted it), ``persist_directory`` and
          ``worker_pid``. After success also ``rows``, ``inserted``, ``updated`` and ``unchanged``.
          After a failure they are what the store says then, and ``document_count`` is ``None`` if
          the collection does not exist or the store does not answer.
        - ``worker_pid``: the process that died, else the one that writes to the store; ``None`` if
          it is not known
        - after a failure: ``error`` and ``error_type``; ``error_code``, one of Isolith's;
          ``segmentation_fault``, and ``exit_code`` (negative for a signal) of a process that died;
          ``timeout``: whether the time was over; ``graceful_recovery``: whether a process died or
          the time was over, and the store answers again

        Nothing is stored of a file that is refused. A load that was interrupted, also by the time
        limit, has stored a part of the file, and the next call continues it.
        """
        started = time.monotonic()
        name = str(collection_name)
        result: Result = {"success": False, "processing_time": 0.0}
        result["embeddings_file_path"] = str(embeddings_file_path)
        is_over = threading.Event()
        try:
            path = checked_file(embeddings_file_path)
            with self._handle(self.timeout, is_over) as handle:
                created_at = self._ensure_collection(handle, name)
                receipt = handle.collection(name).ingest(path)
                stats = self._stats(name, receipt.count_after, created_at, writer_of(handle))
                result.update(success=True, stats={**stats, **counts_of(receipt)})
        except Exception as error:
            result.update(self._failure(name, self._late() if is_over.is_set() else error))
        result["worker_pid"] = result.get("worker_pid") or result["stats"]["worker_pid"]
        result["processing_time"] = time.monotonic() - started
        return result

    def ingest_files(
        self,
        files: Iterable[PathLike],
        collection_name: str = "rag_documents",
        *,
        threads: int = 4,
    ) -> Iterator[Result]:
        """Loads files in several threads, and yields the result of each as it is done.

        Files are taken when a thread is free, so that they can come from a source that waits for
        them. A file that fails does not stop the others.

        :param threads: how many files are loaded at the same time, at most 8
        """
        if not 1 <= threads <= _MAX_THREADS:
            raise BadInput(f"threads must be 1 to {_MAX_THREADS}, not {threads!r}")
        return self._ingest_files(iter(files), collection_name, threads)

    def get_ingestion_stats(self, collection_name: str = "rag_documents") -> dict[str, Any]:
        """What the store says about a collection: the ``stats`` of a result."""
        try:
            with self._handle(_STATS_TIMEOUT, threading.Event()) as handle:
                count = handle.collection(collection_name).count()
                created_at = created_at_of(handle, collection_name)
                return self._stats(collection_name, count, created_at, writer_of(handle))
        except Exception:
            return self._stats(collection_name, None, None, None)

    def close(self) -> None:
        """Ends the server. The next call starts another one."""
        with self._lock:
            kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def __enter__(self) -> IsolatedChromaDBWorker:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _ingest_files(
        self, files: Iterator[PathLike], collection_name: str, threads: int
    ) -> Iterator[Result]:
        running: set[Future[Result]] = set()
        with ThreadPoolExecutor(threads, thread_name_prefix="isolith-ingest") as pool:
            for file in files:
                load = self.ingest_from_chromadb_ready_file
                running.add(pool.submit(load, file, collection_name))
                if len(running) == threads:
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    yield from (one.result() for one in done)
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (one.result() for one in done)

    @contextlib.contextmanager
    def _handle(self, seconds: float, is_over: threading.Event) -> Iterator[_client.Client]:
        """A handle for one call. It is closed, and cancels what runs, when the time is over."""
        refuse_chroma_folder(self.persist_directory)
        with self._lock:
            if self._kept is None or self._kept.closed:
                self._kept = self._open()
        handle = self._open()

        def end() -> None:
            is_over.set()
            handle.close()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield handle
        finally:
            timer.cancel()
            handle.close()

    def _open(self) -> _client.Client:
        return _client.open(self.persist_directory, binary=self._binary)

    def _ensure_collection(self, handle: _client.Client, name: str) -> str | None:
        """Creates the collection if it does not exist, and returns when it was created."""
        now = datetime.now(timezone.utc).isoformat(timespec="microseconds")
        reply = ask_chroma(
            handle,
            "POST",
            "",
            {
                "name": name,
                "get_or_create": True,
                "metadata": {"created_at": now},
                "configuration": {"hnsw": {"space": self._space}},
            },
        )
        return creation_of(reply)

    def _stats(
        self, name: str, count: int | None, created_at: str | None, worker_pid: int | None
    ) -> dict[str, Any]:
        return {
            "collection_name": name,
            "document_count": count,
            "created_at": created_at,
            "persist_directory": self.persist_directory,
            "worker_pid": worker_pid,
        }

    def _late(self) -> Timeout:
        return Timeout(
            f"loading the file took longer than {self.timeout:g} seconds",
            hint="raise the timeout; the next call continues the load",
        )

    def _failure(self, name: str, error: Exception) -> Result:
        # Other errors, and those of this process, have none of these.
        crash_class = getattr(error, "crash_class", None)
        signal = getattr(error, "signal", None)
        stats = self.get_ingestion_stats(name)
        timeout = isinstance(error, Timeout) or crash_class == "timeout"
        died = crash_class is not None or isinstance(error, ConnectionError)
        return {
            "error": str(error) or type(error).__name__,
            "error_type": type(error).__name__,
            "error_code": getattr(error, "code", "failed"),
            "segmentation_fault": signal == SIGSEGV,
            "exit_code": getattr(error, "exit_code", None) if signal is None else -signal,
            "timeout": timeout,
            "graceful_recovery": (died or timeout) and stats["document_count"] is not None,
            "worker_pid": getattr(error, "worker_pid", None),
            "stats": stats,
        }


_shared_lock = threading.Lock()
_shared: IsolatedChromaDBWorker | None = None


def get_isolated_chromadb_worker() -> IsolatedChromaDBWorker:
    """A worker for the default store that all callers in this process share."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = IsolatedChromaDBWorker()
        return _shared


def _default_folder() -> str:
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return os.environ.get("ISOLITH_STORE") or os.path.join(data, "isolith")
