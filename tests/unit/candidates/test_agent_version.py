from __future__ import annotations

import ast
import hashlib
import inspect
import json
from types import ModuleType

from pytest_modelbench.candidates import agent_version, prompts, tools

SHOWN = {
    "1": "3ea10f98f8663e69",
}
"""Agent version → hash of the texts shown under it. Add a line; never change a released one."""


def texts_of(module: ModuleType) -> list[str]:
    """Return every string of a module but its docstrings, pieces of f-strings included."""
    tree = ast.parse(inspect.getsource(module))
    documents = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in documents
    ]


def test_a_changed_prompt_or_tool_text_needs_a_new_version() -> None:
    shown = json.dumps([tools.SCHEMAS, texts_of(prompts), texts_of(tools)])
    found = hashlib.sha256(shown.encode()).hexdigest()[:16]
    assert SHOWN[agent_version.AGENT_VERSION] == found, (
        "what a model is shown has changed: raise AGENT_VERSION and add its hash here"
    )


def test_the_texts_that_are_guarded_are_those_that_a_model_sees() -> None:
    texts = texts_of(prompts) + texts_of(tools)
    assert prompts.SYSTEM in texts
    assert "There is no tool named " in texts
    assert "Replace one piece of text in a file." in texts
    assert not any("Return what is wrong with the arguments" in text for text in texts)
