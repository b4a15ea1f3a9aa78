"""Prepared statements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._errors import KuzuError

if TYPE_CHECKING:
    from ._statements import Statement
    from .connection import Connection


class PreparedStatement:
    """A statement that was checked: its syntax as far as this module looks at it, and its tables.

    :param parameters: not used
    """

    def __init__(
        self, connection: Connection, query: str, parameters: Mapping[str, Any] | None = None
    ) -> None:
        self._connection = connection
        self._query = query
        self._error: KuzuError | None = None
        self._statement: Statement | None = None
        try:
            self._statement = connection._prepared(query)
        except KuzuError as error:
            self._error = error

    def is_success(self) -> bool:
        """Whether nothing is wrong with it. The server may still refuse it."""
        return self._error is None

    def get_error_message(self) -> str:
        """What is wrong with it; empty if nothing is."""
        return "" if self._error is None else str(self._error)

    def _checked(self) -> Statement:
        if self._error is not None:
            raise self._error
        assert self._statement is not None, "there is a statement or an error"
        return self._statement
