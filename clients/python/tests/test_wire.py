"""What needs no server: parsers, vectors, batches, retries and how the package is imported."""

from __future__ import annotations

import base64
import json
import random
import struct
import subprocess
import sys
from array import array
from typing import Any

import pytest

import isolith
from isolith._batches import MAX_BYTES, MAX_RECORDS, id_batches, record_batches
from isolith._call import Endpoint, to_json
from isolith._events import EventParser, JobFollower
from isolith._http import ReplyParser, request_head
from isolith._retry import Attempts
from isolith._vectors import decode, encode

REPLIES = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello", True),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, b"", True),
    (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
    (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 200, b"x", False),
    (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        b"5\r\nhello\r\n10;x=y\r\n, 16 characters.\r\n0\r\nTrailer: 1\r\n\r\n",
        200,
        b"hello, 16 characters.",
        True,
    ),
    (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\n{}",
        413,
        b"{}",
        True,
    ),
]


@pytest.mark.parametrize(("data", "status", "body", "reusable"), REPLIES)
@pytest.mark.parametrize("size", [1, 3, 7, 10_000])
def test_replies_are_parsed_in_any_pieces(
    data: bytes, status: int, body: bytes, reusable: bool, size: int
) -> None:
    parser, taken = ReplyParser(), b""
    for start in range(0, len(data), size):
        assert not parser.is_complete
        parser.feed(data[start : start + size])
        taken += parser.take_body()
    assert parser.is_complete
    assert (parser.status, taken, parser.can_reuse_connection) == (status, body, reusable)


def test_a_reply_can_last_until_the_end_of_the_connection() -> None:
    parser = ReplyParser()
    parser.feed(b"HTTP/1.0 200 OK\r\n\r\nsome")
    parser.feed(b" text")
    assert not parser.is_complete
    parser.feed(b"")
    assert parser.is_complete and parser.take_body() == b"some text"
    assert not parser.can_reuse_connection


def test_a_reply_that_ends_early_is_an_error() -> None:
    for data in (b"", b"HTTP/1.1 200", REPLIES[0][0][:-1], REPLIES[4][0][:-3]):
        parser = ReplyParser()
        if data:
            parser.feed(data)
        with pytest.raises(EOFError):
            parser.feed(b"")


def test_bytes_after_a_reply_make_the_connection_useless() -> None:
    parser = ReplyParser()
    parser.feed(REPLIES[0][0] + b"HTTP/1.1 200 OK")
    assert parser.is_complete and not parser.can_reuse_connection


def test_random_bytes_do_not_break_the_parser() -> None:
    chance = random.Random(1)
    for _ in range(3000):
        data = bytearray(chance.choice(REPLIES)[0])
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        parser = ReplyParser()
        try:
            for start in range(0, len(data), 11):
                parser.feed(bytes(data[start : start + 11]))
            parser.feed(b"")
        except (isolith.UnexpectedReply, EOFError):
            pass


def test_heads_of_requests() -> None:
    head = request_head("GET", "/v1/status", "host: a\r\n", {"accept": "b"}, None)
    assert head == b"GET /v1/status HTTP/1.1\r\nhost: a\r\naccept: b\r\n\r\n"
    head = request_head("POST", "/", "", {}, 3)
    assert head.endswith(b"content-type: application/json\r\ncontent-length: 3\r\n\r\n")


def test_events_are_parsed_in_any_pieces() -> None:
    text = (
        'event: job\ndata: {"a":1}\n\n: comment\n\ndata: x\ndata: y\n\nevent: result\ndata: "ä"\n\n'
    )
    expected = [("job", '{"a":1}'), ("message", "x\ny"), ("result", '"ä"')]
    data = text.encode()
    for size in (1, 5, 1000):
        parser = EventParser()
        events = [
            event
            for start in range(0, len(data), size)
            for event in parser.feed(data[start : start + size])
        ]
        assert events == expected


def test_jobs_are_followed() -> None:
    seen: list[Any] = []
    follower = JobFollower(seen.append)
    follower.feed(b'event: progress\ndata: {"done":1}\n\nevent: result\ndata: {"ok":true}\n\n')
    assert (seen, follower.is_done, follower.result) == ([{"done": 1}], True, {"ok": True})
    failed = JobFollower(None)
    with pytest.raises(isolith.ForbiddenPath):
        failed.feed(b'event: error\ndata: {"error":{"code":"forbidden_path","message":"m"}}\n\n')


def test_vectors() -> None:
    expected = base64.b64encode(struct.pack("<3f", 1, 2.5, -3)).decode()
    same: list[Any] = [
        [1, 2.5, -3],
        (1, 2.5, -3),
        array("f", [1, 2.5, -3]),
        array("d", [1, 2.5, -3]),
        (number for number in (1, 2.5, -3)),
        memoryview(array("f", [1, 2.5, -3])),
    ]
    for vector in same:
        assert encode(vector) == expected
    assert decode(expected) == array("f", [1, 2.5, -3]) == decode([1, 2.5, -3])
    with pytest.raises(isolith.UnexpectedReply):
        decode("AAA=")


def test_batches_are_within_the_limits() -> None:
    records = [{"id": str(number), "vector": [1.0]} for number in range(MAX_RECORDS + 1)]
    sizes = [len(json.loads(body)["records"]) for body in record_batches(records)]
    assert sizes == [MAX_RECORDS, 1]
    large = [{"id": str(number), "document": "x" * 1_000_000} for number in range(7)]
    bodies = list(record_batches(large))
    assert max(map(len, bodies)) <= MAX_BYTES + 100 and len(bodies) == 3
    assert sum(len(json.loads(body)["records"]) for body in bodies) == 7
    assert list(record_batches([])) == []
    assert [len(batch) for batch in id_batches(map(str, range(25)), 10)] == [10, 10, 5]


def test_arguments_are_encoded() -> None:
    get = Endpoint("GET", "/a/{name}")
    call = get(lambda reply: reply, name="a/b ä", flag=True, number=1.5, nothing=None)
    assert call.target == "/v1/a/a%2Fb%20%C3%A4?flag=true&number=1.5"
    assert call.body is None and call.key is None and call.is_repeatable
    post = Endpoint("POST", "/a", keyed=True)
    call = post(lambda reply: reply, text="ä", nothing=None)
    assert call.body == '{"text":"ä"}'.encode()
    assert call.key and call.key != post(lambda reply: reply).key
    with pytest.raises(isolith.BadInput):
        get(lambda reply: reply, name="")
    with pytest.raises(isolith.BadInput):
        to_json([float("nan")])
    with pytest.raises(isolith.BadInput):
        post(lambda reply: reply, idempotency_key="line\r\nbreak")


def test_attempts_end() -> None:
    def attempts_for(error: isolith.Error, **options: Any) -> int:
        call = Endpoint("POST", "/a", **options)(lambda reply: reply)
        attempts, count = Attempts(call, 60), 0
        while True:
            try:
                attempts.pause_after(error)
            except isolith.Error as final:
                assert final is error
                return count
            count += 1

    refused, lost = isolith.ConnectionLost("refused"), isolith.ConnectionLost("lost")
    lost._may_have_arrived = True
    assert attempts_for(refused) == 4
    assert attempts_for(lost) == 0
    assert attempts_for(lost, keyed=True) == 4
    busy = isolith.Busy("busy")
    assert attempts_for(busy) == 0
    busy._retry_after = 1.0
    assert attempts_for(busy) == 8
    assert attempts_for(isolith.NotFound("no"), keyed=True) == 0


def test_the_import_is_small() -> None:
    program = (
        "import resource, sys\n"
        "def memory():\n"
        "    return int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize()\n"
        "before = memory()\n"
        "import isolith\n"
        "grown = memory() - before\n"
        "heavy = {'asyncio', 'subprocess', 'http.client', 'ssl', 'numpy', 'dataclasses'}\n"
        "print(grown, sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    grown, heavy = done.stdout.split(maxsplit=1)
    assert int(grown) < 15 << 20
    assert heavy.strip() == "[]"


def test_everything_exported_exists() -> None:
    for name in isolith.__all__:
        assert getattr(isolith, name) is not None
    with pytest.raises(AttributeError):
        isolith.nothing  # noqa: B018
    assert set(isolith.__all__) <= set(dir(isolith))


def test_methods_have_signatures_and_documentation() -> None:
    import inspect

    from isolith.api.memory import AsyncMemory, Memory

    runner: Any = None
    for memory in (Memory(runner), AsyncMemory(runner)):
        assert list(inspect.signature(memory.add).parameters)[:2] == ["text", "wing"]
        assert "verbatim" in (memory.add.__doc__ or "")
    assert inspect.iscoroutinefunction(AsyncMemory(runner).add)
    assert not inspect.iscoroutinefunction(Memory(runner).add)


def test_calls_share_a_connection(db: isolith.Client) -> None:
    notes = db.collection("notes")
    notes.upsert([{"id": "a", "vector": [1.0, 2.0], "document": "text"}])
    connections = list(db._transport._open)
    for _ in range(20):
        notes.get_one("a")
    assert list(db._transport._open) == connections
    assert len(connections) == 1
