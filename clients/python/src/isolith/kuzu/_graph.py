"""The graph of a database: queries, and how they are interrupted."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .._blocking import BlockingClient
from .._call import Endpoint
from .._version import USER_AGENT
from ..errors import Closed, NoStore
from ._errors import KuzuError

if TYPE_CHECKING:
    from types import TracebackType

    from .._address import RunningServer
    from .._call import Call
    from .._server import LocalServer

T = TypeVar("T")

# Queries that only read need no key to be repeated.
_WRITE = Endpoint("POST", "/graph/query", keyed=True)
_READ = Endpoint("POST", "/graph/query", repeatable=True)
_IMPORT = Endpoint("POST", "/graph/import", keyed=True)

# The rows of a page: as many as the server allows, as all of them are wanted.
_PAGE_ROWS = 10_000

# Creates the graph of a store that has none, and nothing in it.
_CREATE_GRAPH = "MATCH (n) WHERE false SET n.x = 1"


class Rows(NamedTuple):
    """The answer to a query, as the server sends it."""

    columns: list[str]
    rows: list[list[Any]]


class Taken(NamedTuple):
    """How many rows were imported, and how many bytes they are."""

    rows: int
    bytes: int

    @classmethod
    def from_json(cls, reply: Any) -> Taken:
        """What the server replied."""
        return cls(reply["rows"], reply["bytes"])


class _Page(NamedTuple):
    columns: list[str]
    rows: list[list[Any]]
    next: str | None

    @classmethod
    def from_json(cls, reply: Any) -> _Page:
        return cls(reply["columns"], reply["rows"], reply.get("next"))


class Graph:
    """The graph. Threads can share it.

    :ivar can_write: whether a graph is created where there is none
    """

    def __init__(
        self, server: LocalServer | RunningServer, timeout: float, can_write: bool
    ) -> None:
        self.can_write = can_write
        self._server = server
        self._timeout = timeout
        # Changed in steps that cannot be divided: a forked child could find a lock held forever.
        self._idle: list[BlockingClient] = []
        self._active: set[Execution] = set()
        self._is_closed = False

    def execution(self, seconds: float = 0) -> Execution:
        """The execution of one statement.

        :param seconds: after how many seconds it is interrupted; 0 for never
        """
        return Execution(self, seconds)

    def interrupt(self) -> None:
        """Interrupts what is being executed."""
        for execution in list(self._active):
            execution.interrupt()

    def close(self) -> None:
        """Closes all connections."""
        self._is_closed = True
        self.interrupt()
        while self._idle:
            self._idle.pop().close()

    def acquire(self, execution: Execution) -> BlockingClient:
        """Connections that only this execution uses."""
        if self._is_closed:
            raise Closed("the connection is closed")
        self._active.add(execution)
        try:
            return self._idle.pop()
        except IndexError:
            return BlockingClient(self._server, None, self._timeout, USER_AGENT)

    def release(self, execution: Execution, client: BlockingClient) -> None:
        """Takes connections back."""
        self._active.discard(execution)
        if execution.is_interrupted or self._is_closed:
            client.close()
        else:
            self._idle.append(client)


class Execution:
    """The execution of a statement, which may take several queries. It is a context manager."""

    def __init__(self, graph: Graph, seconds: float) -> None:
        self.is_interrupted = False
        self._graph = graph
        self._seconds = seconds
        self._timer: threading.Timer | None = None
        self._client: BlockingClient | None = None

    def query(
        self, text: str, params: Mapping[str, Any] | None = None, is_write: bool = True
    ) -> Rows:
        """Runs a query and returns all rows.

        :raises isolith.Error: if it fails
        """
        endpoint = _WRITE if is_write else _READ
        page = self._send(endpoint(_Page.from_json, query=text, params=params, limit=_PAGE_ROWS))
        rows, token = page.rows, page.next
        while token is not None:
            page = self._send(_READ(_Page.from_json, next=token, limit=_PAGE_ROWS))
            rows.extend(page.rows)
            token = page.next
        return Rows(page.columns, rows)

    def import_rows(self, body: bytes) -> Taken:
        """Imports rows; the request is serialized already."""
        return self._send(_IMPORT(Taken.from_json, raw_body=body))

    def interrupt(self) -> None:
        """Cancels it. The query that is running, and later ones, fail."""
        self.is_interrupted = True
        if self._client is not None:
            self._client.close()

    def __enter__(self) -> Execution:
        self._client = self._graph.acquire(self)
        if self._seconds:
            self._timer = threading.Timer(self._seconds, self.interrupt)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._client is not None:
            self._graph.release(self, self._client)

    def _send(self, call: Call[T]) -> T:
        client = self._client
        if client is None or self.is_interrupted:
            raise KuzuError("Interrupted.", code="interrupted")
        try:
            try:
                return client.run_call(call)
            except NoStore:
                if not self._graph.can_write:
                    raise
                client.run_call(_WRITE(_Page.from_json, query=_CREATE_GRAPH))
                return client.run_call(call)
        except Closed:
            if self.is_interrupted:
                raise KuzuError("Interrupted.", code="interrupted") from None
            raise
