"""Servers that somebody else has started, and the errors that they answer with."""

from __future__ import annotations

import os
import re
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Callable

import pytest

import isolith
from isolith._address import Address, default_token
from isolith.errors import class_of, from_details
from support import server_pid, wait_until

Served = Callable[..., isolith.Client]


def test_a_server_on_this_machine_is_used_with_its_token(served: Served) -> None:
    client = served()
    client.memory.add("over TCP")
    assert client.memory.search("TCP")[0].text == "over TCP"
    url = str(client._transport.server.running)
    with isolith.connect(url, token="wrong" * 5) as stranger:
        with pytest.raises(isolith.Unauthorized) as caught:
            stranger.status()
        assert caught.value.status == 401
    with isolith.connect(url) as other:
        assert len(list(other.memory.list())) == 1


def test_the_token_of_the_environment_is_used(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOLITH_TOKEN", "a token of the environment")
    with pytest.raises(isolith.BadInput, match="the token"):
        isolith.connect("http://127.0.0.1:1")
    monkeypatch.setenv("ISOLITH_TOKEN", "token-of-the-environment")
    assert served().status().ok
    # A private server needs none, and does not get it.
    with isolith.open(tmp_path / "other") as private:
        assert private.status().ok


def test_the_token_is_not_sent_to_other_machines(tmp_path: Path) -> None:
    token = tmp_path / "state" / "isolith" / "token"
    token.parent.mkdir(parents=True)
    token.write_text("secret-token-of-the-user\n")
    for url in ("http://127.0.0.1:7411", "http://localhost:7411", "https://[::1]:1"):
        assert default_token(Address.of_url(url)) == "secret-token-of-the-user"
    for url in ("http://example.com", "http://127.0.0.1.example.com", "unix:/tmp/socket"):
        assert default_token(Address.of_url(url)) is None


def test_urls() -> None:
    table = {
        "http://box:7411": "http://box:7411",
        "http://box:7411/mcp": "http://box:7411",
        "https://box.lan/": "https://box.lan:443",
        "http://[::1]:80": "http://[::1]:80",
        "unix:/run/isolith.sock": "unix:/run/isolith.sock",
    }
    for url, expected in table.items():
        assert str(Address.of_url(url)) == expected
    for url in ("box:7411", "ftp://box", "http://", "http://a:b", "http://box/path", "unix:", ""):
        with pytest.raises(isolith.BadInput):
            isolith.connect(url)
    for timeout in (0, -1, float("inf"), float("nan")):
        with pytest.raises(isolith.BadInput):
            isolith.connect("http://box", timeout=timeout)


def test_a_private_server_can_be_shared_over_its_socket(db: isolith.Client) -> None:
    address = db._transport.server.running
    with isolith.connect(str(address)) as other:
        other.memory.add("from another handle")
    assert len(list(db.memory.list())) == 1


def test_a_server_that_does_not_run_is_reported() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        with isolith.connect(f"http://127.0.0.1:{port}") as client:
            started = time.monotonic()
            with pytest.raises(isolith.ConnectionLost, match="cannot connect") as caught:
                client.status()
            assert time.monotonic() - started < 3
    assert isinstance(caught.value, ConnectionError)
    with isolith.connect("unix:/nowhere/socket") as client, pytest.raises(isolith.ConnectionLost):
        client.status()


@pytest.fixture
def fake() -> Callable[[bytes], isolith.Client]:
    """A server that answers every connection with the same bytes, and closes it."""

    def serve(reply: bytes) -> isolith.Client:
        listener = socket.create_server(("127.0.0.1", 0))

        def answer() -> None:
            while True:
                try:
                    connection = listener.accept()[0]
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(reply)

        threading.Thread(target=answer, daemon=True).start()
        return isolith.connect(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=2)

    return serve


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]",
        b"HTTP/1.1 404 Not Found\r\n\r\n<html>nothing here</html>",
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
    ],
)
def test_replies_of_other_servers_are_reported(
    fake: Callable[[bytes], isolith.Client], reply: bytes
) -> None:
    with fake(reply) as client, pytest.raises(isolith.UnexpectedReply):
        client.status()


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n{"])
def test_connections_that_break_are_reported(
    fake: Callable[[bytes], isolith.Client], reply: bytes
) -> None:
    with fake(reply) as client, pytest.raises(isolith.ConnectionLost):
        client.status()


def test_a_busy_server_is_asked_again(fake: Callable[[bytes], isolith.Client]) -> None:
    body = b'{"error":{"code":"queue_full","message":"busy","hint":"try again"}}'
    head = b"HTTP/1.1 503 Busy\r\nretry-after: 1\r\ncontent-length: %d\r\n\r\n" % len(body)
    started = time.monotonic()
    with fake(head + body) as client, pytest.raises(isolith.Busy) as caught:
        client.status()
    assert 0.5 < time.monotonic() - started < 3
    assert caught.value.code == "queue_full"


def test_a_silent_server_is_given_up(db: isolith.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isolith._blocking.GRACE", 0.1)
    pid = server_pid(db)
    with isolith.connect(str(db._transport.server.running), timeout=0.2) as client:
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(isolith.Timeout) as caught:
                client.status()
        finally:
            os.kill(pid, signal.SIGCONT)
        assert isinstance(caught.value, TimeoutError)
        assert wait_until(lambda: client.status().ok)


def test_the_time_limit_of_a_call(store: Path) -> None:
    with isolith.open(store, timeout=1) as client:
        client.memory.add("text")
        with pytest.raises(isolith.Timeout) as caught:
            client.graph.query(
                "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b UNWIND range(1, 99) AS c "
                "WITH a, b, c WHERE a * b * c = -1 RETURN count(*)"
            )
        # It is the error of the server, not of the client.
        assert caught.value.status == 504


def test_a_killed_worker_is_not_noticed(db: isolith.Client) -> None:
    db.memory.add("text")
    for _ in range(3):
        for store in db.status().stores:
            for worker in store.workers:
                if worker.pid is not None:
                    os.kill(worker.pid, signal.SIGKILL)
        assert db.memory.search("text")[0].text == "text"
        assert db.memory.add(f"text {time.monotonic()}").created
    (store,) = db.status().stores
    assert sum(store.crashes.values()) >= 1
    assert wait_until(lambda: db.status().ok)


def test_a_crash_is_reported_with_its_details(db: isolith.Client) -> None:
    db.memory.add("text")
    query = (
        "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b UNWIND range(1, 99) AS c "
        "WITH a, b, c WHERE a * b * c = -1 RETURN count(*)"
    )
    ended = threading.Event()

    def crash_workers() -> None:
        crashed: set[int] = set()
        while not ended.wait(0.05):
            for store in db.status().stores:
                for worker in store.workers:
                    if worker.job == "cypher" and worker.pid and worker.pid not in crashed:
                        crashed.add(worker.pid)
                        os.kill(worker.pid, signal.SIGABRT)

    killer = threading.Thread(target=crash_workers)
    killer.start()
    try:
        with pytest.raises(isolith.WorkerFailed) as caught:
            db.graph.query(query)
    finally:
        ended.set()
        killer.join()
    report = db.crashes(limit=1)[0]
    assert (report.crash_class, report.signal) == ("crash", signal.SIGABRT)
    assert report.job is not None and report.job.kind == "cypher" and report.role
    assert db.crashes(worker_pid=report.worker_pid)[0] == report
    # A job that is quarantined at once does not say which worker died last.
    if caught.value.worker_pid is not None:
        assert caught.value.report == report.report
    assert db.memory.search("text").hits


def test_every_documented_code_has_a_class() -> None:
    page = Path(__file__).parents[3] / "docs" / "commands.md"
    if not page.exists():
        pytest.skip("the tests run without the documentation")
    section = page.read_text().split("## Error codes")[1].split("\n## ")[0]
    codes: list[str] = []
    for line in section.splitlines():
        if line.startswith("| `"):
            codes += re.findall(r"`([a-z_]+)`", line.split("|")[1])
    assert len(codes) > 25
    missing = [code for code in codes if class_of(code) is isolith.Error]
    assert missing == []
    for code in codes:
        assert from_details({"code": code, "message": "m"}).code == code


def test_details_of_crashes() -> None:
    error = from_details(
        {
            "code": "worker_died",
            "message": "a worker crashed",
            "hint": "see the report",
            "crash": {"class": "crash", "signal": 11, "report": "/store/crashes/1.json"},
        },
        500,
    )
    assert isinstance(error, isolith.WorkerCrashed)
    assert (error.crash_class, error.signal) == ("crash", 11)
    assert error.report == "/store/crashes/1.json"
    assert str(error) == "a worker crashed (see the report)"
    assert error.to_dict()["code"] == "worker_died"
    import pickle

    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, isolith.WorkerCrashed)
    assert (copy.signal, copy.hint, copy.status) == (11, "see the report", 500)
    assert type(from_details({"code": "of_the_future", "message": "m"})) is isolith.Error
