"""Vectors on the wire: base64 of 32-bit floats in little-endian order."""

from __future__ import annotations

import sys
from array import array
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, Union

from .errors import BadInput, UnexpectedReply

if TYPE_CHECKING:

    class ArrayLike(Protocol):
        """An array of numpy, or of a library with the same methods."""

        def astype(self, dtype: Any, /) -> Any: ...

    Vector = Union[Iterable[float], ArrayLike]


def encode(vector: Vector) -> str:
    """The base64 text of a vector: an array of numpy, a buffer of floats, or any numbers.

    :raises BadInput: if it is not a vector
    """
    return b2a_base64(_bytes_of(vector), newline=False).decode("ascii")


def _bytes_of(vector: Any) -> bytes:
    if isinstance(vector, (str, bytes, bytearray, dict)):
        raise BadInput(f"a vector must be a list of numbers, not {type(vector).__name__}")
    if hasattr(vector, "astype"):
        if getattr(vector, "ndim", 1) != 1:
            raise BadInput(f"a vector must have one dimension, not the shape {vector.shape}")
        try:
            data: bytes = vector.astype("<f4").tobytes()
            return data
        except (TypeError, ValueError) as error:
            raise BadInput(f"a vector must be a list of numbers: {error}") from None
    try:
        view = memoryview(vector)
    except TypeError:
        numbers = vector.tolist() if hasattr(vector, "tolist") else vector
    else:
        if view.ndim != 1:
            raise BadInput(f"a vector must have one dimension, not the shape {view.shape}")
        numbers = view.tolist()
    try:
        floats = array("f", numbers)
    except (TypeError, ValueError, OverflowError) as error:
        raise BadInput(f"a vector must be a list of numbers: {error}") from None
    if sys.byteorder == "big":
        floats.byteswap()
    return floats.tobytes()


def decode(value: Any) -> array[float]:
    """The vector in a reply, which is base64 or a list of numbers."""
    if not isinstance(value, str):
        return array("f", value)
    floats = array("f")
    try:
        floats.frombytes(a2b_base64(value))
    except (Base64Error, ValueError) as error:
        raise UnexpectedReply(f"the reply has an invalid vector: {error}") from None
    if sys.byteorder == "big":
        floats.byteswap()
    return floats
