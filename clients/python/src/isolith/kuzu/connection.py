"""Connections to a database."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Callable

from ..errors import Error
from ._errors import KuzuError, closed, no_table, refused
from .prepared_statement import PreparedStatement

# What runs statements is imported with the first of them: many programs import this module, and do
# not use it in every process.
if TYPE_CHECKING:
    from types import TracebackType

    from ._catalog import Column
    from ._graph import Execution, Graph
    from ._session import Prepared
    from ._statements import Statement
    from .database import Database
    from .query_result import QueryResult


class Connection:
    """A connection to a database. Threads can share it. It is a context manager.

    :param database: the database
    :param num_threads: accepted, and without an effect: Isolith decides how many threads it uses
    """

    def __init__(self, database: Database, num_threads: int = 0) -> None:
        self.database = database
        self.num_threads = num_threads
        self.is_closed = False
        self._seconds = 0.0
        self._graph: Graph | None = None
        self._finalizer: Any = None
        self.init_connection()

    def init_connection(self) -> None:
        """Connects, unless it is done already."""
        self._connected()

    def execute(
        self,
        query: str | PreparedStatement,
        parameters: Mapping[str, Any] | None = None,
    ) -> Any:
        """Executes one or more statements.

        :param parameters: the values of ``$names``; with these, there can be one statement only
        :return: a :class:`QueryResult`, or a list with one for each statement
        :raises KuzuError: if a statement fails; those before it are done
        """
        return self._execute(query, parameters, sys._getframe(1))

    def prepare(self, query: str, parameters: Mapping[str, Any] | None = None) -> PreparedStatement:
        """Prepares a statement, which only saves checking it again.

        :param parameters: not used
        """
        return PreparedStatement(self, query, parameters)

    def set_query_timeout(self, timeout_in_ms: int) -> None:
        """Sets after how many milliseconds a statement is interrupted; 0 for never."""
        self._connected()
        self._seconds = max(timeout_in_ms, 0) / 1000

    def set_max_threads_for_exec(self, num_threads: int) -> None:
        """Accepted, and without an effect: Isolith decides how many threads it uses."""
        self._connected()
        self.num_threads = num_threads

    def interrupt(self) -> None:
        """Interrupts the statements that other threads execute on this connection."""
        if self._graph is not None:
            self._graph.interrupt()

    def create_function(
        self, name: str, udf: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> None:
        """Refused: functions of Python cannot run inside a query."""
        raise refused("create_function()", "call the function on the rows that a query returns")

    def remove_function(self, name: str) -> None:
        """Refused: there are no functions of Python."""
        raise refused("remove_function()")

    def close(self) -> None:
        """Closes the connection. What other threads execute on it is interrupted."""
        self.is_closed = True
        if self._finalizer is not None:
            self._finalizer()
        self._graph = None

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _connected(self) -> Graph:
        if self.is_closed:
            raise closed("Connection is closed.")
        self.database.check_for_database_close()
        if self._graph is None:
            self._graph = self.database._connect()
            self._finalizer = weakref.finalize(self, self._graph.close)
            # At exit, idle connections are closed in another way.
            self._finalizer.atexit = False
        return self._graph

    # Other packages use these methods of Kuzu.

    def _get_node_table_names(self) -> list[str]:
        from ._catalog import NodeTable

        with self._executing() as execution:
            tables = self.database._tables.catalog(execution, is_fresh=True).tables.values()
        return [table.name for table in tables if isinstance(table, NodeTable)]

    def _get_rel_table_names(self) -> list[dict[str, str]]:
        from ._catalog import RelTable

        with self._executing() as execution:
            tables = self.database._tables.catalog(execution, is_fresh=True).tables.values()
        return [
            {"name": table.name, "src": table.ends[0][0], "dst": table.ends[0][1]}
            for table in tables
            if isinstance(table, RelTable)
        ]

    def _get_node_property_names(self, table_name: str) -> dict[str, dict[str, Any]]:
        with self._executing() as execution:
            table = self.database._tables.catalog(execution, is_fresh=True).node_table(table_name)
        if table is None:
            raise no_table(table_name)
        return {column.name: _described(column, table.key) for column in table.columns}

    def _key_of(self, table: str) -> str | None:
        """The primary key of a table."""
        with self._executing() as execution:
            return self.database._tables.catalog(execution).key_of(table)

    @contextmanager
    def _executing(self) -> Iterator[Execution]:
        """The execution of a statement. Exceptions become those of Kuzu."""
        try:
            with self._connected().execution(self._seconds) as execution:
                yield execution
        except KuzuError:
            raise
        except Error as error:
            from ._violations import violation

            raise violation(error) from error

    def _prepared(self, text: str) -> Statement:
        """The statement of a text, checked.

        :raises KuzuError: if there are several, or the one is wrong
        """
        from ._statements import Query

        self._connected()
        tables = self.database._tables
        statements = tables.parsed(text)
        if len(statements) > 1:
            raise _many_statements()
        (statement,) = statements
        if isinstance(statement, Query):
            with self._executing() as execution:
                tables.bound(statement, execution)
        return statement

    def _execute(
        self,
        query: str | PreparedStatement,
        parameters: Mapping[str, Any] | None,
        frame: FrameType | None,
        on_start: Callable[[Execution], None] | None = None,
    ) -> Any:
        """Executes statements.

        :param frame: where variables of the caller are looked for
        :param on_start: gets the execution of each statement
        """
        prepared, given = self._checked(query, parameters)
        statements, literals = prepared
        if literals:
            try:
                return self._result(statements[0], given, literals, frame, on_start)
            except KuzuError as error:
                if not (isinstance(query, str) and error.code == "bad_input"):
                    raise
                if " (line " not in error.message:
                    raise
            # What is wrong is said about the text that was given.
            statements = self.database._tables.parsed(query)
        results = [self._result(it, given, {}, frame, on_start) for it in statements]
        return results[0] if len(results) == 1 else results

    def _checked(
        self, query: str | PreparedStatement, parameters: Mapping[str, Any] | None
    ) -> tuple[Prepared, Mapping[str, Any]]:
        """The statements to execute, and the values of parameters."""
        from ._session import Prepared

        given = {} if parameters is None else parameters
        if not isinstance(given, Mapping):
            message = f"Parameters must be a dict; found {type(parameters)}."
            raise KuzuError(message, code="bad_input")
        self._connected()
        if isinstance(query, PreparedStatement):
            return Prepared([query._checked()], {}), given
        if not isinstance(query, str):
            message = f"The query must be a string or a PreparedStatement; found {type(query)}."
            raise KuzuError(message, code="bad_input")
        prepared = self.database._tables.prepared(query)
        if given and len(prepared.statements) > 1:
            raise _many_statements()
        return prepared, given

    def _result(
        self,
        statement: Statement,
        given: Mapping[str, Any],
        literals: Mapping[str, Any],
        frame: FrameType | None,
        on_start: Callable[[Execution], None] | None,
    ) -> QueryResult:
        from ._run import Run
        from .query_result import QueryResult

        started = time.perf_counter()
        with self._executing() as execution:
            if on_start is not None:
                on_start(execution)
            run = Run(self, execution, given, literals, frame)
            columns, rows, kinds = run.answer(statement)
        milliseconds = 1000 * (time.perf_counter() - started)
        return QueryResult(self, columns, rows, kinds, milliseconds)


def _described(column: Column, key: str) -> dict[str, Any]:
    type = column.type
    described: dict[str, Any] = {
        "type": type.name.partition("[")[0],
        "dimension": int(type.is_list),
        "is_primary_key": column.name == key,
    }
    if type.size is not None:
        described["shape"] = (type.size,)
    return described


def _many_statements() -> KuzuError:
    message = "Connection Exception: We do not support prepare multiple statements."
    return KuzuError(message, code="bad_input")
