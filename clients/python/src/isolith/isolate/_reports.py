"""Crash reports: one JSON file for each death, in the format of Isolith's own workers."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

KEPT_REPORTS = 200

_NAME = re.compile(r"\d{13,}-\d+-\d+\.json")
_numbers = itertools.count()


def default_folder() -> Path:
    """`$XDG_STATE_HOME/isolith/python-crashes`."""
    state = os.environ.get("XDG_STATE_HOME", "")
    base = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return base / "isolith" / "python-crashes"


def write(folder: Path, report: dict[str, Any], keep: int = KEPT_REPORTS) -> Path | None:
    """Writes a report and returns its path; `None` if the folder cannot be written to.

    Only the newest `keep` reports stay. Links are not followed, and only files named like
    reports are removed.
    """
    name = f"{report['unix_ms']:013}-{os.getpid()}-{next(_numbers)}"
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(f".{name}", flags, 0o600, dir_fd=handle)
        with os.fdopen(file, "w", encoding="utf-8") as stream:
            json.dump(report, stream, indent=2)
        os.rename(f".{name}", f"{name}.json", src_dir_fd=handle, dst_dir_fd=handle)
        _prune(handle, keep)
    except OSError:
        return None
    finally:
        os.close(handle)
    return folder / f"{name}.json"


def _prune(handle: int, keep: int) -> None:
    # Names sort by time.
    reports = sorted(filter(_NAME.fullmatch, os.listdir(handle)))
    for name in reports[: max(len(reports) - keep, 0)]:
        # Another process may have removed it.
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=handle)


def now_ms() -> int:
    return int(time.time() * 1000)
