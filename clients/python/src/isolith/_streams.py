"""The transport for asyncio: connections, a pool of them, and the client that runs calls."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from . import _lifecycle
from ._events import JobFollower
from ._http import ReplyParser
from ._limits import GRACE, JOB_SILENCE, MAX_IDLE, MAX_KEPT, MAX_WAIT
from ._reply import (
    answer_of,
    fixed_headers,
    lost_during_call,
    not_connected,
    parsed,
    reason_of,
    report_call,
    request_of,
    timed_out,
)
from ._retry import Attempts
from .errors import Closed, ConnectionLost, Error

if TYPE_CHECKING:
    from ._address import Address, RunningServer
    from ._call import Call
    from ._server import LocalServer

T = TypeVar("T")

_BUFFER_BYTES = 256 << 10

# Connections of the parent of this process. Collecting them would touch the loop of the parent.
_INHERITED: list[AsyncConnection] = []


class AsyncConnection:
    """One connection, for one call at a time."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fixed: str
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._fixed = fixed
        self._has_expired = False
        self._idle_since = time.monotonic()

    @classmethod
    async def open(cls, address: Address, token: str | None, agent: str) -> AsyncConnection:
        """Connects. Raises what sockets raise."""
        if address.path is not None:
            reader, writer = await asyncio.open_unix_connection(address.path, limit=_BUFFER_BYTES)
        else:
            # TCP_NODELAY is set by asyncio.
            reader, writer = await asyncio.open_connection(
                address.host,
                address.port,
                ssl=True if address.uses_tls else None,
                limit=_BUFFER_BYTES,
            )
        return cls(reader, writer, fixed_headers(address, token, agent))

    async def exchange(
        self, call: Call[Any], deadline: float, on_body: Callable[[bytes], None] | None
    ) -> tuple[ReplyParser, bytes]:
        """Sends a call and waits for the whole reply.

        :param on_body: gets the parts of a successful reply's body as they come
        :raises OSError, EOFError: if the connection breaks, or the deadline passes
        """
        reply = ReplyParser()
        timer = self._expire_at(deadline)
        try:
            try:
                self._writer.write(request_of(call, self._fixed))
                await self._writer.drain()
            except (BrokenPipeError, ConnectionResetError):
                # A server that refuses a body may close the connection before it has read it.
                reply.feed(await self._reader.read(_BUFFER_BYTES))
                if not reply.has_head:
                    raise
            while not reply.is_complete:
                if on_body is not None:
                    timer.cancel()
                    timer = self._expire_at(time.monotonic() + JOB_SILENCE)
                reply.feed(await self._reader.read(_BUFFER_BYTES))
                if on_body is not None and reply.status == 200:
                    on_body(reply.take_body())
        except (OSError, EOFError):
            if self._has_expired:
                raise socket.timeout from None
            raise
        finally:
            timer.cancel()
        self._idle_since = time.monotonic()
        return reply, reply.take_body()

    def is_usable(self) -> bool:
        """Whether another call can be sent: the server has not closed it."""
        is_old = time.monotonic() - self._idle_since > MAX_IDLE
        return not (is_old or self._reader.at_eof() or self._writer.is_closing())

    def close(self) -> None:
        """Ends it, also if a forked child has a copy.

        The server cancels a call that it still runs.
        """
        self.shut_down()
        # The loop may be closed already.
        with contextlib.suppress(RuntimeError):
            self._writer.transport.abort()

    def shut_down(self) -> None:
        """Ends it without touching the event loop, which may run in another thread."""
        with contextlib.suppress(OSError, AttributeError):
            self._writer.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def forget(self) -> None:
        """Closes the copy of a forked child only.

        The loop shares its file descriptors with that of the parent, and must not be touched.
        """
        with contextlib.suppress(OSError, AttributeError):
            os.close(self._writer.get_extra_info("socket").fileno())
        _INHERITED.append(self)

    def _expire_at(self, deadline: float) -> asyncio.TimerHandle:
        left = min(max(0.0, deadline - time.monotonic()), MAX_WAIT)
        return asyncio.get_running_loop().call_later(left, self._expire)

    def _expire(self) -> None:
        self._has_expired = True
        self._writer.transport.abort()


class AsyncTransport:
    """Runs calls on a server. The tasks of one event loop can share it.

    :param lease: takes a lease of the server; it is called for the first call
    """

    def __init__(
        self,
        lease: Callable[[], LocalServer | RunningServer],
        token: str | None,
        timeout: float,
        agent: str,
    ) -> None:
        self.timeout = timeout
        self._lease = lease
        self._server: LocalServer | RunningServer | None = None
        self._token = token
        self._agent = agent
        self._generation = _lifecycle.generation
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: list[AsyncConnection] = []
        self._open: set[AsyncConnection] = set()
        self._is_closed = False

    @property
    def server(self) -> LocalServer | RunningServer:
        """The server that calls are sent to."""
        if self._server is None:
            self._server = self._lease()
        return self._server

    async def run_call(self, call: Call[T]) -> T:
        """Sends a call, again if that is safe and may help, and returns its answer.

        :raises Error: if it fails
        """
        attempts = Attempts(call, float("inf") if call.is_job else self.timeout)
        while True:
            try:
                return await self._attempt(call, attempts.deadline + GRACE)
            except Error as error:
                if isinstance(error, ConnectionLost):
                    _lifecycle.park_at_exit()
                find_report = report_call(error)
                if find_report is not None:
                    with contextlib.suppress(Error):
                        await self._attempt(find_report, time.monotonic() + GRACE)
                pause = attempts.pause_after(error)
            await asyncio.sleep(pause)

    def close(self) -> LocalServer | RunningServer | None:
        """Closes all connections, and returns the server if there is a lease to release."""
        self._is_closed = True
        self._check_owner(self._loop)
        for connection in self._open:
            connection.close()
        self._open.clear()
        self._idle.clear()
        server, self._server = self._server, None
        return server

    def abandon(self) -> LocalServer | RunningServer | None:
        """Does what ``close`` does, from any thread."""
        self._is_closed = True
        if self._generation == _lifecycle.generation and self._loop is not None:
            for connection in list(self._open):
                connection.shut_down()
                # The loop may be closed already.
                with contextlib.suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(connection.close)
        server, self._server = self._server, None
        return server

    async def _attempt(self, call: Call[T], deadline: float) -> T:
        connection = await self._acquire()
        follower = JobFollower(call.on_progress) if call.is_job else None
        on_body = None if follower is None else follower.feed
        reply = None
        try:
            reply, body = await connection.exchange(call, deadline, on_body)
        except socket.timeout:
            raise timed_out(call, self.timeout) from None
        except (OSError, EOFError) as error:
            raise lost_during_call(error, self._is_closed) from None
        finally:
            # Whatever happened, also a cancelled task: a connection in the middle of a call is of
            # no use.
            is_reusable = reply is not None and reply.can_reuse_connection
            if is_reusable and not self._is_closed and len(self._idle) < MAX_KEPT:
                self._idle.append(connection)
            else:
                self._open.discard(connection)
                connection.close()
        if follower is not None and follower.is_done:
            return parsed(call, follower.result)
        return answer_of(call, reply, body)

    async def _acquire(self) -> AsyncConnection:
        self._check_owner(asyncio.get_running_loop())
        if self._is_closed:
            raise Closed("the handle is closed")
        while self._idle:
            connection = self._idle.pop()
            if connection.is_usable():
                return connection
            self._open.discard(connection)
            connection.close()
        connection = await self._connect()
        self._open.add(connection)
        return connection

    async def _connect(self) -> AsyncConnection:
        address: Address | None = None
        for _ in range(2):
            # The second time, a server of our own that does not listen any more is started again.
            address = await self._address(address)
            try:
                connecting = AsyncConnection.open(address, self._token, self._agent)
                return await asyncio.wait_for(connecting, self.timeout)
            except (FileNotFoundError, ConnectionRefusedError) as error:
                reason = reason_of(error)
            except (OSError, asyncio.TimeoutError) as error:
                reason = reason_of(error)
                break
        raise not_connected(address, reason)

    async def _address(self, dead: Address | None) -> Address:
        server = self.server
        running = server.running
        if running is not None and dead is None:
            return running
        # Starting a server takes a moment, in which other tasks go on.
        return await asyncio.to_thread(server.address, dead)

    def _check_owner(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Gives up connections of another loop, or of the parent of this process."""
        if self._generation != _lifecycle.generation:
            for connection in self._open:
                connection.forget()
        elif self._loop is not loop:
            for connection in self._open:
                connection.shut_down()
        else:
            return
        self._open, self._idle = set(), []
        self._generation, self._loop = _lifecycle.generation, loop
