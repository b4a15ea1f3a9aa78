"""What processes of ``multiprocessing`` run in a test."""

from __future__ import annotations

import isolith


def count(store: str) -> int:
    """The number of drawers in a store."""
    with isolith.open(store) as db:
        return len(list(db.memory.list()))
