"""What the arguments of ``open`` and ``connect`` mean, for both transports."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._address import Address, RunningServer, default_token
from ._call import check_header
from .errors import BadInput, Busy, Corrupt, Error

if TYPE_CHECKING:
    from ._server import LocalServer

DEFAULT_TIMEOUT = 30.0

# The limits of the server's option `--timeout`, in seconds.
_MIN_TIMEOUT, _MAX_TIMEOUT = 1, 3600


def private_server(
    path: str | os.PathLike[str] | None,
    timeout: float,
    binary: str | os.PathLike[str] | None,
    allow: Sequence[str | os.PathLike[str]] | None,
) -> LocalServer:
    """A lease of the server for a store. It is started when it is needed.

    :raises BadInput: if an argument is invalid
    :raises StartFailed: if there is no program to start
    """
    from ._binary import find_binary
    from ._server import ServerSpec, lease

    check_timeout(timeout)
    if isinstance(allow, (str, bytes, os.PathLike)):
        raise BadInput("allow must be a list of folders, not one")
    # The server is this user's own, and does what this process could do itself.
    folders = ["/"] if allow is None else [os.path.abspath(folder) for folder in allow]
    store = None if path is None else _absolute(os.fspath(path))
    seconds = min(max(math.ceil(timeout), _MIN_TIMEOUT), _MAX_TIMEOUT)
    return lease(ServerSpec.here(find_binary(binary), store, tuple(map(str, folders)), seconds))


def running_server(url: str, token: str | None, timeout: float) -> tuple[RunningServer, str | None]:
    """The server at a URL, and the token for it.

    :raises BadInput: if an argument is invalid
    """
    check_timeout(timeout)
    address = Address.of_url(url)
    if token is None:
        token = default_token(address)
    if token is not None:
        check_header("the token", token)
    return RunningServer(address), token


def check_timeout(timeout: float) -> None:
    """Refuses what is not a positive number of seconds."""
    if not (isinstance(timeout, (int, float)) and 0 < timeout < math.inf):
        raise BadInput(f"timeout must be a positive number of seconds, not {timeout!r}")


def prevents_opening(error: Error) -> bool:
    """Whether a store that cannot be read now cannot be opened at all.

    One that is damaged can be repaired with the handle, and one that is busy may soon be free.
    """
    return not isinstance(error, (Corrupt, Busy))


def _absolute(store: str) -> str:
    """The path of a store, or the URL of a database."""
    if not store:
        raise BadInput("the path of the store must not be empty")
    return store if "://" in store else os.path.realpath(store)
