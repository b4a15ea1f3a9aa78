"""Types of columns: Kuzu's names for them, and the property types that stand for them."""

from __future__ import annotations

from typing import NamedTuple

from ._errors import KuzuError, refused
from ._tokens import NUMBER, Cursor, tokenize

_INTEGERS = ("INT8", "INT16", "INT32", "INT64", "INT128", "UINT8", "UINT16", "UINT32", "UINT64")
_FLOATS = ("DOUBLE", "FLOAT", "DECIMAL")
TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_TZ", "TIMESTAMP_NS", "TIMESTAMP_MS", "TIMESTAMP_SEC")
_TEXTS = ("STRING", "UUID", "DATE", *TIMESTAMPS)

# The types that properties may have, for each type. Numbers of columns of floats may be written as
# integers.
_PROPERTY_TYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_INTEGERS, ("INTEGER",)),
    **dict.fromkeys(_FLOATS, ("FLOAT", "INTEGER")),
    **dict.fromkeys(_TEXTS, ("STRING",)),
    "BOOL": ("BOOLEAN",),
}

# The type that property types stand for if the name of the constraint does not say more.
_DEFAULTS = {
    ("BOOLEAN",): "BOOL",
    ("FLOAT",): "DOUBLE",
    ("FLOAT", "INTEGER"): "DOUBLE",
    ("INTEGER",): "INT64",
    ("STRING",): "STRING",
}
_LIST = ("LIST<", " NOT NULL>")

_ALIASES = {
    "INT": "INT32",
    "BOOLEAN": "BOOL",
    "REAL": "FLOAT",
    "FLOAT4": "FLOAT",
    "FLOAT8": "DOUBLE",
    "NUMERIC": "DECIMAL",
    "BYTEA": "BLOB",
    "DURATION": "INTERVAL",
    "TIMESTAMP_S": "TIMESTAMP_SEC",
}

_INSTEAD = {
    "SERIAL": "declare an INT64 or STRING column, and pass its value, for example a UUID",
    "INTERVAL": "use DOUBLE for seconds",
    "BLOB": "use STRING with base64, or the path of a file",
    "MAP": "use a column for each key, or STRING with JSON",
    "STRUCT": "use a column for each field, or STRING with JSON",
    "UNION": "use a column for each type",
    "JSON": "use STRING",
    "INTERNAL_ID": "use the primary key of the other node, or a relationship",
}


class ColumnType(NamedTuple):
    """The type of a column.

    ``name`` is what Kuzu prints, such as ``FLOAT[3]``; ``base`` is the type of an element, and
    ``size`` the length of a list of fixed length.
    """

    name: str
    base: str
    is_list: bool = False
    size: int | None = None

    @property
    def property_type(self) -> str:
        """The type of the constraint, as the server prints it."""
        before, after = _LIST if self.is_list else ("", "")
        return " | ".join(f"{before}{type}{after}" for type in _PROPERTY_TYPES[self.base])

    @property
    def is_float(self) -> bool:
        """Whether its values, or the elements of them, are floats."""
        return self.base in _FLOATS

    @property
    def is_integer(self) -> bool:
        """Whether its values, or the elements of them, are integers."""
        return self.base in _INTEGERS

    @property
    def is_default(self) -> bool:
        """Whether the property type is enough to know it."""
        return of_property_type(self.property_type) == self

    @property
    def range(self) -> tuple[int, int]:
        """The smallest and the largest integer. Isolith's integers have 64 bits."""
        bits = min(int(self.base.lstrip("UINT")), 64)
        if self.base.startswith("U"):
            return 0, (1 << min(bits, 63)) - 1
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


ANY = ColumnType("ANY", "ANY")


def parse_type(cursor: Cursor) -> ColumnType:
    """Takes a type.

    :raises KuzuError: if it is unknown, or cannot be the type of a property
    """
    base = cursor.name("a type").upper()
    base = _ALIASES.get(base, base)
    if base in _INSTEAD:
        raise refused(f"columns of type {base}", _INSTEAD[base])
    if base not in _PROPERTY_TYPES:
        error = f"Catalog exception: {base} is neither an internal type nor a user defined type."
        raise KuzuError(error, code="bad_input")
    name = _decimal(cursor) if base == "DECIMAL" else base
    if not cursor.symbol("["):
        return ColumnType(name, base)
    number = cursor.take(NUMBER)
    cursor.expect("]")
    if cursor.symbol("["):
        raise refused("lists of lists", "use STRING with JSON, or nodes and relationships")
    if number is None:
        return ColumnType(f"{name}[]", base, is_list=True)
    return ColumnType(f"{name}[{int(number.text)}]", base, is_list=True, size=int(number.text))


def of_text(text: str) -> ColumnType:
    """The type with a name.

    :raises KuzuError: if there is none
    """
    cursor = Cursor(text, tokenize(text))
    found = parse_type(cursor)
    cursor.expect_end()
    return found


def of_property_type(text: str | None) -> ColumnType:
    """The usual type for the type of a constraint."""
    if text is None:
        return ANY
    types = text.split(" | ")
    is_list = all(type.startswith(_LIST[0]) and type.endswith(_LIST[1]) for type in types)
    if is_list:
        types = [type[len(_LIST[0]) : -len(_LIST[1])] for type in types]
    base = _DEFAULTS.get(tuple(sorted(types)))
    if base is None:
        return ANY
    return ColumnType(f"{base}[]", base, is_list=True) if is_list else ColumnType(base, base)


def _decimal(cursor: Cursor) -> str:
    """Takes the precision and scale of a decimal, which nothing depends on."""
    numbers = []
    if cursor.symbol("("):
        for end in (",", ")"):
            number = cursor.take(NUMBER)
            if number is None:
                raise cursor.unexpected("a number")
            numbers.append(number.text)
            cursor.expect(end)
    return f"DECIMAL({', '.join(numbers or ('18', '3'))})"
