"""The frames between a pool and its workers.

A frame is a header and a body::

    4 bytes   magic
    1 byte    kind
    1 byte    version of the protocol
    8 bytes   job id
    8 bytes   length of the body
    4 bytes   crc32 of the header and, in frames from a worker, of the body

All numbers are little-endian. A body toward a worker is not covered by the checksum: the pool is
trusted, its workers are not. A receiver must check a length against its limit before it
allocates memory.
"""

from __future__ import annotations

import struct
import zlib

MAGIC = b"\x89iso"
VERSION = 1

INIT, JOB, READY, REFUSED, RESULT, ERROR = range(1, 7)

_FIELDS = struct.Struct("<BBQQ")
_CHECK = struct.Struct("<I")

#: The body of a job: the length of the notes, then notes and call, both pickled.
NOTES = struct.Struct("<I")

HEADER_BYTES = len(MAGIC) + _FIELDS.size + _CHECK.size


class Violation(Exception):
    """A frame or its content is invalid."""


class Header:
    """A decoded header. `check` is the expected checksum, `partial` that of the header alone."""

    __slots__ = ("check", "job", "kind", "length", "partial")

    def __init__(self, kind: int, job: int, length: int, check: int, partial: int) -> None:
        self.kind = kind
        self.job = job
        self.length = length
        self.check = check
        self.partial = partial

    def verify(self, body: bytes | bytearray | memoryview) -> None:
        """Checks a body from a worker. Raises `Violation` if the checksum does not match."""
        if zlib.crc32(body, self.partial) != self.check:
            raise Violation("checksum does not match")


def pack(kind: int, job: int, parts: list[bytes | bytearray | memoryview], *, whole: bool) -> bytes:
    """Returns the header for a body made of `parts`. `whole` covers the body as well."""
    fields = _FIELDS.pack(kind, VERSION, job, sum(map(len, parts)))
    check = zlib.crc32(fields)
    if whole:
        for part in parts:
            check = zlib.crc32(part, check)
    return MAGIC + fields + _CHECK.pack(check)


def unpack(data: bytes | bytearray | memoryview, limit: int) -> Header:
    """Decodes a header of `HEADER_BYTES`. Raises `Violation` if it is invalid."""
    if data[: len(MAGIC)] != MAGIC:
        raise Violation("invalid magic number")
    fields = data[len(MAGIC) : len(MAGIC) + _FIELDS.size]
    kind, version, job, length = _FIELDS.unpack(fields)
    if version != VERSION:
        raise Violation(f"protocol version {version} instead of {VERSION}")
    if length > limit:
        raise Violation(f"length {length} exceeds the limit of {limit}")
    (check,) = _CHECK.unpack(data[len(MAGIC) + _FIELDS.size : HEADER_BYTES])
    return Header(kind, job, length, check, zlib.crc32(fields))
