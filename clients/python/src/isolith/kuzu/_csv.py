"""Rows of CSV files, with the options that Kuzu has for them."""

from __future__ import annotations

import codecs
import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import IO, Any, NamedTuple

from ._columns import ColumnType
from ._convert import ConversionError, text_converter
from ._errors import binder_error, copy_error, refused
from ._parts import Part, of_texts

_DELIMITERS = (",", ";", "\t", "|")

# The longest value in bytes: longer ones do not fit into a request.
_MAX_CELL = 64 << 20

# How many rows are converted at once.
_CHUNK = 10_000

_BOOLEANS = ("HEADER", "PARALLEL", "LIST_UNBRACED", "AUTODETECT", "AUTO_DETECT", "IGNORE_ERRORS")


class CsvOptions(NamedTuple):
    """How files are read. ``None`` is to be found out."""

    header: bool | None = None
    delimiter: str | None = None
    quote: str = '"'
    escape: str = '"'
    skip: int = 0
    null_strings: frozenset[str] = frozenset(("",))


class Block(NamedTuple):
    """Some lines of a file. If they are not the last ones, the last row may be incomplete."""

    text: str
    is_last: bool


def csv_options(options: dict[str, Any]) -> CsvOptions:
    """The options of ``COPY`` for CSV files.

    :raises KuzuError: if one of them is unknown, invalid or not supported
    """
    header = delimiter = None
    read = CsvOptions()
    for name, value in options.items():
        if name in _BOOLEANS and not isinstance(value, bool):
            raise binder_error(f"The value type of parsing csv option {name} must be a boolean.")
        if name == "HEADER":
            header = value
        elif name in ("DELIM", "DELIMITER"):
            delimiter = _character(name, value)
        elif name == "QUOTE":
            read = read._replace(quote=_character(name, value))
        elif name == "ESCAPE":
            read = read._replace(escape=_character(name, value))
        elif name == "SKIP":
            read = read._replace(skip=int(value))
        elif name == "NULL_STRINGS":
            read = read._replace(null_strings=frozenset(value))
        elif name in ("IGNORE_ERRORS", "LIST_UNBRACED"):
            if value:
                raise refused(f"{name} of COPY", "correct the rows, or copy them from a DataFrame")
        elif name in ("AUTODETECT", "AUTO_DETECT"):
            header = header if value or header is not None else False
            delimiter = delimiter if value or delimiter is not None else ","
        elif name not in ("PARALLEL", "SAMPLE_SIZE"):
            raise binder_error(f"Unrecognized csv parsing option: {name}.")
    return read._replace(header=header, delimiter=delimiter)


class CsvFile:
    """A file, which is read from where it was read to, either as it is or row by row.

    It is a context manager.

    :ivar delimiter: what is between cells
    :ivar is_plain: whether quotes and null are as in the CSV that the server reads
    :raises KuzuError: if it cannot be read
    """

    def __init__(self, path: str, types: Sequence[ColumnType], options: CsvOptions) -> None:
        self.delimiter = ","
        self.is_plain = (
            options.quote == options.escape == '"' and options.null_strings == frozenset(("",))
        )
        self._path = path
        self._types = types
        self._options = options
        # The next byte, and the number of lines before it.
        self._offset = self._line = 0
        self._data = b""

    def __enter__(self) -> CsvFile:
        with self._reading():
            # Without a buffer, as copies of the descriptor share its position.
            self._file = open(self._path, "rb", buffering=0)
            try:
                self._skip_start()
            except BaseException:
                self._file.close()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def blocks(self, most_bytes: int) -> Iterator[Block]:
        """The text of the file. The next block begins after what :meth:`take` was called with."""
        while True:
            with self._reading():
                self._file.seek(self._offset)
                data = self._file.read(most_bytes)
                is_last = len(data) < most_bytes
                if not data:
                    return
                self._data = data if is_last else data[: data.rfind(b"\n") + 1]
                text = self._data.decode()
            yield Block(text, is_last)

    def take(self, taken: int) -> None:
        """Notes how many bytes of a block need not be read again."""
        self._offset += taken
        self._line += self._data.count(b"\n", 0, taken)
        if taken == len(self._data):
            self._data = b""

    def parts(self) -> Iterator[Part]:
        """The rest of the rows.

        :raises KuzuError: if one of them is not as it should be
        """
        with _long_cells(), self._reading(), self._text() as text:
            reader = csv.reader(text, **_dialect(self.delimiter, self._options))
            first, at_end = self._line, False
            while not at_end:
                rows: list[list[str]] = []
                lines: list[int] = []
                problem = None
                try:
                    while len(rows) < _CHUNK:
                        cells = next(reader)
                        if _is_blank(cells, len(self._types)):
                            continue
                        if len(cells) == len(self._types) + 1 and not cells[-1]:
                            # A delimiter at the end of the line.
                            cells.pop()
                        if len(cells) != len(self._types):
                            problem = (
                                f": expected {len(self._types)} values per row, "
                                f"but got {len(cells)}."
                            )
                            break
                        rows.append(cells)
                        lines.append(first + reader.line_num)
                except StopIteration:
                    at_end = True
                except csv.Error as error:
                    problem = f": {error}."
                if rows:
                    columns = [list(column) for column in zip(*rows)]
                    part = Part(columns, partial(self._place, lines))
                    yield of_texts(part, self._types, self._options.null_strings)
                if problem is not None:
                    raise copy_error(self._place([first + reader.line_num], 0) + problem)

    def _place(self, lines: list[int], index: int) -> str:
        return f"Error in file {self._path} on line {lines[index]}"

    def _skip_start(self) -> None:
        """Skips what is before the rows, and finds out the delimiter."""
        if self._file.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
            self._offset = len(codecs.BOM_UTF8)
        lines: list[str] = []
        with _long_cells(), self._text() as text:
            for _ in range(self._options.skip):
                lines.append(text.readline())
            start = list(lines)
            line = text.readline()
            self.delimiter = self._options.delimiter or _delimiter(
                line, len(self._types), self._options
            )
            reader = csv.reader(
                _recorded(chain([line], text), lines), **_dialect(self.delimiter, self._options)
            )
            try:
                cells = next(it for it in reader if not _is_blank(it, len(self._types)))
                if _is_header(cells, self._types, self._options):
                    start = lines
            except (StopIteration, csv.Error):
                # The rows are read again, with the error.
                pass
        self._offset += sum(len(line.encode()) for line in start)
        self._line = len(start)

    def _text(self) -> IO[str]:
        """The rest of the file as text."""
        self._file.seek(self._offset)
        return os.fdopen(os.dup(self._file.fileno()), encoding="utf-8", newline="")

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise copy_error(f"Cannot read file {self._path}: {error.strerror}.") from None
        except UnicodeDecodeError as error:
            raise copy_error(
                f"Error in file {self._path}: Invalid UTF8-encoded string: {error}."
            ) from None


def _recorded(lines: Iterable[str], into: list[str]) -> Iterator[str]:
    for line in lines:
        into.append(line)
        yield line


def _is_blank(cells: list[str], columns: int) -> bool:
    return not cells or (len(cells) == 1 and not cells[0] and columns > 1)


def _dialect(delimiter: str, options: CsvOptions) -> dict[str, Any]:
    doubles = options.escape == options.quote
    return {
        "delimiter": delimiter,
        "quotechar": options.quote,
        "doublequote": doubles,
        "escapechar": None if doubles else options.escape,
        "strict": True,
    }


def _delimiter(line: str, columns: int, options: CsvOptions) -> str:
    """The first delimiter that makes as many cells of the first line as there are columns."""
    for delimiter in _DELIMITERS:
        try:
            cells = next(csv.reader([line], **_dialect(delimiter, options)), [])
        except csv.Error:
            continue
        if len(cells) == columns:
            return delimiter
    return ","


def _is_header(cells: list[str], types: Sequence[ColumnType], options: CsvOptions) -> bool:
    """Whether the first line is one: by the option, or because no cell has the type of its column.

    As in Kuzu, a file with columns of text only has a header if the option says so.
    """
    if options.header is not None:
        return options.header
    fits = []
    for cell, type in zip(cells, types):
        if (type.base == "STRING" and not type.is_list) or cell in options.null_strings:
            continue
        try:
            text_converter(type)(cell)
            fits.append(True)
        except ConversionError:
            fits.append(False)
    return bool(fits) and not any(fits)


def _character(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise binder_error(f"The value type of parsing csv option {name} must be a string.")
    character = "\t" if value == "\\t" else value
    if len(character) != 1:
        raise binder_error(f"Copy csv option {name} must be a single character.")
    return character


@contextmanager
def _long_cells() -> Iterator[None]:
    """Lets cells be longer than the csv module usually takes."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, _MAX_CELL))
    try:
        yield
    finally:
        csv.field_size_limit(before)
