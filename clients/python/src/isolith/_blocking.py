"""The blocking transport: connections, a pool of them, and the client that runs calls."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from . import _lifecycle
from ._address import Address
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
    from ._address import RunningServer
    from ._call import Call
    from ._server import LocalServer

T = TypeVar("T")

_RECEIVE_BYTES = 256 << 10


class Connection:
    """One connection, for one call at a time."""

    def __init__(self, sock: socket.socket, fixed: str) -> None:
        self._socket = sock
        self._fixed = fixed
        self._generation = _lifecycle.generation
        self._idle_since = time.monotonic()

    @classmethod
    def open(cls, address: Address, timeout: float, token: str | None, agent: str) -> Connection:
        """Connects. Raises what sockets raise."""
        if address.path is not None:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.settimeout(timeout)
                sock.connect(address.path)
            except BaseException:
                sock.close()
                raise
        else:
            sock = socket.create_connection((address.host, address.port), timeout)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if address.uses_tls:
                import ssl

                context = ssl.create_default_context()
                sock = context.wrap_socket(sock, server_hostname=address.host)
        return cls(sock, fixed_headers(address, token, agent))

    def exchange(
        self, call: Call[Any], deadline: float, on_body: Callable[[bytes], None] | None
    ) -> tuple[ReplyParser, bytes]:
        """Sends a call and waits for the whole reply.

        :param on_body: gets the parts of a successful reply's body as they come
        :raises OSError, EOFError: if the connection breaks
        """
        reply = ReplyParser()
        try:
            self._set_time(deadline)
            self._socket.sendall(request_of(call, self._fixed))
        except (BrokenPipeError, ConnectionResetError):
            # A server that refuses a body may close the connection before it has read all of it.
            self._receive(reply, deadline)
            if not reply.has_head:
                raise
        while not reply.is_complete:
            self._receive(reply, deadline if on_body is None else time.monotonic() + JOB_SILENCE)
            if on_body is not None and reply.status == 200:
                on_body(reply.take_body())
        self._idle_since = time.monotonic()
        return reply, reply.take_body()

    def is_usable(self) -> bool:
        """Whether another call can be sent: the server has neither closed it nor sent anything."""
        if time.monotonic() - self._idle_since > MAX_IDLE:
            return False
        try:
            self._socket.settimeout(0)
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except (OSError, ValueError):
            # TLS cannot peek.
            return hasattr(self._socket, "cipher")
        return False

    def close(self) -> None:
        """Ends it, also if a forked child has a copy.

        The server cancels a call that it still runs.
        """
        if self._generation == _lifecycle.generation:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        self.forget()

    def forget(self) -> None:
        """Closes the copy of this process only."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def _receive(self, reply: ReplyParser, deadline: float) -> None:
        self._set_time(deadline)
        reply.feed(self._socket.recv(_RECEIVE_BYTES))

    def _set_time(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout
        # Sockets do not take infinity.
        self._socket.settimeout(min(left, MAX_WAIT))


class BlockingClient:
    """Runs calls on a server. Threads can share it: each call has a connection of its own."""

    def __init__(
        self, server: LocalServer | RunningServer, token: str | None, timeout: float, agent: str
    ) -> None:
        self.server = server
        self.timeout = timeout
        self._token = token
        self._agent = agent
        self._generation = _lifecycle.generation
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._is_closed = False
        _lifecycle.close_at_exit(self)

    def run_call(self, call: Call[T]) -> T:
        """Sends a call, again if that is safe and may help, and returns its answer.

        :raises Error: if it fails
        """
        attempts = Attempts(call, float("inf") if call.is_job else self.timeout)
        while True:
            try:
                return self._attempt(call, attempts.deadline + GRACE)
            except Error as error:
                if isinstance(error, ConnectionLost):
                    _lifecycle.park_at_exit()
                find_report = report_call(error)
                if find_report is not None:
                    with contextlib.suppress(Error):
                        self._attempt(find_report, time.monotonic() + GRACE)
                pause = attempts.pause_after(error)
            if pause:
                time.sleep(pause)

    def close(self) -> None:
        """Closes all connections. Calls that run fail."""
        self._is_closed = True
        self._check_generation()
        for connection in list(self._open):
            connection.close()
        self._open.clear()
        self._idle.clear()

    def close_idle(self) -> None:
        """Closes the connections that no call uses."""
        self._check_generation()
        while self._idle:
            self._idle.pop().close()

    def _attempt(self, call: Call[T], deadline: float) -> T:
        connection = self._acquire()
        follower = JobFollower(call.on_progress) if call.is_job else None
        on_body = None if follower is None else follower.feed
        reply = None
        try:
            reply, body = connection.exchange(call, deadline, on_body)
        except socket.timeout:
            raise timed_out(call, self.timeout) from None
        except (OSError, EOFError) as error:
            raise lost_during_call(error, self._is_closed) from None
        finally:
            # Whatever happened, also Ctrl-C: a connection in the middle of a call is of no use.
            if reply is not None and reply.can_reuse_connection:
                self._release(connection)
            else:
                self._open.discard(connection)
                connection.close()
        if follower is not None and follower.is_done:
            return parsed(call, follower.result)
        return answer_of(call, reply, body)

    def _acquire(self) -> Connection:
        self._check_generation()
        if self._is_closed:
            raise Closed("the handle is closed")
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                break
            if connection.is_usable():
                return connection
            self._open.discard(connection)
            connection.close()
        connection = self._connect()
        self._open.add(connection)
        return connection

    def _connect(self) -> Connection:
        address = None
        for _ in range(2):
            # The second time, a server of our own that does not listen any more is started again.
            address = self.server.address(dead=address)
            try:
                return Connection.open(address, self.timeout, self._token, self._agent)
            except (FileNotFoundError, ConnectionRefusedError) as error:
                reason = reason_of(error)
            except OSError as error:
                reason = reason_of(error)
                break
        raise not_connected(address, reason)

    def _release(self, connection: Connection) -> None:
        if self._is_closed or len(self._idle) >= MAX_KEPT:
            self._open.discard(connection)
            connection.close()
        else:
            self._idle.append(connection)

    def _check_generation(self) -> None:
        """In a forked child, leaves the connections to the parent."""
        if self._generation == _lifecycle.generation:
            return
        with _lifecycle.lock:
            if self._generation != _lifecycle.generation:
                inherited, self._open, self._idle = self._open, set(), []
                for connection in inherited:
                    connection.forget()
                self._generation = _lifecycle.generation
