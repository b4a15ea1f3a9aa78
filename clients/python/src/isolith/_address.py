"""Where a server listens."""

from __future__ import annotations

import os
from typing import NamedTuple

from .errors import BadInput


class Address(NamedTuple):
    """A Unix socket if there is a path, otherwise a TCP port."""

    path: str | None = None
    host: str = ""
    port: int = 0
    uses_tls: bool = False

    @classmethod
    def of_url(cls, url: str) -> Address:
        """The address in ``http://HOST:PORT``, ``https://HOST:PORT`` or ``unix:PATH``.

        :raises BadInput: if it is none of these
        """
        from urllib.parse import urlsplit

        if url.startswith("unix:"):
            path = url[len("unix:") :]
            if not path:
                raise BadInput("unix: must be followed by the path of a socket")
            return cls(path=os.path.abspath(path))
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise BadInput(f"{url!r} is not a URL: {error}") from None
        if parts.scheme not in ("http", "https") or not host or parts.username:
            raise BadInput(
                f"{url!r} is not the URL of a server",
                hint="pass http://HOST:PORT, https://HOST:PORT or unix:PATH",
            )
        if parts.path.rstrip("/") not in ("", "/v1", "/mcp") or parts.query or parts.fragment:
            raise BadInput(f"{url!r} has a path: pass only the scheme, host and port")
        uses_tls = parts.scheme == "https"
        return cls(None, host, port or (443 if uses_tls else 80), uses_tls)

    @property
    def host_header(self) -> str:
        """The value of the header ``Host``."""
        if self.path is not None:
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only processes of this machine can listen there."""
        host = self.host.lower()
        return self.path is None and (
            host in ("localhost", "::1") or (host.startswith("127.") and _is_ipv4(host))
        )

    def __str__(self) -> str:
        if self.path is not None:
            return f"unix:{self.path}"
        return f"{'https' if self.uses_tls else 'http'}://{self.host_header}"


def _is_ipv4(host: str) -> bool:
    parts = host.split(".")
    return len(parts) == 4 and all(part.isdigit() for part in parts)


class RunningServer:
    """A server that somebody else has started."""

    def __init__(self, address: Address) -> None:
        self.running: Address | None = address
        self._address = address

    def address(self, dead: Address | None = None) -> Address:
        """Its address, dead or not: it may be restarted there."""
        return self._address


def default_token(address: Address) -> str | None:
    """The token in ``ISOLITH_TOKEN``, else for a server on this machine the one it generated."""
    token = os.environ.get("ISOLITH_TOKEN")
    if token or not address.is_loopback:
        return token or None
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(
        os.path.expanduser("~"), ".local", "state"
    )
    try:
        with open(os.path.join(state, "isolith", "token"), encoding="ascii") as file:
            return file.read().strip() or None
    except (OSError, UnicodeDecodeError):
        return None
