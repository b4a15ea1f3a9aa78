"""Faults for the tests of the examples."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import isolith


def count_in(db: isolith.Client) -> int:
    """The number of documents; 0 if there is no collection."""
    try:
        return db.collection("rag_documents").count()
    except isolith.NotFound:
        return 0


def kill_servers(db: isolith.Client) -> int:
    """Kills the servers of others, and their workers; returns the number of servers."""
    own = db._transport.server.process_id  # type: ignore[union-attr]
    servers = 0
    for store in db.status().stores:
        others = [one.pid for one in store.processes if one.pid != own]
        workers = [one.pid for one in store.workers if one.pid and one.front != own]
        for pid in workers + others:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        servers += len(others)
    return servers
