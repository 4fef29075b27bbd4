"""The examples of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dev import ROOT, Dev

PAGES = [ROOT / "clients/python/README.md", ROOT / "docs/integrate/python.md"]
EXAMPLES = [
    pytest.param(code, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("code", EXAMPLES)
def test_an_example_runs(
    code: str, dev: Dev, ends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPARKGATE_URL", dev.url)
    monkeypatch.setenv("SPARKGATE_CONFIG", str(tmp_path / "config.yaml"))
    code = code.replace("local:///opt/spark/examples/src/main/python/pi.py", ends).replace(", 10", ", 0")
    exec(compile(code.replace("http://127.0.0.1:6066", dev.url), "example", "exec"), {})
    assert ("hello" if "upload" in code else "ends with 0") in capsys.readouterr().out
