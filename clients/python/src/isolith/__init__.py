"""Isolith: crash-proof search and memory for AI agents.

:func:`open` starts a private server for a store, :func:`connect` uses one that runs. Both return a
:class:`Client`, which has everything that the server can do::

    import isolith

    with isolith.open("notes.isolith") as db:
        db.memory.add("Deploys go out on Tuesdays.", wing="acme", room="deploys")
        print(db.memory.search("when do we ship")[0].text)

:mod:`isolith.aio` has the same for asyncio. No native code is loaded into this process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import errors
from ._version import VERSION as __version__
from .client import Client, connect, open
from .errors import (
    AlreadyApplied,
    AlreadyExists,
    BadInput,
    Busy,
    Closed,
    ConnectionLost,
    Corrupt,
    CursorExpired,
    DiskFull,
    Error,
    Failed,
    Forbidden,
    ForbiddenPath,
    Interrupted,
    KeyReused,
    ModelMismatch,
    ModelUnavailable,
    NoStore,
    NotFound,
    Quarantined,
    ReadOnly,
    StartFailed,
    StoreForeign,
    StoreNewer,
    StoreRefused,
    Timeout,
    TooLarge,
    Unauthorized,
    UnexpectedReply,
    WorkerCrashed,
    WorkerFailed,
)

if TYPE_CHECKING:
    from . import aio, chroma, kuzu, pipeline
    from .api.code import CodeHit, CodeHits, IndexReport
    from .api.collections import Collection, Record, RecordHit, RecordHits, Stored
    from .api.facts import Entity, Fact
    from .api.graph import Node, Path, Relationship, Result, Symbol
    from .api.jobs import Progress
    from .api.memory import Deleted, Drawer, MemoryHit, MemoryHits
    from .isolate._callable import isolate as isolate

# Imported when they are first used, so that importing the package is quick.
_MODULES = ("aio", "chroma", "isolate", "kuzu", "pipeline")
_RESULTS = {
    "CodeHit": "api.code",
    "CodeHits": "api.code",
    "IndexReport": "api.code",
    "Collection": "api.collections",
    "Record": "api.collections",
    "RecordHit": "api.collections",
    "RecordHits": "api.collections",
    "Stored": "api.collections",
    "Deleted": "api.memory",
    "Entity": "api.facts",
    "Fact": "api.facts",
    "Node": "api.graph",
    "Path": "api.graph",
    "Relationship": "api.graph",
    "Result": "api.graph",
    "Symbol": "api.graph",
    "Progress": "api.jobs",
    "Drawer": "api.memory",
    "MemoryHit": "api.memory",
    "MemoryHits": "api.memory",
}

__all__ = [
    "AlreadyApplied",
    "AlreadyExists",
    "BadInput",
    "Busy",
    "Client",
    "Closed",
    "CodeHit",
    "CodeHits",
    "Collection",
    "ConnectionLost",
    "Corrupt",
    "CursorExpired",
    "Deleted",
    "DiskFull",
    "Drawer",
    "Entity",
    "Error",
    "Fact",
    "Failed",
    "Forbidden",
    "ForbiddenPath",
    "IndexReport",
    "Interrupted",
    "KeyReused",
    "MemoryHit",
    "MemoryHits",
    "ModelMismatch",
    "ModelUnavailable",
    "NoStore",
    "Node",
    "NotFound",
    "Path",
    "Progress",
    "Quarantined",
    "ReadOnly",
    "Record",
    "RecordHit",
    "RecordHits",
    "Relationship",
    "Result",
    "StartFailed",
    "StoreForeign",
    "StoreNewer",
    "StoreRefused",
    "Stored",
    "Symbol",
    "Timeout",
    "TooLarge",
    "Unauthorized",
    "UnexpectedReply",
    "WorkerCrashed",
    "WorkerFailed",
    "__version__",
    "aio",
    "chroma",
    "connect",
    "errors",
    "isolate",
    "kuzu",
    "open",
    "pipeline",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _RESULTS:
        return getattr(importlib.import_module(f".{_RESULTS[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
