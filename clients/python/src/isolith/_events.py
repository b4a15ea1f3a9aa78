"""Server-sent events: the parser, and how a job that runs is followed."""

from __future__ import annotations

import json
from typing import Any, Callable

from .errors import UnexpectedReply, from_details


class EventParser:
    """Splits the body of a reply into events."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> list[tuple[str, str]]:
        """The name and the data of each event that is complete now. Comments are left out."""
        *blocks, self._buffer = (self._buffer + data).split(b"\n\n")
        events = []
        for block in blocks:
            name, lines = "message", []
            for line in block.decode("utf-8").split("\n"):
                field, _, value = line.partition(":")
                value = value[1:] if value.startswith(" ") else value
                if field == "event":
                    name = value
                elif field == "data":
                    lines.append(value)
            if lines:
                events.append((name, "\n".join(lines)))
        return events


class JobFollower:
    """Follows a job through its events.

    :ivar is_done: whether the job has ended
    :ivar result: the answer of the job, once it has succeeded
    """

    def __init__(self, on_progress: Callable[[Any], None] | None) -> None:
        self._on_progress = on_progress
        self._parser = EventParser()
        self.is_done = False
        self.result: Any = None

    def feed(self, data: bytes) -> None:
        """Takes the next bytes of the stream, and calls back with progress.

        :raises Error: if the job failed
        """
        for name, text in self._parser.feed(data):
            try:
                value = json.loads(text)
            except ValueError:
                raise UnexpectedReply(f"the event {name!r} is not JSON") from None
            if name == "progress" and self._on_progress is not None:
                self._on_progress(value)
            elif name == "result":
                self.result, self.is_done = value, True
            elif name == "error":
                raise from_details(value.get("error") or {})
