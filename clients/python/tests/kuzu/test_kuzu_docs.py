"""The examples of docs/python-kuzu.md run, and print what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import run_python

PAGE = Path(__file__).resolve().parents[4] / "docs" / "python-kuzu.md"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not PAGE.exists():
        pytest.skip("the tests run without the documentation")
    monkeypatch.chdir(tmp_path)
    # The examples of the page are one program.
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.M | re.S))
    said = re.findall(r"^# (.*)|print\(.*\)  # (.*)", program, re.M)
    assert run_python(program).split() == " ".join(own or beside for own, beside in said).split()
