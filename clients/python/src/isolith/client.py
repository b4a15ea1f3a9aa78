"""The blocking client. :func:`isolith.open` and :func:`isolith.connect` make one."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Callable, List, Sequence, TypeVar

from ._address import RunningServer
from ._blocking import BlockingClient
from ._place import DEFAULT_TIMEOUT, prevents_opening, private_server, running_server
from ._version import USER_AGENT
from .errors import Error

if TYPE_CHECKING:
    from types import TracebackType

    from ._call import Call
    from .api.code import Code
    from .api.collections import Collection, CollectionInfo
    from .api.facts import Facts
    from .api.graph import Graph
    from .api.jobs import Jobs, Progress
    from .api.memory import Memory
    from .api.status import Crash, DoctorReport, Maintenance, QuarantinedJob, Status

T = TypeVar("T")


class Client:
    """A handle of a server and its stores.

    Threads can share it, and a forked child can go on using it: it gets connections of its own.
    It is a context manager; ``close`` does the same. A handle that is lost is closed, too.
    """

    def __init__(self, transport: BlockingClient, end: Callable[[], None] | None = None) -> None:
        self._transport = transport
        self._finalizer = weakref.finalize(self, _close, transport, end)
        # At exit, servers are stopped in another way: handles may still be in use.
        self._finalizer.atexit = False

    @property
    def code(self) -> Code:
        """Indexing, searching and reading code."""
        from .api.code import Code

        return Code(self)

    @property
    def memory(self) -> Memory:
        """Texts in rooms of wings, and diaries of agents."""
        from .api.memory import Memory

        return Memory(self)

    @property
    def facts(self) -> Facts:
        """Facts, the time in which they are true, and entities."""
        from .api.facts import Facts

        return Facts(self)

    @property
    def graph(self) -> Graph:
        """Cypher over the code, facts and nodes of your own, and questions about code."""
        from .api.graph import Graph

        return Graph(self)

    @property
    def jobs(self) -> Jobs:
        """The long operations of the server."""
        from .api.jobs import Jobs

        return Jobs(self)

    def collections(self) -> List[CollectionInfo]:
        """Lists the collections."""
        from .api.collections import list_collections

        return self.run_call(list_collections())

    def collection(self, name: str) -> Collection:
        """A collection. Nothing is sent: it need not exist yet, and adding records creates it."""
        from .api.collections import Collection

        return Collection(self, name)

    def create_collection(
        self,
        name: str,
        *,
        dimension: int | None = None,
        metric: str | None = None,
        model: str | None = None,
    ) -> Collection:
        """Creates a collection.

        :param dimension: the length of its vectors, by default that of the first one
        :param metric: ``cosine`` (the default), ``l2`` or ``dot``
        :param model: the model of its vectors, ``built-in`` to have documents embedded by the
            server
        :raises isolith.AlreadyExists: if there is one of this name
        """
        from .api.collections import create

        self.run_call(create(name, dimension, metric, model, if_missing=False))
        return self.collection(name)

    def get_or_create(
        self,
        name: str,
        *,
        dimension: int | None = None,
        metric: str | None = None,
        model: str | None = None,
    ) -> Collection:
        """A collection, which is created if it does not exist.

        :raises isolith.AlreadyExists: if it exists with other properties
        """
        from .api.collections import create

        self.run_call(create(name, dimension, metric, model, if_missing=True))
        return self.collection(name)

    def status(self) -> Status:
        """The state of the stores: counts, workers, crashes and warnings."""
        return self._maintenance().status()

    def crashes(self, *, limit: int | None = None, worker_pid: int | None = None) -> List[Crash]:
        """The reports of workers that died, the newest first.

        :param limit: the maximum number of reports: 1 to 400, by default 20
        :param worker_pid: only the reports of this worker
        """
        return self._maintenance().crashes(limit=limit, worker_pid=worker_pid)

    def quarantine(self) -> List[QuarantinedJob]:
        """The jobs that are skipped, because they have killed their workers, the newest first."""
        return self._maintenance().quarantine()

    def doctor(
        self,
        *,
        full: bool = False,
        repair: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> DoctorReport:
        """Checks the stores. There is no time limit.

        :param full: whether to compare indexes with their tables, which takes longer
        :param repair: whether to repair what can be repaired; other calls have to wait
        """
        return self._maintenance().doctor(full=full, repair=repair, progress=progress)

    def reconnect(self) -> bool:
        """Makes the server close and reopen the stores, for example after one was restored."""
        return self._maintenance().reconnect()

    def close(self) -> None:
        """Closes all connections, and stops a server that was started for this handle only."""
        self._finalizer()

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return not self._finalizer.alive

    def resolve(self, path: str) -> str:
        """A path of this process as the server understands it."""
        server = self._transport.server
        return path if isinstance(server, RunningServer) else os.path.abspath(path)

    def run_call(self, call: Call[T]) -> T:
        """Runs one call of the API."""
        return self._transport.run_call(call)

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self.closed else self._transport.server.running or "not started"
        return f"<isolith.Client: {state}>"

    def _maintenance(self) -> Maintenance:
        from .api.status import Maintenance

        return Maintenance(self)


def open(
    path: str | os.PathLike[str] | None = None,
    *,
    timeout: float = DEFAULT_TIMEOUT,
    binary: str | os.PathLike[str] | None = None,
    allow: Sequence[str | os.PathLike[str]] | None = None,
) -> Client:
    """Starts a private server for a store, and returns a handle of it.

    Handles of the same store in this process share a server. It ends when the last of them is
    closed, and with this process, however that ends. If it dies, the next call starts another
    one.

    :param path: the folder of the store, which is created by the first write; by default the stores
        of the current folder's project and of the user, as on the command line
    :param timeout: the time limit of a call in seconds
    :param binary: the program to start, by default the one of this package
    :param allow: the folders that may be indexed and ingested, by default all
    :raises isolith.StartFailed: if the server cannot be started
    :raises isolith.StoreForeign: if the store was not created by this user on this machine
    :raises isolith.Error: if the store cannot be used for another reason
    """
    from ._server import release

    server = private_server(path, timeout, binary, allow)
    client = Client(BlockingClient(server, None, timeout, USER_AGENT), lambda: release(server))
    try:
        client.collections()
    except BaseException as error:
        if not isinstance(error, Error) or prevents_opening(error):
            client.close()
            raise
    return client


def connect(url: str, *, token: str | None = None, timeout: float = DEFAULT_TIMEOUT) -> Client:
    """Returns a handle of a server that runs. Nothing is sent yet.

    :param url: ``http://HOST:PORT``, ``https://HOST:PORT`` or ``unix:PATH``
    :param token: by default ``ISOLITH_TOKEN``, else for a server on this machine the one that it
        generated
    :param timeout: the time limit of a call in seconds
    """
    server, token = running_server(url, token, timeout)
    return Client(BlockingClient(server, token, timeout, USER_AGENT))


def _close(transport: BlockingClient, end: Callable[[], None] | None) -> None:
    transport.close()
    if end is not None:
        end()
