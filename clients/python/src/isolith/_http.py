"""HTTP/1.1 without input and output: bytes of requests, and a parser of replies.

Both transports use it, the blocking one and that of asyncio. It knows what Isolith's server and
the proxies before it send: replies with a length, in chunks, or until the end of the connection.
``http.client`` would do for one of the transports, but importing it takes longer than all of
Isolith.
"""

from __future__ import annotations

from .errors import UnexpectedReply

MAX_HEAD_BYTES = 64 << 10

_HEAD, _BODY, _CHUNK_SIZE, _CHUNK_END, _TRAILERS, _UNTIL_EOF, _DONE = range(7)


def request_head(
    method: str, target: str, fixed: str, extra: dict[str, str], body_length: int | None
) -> bytes:
    """The head of a request. ``fixed`` are the header lines that all requests have."""
    lines = [f"{method} {target} HTTP/1.1\r\n{fixed}"]
    for name, value in extra.items():
        lines.append(f"{name}: {value}\r\n")
    if body_length is not None:
        lines.append(f"content-type: application/json\r\ncontent-length: {body_length}\r\n")
    lines.append("\r\n")
    return "".join(lines).encode("latin-1")


class ReplyParser:
    """Parses one reply from the bytes that it is fed.

    :ivar status: the status, 0 until the head is complete
    :ivar headers: the headers, with names in lower case
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._keeps_alive = True
        self._state = _HEAD
        self._buffer = b""
        self._left = 0
        self._body: list[bytes] = []

    @property
    def has_head(self) -> bool:
        """Whether status and headers are known."""
        return self._state != _HEAD

    @property
    def is_complete(self) -> bool:
        """Whether the whole reply was fed."""
        return self._state == _DONE

    @property
    def has_begun(self) -> bool:
        """Whether any byte of the reply was fed."""
        return self.status != 0 or bool(self._buffer)

    @property
    def can_reuse_connection(self) -> bool:
        """Whether another request can follow on the connection."""
        return self._state == _DONE and self._keeps_alive and not self._buffer

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the connection; empty ones are its end.

        :raises UnexpectedReply: if this is not a reply of an HTTP server
        :raises EOFError: if the connection ended in the middle
        """
        if not data:
            if self._state == _UNTIL_EOF:
                self._state = _DONE
            elif self._state != _DONE:
                raise EOFError
            return
        self._buffer = self._buffer + data if self._buffer else data
        while self._buffer and self._state != _DONE and self._step():
            pass

    def take_body(self) -> bytes:
        """The bytes of the body that came since the last call."""
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body.clear()
        return body

    def _step(self) -> bool:
        """Consumes a part of the buffer; whether there may be more to consume."""
        if self._state == _HEAD:
            return self._read_head()
        if self._state == _BODY:
            return self._read_body(_CHUNK_END if self._is_chunked else _DONE)
        if self._state == _UNTIL_EOF:
            self._body.append(self._buffer)
            self._buffer = b""
            return False
        return self._read_line()

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD_BYTES:
                raise UnexpectedReply("the head of the reply is too long")
            if not b"HTTP/1."[: len(self._buffer)] == self._buffer[:7]:
                raise UnexpectedReply("the server does not speak HTTP")
            return False
        head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
        lines = head.decode("latin-1").split("\r\n")
        parts = lines[0].split(" ", 2)
        if len(parts) < 2 or not parts[0].startswith("HTTP/1.") or not _is_number(parts[1]):
            raise UnexpectedReply("the server does not speak HTTP")
        self.status = int(parts[1])
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        if self.status < 200:
            self.status = 0
            return True
        self._begin_body(parts[0])
        return True

    def _begin_body(self, version: str) -> None:
        headers = self.headers
        closes = "close" if version == "HTTP/1.0" else "keep-alive"
        self._keeps_alive = headers.get("connection", closes).lower() != "close"
        self._is_chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        length = headers.get("content-length")
        if self.status in (204, 304):
            self._state = _DONE
        elif self._is_chunked:
            self._state = _CHUNK_SIZE
        elif length is None:
            self._keeps_alive = False
            self._state = _UNTIL_EOF
        elif _is_number(length):
            self._left = int(length)
            self._state = _BODY if self._left else _DONE
        else:
            raise UnexpectedReply(f"the reply has an invalid length: {length!r}")

    def _read_body(self, after: int) -> bool:
        part = self._buffer[: self._left]
        self._buffer = self._buffer[self._left :]
        self._body.append(part)
        self._left -= len(part)
        if self._left:
            return False
        self._state = after
        return True

    def _read_line(self) -> bool:
        line, found, rest = self._buffer.partition(b"\r\n")
        if not found:
            if len(line) > MAX_HEAD_BYTES:
                raise UnexpectedReply("a line of the reply is too long")
            return False
        self._buffer = rest
        if self._state == _CHUNK_END:
            self._state = _CHUNK_SIZE
        elif self._state == _TRAILERS:
            self._state = _TRAILERS if line else _DONE
        else:
            try:
                self._left = int(line.partition(b";")[0], 16)
            except ValueError:
                raise UnexpectedReply("the reply has an invalid chunk") from None
            self._state = _BODY if self._left else _TRAILERS
        return True


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
