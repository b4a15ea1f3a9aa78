"""Chroma's Python client with Isolith as its database.

The functions are those of ``chromadb``, with the same arguments, and return objects of its
classes::

    from isolith import chroma

    client = chroma.PersistentClient("notes.isolith")
    notes = client.get_or_create_collection("notes")

:func:`PersistentClient` and :func:`EphemeralClient` start a server of their own, which is ended
with the last client that uses it, and with this process, however that ends. No native code of a
database is loaded into this process, and a client survives the death of its server: the next
request starts another one.

They need the package ``chromadb-client``, or ``chromadb``, of version 1.0 or later.
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from ._binary import find_binary
from ._loopback import Lease, LoopbackServer, LoopbackSpec
from ._server import ServerSpec
from .errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AsyncHttpClient", "EphemeralClient", "HttpClient", "PersistentClient"]

DEFAULT_TENANT = "default_tenant"
DEFAULT_DATABASE = "default_database"

# The time limit of a request in seconds. Chroma has none, and some requests have 64 MB.
_TIMEOUT = 300

# The file in which Chroma keeps its database.
_CHROMA_FILE = "chroma.sqlite3"

# Headers in which a token can be passed.
_TOKEN_HEADERS = frozenset(("authorization", "x-chroma-token"))


def PersistentClient(
    path: str | os.PathLike[str] = "./chroma",
    settings: Any = None,
    tenant: str = DEFAULT_TENANT,
    database: str = DEFAULT_DATABASE,
    *,
    binary: str | os.PathLike[str] | None = None,
) -> Any:
    """A client of a store in a folder.

    Clients of the same store in this process share a server, and other processes can use the store
    at the same time.

    :param path: the folder of the store, which is created by the first write
    :param settings: settings of Chroma; ``allow_reset`` and those of HTTP have an effect
    :param binary: the program to start, by default the one of this package
    :return: a ``chromadb`` client
    :raises isolith.BadInput: if the folder holds a database of Chroma
    :raises isolith.Error: if the server cannot be started or the store cannot be used
    :raises ImportError: if Chroma's client is not installed
    """
    _chromadb()
    if not os.fspath(path):
        raise BadInput("the path of the store must not be empty")
    folder = os.path.realpath(path)
    refuse_chroma_folder(folder)
    return _private_client(folder, settings, tenant, database, binary)


def EphemeralClient(
    settings: Any = None,
    tenant: str = DEFAULT_TENANT,
    database: str = DEFAULT_DATABASE,
    *,
    binary: str | os.PathLike[str] | None = None,
) -> Any:
    """A client of a temporary store, which is deleted when its last client is closed or lost.

    As with Chroma, all ephemeral clients of a process share one store. It is kept in a private
    folder for temporary files. If the process is killed, the next one that starts a server deletes
    it.

    :raises isolith.Error: if the server cannot be started
    :raises ImportError: if Chroma's client is not installed
    """
    _chromadb()
    return _private_client(None, settings, tenant, database, binary)


def HttpClient(
    host: str = "localhost",
    port: int = 8000,
    ssl: bool = False,
    headers: Mapping[str, str] | None = None,
    settings: Any = None,
    tenant: str = DEFAULT_TENANT,
    database: str = DEFAULT_DATABASE,
) -> Any:
    """A client of a server that runs, such as ``isolith serve --chroma``. Nothing is started.

    If neither headers nor settings have a token, it is that of ``ISOLITH_TOKEN`` or, for a server
    on this machine, the one that ``isolith serve`` generated.
    """
    return _chromadb().HttpClient(
        host=host,
        port=port,
        ssl=ssl,
        headers=_with_token(host, port, ssl, headers, settings),
        settings=_copied(settings),
        tenant=tenant,
        database=database,
    )


async def AsyncHttpClient(
    host: str = "localhost",
    port: int = 8000,
    ssl: bool = False,
    headers: Mapping[str, str] | None = None,
    settings: Any = None,
    tenant: str = DEFAULT_TENANT,
    database: str = DEFAULT_DATABASE,
) -> Any:
    """The same as :func:`HttpClient` for asyncio."""
    _chromadb()
    from ._chroma_clients import async_client_class

    settings = _copied(settings)
    settings.chroma_api_impl = "chromadb.api.async_fastapi.AsyncFastAPI"
    settings.chroma_server_host = str(host)
    settings.chroma_server_http_port = int(port)
    settings.chroma_server_ssl_enabled = bool(ssl)
    settings.chroma_server_headers = _with_token(host, port, ssl, headers, settings)
    return await async_client_class().create(str(tenant), str(database), settings)


def _chromadb() -> Any:
    try:
        return importlib.import_module("chromadb")
    except ModuleNotFoundError as error:
        if error.name != "chromadb":
            raise
        raise ImportError(
            "isolith.chroma needs Chroma's client: pip install chromadb-client (or chromadb)",
            name="chromadb",
        ) from None


def refuse_chroma_folder(folder: str) -> None:
    """Refuses a folder that cannot be that of a store, in particular one of Chroma's.

    :raises isolith.BadInput: if it is not a folder, or holds a database of Chroma
    """
    if os.path.lexists(os.path.join(folder, _CHROMA_FILE)):
        raise BadInput(
            f"{folder} holds a database of Chroma",
            hint="pass another folder, and copy the collections as described in docs/switching.md: "
            f"python from_chroma.py {folder} OUT --run --store NEW_FOLDER",
        )
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise BadInput(f"{folder} is not a folder")


def _copied(settings: Any) -> Any:
    """Settings to change: Chroma writes the address into those that it gets."""
    if settings is None:
        return importlib.import_module("chromadb.config").Settings(anonymized_telemetry=False)
    # Copies made by `copy` share their values in older versions.
    return settings.model_copy() if hasattr(settings, "model_copy") else settings.copy()


def _with_token(
    host: str, port: int, ssl: bool, headers: Mapping[str, str] | None, settings: Any
) -> dict[str, str]:
    from ._address import Address, default_token

    given = dict(headers or {})
    has_token = any(name.lower() in _TOKEN_HEADERS for name in given)
    if not has_token and not getattr(settings, "chroma_client_auth_credentials", None):
        name = str(host).partition("://")[2] or str(host)
        token = default_token(Address(None, name.partition("/")[0], int(port), bool(ssl)))
        if token is not None:
            given["Authorization"] = f"Bearer {token}"
    return given


def _private_client(
    folder: str | None,
    settings: Any,
    tenant: str,
    database: str,
    binary: str | os.PathLike[str] | None,
) -> Any:
    from ._chroma_clients import client_class

    settings = _copied(settings)
    local = ServerSpec.here(find_binary(binary), folder, (), _TIMEOUT)
    lease = Lease(LoopbackSpec(local, allows_reset=bool(settings.allow_reset)))
    try:
        _check_store(lease.server)
        address = lease.server.address()
        settings.chroma_api_impl = "chromadb.api.fastapi.FastAPI"
        settings.chroma_server_host = address.host
        settings.chroma_server_http_port = address.port
        settings.chroma_server_ssl_enabled = False
        settings.chroma_client_auth_provider = None
        settings.chroma_server_headers = {
            **(settings.chroma_server_headers or {}),
            "Authorization": f"Bearer {lease.server.token}",
        }
        return client_class()(str(tenant), str(database), settings, lease)
    except BaseException:
        lease.release()
        raise


def _check_store(server: LoopbackServer) -> None:
    """Starts the server if it does not run, and asks it whether the store can be used."""
    from ._blocking import BlockingClient
    from ._version import USER_AGENT
    from .api.collections import list_collections

    client = BlockingClient(server, server.token, _TIMEOUT, USER_AGENT)
    try:
        client.run_call(list_collections())
    finally:
        client.close()
