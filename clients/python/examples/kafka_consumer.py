"""Stores the documents of a Kafka topic in a collection, every document exactly once.

    pip install isolith confluent-kafka
    python kafka_consumer.py --bootstrap localhost:9092 --topic documents --store rag.isolith

Each message is a JSON object: {"id", "embedding", "document", "metadata"}. Offsets are committed
only after the write is durable, so nothing is lost; a message that comes again replaces the same
record, so nothing is stored twice. Messages that cannot be stored go to the topic TOPIC.rejected,
with the reason in a header, before their offsets are committed.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import threading
import time
from collections.abc import Sequence
from typing import Any, Callable

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

import isolith

logger = logging.getLogger("kafka_consumer")

# How many messages are written, and committed, at once.
BATCH = 500

# Pauses between attempts to write, in seconds. After the last one the process gives up, without a
# commit, so that whoever supervises it starts it again.
PAUSES = (0.1, 0.5, 2, 5, 10, 30)

# The next attempt may succeed.
TEMPORARY = (isolith.Busy, isolith.ConnectionLost, isolith.Timeout, isolith.StartFailed)

# The documents are at fault, alone or together.
REFUSALS = (
    isolith.BadInput,
    isolith.ModelMismatch,
    isolith.ModelUnavailable,
    isolith.WorkerCrashed,
    isolith.Quarantined,
)

Rejected = tuple[Any, str]


def consume(
    consumer: Any,
    collection: Any,
    reject: Callable[[Sequence[Rejected]], None],
    stop: threading.Event,
    batch: int = BATCH,
) -> None:
    """Stores messages until it is asked to stop."""
    while not stop.is_set():
        messages = []
        for message in consumer.consume(batch, timeout=0.5):
            if message.error() is None:
                messages.append(message)
            elif message.error().fatal():
                raise KafkaException(message.error())
            else:
                logger.warning("%s", message.error())
        if messages:
            rejected = store(collection, messages)
            if rejected:
                reject(rejected)
            commit(consumer, messages)


def store(collection: Any, messages: Sequence[Any]) -> list[Rejected]:
    """Writes messages, and returns those that cannot be stored, with the reasons."""
    rejected: list[Rejected] = []
    records: dict[str, tuple[Any, dict[str, Any]]] = {}
    for message in messages:
        try:
            record = record_of(message.value())
        except ValueError as error:
            rejected.append((message, str(error)))
        else:
            # Of several messages with one id, the last one counts.
            records.pop(record["id"], None)
            records[record["id"]] = (message, record)
    return rejected + write(collection, list(records.values()))


def record_of(value: bytes | None) -> dict[str, Any]:
    """The record in a message.

    :raises ValueError: if there is none
    """
    document = json.loads(value or b"null")
    if not isinstance(document, dict) or not isinstance(document.get("id"), str):
        raise ValueError("the message is not a JSON object with an id")
    record = {name: document[name] for name in ("id", "document", "metadata") if name in document}
    record["vector"] = document.get("embedding")
    return record


def write(collection: Any, records: list[tuple[Any, dict[str, Any]]]) -> list[Rejected]:
    """Writes records, in halves if they are refused together."""
    if not records:
        return []
    try:
        upsert(collection, [record for _, record in records])
    except REFUSALS as error:
        if len(records) == 1:
            return [(records[0][0], str(error))]
        half = len(records) // 2
        return write(collection, records[:half]) + write(collection, records[half:])
    return []


def upsert(collection: Any, records: list[dict[str, Any]]) -> None:
    """Writes records durably, again and again if that may help."""
    for pause in PAUSES:
        try:
            collection.upsert(records)
            return
        except TEMPORARY as error:
            logger.warning("trying again in %g seconds: %r", pause, error)
            time.sleep(pause)
    collection.upsert(records)


def commit(consumer: Any, messages: Sequence[Any]) -> None:
    """Commits the offsets after the messages."""
    ends: dict[tuple[str, int], int] = {}
    for message in messages:
        ends[message.topic(), message.partition()] = message.offset() + 1
    offsets = [TopicPartition(*place, offset) for place, offset in ends.items()]
    try:
        consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as error:
        # The partitions may belong to another consumer by now, which gets the messages again.
        logger.warning("cannot commit: %s", error)


class RejectedTopic:
    """Where messages go that cannot be stored."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
        self._topic = topic

    def __call__(self, rejected: Sequence[Rejected]) -> None:
        """Returns when the broker has all of them."""
        failures = []
        for message, reason in rejected:
            self._producer.produce(
                self._topic,
                key=message.key(),
                value=message.value(),
                headers={"reason": reason},
                on_delivery=lambda error, _: failures.append(error) if error else None,
            )
        if self._producer.flush(60) or failures:
            raise RuntimeError(f"cannot write to {self._topic}: {failures or 'no answer'}")


def main() -> None:
    """Stores messages until it gets SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", default="documents")
    parser.add_argument("--group", default="isolith")
    parser.add_argument("--collection", default="rag_documents")
    parser.add_argument("--store", default="rag.isolith")
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--session-timeout", type=int, default=45_000, help="milliseconds")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    consumer = Consumer(
        {
            "bootstrap.servers": options.bootstrap,
            "group.id": options.group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": options.session_timeout,
            "heartbeat.interval.ms": options.session_timeout // 10,
        }
    )
    consumer.subscribe([options.topic])
    reject = RejectedTopic(options.bootstrap, f"{options.topic}.rejected")
    try:
        with isolith.open(options.store) as db:
            consume(consumer, db.collection(options.collection), reject, stop, options.batch)
    finally:
        consumer.close()


if __name__ == "__main__":
    main()
