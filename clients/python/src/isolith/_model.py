"""Results: frozen dataclasses that are made of JSON objects and back."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, fields
from typing import Any, Callable, TypeVar, cast, overload

T = TypeVar("T")
M = TypeVar("M", bound="Model")

_CONVERTER = "converter"


class Model:
    """A result. Fields that a newer server adds are ignored."""

    @classmethod
    def from_json(cls: type[M], data: Mapping[str, Any]) -> M:
        """The result for a JSON object.

        :raises TypeError: if a field without a default is missing
        """
        values = {}
        for name, source, convert in _fields_of(cls):
            if source in data:
                value = data[source]
                values[name] = value if convert is None or value is None else convert(value)
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values: dictionaries, lists, strings and numbers."""
        return {source: plain(getattr(self, name)) for name, source, _ in _fields_of(type(self))}


def plain(value: Any) -> Any:
    """A value without classes of this package."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, array):
        return value.tolist()
    return value


def converted(convert: Callable[[Any], T], *, name: str | None = None, **options: Any) -> T:
    """A field whose JSON is converted; ``name`` is that in JSON, if it differs."""
    return cast(T, field(metadata={_CONVERTER: convert, "name": name}, **options))


def renamed(name: str, **options: Any) -> Any:
    """A field with another name in JSON."""
    return field(metadata={"name": name}, **options)


def one(kind: type[M]) -> M:
    """A field that is an object."""
    return converted(kind.from_json)


def maybe(kind: type[M]) -> M | None:
    """A field that is an object, or missing."""
    return converted(kind.from_json, default=None)


def many(kind: type[M]) -> list[M]:
    """A field that is a list of objects; empty if it is missing."""

    def convert(items: list[Any]) -> list[M]:
        return [kind.from_json(item) for item in items]

    return converted(convert, default_factory=list)


_KNOWN: dict[type, list[tuple[str, str, Callable[[Any], Any] | None]]] = {}


def _fields_of(kind: type) -> list[tuple[str, str, Callable[[Any], Any] | None]]:
    known = _KNOWN.get(kind)
    if known is None:
        known = [
            (it.name, it.metadata.get("name") or it.name, it.metadata.get(_CONVERTER))
            for it in fields(kind)
        ]
        _KNOWN[kind] = known
    return known


class Rows(Sequence[T]):
    """A result that is a list of things, with more about all of them.

    It is a sequence of them, and becomes a table: a column for each field.
    """

    def _items(self) -> list[T]:
        raise NotImplementedError

    def __iter__(self) -> Iterator[T]:
        return iter(self._items())

    def __len__(self) -> int:
        return len(self._items())

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> T | list[T]:
        return self._items()[index]

    def to_dicts(self) -> list[dict[str, Any]]:
        """One dictionary for each row."""
        return [plain(item) for item in self._items()]

    def _columns(self) -> list[str] | None:
        """The names of the columns, if they are known without rows."""
        return None

    def to_pandas(self) -> Any:
        """A ``pandas.DataFrame``.

        :raises ImportError: if pandas is not installed
        """
        pandas = _import("pandas")
        return pandas.DataFrame(self.to_dicts(), columns=self._columns())

    def to_arrow(self) -> Any:
        """A ``pyarrow.Table``.

        :raises ImportError: if pyarrow is not installed
        """
        pyarrow = _import("pyarrow")
        rows = self.to_dicts()
        names = self._columns() or list(dict.fromkeys(name for row in rows for name in row))
        return pyarrow.table({name: [row.get(name) for row in rows] for name in names})


def _import(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        method = "to_pandas" if name == "pandas" else "to_arrow"
        raise ImportError(f"{method}() needs {name}: pip install {name}") from error
