"""Chroma's classes of clients, with servers and connections of their own.

They are made when they are first needed: ``chromadb`` is not imported before.
"""

from __future__ import annotations

import functools
import importlib
import weakref
from typing import TYPE_CHECKING, Any

from ._chroma_http import Transport

if TYPE_CHECKING:
    from ._loopback import Lease


@functools.cache
def client_class() -> Any:
    """The class of clients that have a lease of a server."""
    base: Any = importlib.import_module("chromadb.api.client").Client

    class Client(base):  # type: ignore[misc]
        """A client of Chroma whose server is ended with it."""

        def __init__(self, tenant: str, database: str, settings: Any, lease: Lease) -> None:
            self._lease = lease
            self._sessions: list[Any] = []
            try:
                super().__init__(tenant=tenant, database=database, settings=settings)
            except BaseException:
                _close(self._sessions)
                raise
            self._own_system = super()._system
            identifiers = {self._identifier, self._admin_client._identifier}
            _forget(base, identifiers, self._own_system)
            # Collections refer to this object, too: the server is needed as long as any of them.
            self._end = weakref.finalize(self._server, _end, self._sessions, lease)
            # At exit, servers are stopped in another way: clients may still be in use.
            self._end.atexit = False

        def get_user_identity(self) -> Any:
            # The first request of a new client.
            self._connect(self._server)
            return super().get_user_identity()

        def _validate_tenant_database(self, tenant: str, database: str) -> None:
            # This object has connections of its own, and was made a moment ago.
            self._connect(self._admin_client._server)
            super()._validate_tenant_database(tenant=tenant, database=database)

        def _connect(self, api: Any) -> None:
            """Makes an object send its requests to the server, wherever that listens."""
            if api._session in self._sessions:
                return
            httpx: Any = importlib.import_module("httpx")
            limits = getattr(api, "http_limits", None) or httpx.Limits()
            # With a transport, proxies in the environment are ignored.
            transport = Transport(self._lease.server, limits)
            old = api._session
            api._session = httpx.Client(timeout=None, headers=old.headers, transport=transport)
            self._sessions.append(api._session)
            old.close()

        @property
        def _system(self) -> Any:
            return self.__dict__.get("_own_system") or super()._system

        def close(self) -> None:
            """Closes the client. Its server is ended if no other client uses it."""
            if self._end.alive:
                close = getattr(super(), "close", None)
                if close is not None:
                    close()
                self._own_system.stop()
            self._end()

        def __enter__(self) -> Client:
            return self

        def __exit__(self, *error: Any) -> None:
            self.close()

    Client.__qualname__ = "Client"
    return Client


@functools.cache
def async_client_class() -> Any:
    """The class of asynchronous clients with connections of their own.

    Those of Chroma share them within an event loop, and with them the token of the first one.
    """
    base: Any = importlib.import_module("chromadb.api.async_client").AsyncClient
    server_class: Any = importlib.import_module("chromadb.api").AsyncServerAPI

    class AsyncClient(base):  # type: ignore[misc]
        """An asynchronous client of Chroma."""

        def __init__(self, settings: Any) -> None:
            super().__init__(settings=settings)
            self._system.instance(server_class)._clients = {}

        async def _validate_tenant_database(self, tenant: str, database: str) -> None:
            # This object has connections of its own, and was made a moment ago.
            vars(self._admin_client._server).setdefault("_clients", {})
            await super()._validate_tenant_database(tenant=tenant, database=database)

    AsyncClient.__qualname__ = "AsyncClient"
    return AsyncClient


def _close(sessions: list[Any]) -> None:
    for session in sessions:
        session.close()


def _end(sessions: list[Any], lease: Lease) -> None:
    _close(sessions)
    lease.release()


def _forget(client_class: Any, identifiers: set[str], system: Any) -> None:
    """Removes a client from Chroma's list of all clients, which would keep it until the exit."""
    systems = client_class._identifier_to_system
    for identifier, one in list(systems.items()):
        if one is system or identifier in identifiers:
            systems.pop(identifier, None)
            getattr(client_class, "_identifier_to_refcount", {}).pop(identifier, None)
