"""Makes values of columns: from the text of a file, and from objects of Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ._columns import ANY, TIMESTAMPS, ColumnType
from ._errors import KuzuError
from ._values import moment_text, sent

_type_of = type
_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


class ConversionError(Exception):
    """A value that does not fit its column."""


def text_converter(type: ColumnType) -> Callable[[str], Any]:
    """What makes a value of the text in a file. It raises :class:`ConversionError`."""
    convert = _text_element(type)
    if not type.is_list:
        return convert

    def convert_list(text: str) -> list[Any]:
        stripped = text.strip()
        if not (stripped.startswith("[") and stripped.endswith("]")):
            raise ConversionError(f"Cast failed. {text} is not in {type.name} range.")
        items = [item.strip() for item in _items(stripped[1:-1])]
        return _checked([None if not item else convert(item) for item in items], type)

    return convert_list


def object_converter(type: ColumnType) -> Callable[[Any], Any]:
    """What makes a value of an object. It raises :class:`ConversionError`."""
    if type is ANY:
        return sent
    convert = _object_element(type)
    if not type.is_list:
        return convert

    def convert_list(value: Any) -> Any:
        if hasattr(value, "tolist"):
            value = value.tolist()
        if not isinstance(value, (list, tuple)):
            raise _unfit(value, type)
        return _checked([None if is_missing(item) else convert(item) for item in value], type)

    return convert_list


def converted_text(value: Any, type: str) -> str:
    """The text for a value of a type such as ``DATE``.

    :raises KuzuError: if there is none
    """
    try:
        text: str = object_converter(ColumnType(type, type))(value)
    except ConversionError as error:
        raise KuzuError(f"Conversion exception: {error}", code="bad_input") from None
    return text


def is_missing(value: Any) -> bool:
    """Whether a value is none: ``None``, or what tables have in its place."""
    if value is None:
        return True
    if isinstance(value, float):
        return math.isnan(value)
    # The NA and NaT of pandas: neither equals itself.
    return type(value).__name__ in ("NAType", "NaTType")


def is_plain(values: list[Any], type: ColumnType) -> bool:
    """Whether objects are values of the type as they are."""
    kinds = set(map(_type_of, values))
    kinds.discard(_type_of(None))
    if type.is_list or len(kinds) > 1:
        return False
    if kinds == {int} and type.is_integer:
        least, most = type.range
        known = [value for value in values if value is not None]
        return bool(least <= min(known) and max(known) <= most)
    if kinds == {float} and type.is_float:
        # NaN stands for no value.
        return not any(value != value for value in values)
    return (kinds == {str} and type.base == "STRING") or (kinds == {bool} and type.base == "BOOL")


def _text_element(type: ColumnType) -> Callable[[str], Any]:
    if type.is_integer:
        return _integer_of(type)
    if type.is_float:
        return lambda text: _float(text.strip(), type)
    if type.base == "BOOL":
        return _boolean
    if type.base == "DATE":
        return _date
    if type.base in TIMESTAMPS:
        return _timestamp
    if type.base == "UUID":
        return _uuid
    return str


def _object_element(type: ColumnType) -> Callable[[Any], Any]:
    from_text = _text_element(type)
    name = type.base

    def convert(value: Any) -> Any:
        if hasattr(value, "item") and not isinstance(value, (bool, int, float, str)):
            # A number of numpy.
            value = value.item()
        if isinstance(value, str):
            return from_text(value)
        if name == "BOOL":
            if isinstance(value, bool):
                return value
        elif type.is_integer or type.is_float:
            if isinstance(value, (bool, int, float)) or value.__class__.__name__ == "Decimal":
                return _number(value, type)
        elif hasattr(value, "isoformat"):
            return _moment(value, type)
        elif name == "STRING" or value.__class__.__name__ == "UUID":
            return _string(value)
        raise _unfit(value, type)

    return convert


def _number(value: Any, type: ColumnType) -> int | float:
    if type.is_float:
        return float(value)
    if isinstance(value, float) and not value.is_integer():
        raise _unfit(value, type)
    return _integer_of(type)(value)


def _moment(value: Any, type: ColumnType) -> str:
    if type.base == "DATE" and hasattr(value, "date"):
        value = value.date()
    text = moment_text(value)
    return _timestamp(text) if type.base in TIMESTAMPS else text


def _string(value: Any) -> str:
    if isinstance(value, bool):
        return "True" if value else "False"
    return str(value)


def _integer_of(type: ColumnType) -> Callable[[Any], int]:
    """What makes an integer of a text or a number."""
    least, most = type.range

    def convert(given: Any) -> int:
        try:
            # Python takes underscores.
            value = int("" if isinstance(given, str) and "_" in given else given)
        except ValueError:
            value = most + 1
        if not least <= value <= most:
            text = str(given).strip()
            raise ConversionError(f'Cast failed. Could not convert "{text}" to {type.base}.')
        return value

    return convert


def _float(text: str, type: ColumnType) -> float:
    try:
        return float(text if "_" not in text else "")
    except ValueError:
        raise ConversionError(f"Cast failed. {text} is not in {type.base} range.") from None


def _boolean(text: str) -> bool:
    value = _BOOLEANS.get(text.strip().lower())
    if value is None:
        raise ConversionError(f"Value {text} is not a valid boolean")
    return value


def _date(text: str) -> str:
    import datetime

    parts = text.strip().replace("/", "-").split("-")
    try:
        year, month, day = (int(part) for part in parts)
        return datetime.date(year, month, day).isoformat()
    except ValueError:
        raise ConversionError(
            f'Error occurred during parsing date. Given: "{text}". Expected format: (YYYY-MM-DD)'
        ) from None


def _timestamp(text: str) -> str:
    import datetime

    stripped = text.strip()
    day, _, time = stripped.replace("T", " ").partition(" ")
    time = time.strip()
    if time.endswith(("Z", "z")):
        time = time[:-1] + "+00:00"
    try:
        moment = datetime.datetime.fromisoformat(f"{_date(day)}T{_whole(time) or '00:00:00'}")
    except (ConversionError, ValueError):
        raise ConversionError(
            f'Error occurred during parsing timestamp. Given: "{text}". '
            "Expected format: (YYYY-MM-DD hh:mm:ss[.zzzzzz][+-TT[:tt]])"
        ) from None
    return moment_text(moment)


def _whole(time: str) -> str:
    """A time with six digits after the point, which old versions of Python insist on."""
    clock, point, rest = time.partition(".")
    if not point:
        return time
    digits = rest
    zone = ""
    for sign in ("+", "-"):
        if sign in rest:
            digits, _, zone = rest.partition(sign)
            zone = sign + zone
    return f"{clock}.{digits[:6].ljust(6, '0')}{zone}"


def _uuid(text: str) -> str:
    import uuid

    try:
        return str(uuid.UUID(text.strip()))
    except ValueError:
        raise ConversionError(f"Invalid UUID: {text}") from None


def _items(text: str) -> list[str]:
    """The parts between commas, outside of quotes."""
    if not text.strip():
        return []
    if '"' not in text and "'" not in text:
        return text.split(",")
    parts, start, quote = [], 0, ""
    for at, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == ",":
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return parts


def _checked(values: list[Any], type: ColumnType) -> list[Any]:
    if type.size is not None and len(values) != type.size:
        raise ConversionError(
            "Each array should have fixed number of elements. "
            f"Expected: {type.size}, Actual: {len(values)}."
        )
    if None in values:
        raise ConversionError("lists cannot contain null in Isolith")
    for value in values:
        if isinstance(value, float) and not math.isfinite(value):
            raise ConversionError(f"lists cannot contain {value} in Isolith")
    return values


def _unfit(value: Any, type: ColumnType) -> ConversionError:
    return ConversionError(f"{value!r} is not a value of type {type.name}")
