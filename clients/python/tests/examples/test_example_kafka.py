"""The Kafka consumer: crashes, restarts and duplicates, and every document exactly once.

The broker is the one that librdkafka has for tests. It speaks Kafka's protocol over TCP and has
consumer groups with offsets, all in memory. It runs in this process; consumers run in others.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import isolith
from examples.example_faults import count_in, kill_servers
from support import wait_until

kafka: Any = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka")

EXAMPLE = Path(__file__).parents[2] / "examples" / "kafka_consumer.py"

# Long enough for the broker's first rebalance, which takes 3 seconds.
SESSION_TIMEOUT = 6000


def document(number: int, version: int = 0) -> bytes:
    vector = [float(number % 10), 1.0, 0.5]
    metadata = {"number": number, "version": version}
    return json.dumps(
        {"id": f"doc-{number}", "embedding": vector, "document": "text", "metadata": metadata}
    ).encode()


def documents_in(store: Path) -> dict[str, Any]:
    with isolith.open(store) as db:
        records = list(db.collection("rag_documents").records())
    found = {record.id: record.metadata["version"] for record in records}
    assert len(found) == len(records)
    return found


class Broker:
    """A broker in this process."""

    def __init__(self) -> None:
        # The brokers live as long as this client.
        self._owner = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
        brokers = self._owner.list_topics(timeout=10).brokers.values()
        self.address = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
        self._producer = kafka.Producer({"bootstrap.servers": self.address})

    def send(self, topic: str, *values: bytes) -> None:
        for value in values:
            self._producer.produce(topic, key=value[:20], value=value)
        assert self._producer.flush(20) == 0

    def received(self, topic: str, number: int) -> list[Any]:
        """The messages of a topic; at least so many."""
        consumer = kafka.Consumer({"bootstrap.servers": self.address, "group.id": "test"})
        partitions = self._owner.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([kafka.TopicPartition(topic, one, 0) for one in partitions])
        messages: list[Any] = []

        def has_enough() -> bool:
            messages.extend(consumer.consume(100, timeout=0.1))
            return len(messages) >= number

        assert wait_until(has_enough, 20)
        consumer.close()
        return messages

    def lag(self, topic: str, group: str) -> int:
        """How many messages are not committed."""
        consumer = kafka.Consumer({"bootstrap.servers": self.address, "group.id": group})
        partitions = self._owner.list_topics(topic, timeout=10).topics[topic].partitions
        places = [kafka.TopicPartition(topic, one) for one in partitions]
        lag = 0
        for place in consumer.committed(places, timeout=10):
            low, high = consumer.get_watermark_offsets(place, timeout=10)
            lag += high - max(place.offset, low)
        consumer.close()
        return lag


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def run(
    broker: Broker, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """Starts consumers."""
    started: list[subprocess.Popen[bytes]] = []
    # Consumers that are killed leave the folders of their servers to the next one.
    (tmp_path / "t").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, str(EXAMPLE), "--bootstrap", broker.address, "--batch", "20"]
        command += ["--store", str(store), "--session-timeout", str(SESSION_TIMEOUT)]
        started.append(subprocess.Popen(command))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def test_every_document_exactly_once(broker: Broker, run: Any, store: Path) -> None:
    broker.send("documents", *(document(number) for number in range(1000)))
    bad = [b"{", b'{"id": 7}', b'{"id": "short", "embedding": [1]}', b'{"id": "empty"}']
    broker.send("documents", *bad)
    with isolith.open(store) as db:
        consumer = run()
        assert wait_until(lambda: count_in(db) > 0, 30)
        consumer.kill()
        consumer.wait()
        # Duplicates, and new versions of documents.
        broker.send("documents", *(document(number) for number in range(900, 1000)))
        broker.send("documents", *(document(number, version=1) for number in range(100)))
        broker.send("documents", *(document(number) for number in range(1000, 1500)))
        consumer = run()
        before = count_in(db)
        assert wait_until(lambda: count_in(db) > before, 40)
        assert kill_servers(db) == 1
        assert wait_until(lambda: count_in(db) == 1500, 40)
        assert wait_until(lambda: broker.lag("documents", "isolith") == 0, 20)
    consumer.send_signal(signal.SIGTERM)
    assert consumer.wait(20) == 0
    expected = {f"doc-{number}": int(number < 100) for number in range(1500)}
    assert documents_in(store) == expected
    rejected = broker.received("documents.rejected", len(bad))
    assert {message.value() for message in rejected} == set(bad)
    assert all(dict(message.headers())["reason"] for message in rejected)


class Message:
    """A message of a recorded log."""

    def __init__(self, offset: int, value: bytes) -> None:
        self._offset, self._value = offset, value

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return "documents"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return self._value


class Crash(BaseException):
    """The end of a process."""


class Log:
    """A log with one committed offset, and a consumer that crashes at a given step."""

    def __init__(self, values: list[bytes]) -> None:
        self.messages = [Message(offset, value) for offset, value in enumerate(values)]
        self.committed = 0
        self.steps = 0
        self.crash_at = 0
        self.stop = threading.Event()
        self._position = 0

    def restart(self, crash_at: int) -> None:
        self._position, self.steps, self.crash_at = self.committed, 0, crash_at

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.crash_at:
            raise Crash

    def consume(self, number: int, timeout: float) -> list[Message]:
        self.step()
        messages = self.messages[self._position : self._position + number]
        self._position += len(messages)
        if not messages:
            self.stop.set()
        return messages

    def commit(self, offsets: list[Any], asynchronous: bool) -> None:
        self.step()
        assert not asynchronous
        self.committed = offsets[0].offset
        self.step()


def test_a_crash_at_any_step(monkeypatch: pytest.MonkeyPatch, store: Path) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    import kafka_consumer  # type: ignore[import-not-found]

    values = [document(number) for number in range(25)]
    values += [b"[]", document(3, version=1), document(3, version=2), b'{"id": "x"}']
    rejected: set[bytes] = set()
    log = Log(values)
    with isolith.open(store) as db:
        collection = db.collection("rag_documents")

        class Collection:
            """Crashes before and after writes."""

            def upsert(self, records: list[dict[str, Any]]) -> None:
                log.step()
                collection.upsert(records)
                log.step()

        def reject(messages: Any) -> None:
            log.step()
            rejected.update(message.value() for message, _ in messages)

        crashes = 0
        for crash_at in [*range(1, 8), *range(1, 30), 0]:
            log.restart(crash_at)
            try:
                kafka_consumer.consume(log, Collection(), reject, log.stop, batch=5)
            except Crash:
                crashes += 1
            else:
                break
        assert crashes > 7
        assert log.committed == len(values)
    assert documents_in(store) == {f"doc-{n}": 2 if n == 3 else 0 for n in range(25)}
    assert rejected == {b"[]", b'{"id": "x"}'}
