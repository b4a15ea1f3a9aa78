"""The classes of the package ``kuzu``, with a store of Isolith as the database.

::

    from isolith import kuzu

    db = kuzu.Database("people.isolith")
    conn = kuzu.Connection(db)
    conn.execute("CREATE NODE TABLE Person(name STRING, age INT64, PRIMARY KEY (name))")
    conn.execute("CREATE (:Person {name: 'Ann', age: 41})")
    print(conn.execute("MATCH (p:Person) RETURN p.name, p.age").get_all())

Kuzu itself is not needed, and no native code is loaded. Tables are constraints of the graph, rows
are its nodes and relationships. What Kuzu has and this module has not is refused by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._errors import KuzuError
    from .async_connection import AsyncConnection
    from .connection import Connection
    from .database import Database
    from .prepared_statement import PreparedStatement
    from .query_result import QueryResult
    from .types import Type

# The version of Kuzu whose behaviour this module has.
__version__ = version = "0.11.3"

# Imported when they are first used, so that importing the module is quick.
_MODULES = {
    "AsyncConnection": "async_connection",
    "Connection": "connection",
    "Database": "database",
    "KuzuError": "_errors",
    "PreparedStatement": "prepared_statement",
    "QueryResult": "query_result",
    "Type": "types",
}

__all__ = [
    "AsyncConnection",
    "Connection",
    "Database",
    "KuzuError",
    "PreparedStatement",
    "QueryResult",
    "Type",
    "__version__",
    "version",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _MODULES:
        return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
