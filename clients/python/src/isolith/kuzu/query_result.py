"""The result of a statement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _tabular
from ._errors import closed, refused, runtime_error

if TYPE_CHECKING:
    from types import TracebackType

    from .connection import Connection


class QueryResult:
    """All rows of a statement. It is an iterator, and a context manager.

    Rows are lists, or dictionaries after ``rows_as_dict()``.
    """

    def __init__(
        self,
        connection: Connection | None,
        columns: Sequence[str] = (),
        rows: list[list[Any]] | None = None,
        kinds: Mapping[str, str] | None = None,
        milliseconds: float = 0.0,
    ) -> None:
        self.connection = connection
        self.is_closed = False
        self.as_dict = False
        self._columns = list(columns)
        self._rows = [] if rows is None else rows
        self._kinds = kinds or {}
        self._position = 0
        self._milliseconds = milliseconds

    def __enter__(self) -> QueryResult:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self.has_next():
            return self.get_next()
        raise StopIteration

    def has_next(self) -> bool:
        """Whether there is another row."""
        self.check_for_query_result_close()
        return self._position < len(self._rows)

    def get_next(self) -> Any:
        """The next row.

        :raises KuzuError: if there is none
        """
        self.check_for_query_result_close()
        if self._position >= len(self._rows):
            raise runtime_error(
                "No more tuples in QueryResult, Please check hasNext() before calling getNext()."
            )
        row = self._rows[self._position]
        self._position += 1
        return dict(zip(self._columns, row)) if self.as_dict else row

    def get_all(self) -> list[Any]:
        """The rows that are left."""
        return list(self)

    def get_n(self, count: int) -> list[Any]:
        """Up to ``count`` of the rows that are left."""
        rows = []
        while count > 0 and self.has_next():
            rows.append(self.get_next())
            count -= 1
        return rows

    def rows_as_dict(self, state: bool = True) -> QueryResult:
        """Makes rows dictionaries, or lists again. Returns the result itself."""
        self.check_for_query_result_close()
        self.as_dict = state
        return self

    def reset_iterator(self) -> None:
        """Begins with the first row again."""
        self.check_for_query_result_close()
        self._position = 0

    def get_num_tuples(self) -> int:
        """The number of all rows."""
        self.check_for_query_result_close()
        return len(self._rows)

    def get_column_names(self) -> list[str]:
        """The names of the columns."""
        self.check_for_query_result_close()
        return list(self._columns)

    def get_column_data_types(self) -> list[str]:
        """Kuzu's types of the columns: those of the tables, otherwise those of the values."""
        self.check_for_query_result_close()
        return [
            self._kinds.get(name) or _tabular.kind_of(row[index] for row in self._rows)
            for index, name in enumerate(self._columns)
        ]

    def get_schema(self) -> dict[str, str]:
        """The type of each column."""
        return dict(zip(self.get_column_names(), self.get_column_data_types()))

    def get_execution_time(self) -> float:
        """How many milliseconds the statement took, with the way to the server and back."""
        self.check_for_query_result_close()
        return self._milliseconds

    def get_compiling_time(self) -> float:
        """How many milliseconds it took to compile the statement; that is in the other time."""
        self.check_for_query_result_close()
        return 0.0

    def get_as_df(self) -> Any:
        """A ``pandas.DataFrame``.

        :raises ImportError: if pandas is not installed
        """
        self.check_for_query_result_close()
        return _tabular.to_pandas(self._columns, self._rows)

    def get_as_arrow(self, chunk_size: int | None = None) -> Any:
        """A ``pyarrow.Table``.

        :param chunk_size: the number of rows in a chunk; by default, all are in one
        :raises ImportError: if pyarrow is not installed
        """
        self.check_for_query_result_close()
        types = self.get_column_data_types()
        return _tabular.to_arrow(self._columns, types, self._rows, chunk_size)

    def get_as_pl(self) -> Any:
        """A ``polars.DataFrame``.

        :raises ImportError: if polars is not installed
        """
        self.check_for_query_result_close()
        return _tabular.to_polars(self._columns, self.get_column_data_types(), self._rows)

    def get_as_networkx(self, directed: bool = True) -> Any:
        """The nodes and relationships of all rows as a graph of networkx.

        :param directed: whether it is a ``MultiDiGraph``, otherwise a ``MultiGraph``
        :raises ImportError: if networkx is not installed
        """
        from ._networkx import to_networkx

        self.check_for_query_result_close()
        key_of = None if self.connection is None else self.connection._key_of
        return to_networkx(self._rows, key_of, directed)

    def get_as_torch_geometric(self) -> Any:
        """Refused: use ``get_as_networkx`` and ``torch_geometric.utils.from_networkx``."""
        raise refused(
            "get_as_torch_geometric()",
            "use get_as_networkx() and torch_geometric's from_networkx()",
        )

    def check_for_query_result_close(self) -> None:
        """Raises an exception if the result was closed."""
        if self.is_closed:
            raise closed("Query result is closed")

    def close(self) -> None:
        """Gives up the rows."""
        self.is_closed = True
        self.connection = None
        self._rows = []
