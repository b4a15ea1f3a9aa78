"""Results on the wire: plain data comes back as it was, and damage is noticed."""

from __future__ import annotations

import collections
import contextlib
import datetime
import decimal
import enum
import math
import random
import uuid
import zlib
from typing import Any

import pytest

from isolith.isolate import _codec, _wire

PLAIN: list[Any] = [
    None,
    True,
    0,
    -(2**63),
    2**64 - 1,
    2**64,
    -(10**6000),
    1.5,
    -0.0,
    math.inf,
    "",
    "text \0 \ud800 ü 🎈",
    b"",
    b"\0\xff" * 100,
    bytearray(b"abc"),
    [],
    [1, "two", None, [3.0, [True]]],
    (),
    (1, (2, [3])),
    {},
    {"a": 1, "b": {"c": [1, 2]}},
    {1: "one", (2, 3): b"x", None: {}},
    {"\0": ["tuple", [1]]},
    {"\0": 1, "other": 2},
    {"x": {"\0": 5}},
    {1, 2, 3},
    frozenset({"a", (1, 2)}),
    1 + 2j,
    [float(n) / 3 for n in range(100)],
    [[0.1] * 20, [0.2] * 20],
    [math.nan.hex()] * 20,
    [b"part"] * 200,
    {"rows": [{"id": n, "score": n / 7, "tags": ("x",)} for n in range(50)]},
    datetime.date(2026, 2, 28),
    datetime.datetime(2026, 2, 28, 1, 2, 3, 4, tzinfo=datetime.timezone.utc),
    datetime.time(23, 59),
    datetime.timedelta(days=-1, microseconds=5),
    decimal.Decimal("1.10"),
    uuid.UUID(int=5),
]


def joined(value: Any, **options: bool) -> bytes:
    return b"".join(_codec.encode(value, **options))


@pytest.mark.parametrize("value", PLAIN, ids=[str(n) for n in range(len(PLAIN))])
def test_plain_data_comes_back_equal_and_of_the_same_type(value: Any) -> None:
    back = _codec.decode(joined(value))
    assert back == value
    assert type(back) is type(value)
    if type(value) not in (int, set, frozenset):
        # Also what is inside, and the sign of zero.
        assert repr(back) == repr(value)


def test_not_a_number_comes_back() -> None:
    assert math.isnan(_codec.decode(joined(math.nan)))
    assert all(math.isnan(item) for item in _codec.decode(joined([math.nan] * 20)))


class Color(enum.IntEnum):
    RED = 1


Point = collections.namedtuple("Point", "x y")
nested: list[Any] = []
nested.append(nested)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (object(), "type builtins.object"),
        ({"a": [object()]}, "type builtins.object"),
        (Color.RED, "Color"),
        ([1, Color.RED], "Color"),
        (Point(1, 2), "Point"),
        (collections.OrderedDict(), "OrderedDict"),
        (len, "builtin_function"),
        (nested, "contains itself"),
    ],
)
def test_everything_else_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(_codec.Unsupported, match=reason):
        _codec.encode(value)


def test_numpy_arrays_only_if_asked_for() -> None:
    numpy = pytest.importorskip("numpy")
    for array in (
        numpy.arange(6, dtype="<f4").reshape(2, 3),
        numpy.zeros((0, 4)),
        numpy.array(["a", "bc"]),
        numpy.asfortranarray(numpy.arange(6).reshape(2, 3)),
        numpy.array(5),
    ):
        with pytest.raises(_codec.Unsupported, match="numpy=True"):
            _codec.encode([array])
        data = joined([array], numpy=True)
        with pytest.raises(_wire.Violation, match="not asked for"):
            _codec.decode(data)
        (back,) = _codec.decode(data, numpy=True)
        assert back.dtype == array.dtype and back.shape == array.shape
        assert (back == array).all() and back.flags.writeable
    with pytest.raises(_codec.Unsupported, match="type object"):
        _codec.encode(numpy.array([object()]), numpy=True)
    assert _codec.decode(joined([numpy.float64(0.5), numpy.int32(7)])) == [0.5, 7]


@pytest.mark.parametrize(
    "document",
    [
        b'{"\\u0000":["int","zz"]}',
        b'{"\\u0000":["bytes",0]}',
        b'{"\\u0000":["bytes",null]}',
        b'{"\\u0000":["set",[[]]]}',
        b'{"\\u0000":["restore",1]}',
        b'{"\\u0000":[["x"],1]}',
        b'{"\\u0000":["tuple"]}',
        b'{"\\u0000":7}',
        b'{"\\u0000":["ndarray",["|O",[1],0]]}',
        b'{"\\u0000":["decimal","x"]}',
        b"[" * 100_000,
        b"",
        b"\xff",
    ],
)
def test_invalid_documents_are_violations(document: bytes) -> None:
    head = _codec._COUNTS.pack(len(document) | _codec._MARKED, 0)
    with pytest.raises(_wire.Violation):
        _codec.decode(head + document, numpy=True)


def test_damage_is_a_violation_or_another_value() -> None:
    data = joined({"a": (1, b"bytes"), "b": [0.5] * 20, "c": {1: {2}}})
    for size in range(len(data)):
        with pytest.raises(_wire.Violation):
            _codec.decode(data[:size])
    numbers = random.Random(1)
    for _ in range(3000):
        damaged = bytearray(data)
        for _ in range(numbers.randint(1, 4)):
            damaged[numbers.randrange(len(damaged))] = numbers.randrange(256)
        with contextlib.suppress(_wire.Violation):
            _codec.decode(damaged)


def test_frames() -> None:
    body = b"some body"
    data = _wire.pack(_wire.RESULT, 7, [body[:4], body[4:]], whole=True)
    assert len(data) == _wire.HEADER_BYTES
    header = _wire.unpack(data, 100)
    assert (header.kind, header.job, header.length) == (_wire.RESULT, 7, len(body))
    header.verify(body)
    with pytest.raises(_wire.Violation, match="checksum"):
        header.verify(b"some bodx")
    with pytest.raises(_wire.Violation, match="exceeds the limit of 8"):
        _wire.unpack(data, 8)
    for index in range(len(data)):
        damaged = bytearray(data)
        damaged[index] ^= 1
        with pytest.raises(_wire.Violation):
            _wire.unpack(damaged, 100).verify(body)


def test_the_checksum_is_crc32() -> None:
    header = _wire.unpack(_wire.pack(_wire.JOB, 1, [b"x"], whole=False), 10)
    assert header.check == header.partial
    whole = _wire.pack(_wire.JOB, 1, [b"x"], whole=True)
    assert _wire.unpack(whole, 10).check == zlib.crc32(b"x", header.partial)
