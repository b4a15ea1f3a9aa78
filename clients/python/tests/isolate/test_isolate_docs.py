"""The examples of the documentation run and print what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[4] / "docs" / "python-isolate.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S) if PAGE.exists() else []


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_example(number: int, tmp_path: Path) -> None:
    path = tmp_path / "example.py"
    path.write_text(EXAMPLES[number])
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for said in re.findall(r"print\(.*\)  # (\[?['\w].*)", EXAMPLES[number]):
        if not said.startswith(("the ", "with ")):
            assert said in done.stdout.splitlines()
