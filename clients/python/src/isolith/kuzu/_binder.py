"""Makes a query of Kuzu one for the graph, with the help of the tables.

It refuses tables and columns that do not exist, as Kuzu does, and rewrites what has the same
syntax and another meaning: positions in lists and strings that count from 1, ``label()``,
``u.*``, integers for columns of floats. Values in, values out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ._catalog import Catalog, Column, NodeTable, Table
from ._errors import binder_error, refused
from ._outline import Outline, Pattern
from ._projection import Projection
from ._rewrites import Derived, Edits, rewrite_floats, rewrite_functions, rewrite_positions
from ._tokens import PARAMETER, quoted, unquoted


class Bound(NamedTuple):
    """A query for the graph.

    :ivar kinds: Kuzu's types of columns of the answer, as far as they are known
    :ivar recursive: variables of relationships of variable length
    :ivar parameters: the parameters that it has
    :ivar derived: parameters that are made of others
    :ivar edits: what was changed in the text
    """

    text: str
    is_write: bool
    kinds: Mapping[str, str]
    recursive: frozenset[str]
    parameters: frozenset[str]
    derived: Mapping[str, Derived]
    edits: Edits


class Variable:
    """A variable for nodes or relationships, and the tables that they are in, if they are known."""

    def __init__(self, is_node: bool, tables: list[str]) -> None:
        self.is_node = is_node
        self.tables = tables
        self.is_recursive = False


def undeclared(outline: Outline, catalog: Catalog) -> list[tuple[str, bool, bool]]:
    """Labels and types that are not tables: the name, whether of nodes, whether to be created."""
    found = []
    for pattern in outline.patterns:
        for index in pattern.labels:
            name = outline.tokens[index].name
            table = catalog.node_table(name) if pattern.is_node else catalog.rel_table(name)
            if table is None:
                is_new = outline.clauses[pattern.start] in ("CREATE", "MERGE")
                found.append((name, pattern.is_node, is_new))
    return found


def bind(text: str, outline: Outline, catalog: Catalog) -> Bound:
    """Makes a query one for the graph. Labels that are not tables are not checked.

    :raises KuzuError: if it does not fit the tables, or is not supported
    """
    return _Binder(text, outline, catalog).bound()


class _Binder:
    def __init__(self, text: str, outline: Outline, catalog: Catalog) -> None:
        self.text = text
        self.outline = outline
        self.tokens = outline.tokens
        self.catalog = catalog
        self.edits = Edits()
        # Names that are given to something else than nodes or relationships as well.
        self.reused: set[str] = set()
        self.variables = self._variables()

    def bound(self) -> Bound:
        for pattern in self.outline.patterns:
            self._check_labels(pattern)
            self._check_entries(pattern)
        kinds = self._kinds()
        self._check_lookups(kinds)
        rewrite_positions(self.outline, self.edits)
        texts = rewrite_functions(self.outline, self.edits, self._is_node)
        floats = rewrite_floats(self.outline, self.edits, self._float_values())
        projection = Projection(self.text, self.outline, self.edits)
        projection.expand_stars(lambda name: self._columns_of(name, kinds))
        projection.name_items(self.variables)
        parameters = frozenset(
            unquoted(token.text[1:])
            for token in self.tokens
            if token.kind == PARAMETER and not self.edits.is_replaced(token)
        )
        recursive = frozenset(
            name for name, variable in self.variables.items() if variable.is_recursive
        )
        text = self.edits.apply(self.text)
        derived = {**texts, **floats}
        return Bound(text, self.outline.is_write, kinds, recursive, parameters, derived, self.edits)

    def _variables(self) -> dict[str, Variable]:
        """The variables of patterns. Those that mean something else as well are left out."""
        found: dict[str, Variable] = {}
        for pattern in self.outline.patterns:
            if pattern.variable is None:
                continue
            name = self.tokens[pattern.variable].name
            names = [self.tokens[index].name for index in pattern.labels]
            variable = found.setdefault(name, Variable(pattern.is_node, []))
            variable.is_recursive = variable.is_recursive or pattern.is_recursive
            variable.tables.extend(name for name in names if name not in variable.tables)
        for index, token in enumerate(self.tokens[:-1]):
            following = self.tokens[index + 1]
            if token.is_word("AS") and following.is_name:
                name, source = following.name, None
                if self._is_alone(index - 1):
                    source = found.get(self.tokens[index - 1].name)
            elif following.is_word("IN") and token.is_name and self._is_local(index):
                name, source = token.name, None
            else:
                continue
            if source is not None:
                found[name] = source
            elif name in found:
                found[name] = Variable(found[name].is_node, [])
                self.reused.add(name)
        return found

    def _is_local(self, index: int) -> bool:
        """Whether a name before ``IN`` is a variable of a list comprehension, or the like."""
        return self.outline.is_symbol(index - 1, "[") or self.outline.is_symbol(index - 1, "(")

    def _is_alone(self, index: int) -> bool:
        """Whether a name is an expression by itself."""
        if index < 1 or not self.tokens[index].is_name:
            return False
        before = self.tokens[index - 1]
        return before.is_word("WITH", "RETURN", "DISTINCT") or before.text == ","

    def _is_node(self, name: str) -> bool | None:
        variable = self.variables.get(name)
        return None if variable is None or variable.is_recursive else variable.is_node

    def _tables_of(self, variable: Variable) -> list[Table] | None:
        """The tables of a variable; ``None`` if it may be in something that is not a table."""
        tables = []
        for name in variable.tables:
            found = (
                self.catalog.node_table(name) if variable.is_node else self.catalog.rel_table(name)
            )
            if found is None:
                return None
            tables.append(found)
        return tables or None

    def _check_labels(self, pattern: Pattern) -> None:
        clause = self.outline.clauses[pattern.start]
        if pattern.is_node and len(pattern.labels) > 1:
            if clause in ("CREATE", "MERGE"):
                raise self._many_labels(pattern)
            names = [self.tokens[index].name for index in pattern.labels]
            raise refused(
                f"several labels of a node (:{':'.join(names)})",
                'they mean "or" in Kuzu and "and" in Isolith: leave them out, and use '
                f"WHERE label(n) IN {names}",
            )
        is_new = pattern.variable is None or not self._is_bound(pattern.variable)
        if pattern.is_node and clause in ("CREATE", "MERGE") and not pattern.labels and is_new:
            raise self._many_labels(pattern)
        for index in pattern.labels:
            token = self.tokens[index]
            table = self.catalog.find(token.name)
            if table is not None and table.name != token.name:
                self.edits.replace(token, quoted(table.name))

    def _many_labels(self, pattern: Pattern) -> Exception:
        name = "" if pattern.variable is None else self.tokens[pattern.variable].name
        return binder_error(f"Create node {name} with multiple node labels is not supported.")

    def _is_bound(self, index: int) -> bool:
        """Whether a variable occurs before."""
        name = self.tokens[index].name
        return any(
            token.is_name and token.name == name and not self.outline.is_symbol(at - 1, ".")
            for at, token in enumerate(self.tokens[:index])
        )

    def _check_entries(self, pattern: Pattern) -> None:
        variable = None
        if pattern.variable is not None:
            variable = self.variables.get(self.tokens[pattern.variable].name)
        if pattern.labels or variable is None:
            names = [self.tokens[index].name for index in pattern.labels]
            variable = Variable(pattern.is_node, names)
        tables = self._tables_of(variable)
        if tables is None:
            return
        name = "" if pattern.variable is None else self.tokens[pattern.variable].name
        for entry in pattern.entries:
            self._check_property(name, entry.key, tables)

    def _check_property(self, variable: str, index: int, tables: Iterable[Table]) -> Column:
        """The column that a name means. Corrects its case."""
        token = self.tokens[index]
        for table in tables:
            column = table.column(token.name)
            if column is not None:
                if column.name != token.name:
                    self.edits.correct(token, quoted(column.name))
                return column
        raise binder_error(f"Cannot find property {token.name} for {variable}.")

    def _check_lookups(self, kinds: dict[str, str]) -> None:
        """Checks the columns of ``variable.column``, and notes their types."""
        for index, token in enumerate(self.tokens[:-2]):
            after = self.tokens[index + 2]
            if not (token.is_name and self.outline.is_symbol(index + 1, ".") and after.is_name):
                continue
            variable = self.variables.get(token.name)
            if variable is None or self.outline.is_symbol(index - 1, "."):
                continue
            tables = self._tables_of(variable)
            if variable.is_recursive or (tables is None and variable.tables):
                continue
            if tables is None:
                kind = self._kind_anywhere(variable.is_node, after.name)
                name = after.name
            else:
                column = self._check_property(token.name, index + 2, tables)
                name, kind = column.name, column.type.name
            if kind is not None:
                kinds[f"{token.name}.{name}"] = kind
                if index + 4 < len(self.tokens) and self.tokens[index + 3].is_word("AS"):
                    kinds[self.tokens[index + 4].name] = kind

    def _kind_anywhere(self, is_node: bool, name: str) -> str | None:
        """The type that columns of a name have in all tables, if it is the same."""
        kinds = {
            column.type.name
            for table in self.catalog.tables.values()
            if isinstance(table, NodeTable) == is_node
            for column in table.columns
            if column.name == name
        }
        return kinds.pop() if len(kinds) == 1 else None

    def _kinds(self) -> dict[str, str]:
        kinds = {}
        for name, variable in self.variables.items():
            if name in self.reused:
                continue
            kind = "NODE" if variable.is_node else "REL"
            kinds[name] = "RECURSIVE_REL" if variable.is_recursive else kind
        for index, token in enumerate(self.tokens[:-2]):
            is_path = self.outline.is_symbol(index + 1, "=") and index + 2 in self.outline.closing
            if token.is_name and is_path and self.outline.clauses[index] == "MATCH":
                kinds.setdefault(token.name, "RECURSIVE_REL")
        return kinds

    def _float_values(self) -> list[tuple[Column, int, int]]:
        """The values that are written to columns of floats: indexes of tokens."""
        found = []
        for pattern in self.outline.patterns:
            if self.outline.clauses[pattern.start] not in ("CREATE", "MERGE"):
                continue
            for entry in pattern.entries:
                column = self._column(pattern, entry.key)
                if column is not None and column.type.is_float:
                    found.append((column, entry.start, entry.end))
        for index, token in enumerate(self.tokens):
            if not (token.is_word("SET") and self.outline.is_clause(index)):
                continue
            for start, end in self.outline.items(index + 1, self.outline.clause_end(index)):
                column = self._assigned(start, end)
                if column is not None and column.type.is_float:
                    found.append((column, start + 4, end))
        return found

    def _column(self, pattern: Pattern, key: int) -> Column | None:
        variable = Variable(pattern.is_node, [self.tokens[index].name for index in pattern.labels])
        for table in self._tables_of(variable) or ():
            return table.column(self.tokens[key].name)
        return None

    def _assigned(self, start: int, end: int) -> Column | None:
        """The column of ``variable.column = value``."""
        if end - start < 5 or not self.outline.is_symbol(start + 3, "="):
            return None
        variable = self.variables.get(self.tokens[start].name)
        if variable is None or not self.outline.is_symbol(start + 1, "."):
            return None
        for table in self._tables_of(variable) or ():
            column = table.column(self.tokens[start + 2].name)
            if column is not None:
                return column
        return None

    def _columns_of(self, name: str, kinds: dict[str, str]) -> list[str]:
        """The columns of ``variable.*``. Notes their types."""
        variable = self.variables.get(name)
        if variable is None:
            raise binder_error(f"Variable {name} is not in scope.")
        tables = self._tables_of(variable)
        if tables is None:
            if variable.tables:
                raise refused(f"{name}.* for {variable.tables[0]}", "name the properties")
            tables = [
                table
                for table in self.catalog.tables.values()
                if isinstance(table, NodeTable) == variable.is_node
            ]
        columns = {column.name: column.type for table in tables for column in table.columns}
        kinds.update((f"{name}.{column}", type.name) for column, type in columns.items())
        return list(columns)
