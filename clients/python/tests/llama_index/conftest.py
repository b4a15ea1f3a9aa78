"""The tests of this folder share a server."""

from __future__ import annotations

from shared_store import db, shared, store

__all__ = ["db", "shared", "store"]
