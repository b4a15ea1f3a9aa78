"""Isolith for asyncio: the same names as in :mod:`isolith`, with ``await``.

::

    async with isolith.aio.open("notes.isolith") as db:
        await db.memory.add("Deploys go out on Tuesdays.", wing="acme", room="deploys")
        async for drawer in db.memory.list():
            print(drawer.text)

Cancelling a task that waits for a call cancels the call on the server.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from ._address import RunningServer
from ._place import DEFAULT_TIMEOUT, prevents_opening, private_server, running_server
from ._streams import AsyncTransport
from ._version import USER_AGENT
from .api.code import AsyncCode as Code
from .api.collections import AsyncCollection as Collection
from .api.collections import CollectionInfo, create, list_collections
from .api.facts import AsyncFacts as Facts
from .api.graph import AsyncGraph as Graph
from .api.jobs import AsyncJobs as Jobs
from .api.jobs import Progress
from .api.memory import AsyncMemory as Memory
from .api.status import AsyncMaintenance, Crash, DoctorReport, QuarantinedJob, Status
from .errors import Error

if TYPE_CHECKING:
    from types import TracebackType

    from ._call import Call

__all__ = [
    "Client",
    "Code",
    "Collection",
    "Facts",
    "Graph",
    "Jobs",
    "Memory",
    "connect",
    "open",
]

T = TypeVar("T")


class Client:
    """A handle of a server and its stores, for the tasks of one event loop.

    It is an asynchronous context manager; ``await client`` opens it, too, and ``close`` closes it.
    """

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport
        self._finalizer = weakref.finalize(self, _abandon, transport)
        # At exit, servers are stopped in another way: handles may still be in use.
        self._finalizer.atexit = False

    @property
    def code(self) -> Code:
        """Indexing, searching and reading code."""
        return Code(self)

    @property
    def memory(self) -> Memory:
        """Texts in rooms of wings, and diaries of agents."""
        return Memory(self)

    @property
    def facts(self) -> Facts:
        """Facts, the time in which they are true, and entities."""
        return Facts(self)

    @property
    def graph(self) -> Graph:
        """Cypher over the code, facts and nodes of your own, and questions about code."""
        return Graph(self)

    @property
    def jobs(self) -> Jobs:
        """The long operations of the server."""
        return Jobs(self)

    async def collections(self) -> list[CollectionInfo]:
        """Lists the collections."""
        return await self.run_call(list_collections())

    def collection(self, name: str) -> Collection:
        """A collection. Nothing is sent: it need not exist yet, and adding records creates it."""
        return Collection(self, name)

    async def create_collection(
        self,
        name: str,
        *,
        dimension: int | None = None,
        metric: str | None = None,
        model: str | None = None,
    ) -> Collection:
        """Creates a collection. See :meth:`isolith.Client.create_collection`."""
        await self.run_call(create(name, dimension, metric, model, if_missing=False))
        return self.collection(name)

    async def get_or_create(
        self,
        name: str,
        *,
        dimension: int | None = None,
        metric: str | None = None,
        model: str | None = None,
    ) -> Collection:
        """A collection, which is created if it does not exist."""
        await self.run_call(create(name, dimension, metric, model, if_missing=True))
        return self.collection(name)

    async def status(self) -> Status:
        """The state of the stores: counts, workers, crashes and warnings."""
        return await AsyncMaintenance(self).status()

    async def crashes(
        self, *, limit: int | None = None, worker_pid: int | None = None
    ) -> list[Crash]:
        """The reports of workers that died. See :meth:`isolith.Client.crashes`."""
        return await AsyncMaintenance(self).crashes(limit=limit, worker_pid=worker_pid)

    async def quarantine(self) -> list[QuarantinedJob]:
        """The jobs that are skipped, because they have killed their workers."""
        return await AsyncMaintenance(self).quarantine()

    async def doctor(
        self,
        *,
        full: bool = False,
        repair: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> DoctorReport:
        """Checks the stores. See :meth:`isolith.Client.doctor`."""
        return await AsyncMaintenance(self).doctor(full=full, repair=repair, progress=progress)

    async def reconnect(self) -> bool:
        """Makes the server close and reopen the stores, for example after one was restored."""
        return await AsyncMaintenance(self).reconnect()

    async def close(self) -> None:
        """Closes all connections, and stops a server that was started for this handle only."""
        if self._finalizer.detach() is not None:
            server = self._transport.close()
            # Stopping a server takes a moment, in which other tasks go on.
            await asyncio.shield(asyncio.to_thread(_release, server))

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return not self._finalizer.alive

    def resolve(self, path: str) -> str:
        """A path of this process as the server understands it."""
        server = self._transport.server
        return path if isinstance(server, RunningServer) else os.path.abspath(path)

    async def run_call(self, call: Call[T]) -> T:
        """Runs one call of the API."""
        return await self._transport.run_call(call)

    async def __aenter__(self) -> Client:
        try:
            await self.collections()
        except BaseException as error:
            if not isinstance(error, Error) or prevents_opening(error):
                await self.close()
                raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __await__(self) -> Generator[Any, None, Client]:
        return self.__aenter__().__await__()

    def __repr__(self) -> str:
        return f"<isolith.aio.Client: {'closed' if self.closed else 'open'}>"


def open(
    path: str | os.PathLike[str] | None = None,
    *,
    timeout: float = DEFAULT_TIMEOUT,
    binary: str | os.PathLike[str] | None = None,
    allow: Sequence[str | os.PathLike[str]] | None = None,
) -> Client:
    """A handle of a private server for a store: ``async with open(…) as db``.

    The arguments and exceptions are those of :func:`isolith.open`. The server is started by
    ``async with`` or ``await``.
    """
    return Client(
        AsyncTransport(
            lambda: private_server(path, timeout, binary, allow), None, timeout, USER_AGENT
        )
    )


def connect(url: str, *, token: str | None = None, timeout: float = DEFAULT_TIMEOUT) -> Client:
    """A handle of a server that runs. The arguments are those of :func:`isolith.connect`."""
    server, token = running_server(url, token, timeout)
    return Client(AsyncTransport(lambda: server, token, timeout, USER_AGENT))


def _abandon(transport: AsyncTransport) -> None:
    """Closes a handle that was lost."""
    _release(transport.abandon())


def _release(server: Any) -> None:
    if server is not None and not isinstance(server, RunningServer):
        from ._server import release

        release(server)
