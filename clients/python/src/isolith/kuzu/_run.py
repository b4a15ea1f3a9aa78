"""Runs statements."""

from __future__ import annotations

from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from ..errors import BadInput
from . import _tables
from ._binder import Bound
from ._copying import CopyFrom, Files, Parameter, Subquery, Variable
from ._ddl import AddColumn, CreateNodeTable, CreateRelTable, DropColumn, DropTable
from ._errors import KuzuError, parser_error
from ._graph import Execution
from ._procedures import CallTable, Setting, query_of, table_of
from ._session import find_nodes
from ._statements import Checkpoint, Query, Statement, parse_statement
from ._tokens import tokenize
from ._values import Shapes, check_names, derived_value, sent

if TYPE_CHECKING:
    from ._copy import Copy
    from .connection import Connection

_DECLARE: dict[type, Callable[..., str]] = {
    AddColumn: _tables.add_column,
    CreateNodeTable: _tables.create_node_table,
    CreateRelTable: _tables.create_rel_table,
    DropColumn: _tables.drop_column,
    DropTable: _tables.drop_table,
}


class Answer(NamedTuple):
    """The columns and rows of a result, and the types of columns that are known."""

    columns: list[str]
    rows: list[list[Any]]
    kinds: Mapping[str, str]


class Run:
    """Runs one statement.

    :param given: the values of parameters
    :param literals: the values of literals that became parameters
    :param frame: where the caller has its variables
    """

    def __init__(
        self,
        connection: Connection,
        execution: Execution,
        given: Mapping[str, Any],
        literals: Mapping[str, Any],
        frame: FrameType | None,
    ) -> None:
        self._connection = connection
        self._tables = connection.database._tables
        self._execution = execution
        self._given = given
        self._literals = literals
        self._frame = frame

    def answer(self, statement: Statement) -> Answer:
        """Runs it.

        :raises isolith.Error: if it fails
        """
        if isinstance(statement, Query):
            return self._query(statement)
        if isinstance(statement, CopyFrom):
            self._check_writable()
            return self._copy(statement)
        check_names(self._given, frozenset())
        if isinstance(statement, CallTable):
            return self._call(statement)
        if isinstance(statement, Setting):
            return self._set(statement)
        if isinstance(statement, Checkpoint):
            # Every statement that has returned is durable.
            return Answer([], [], {})
        self._check_writable()
        return self._declare(statement)

    def _query(self, query: Query) -> Answer:
        return self._ask(query, self._parameters)

    def _ask(self, query: Query, parameters: Callable[[Bound], dict[str, Any]]) -> Answer:
        bound, catalog = self._tables.bound(query, self._execution)
        if bound.is_write:
            self._check_writable()
        try:
            columns, rows = self._execution.query(bound.text, parameters(bound), bound.is_write)
        except BadInput as error:
            if bound.text != query.text:
                from ._violations import show_given_text

                show_given_text(error, query.text, bound)
            raise
        shapes = Shapes(catalog, lambda ids: find_nodes(ids, self._execution))
        return Answer(columns, shapes.rows(columns, rows, bound.recursive), bound.kinds)

    def _parameters(self, bound: Bound) -> dict[str, Any]:
        given = self._given
        values = dict(self._literals)
        if given:
            sources = (derived.source for derived in bound.derived.values())
            check_names(given, bound.parameters.union(sources))
            values.update((name, sent(value)) for name, value in given.items())
        if not bound.derived:
            return values
        made = {}
        for name, (source, type) in bound.derived.items():
            if source not in values:
                raise KuzuError(f"the parameter ${source} has no value", code="bad_input")
            made[name] = derived_value(values[source], type)
        kept = {name: value for name, value in values.items() if name in bound.parameters}
        return {**kept, **made}

    def _declare(self, statement: Any) -> Answer:
        catalog = self._tables.catalog(self._execution, is_fresh=True)
        try:
            message = _DECLARE[type(statement)](statement, catalog, self._execution.query)
        finally:
            self._tables.forget()
        return _message(message)

    def _call(self, statement: CallTable) -> Answer:
        catalog = self._tables.catalog(self._execution, is_fresh=True)
        columns, rows = table_of(statement, catalog)
        query = query_of(statement, columns, rows)
        if query is None:
            return Answer(columns, rows, {})
        text, parameters = query
        return self._ask(Query(text, tuple(tokenize(text))), lambda _: parameters)

    def _set(self, setting: Setting) -> Answer:
        if setting.name == "timeout":
            self._connection.set_query_timeout(int(setting.value))
        return Answer([], [], {})

    def _copy(self, statement: CopyFrom) -> Answer:
        # Most programs do not copy anything.
        from ._copy import Copy, target_of

        catalog = self._tables.catalog(self._execution, is_fresh=True)
        target = target_of(statement, catalog)
        copy = Copy(target, self._execution)
        try:
            self._copy_from(statement, copy)
        except KuzuError as error:
            if copy.count:
                error.hint = f"{copy.count} rows were copied before"
            raise
        return _message(f"{copy.count} tuples have been copied to the {target.name} table.")

    def _copy_from(self, statement: CopyFrom, copy: Copy) -> None:
        source = statement.source
        if isinstance(source, Subquery):
            answer = self._subquery(source)
            copy.answer(answer.rows, len(answer.columns))
        elif isinstance(source, Files):
            check_names(self._given, frozenset())
            copy.files(source, statement.options)
        elif isinstance(source, Parameter):
            check_names(self._given, frozenset((source.name,)))
            if source.name not in self._given:
                raise KuzuError(f"Parameter {source.name} not found.", code="bad_input")
            copy.table(self._given[source.name], f"${source.name}")
        else:
            check_names(self._given, frozenset())
            copy.table(self._variable(source), source.name)

    def _variable(self, source: Variable) -> Any:
        from ._frames import find_variable

        return find_variable(source.name, self._frame)

    def _subquery(self, source: Subquery) -> Answer:
        query = parse_statement(source.text, list(source.tokens))
        if not isinstance(query, Query):
            raise parser_error("COPY ... FROM (...) takes a query.")
        return self._query(query)

    def _check_writable(self) -> None:
        if self._connection.database.read_only:
            message = "Cannot execute write operations in a read-only database!"
            raise KuzuError(message, code="read_only")


def _message(text: str) -> Answer:
    return Answer(["result"], [[text]], {"result": "STRING"})
