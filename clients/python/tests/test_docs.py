"""The examples of the documentation run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import isolith

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT.parents[1] / "docs" / "python.md"]


def examples(page: Path) -> list[tuple[int, str]]:
    """The line and the text of each Python example of a page."""
    text = page.read_text()
    return [
        (text.count("\n", 0, match.start(1)), match.group(1))
        for match in re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_run(
    page: Path, project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if not page.exists():
        pytest.skip("the tests run without the documentation")
    if "to_pandas" in page.read_text():
        pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
    project.rename(tmp_path / "shop")
    monkeypatch.chdir(tmp_path)
    found = examples(page)
    assert found
    # The examples of a page are one program.
    names: dict[str, object] = {}
    for line, text in found:
        code = compile("\n" * line + text, str(page), "exec")
        exec(code, names)


def test_all_errors_are_documented() -> None:
    page = PAGES[1]
    if not page.exists():
        pytest.skip("the tests run without the documentation")
    text = page.read_text()
    for name in isolith.__all__:
        kind = getattr(isolith, name)
        if isinstance(kind, type) and issubclass(kind, isolith.Error):
            assert f"`{name}`" in text or f"isolith.{name}" in text, name
