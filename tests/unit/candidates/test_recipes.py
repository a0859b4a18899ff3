"""Every recipe of the documentation is a registry that can be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_modelbench.candidates.registry import Registry
from pytest_modelbench.gateway.upstream import target_of

DOCS = Path(__file__).parents[3] / "docs"
BLOCKS = [
    pytest.param(block, id=f"{page}-{number}")
    for page in ("models", "agent-programs")
    for number, block in enumerate(
        re.findall(
            r"^```toml\n(.*?)^```$",
            (DOCS / f"{page}.md").read_text(encoding="utf-8"),
            re.MULTILINE | re.DOTALL,
        )
    )
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_recipe_can_be_read(tmp_path: Path, block: str) -> None:
    if "server =" in block and "[servers." not in block:
        pytest.fail("the recipe names a server that it does not declare")
    (tmp_path / "modelbench.toml").write_text(block, encoding="utf-8")
    registry = Registry.read(tmp_path)
    assert registry.candidates
    for candidate in registry.candidates.values():
        environ = {candidate.api_key_env: "x"} if candidate.api_key_env else {"OPENAI_API_KEY": "x"}
        assert target_of(candidate, environ).problem is None
