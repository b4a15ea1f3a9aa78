"""Metadata of any shape in collections, whose metadata is flat."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ._call import to_json

# The key of the JSON text of all values that cannot be stored as they are.
NESTED = "isolith:nested"

_INTEGERS = range(-(2**63), 2**63)


def flat(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a collection can store and filter by."""
    return {key: value for key, value in metadata.items() if _is_flat(value)}


def stored(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as it is stored: nested values and large integers are JSON text under one key.

    :raises isolith.BadInput: if a value has no JSON
    """
    plain = flat(metadata)
    nested = {key: value for key, value in metadata.items() if key not in plain}
    if nested:
        plain[NESTED] = to_json(nested).decode()
    return plain


def restored(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata that was stored."""
    values = dict(metadata)
    nested = values.pop(NESTED, None)
    if nested is not None:
        values.update(json.loads(nested))
    return values


def _is_flat(value: Any) -> bool:
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(_is_scalar(item) for item in value)
    return _is_scalar(value)


def _is_scalar(value: Any) -> bool:
    if isinstance(value, int):
        return value in _INTEGERS
    return not isinstance(value, (Mapping, list, tuple, set, frozenset))
