"""Private servers for clients that know no Unix sockets: on a loopback port, with a token."""

from __future__ import annotations

import atexit
import os
import secrets
import threading
from typing import NamedTuple

from ._address import Address
from ._folder import PrivateFolder
from ._server import LocalServer, ServerSpec


class LoopbackSpec(NamedTuple):
    """How a server is started. Clients with the same one share a server.

    Without a store in ``local``, the server gets a temporary one, which is deleted with it.
    """

    local: ServerSpec
    allows_reset: bool = False


class LoopbackServer(LocalServer):
    """A server that is started when it is needed, and again, on another port, when it has died.

    :ivar token: what its clients have to send
    """

    def __init__(self, spec: LoopbackSpec) -> None:
        super().__init__(spec.local)
        self.loopback = spec
        self.token = secrets.token_urlsafe(32)

    def _start(self) -> Address:
        environment = {**self._spec.environment(), "ISOLITH_TOKEN": self.token}
        announced = self._launch(self._command(self._private_folder()), environment)
        return Address.of_url(_origin(announced["url"]))

    def _command(self, folder: PrivateFolder) -> list[str]:
        store = self._spec.store or folder.join("store")
        command = [self._spec.binary, "serve", "--listen", "127.0.0.1:0", "--store", store]
        command += ["--exit-with", str(os.getpid()), "--json", "--quiet", "--stateless"]
        command += ["--timeout", str(self._spec.timeout)]
        if self.loopback.allows_reset:
            command.append("--allow-reset")
        for allowed in self._spec.allowed:
            command += ["--allow", allowed]
        return command


def _origin(url: str) -> str:
    """Scheme, host and port of a URL."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"


class Lease:
    """A use of a server. The server is stopped when its last lease is released."""

    def __init__(self, spec: LoopbackSpec) -> None:
        self._is_released = False
        with _lock:
            while True:
                server = _shared.setdefault(spec, LoopbackServer(spec))
                server.users += 1
                # A finalizer may have given up the last lease in between.
                if _shared.get(spec) is server:
                    break
        self.server = server

    def release(self) -> None:
        """Gives it up. Doing so twice is harmless."""
        server = self.server
        with _lock:
            if self._is_released:
                return
            self._is_released = True
            server.users -= 1
            if server.users > 0:
                return
            if _shared.get(server.loopback) is server:
                del _shared[server.loopback]
        server.stop()


# A finalizer can run while this thread holds it.
_lock = threading.RLock()
_shared: dict[LoopbackSpec, LoopbackServer] = {}


def _in_child() -> None:
    global _lock
    # A thread that the child does not have may hold the old one.
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_in_child)


@atexit.register
def _stop_all() -> None:
    for server in list(_shared.values()):
        server.stop()
