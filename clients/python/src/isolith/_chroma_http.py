"""How clients of Chroma reach a private server: transports for httpx, blocking and for asyncio.

A server that has died is started again. A request that it had not got yet is sent to the new one,
and so is one that was lost with it, if sending it twice does what sending it once does.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from ._address import Address
from ._loopback import LoopbackServer
from .errors import Error

# Last parts of the paths of requests that can be repeated, besides those of GET.
_REPEATABLE = frozenset(("add", "count", "get", "query", "update", "upsert"))

_ATTEMPTS = 3


class Transport:
    """Sends the requests of one ``httpx.Client``. A forked child gets connections of its own."""

    def __init__(self, server: LoopbackServer, limits: Any) -> None:
        self._httpx: Any = importlib.import_module("httpx")
        self._server = server
        self._limits = limits
        self._owner = 0
        self._inner: Any = None

    def handle_request(self, request: Any) -> Any:
        """Sends a request and returns the response."""
        address = _running(self._server, None)
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._connections().handle_request(_addressed(request, address))
            except self._httpx.TransportError as error:
                if not _may_repeat(self._httpx, request, error):
                    raise
            address = _running(self._server, address)
        return self._connections().handle_request(_addressed(request, address))

    def close(self) -> None:
        """Closes the connections."""
        if self._inner is not None and self._owner == os.getpid():
            self._inner.close()

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def _connections(self) -> Any:
        if self._owner != os.getpid():
            self._inner = self._httpx.HTTPTransport(limits=self._limits)
            self._owner = os.getpid()
        return self._inner


def _running(server: LoopbackServer, dead: Address | None) -> Address:
    """Where the server listens. Raises what Chroma's clients expect if it cannot be started."""
    try:
        return server.address(dead)
    except Error as error:
        httpx = importlib.import_module("httpx")
        raise httpx.ConnectError(str(error)) from error


def _addressed(request: Any, address: Address) -> Any:
    request.url = request.url.copy_with(host=address.host, port=address.port)
    request.headers["host"] = address.host_header
    return request


def _may_repeat(httpx: Any, request: Any, error: Any) -> bool:
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout)):
        return True
    lost = (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
    last = request.url.path.rpartition("/")[2]
    return isinstance(error, lost) and (request.method == "GET" or last in _REPEATABLE)
