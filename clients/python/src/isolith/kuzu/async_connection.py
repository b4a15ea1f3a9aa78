"""Connections for asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from .connection import Connection
from .prepared_statement import PreparedStatement

if TYPE_CHECKING:
    from types import TracebackType

    from ._graph import Execution
    from .database import Database


class AsyncConnection:
    """Executes statements in threads, up to a number of them at the same time.

    It is a context manager, with ``with`` or ``async with``.

    :param max_concurrent_queries: how many statements are executed at the same time
    :param max_threads_per_query: accepted, and without an effect
    """

    def __init__(
        self,
        database: Database,
        max_concurrent_queries: int = 4,
        max_threads_per_query: int = 0,
    ) -> None:
        self.database = database
        self.connections = [Connection(database) for _ in range(max_concurrent_queries)]
        self.connections_counter = [0 for _ in self.connections]
        self.lock = threading.Lock()
        for connection in self.connections:
            connection.set_max_threads_for_exec(max_threads_per_query)
        self.executor = ThreadPoolExecutor(
            max_concurrent_queries, thread_name_prefix="isolith-kuzu"
        )

    def __enter__(self) -> AsyncConnection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.get_running_loop().run_in_executor(None, self.close)

    def acquire_connection(self) -> Connection:
        """The connection with the fewest statements, for calls that wait.

        It has to be returned with ``release_connection``.
        """
        with self.lock:
            index = self.connections_counter.index(min(self.connections_counter))
            self.connections_counter[index] += 1
        return self.connections[index]

    def release_connection(self, conn: Connection) -> None:
        """Returns a connection."""
        for index, connection in enumerate(self.connections):
            if connection is conn:
                with self.lock:
                    self.connections_counter[index] = max(0, self.connections_counter[index] - 1)

    def set_query_timeout(self, timeout_in_ms: int) -> None:
        """Sets after how many milliseconds a statement is interrupted; 0 for never."""
        for connection in self.connections:
            connection.set_query_timeout(timeout_in_ms)

    async def execute(
        self, query: str | PreparedStatement, parameters: Mapping[str, Any] | None = None
    ) -> Any:
        """Executes one or more statements. See :meth:`Connection.execute`.

        Cancelling the task interrupts them.
        """
        if isinstance(query, PreparedStatement):
            connection = self._take(query._connection)
        else:
            connection = self.acquire_connection()
        try:
            return await self._run(connection, query, parameters)
        finally:
            self.release_connection(connection)

    async def prepare(
        self, query: str, parameters: Mapping[str, Any] | None = None
    ) -> PreparedStatement:
        """Prepares a statement. See :meth:`Connection.prepare`."""
        connection = self.acquire_connection()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self.executor, connection.prepare, query, parameters)
        finally:
            self.release_connection(connection)

    def close(self) -> None:
        """Closes all connections, and ends the threads. What is executed is interrupted."""
        for connection in self.connections:
            connection.close()
        self.executor.shutdown(wait=True)

    def _take(self, wanted: Connection) -> Connection:
        with self.lock:
            for index, connection in enumerate(self.connections):
                if connection is wanted:
                    self.connections_counter[index] += 1
        return wanted

    async def _run(self, connection: Connection, query: Any, parameters: Any) -> Any:
        call = _Call(connection, query, parameters)
        running = asyncio.get_running_loop().run_in_executor(self.executor, call.run)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            call.interrupt()
            # Its exception has nobody to go to.
            running.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise


class _Call:
    """What a thread executes. Other tasks may use the same connection."""

    def __init__(self, connection: Connection, query: Any, parameters: Any) -> None:
        self._connection = connection
        self._query = query
        self._parameters = parameters
        self._is_interrupted = False
        self._execution: Execution | None = None

    def run(self) -> Any:
        return self._connection._execute(self._query, self._parameters, None, self._start)

    def interrupt(self) -> None:
        self._is_interrupted = True
        if self._execution is not None:
            self._execution.interrupt()

    def _start(self, execution: Execution) -> None:
        self._execution = execution
        if self._is_interrupted:
            execution.interrupt()
