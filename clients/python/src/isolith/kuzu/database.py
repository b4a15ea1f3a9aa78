"""Databases: stores of Isolith."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Any

from ..errors import Error
from . import version
from ._errors import KuzuError, closed, converted, refused

# Imported with the first database.
if TYPE_CHECKING:
    from types import TracebackType

    from .._folder import PrivateFolder
    from ..client import Client
    from ._graph import Graph

MEMORY = ":memory:"

# The time limit of a query in seconds. Kuzu has none.
_TIMEOUT = 300.0

# What Kuzu keeps in the folder of a database, in versions that have one; newer ones have a file.
_KUZU_FILES = ("catalog.kz", "data.kz")


class Database:
    """A store of Isolith, with the arguments of ``kuzu.Database``. It is a context manager.

    Other processes can use the store at the same time, and databases of the same store in this
    process share a server.

    :param database_path: the folder of the store, which is created by the first write; without it,
        empty or ``:memory:``, a temporary one that is deleted with the database
    :param lazy_init: whether to open the store when it is needed
    :param read_only: whether to refuse statements that write
    :param timeout: the time limit of a query in seconds
    :param binary: the program to start, by default the one of this package

    The other arguments are accepted, and have no effect.
    """

    def __init__(
        self,
        database_path: str | os.PathLike[str] | None = None,
        *,
        buffer_pool_size: int = 0,
        max_num_threads: int = 0,
        compression: bool = True,
        lazy_init: bool = False,
        read_only: bool = False,
        max_db_size: int = 1 << 43,
        auto_checkpoint: bool = True,
        checkpoint_threshold: int = -1,
        timeout: float = _TIMEOUT,
        binary: str | os.PathLike[str] | None = None,
    ) -> None:
        from ._session import Tables

        path = MEMORY if database_path is None else os.fspath(database_path)
        self.database_path = path
        self.buffer_pool_size = buffer_pool_size
        self.max_num_threads = max_num_threads
        self.compression = compression
        self.read_only = read_only
        self.max_db_size = max_db_size
        self.auto_checkpoint = auto_checkpoint
        self.checkpoint_threshold = checkpoint_threshold
        self.is_closed = False
        self._timeout = timeout
        self._binary = binary
        self._tables = Tables()
        self._graphs: weakref.WeakSet[Graph] = weakref.WeakSet()
        self._client: Client | None = None
        self._finalizer: Any = None
        self._check_path()
        if not lazy_init:
            self.init_database()

    @staticmethod
    def get_version() -> str:
        """The version of Kuzu whose behaviour this module has."""
        return version

    @staticmethod
    def get_storage_version() -> int:
        """Refused: a store of Isolith has another format."""
        raise refused("get_storage_version()", "isolith.__version__ is that of Isolith")

    def init_database(self) -> None:
        """Opens the store, unless it is done already.

        :raises KuzuError: if it cannot be used
        """
        self.check_for_database_close()
        if self._client is None:
            self._open()

    def get_torch_geometric_remote_backend(self, num_threads: int | None = None) -> Any:
        """Refused: there is no such backend."""
        raise refused(
            "get_torch_geometric_remote_backend()",
            "use get_as_networkx() and torch_geometric's from_networkx()",
        )

    def close(self) -> None:
        """Closes the store, and ends its server if nobody else in this process uses it."""
        if self.is_closed:
            return
        self.is_closed = True
        for graph in list(self._graphs):
            graph.close()
        if self._finalizer is not None:
            self._finalizer()
        self._client = None

    def check_for_database_close(self) -> None:
        """Raises an exception if the database was closed."""
        if self.is_closed:
            raise closed("Database is closed")

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _connect(self) -> Graph:
        """Connections of their own to the graph."""
        from ._graph import Graph

        self.init_database()
        assert self._client is not None, "it was opened"
        transport = self._client._transport
        graph = Graph(transport.server, transport.timeout, can_write=not self.read_only)
        self._graphs.add(graph)
        return graph

    def _check_path(self) -> None:
        path = self.database_path
        if path in ("", MEMORY):
            if self.read_only:
                raise KuzuError(
                    "Cannot open an in-memory database under READ ONLY mode.", code="read_only"
                )
            return
        if os.path.lexists(path) and not os.path.isdir(path):
            raise _kuzu_database(path)
        if any(os.path.lexists(os.path.join(path, name)) for name in _KUZU_FILES):
            raise _kuzu_database(path)
        if self.read_only and not os.path.lexists(path):
            raise KuzuError(
                "Cannot create an empty database under READ ONLY mode.", code="read_only"
            )

    def _open(self) -> None:
        from .. import _lifecycle
        from .._folder import PrivateFolder
        from ..client import open as open_store

        folder = None
        try:
            path = self.database_path
            if path in ("", MEMORY):
                folder = PrivateFolder()
                path = folder.join("store")
            client = open_store(path, timeout=self._timeout, binary=self._binary)
        except BaseException as error:
            if folder is not None:
                folder.remove()
            if isinstance(error, Error):
                raise converted(error) from error
            raise
        self._client = client
        self._finalizer = weakref.finalize(self, _close, client, folder, _lifecycle.generation)


def _close(client: Client, folder: PrivateFolder | None, generation: int) -> None:
    from .. import _lifecycle

    client.close()
    if folder is not None:
        if generation == _lifecycle.generation:
            folder.remove()
        else:
            folder.forget()


def _kuzu_database(path: str) -> KuzuError:
    return KuzuError(
        f"{path} is not the folder of a store",
        code="bad_input",
        hint="pass another folder, and copy a database of Kuzu into it: docs/python-kuzu.md",
    )
