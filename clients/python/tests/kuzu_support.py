"""Tables and rows that several tests use."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from isolith import kuzu

TABLES = """
    CREATE NODE TABLE User(
        name STRING, age INT64, height DOUBLE, tags STRING[], PRIMARY KEY (name)
    );
    CREATE NODE TABLE City(name STRING PRIMARY KEY, population INT64);
    CREATE REL TABLE Follows(FROM User TO User, since INT64);
    CREATE REL TABLE LivesIn(FROM User TO City);
"""

ROWS = """
    CREATE (:User {name: 'Adam', age: 30, height: 1.8, tags: ['a', 'b']}),
        (:User {name: 'Karissa', age: 40}), (:User {name: 'Zhang', age: 50, height: 2}),
        (:City {name: 'Waterloo', population: 150000}), (:City {name: 'Guelph'});
    MATCH (a:User {name: 'Adam'}), (b:User {name: 'Karissa'}), (c:User {name: 'Zhang'})
        CREATE (a)-[:Follows {since: 2020}]->(b), (a)-[:Follows {since: 2021}]->(c),
            (b)-[:Follows]->(c);
    MATCH (a:User {name: 'Adam'}), (w:City {name: 'Waterloo'}) CREATE (a)-[:LivesIn]->(w);
"""


def declare(conn: kuzu.Connection) -> None:
    """Declares the tables."""
    conn.execute(TABLES)


def fill(conn: kuzu.Connection) -> None:
    """Declares the tables and creates the rows."""
    conn.execute(TABLES)
    conn.execute(ROWS)


def rows(conn: kuzu.Connection, query: str, **parameters: object) -> list[list[Any]]:
    """The rows of a query."""
    found: list[list[Any]] = conn.execute(query, parameters).get_all()
    return found


def has_kuzu() -> bool:
    """Whether Kuzu is installed, in the version to compare with."""
    try:
        return importlib.metadata.version("kuzu") == kuzu.__version__
    except importlib.metadata.PackageNotFoundError:
        return False
