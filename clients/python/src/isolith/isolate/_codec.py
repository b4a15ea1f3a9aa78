"""Encodes results as plain data, so that decoding them cannot run code.

An encoded value is a JSON document plus attachments::

    4 bytes   length of the JSON document; the highest bit says whether it contains markers
    4 bytes   number of attachments
    8 bytes   length of each attachment
    the JSON document, in ASCII
    the attachments

JSON represents `None`, booleans, numbers, strings, lists and dictionaries with string keys. Other
types are markers, objects with the single key `"\\0"`. Byte strings, long lists of floats and
numpy arrays are attachments. All numbers are little-endian.
"""

from __future__ import annotations

import json
import struct
import sys
from array import array

from ._wire import Violation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Union

    Part = Union[bytes, bytearray, memoryview]

_MARK = "\0"
_COUNTS = struct.Struct("<II")
_MARKED = 1 << 31
_MAX_DEPTH = 150
#: Shorter lists of floats stay in the JSON document.
_BULK = 16
#: More attachments than this are joined, because `writev` takes a limited number of parts.
_MANY = 64

_JSON = frozenset((str, bool, float, type(None)))
_JSON_OR_INT = _JSON | {int}
_STR = frozenset((str,))
_FLOAT = frozenset((float,))
_INT_RANGE = range(-(2**63), 2**64)
_DATES = ("date", "datetime", "time")
_ARRAY_KINDS = "biufcSUmM"


_to_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class Unsupported(Exception):
    """A value contains something that is not plain data."""


def encode(value: Any, *, numpy: bool = False) -> list[Part]:
    """Returns the parts of the encoded value. Raises `Unsupported`."""
    encoder = _Encoder(numpy)
    plain = encoder.convert(value, 0)
    text = _to_json(plain).encode()
    if len(text) >= _MARKED:
        raise Unsupported("the result exceeds 2 GB of JSON")
    attachments = encoder.attachments
    flag = _MARKED if encoder.marked else 0
    lengths = struct.pack(f"<{len(attachments)}Q", *[len(part) for part in attachments])
    head = _COUNTS.pack(len(text) | flag, len(attachments)) + lengths + text
    if len(attachments) > _MANY:
        attachments = [b"".join(attachments)]
    return [head, *attachments]


class _Encoder:
    def __init__(self, numpy: bool) -> None:
        self.attachments: list[Part] = []
        self.marked = False
        self._numpy = numpy

    def convert(self, value: Any, depth: int) -> Any:
        """Returns a value that `json.dumps` represents; lists and dictionaries that need no
        change are returned as they are."""
        kind = type(value)
        if kind in _JSON:
            return value
        if kind is int:
            return value if value in _INT_RANGE else self._mark("int", format(value, "x"))
        if depth >= _MAX_DEPTH:
            raise Unsupported("it is nested too deeply or contains itself")
        if kind is list:
            return self._items(value, depth)
        if kind is dict:
            return self._dict(value, depth)
        if kind is tuple or kind is set or kind is frozenset:
            return self._mark(kind.__name__, self._items(list(value), depth))
        if kind is bytes or kind is bytearray:
            return self._mark(kind.__name__, self._attach(value))
        if kind is memoryview:
            return self._mark("bytes", self._attach(value.tobytes()))
        if kind is complex:
            return self._mark("complex", [value.real, value.imag])
        return self._rarer(value, kind, depth)

    def _items(self, items: list[Any], depth: int) -> Any:
        kinds = set(map(type, items))
        if kinds == _FLOAT and len(items) >= _BULK:
            return self._mark("floats", self._attach(_floats_to_bytes(items)))
        if _is_json(kinds, items):
            return items
        return [self.convert(item, depth + 1) for item in items]

    def _dict(self, value: dict[Any, Any], depth: int) -> Any:
        if not set(map(type, value)) <= _STR or _MARK in value:
            pairs = [
                [self.convert(key, depth + 1), self.convert(item, depth + 1)]
                for key, item in value.items()
            ]
            return self._mark("dict", pairs)
        items = value.values()
        if _is_json(set(map(type, items)), items):
            return value
        return {key: self.convert(item, depth + 1) for key, item in value.items()}

    def _rarer(self, value: Any, kind: type, depth: int) -> Any:
        module, name = kind.__module__, kind.__qualname__
        if module == "datetime" and name in _DATES:
            return self._mark(name, value.isoformat())
        if module == "datetime" and name == "timedelta":
            return self._mark(name, [value.days, value.seconds, value.microseconds])
        if (module, name) == ("decimal", "Decimal"):
            return self._mark("decimal", str(value))
        if (module, name) == ("uuid", "UUID"):
            return self._mark("uuid", value.hex)
        if module.partition(".")[0] == "numpy":
            if name == "ndarray":
                return self._ndarray(value)
            if hasattr(value, "item"):
                item = value.item()
                if type(item) is not kind:
                    return self.convert(item, depth + 1)
        raise Unsupported(f"it contains an object of type {module}.{name}")

    def _ndarray(self, value: Any) -> Any:
        if not self._numpy:
            raise Unsupported("it contains a numpy array; pass numpy=True or return a list")
        if value.dtype.kind not in _ARRAY_KINDS:
            raise Unsupported(f"it contains a numpy array of type {value.dtype}")
        content = self._attach(value.tobytes())
        return self._mark("ndarray", [value.dtype.str, list(value.shape), content])

    def _attach(self, content: Part) -> int:
        self.attachments.append(content)
        return len(self.attachments) - 1

    def _mark(self, name: str, content: Any) -> dict[str, Any]:
        self.marked = True
        return {_MARK: [name, content]}


def _is_json(kinds: set[type], items: Any) -> bool:
    if kinds <= _JSON:
        return True
    if not kinds <= _JSON_OR_INT:
        return False
    numbers = items if len(kinds) == 1 else [item for item in items if type(item) is int]
    return min(numbers) in _INT_RANGE and max(numbers) in _INT_RANGE


def decode(body: bytes | bytearray | memoryview, *, numpy: bool = False) -> Any:
    """Returns the value. Raises `Violation` if `body` is not the encoding of one."""
    view = memoryview(body)
    try:
        size, number = _COUNTS.unpack_from(view)
        marked, size = bool(size & _MARKED), size & ~_MARKED
        at = _COUNTS.size
        if number * 8 > len(view):
            raise Violation("too many attachments")
        lengths = struct.unpack_from(f"<{number}Q", view, at)
        at += 8 * number
        if at + size + sum(lengths) != len(view):
            raise Violation("lengths do not match")
        text = str(view[at : at + size], "ascii")
        at += size
        if not marked:
            return json.loads(text)
        attachments = []
        for length in lengths:
            attachments.append(view[at : at + length])
            at += length
        return json.loads(text, object_hook=_Decoder(attachments, numpy).restore)
    except Violation:
        raise
    except Exception as error:
        # Whatever a damaged document causes: it is never the caller's fault.
        raise Violation(f"invalid result: {type(error).__name__}: {error}") from None


class _Decoder:
    def __init__(self, attachments: list[memoryview], numpy: bool) -> None:
        self._attachments = attachments
        self._numpy = numpy

    def restore(self, value: dict[str, Any]) -> Any:
        if _MARK not in value:
            return value
        name, content = value[_MARK]
        if len(value) != 1 or type(name) is not str:
            raise Violation("invalid marker")
        restore = getattr(self, f"_restore_{name}", None)
        if restore is None:
            raise Violation(f"unknown marker {name!r}")
        return restore(content)

    def _restore_int(self, content: str) -> int:
        return int(content, 16)

    def _restore_tuple(self, content: list[Any]) -> tuple[Any, ...]:
        return tuple(content)

    def _restore_set(self, content: list[Any]) -> set[Any]:
        return set(content)

    def _restore_frozenset(self, content: list[Any]) -> frozenset[Any]:
        return frozenset(content)

    def _restore_dict(self, content: list[Any]) -> dict[Any, Any]:
        return {key: item for key, item in content}  # noqa: C416 (a pair must have two parts)

    def _restore_bytes(self, content: int) -> bytes:
        return bytes(self._attachments[content])

    def _restore_bytearray(self, content: int) -> bytearray:
        return bytearray(self._attachments[content])

    def _restore_floats(self, content: int) -> list[float]:
        numbers = array("d")
        numbers.frombytes(self._attachments[content])
        if sys.byteorder == "big":
            numbers.byteswap()
        return numbers.tolist()

    def _restore_complex(self, content: list[float]) -> complex:
        return complex(*content)

    def _restore_date(self, content: str) -> Any:
        import datetime

        return datetime.date.fromisoformat(content)

    def _restore_datetime(self, content: str) -> Any:
        import datetime

        return datetime.datetime.fromisoformat(content)

    def _restore_time(self, content: str) -> Any:
        import datetime

        return datetime.time.fromisoformat(content)

    def _restore_timedelta(self, content: list[int]) -> Any:
        import datetime

        return datetime.timedelta(*content)

    def _restore_decimal(self, content: str) -> Any:
        import decimal

        return decimal.Decimal(content)

    def _restore_uuid(self, content: str) -> Any:
        import uuid

        return uuid.UUID(hex=content)

    def _restore_ndarray(self, content: list[Any]) -> Any:
        if not self._numpy:
            raise Violation("a numpy array was not asked for")
        import numpy

        name, shape, index = content
        dtype = numpy.dtype(name)
        if dtype.kind not in _ARRAY_KINDS:
            raise Violation(f"numpy array of type {dtype}")
        # A copy, because the array must be writable and must not keep the frame alive.
        return numpy.frombuffer(self._attachments[index], dtype).reshape(shape).copy()


def _floats_to_bytes(items: list[float]) -> bytes:
    numbers = array("d", items)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()
