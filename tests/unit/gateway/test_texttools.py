"""The text tool protocol: what of a reply is run, and how a conversation is told in words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_modelbench.gateway.texttools import read, schemas_of, told


def tool(name: str, required: list[str], **types: Any) -> dict[str, Any]:
    properties = {key: {"type": kind} if kind else {} for key, kind in types.items()}
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS: list[Any] = [
    tool("read", [], path="string"),
    tool("save", ["path", "content"], path="string", content="string"),
    tool("set", [], n="integer", x="number", on="boolean", rows="array", any=None, s="string"),
]
SCHEMAS = schemas_of(TOOLS)


def block(name: str, **given: Any) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'input': given})}\n</tool_call>"


def invoke(name: str, **given: str) -> str:
    inner = "".join(f'<parameter name="{key}">{one}</parameter>' for key, one in given.items())
    return f'<invoke name="{name}">{inner}</invoke>'


A, B = block("read", path="a"), block("read", path="b")
READ_A: tuple[str, dict[str, Any]] = ("read", {"path": "a"})
READ_B: tuple[str, dict[str, Any]] = ("read", {"path": "b"})
INVOKED = invoke("read", path="b")
NO_TOOL = '{"name": "no", "input": {}}'
BARE = '{"name": "read", "input": {"path": "a"}}'


@pytest.mark.parametrize(
    ("reply", "text", "calls"),
    [
        # 1. A predicted result, and what follows it, is dropped.
        pytest.param(f"{A}\n<tool_result>x</tool_result>\n{B}", "", [READ_A], id="after-result"),
        pytest.param(f"<tool_response>x</tool_response>{A}", "", [], id="result-first"),
        pytest.param(f"I look.\nObservation: done\n{A}", "I look.\n", [], id="observation"),
        pytest.param(
            block("save", path="p", content="<tool_result>"),
            "",
            [("save", {"path": "p", "content": "<tool_result>"})],
            id="a-result-within-an-argument-is-none",
        ),
        pytest.param(
            invoke("set", n="9" * 5000, x="1e999", rows="[" * 900 + "]" * 900),
            "",
            [("set", {"n": "9" * 5000, "x": "1e999", "rows": "[" * 900 + "]" * 900})],
            id="what-is-no-number-and-no-list-stays-text",
        ),
        # 2. Blocks of JSON: the first run.
        pytest.param(A, "", [READ_A], id="one"),
        pytest.param(f"First this.\n{A}", "First this.", [READ_A], id="text-before"),
        pytest.param(f"{A}\n\n {B}", "", [READ_A, READ_B], id="a-run"),
        pytest.param(f"{A}\nThen:\n{B}", "", [READ_A], id="a-later-one-does-not-run"),
        pytest.param(f"{A}{A}{B}{A}", "", [READ_A, READ_B], id="equal-ones-once"),
        pytest.param(
            block("save", path="p", content="1") + A + block("save", path="p", content="2"),
            "",
            [READ_A, ("save", {"path": "p", "content": "2"})],
            id="the-last-write-wins",
        ),
        pytest.param(
            block("save", path="p", content="1") + block("save", path="q", content="2"),
            "",
            [("save", {"path": p, "content": c}) for p, c in (("p", "1"), ("q", "2"))],
            id="writes-to-two-paths",
        ),
        pytest.param(
            '<tool_call>{"name": "read", "path": "a"}</tool_call>', "", [READ_A], id="flat"
        ),
        pytest.param(
            '<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>',
            "",
            [READ_A],
            id="arguments",
        ),
        pytest.param(f"```tool_call\n{BARE}\n```", "", [READ_A], id="fence"),
        pytest.param(f"<tool_call>[{BARE}, {BARE}]</tool_call>", "", [READ_A], id="list"),
        pytest.param(A.removesuffix("</tool_call>"), "", [READ_A], id="not-closed"),
        pytest.param(
            block("save", path="p", content="a</tool_call>b"),
            "",
            [("save", {"path": "p", "content": "a</tool_call>b"})],
            id="the-closing-mark-in-an-argument",
        ),
        pytest.param(block("nothing"), "", [("nothing", {})], id="a-tool-that-there-is-not"),
        pytest.param(
            f"```python\nprint('<tool_call>')\n```\n{A}",
            "```python\nprint('<tool_call>')\n```",
            [READ_A],
            id="code-is-text",
        ),
        # Typed by the schema.
        pytest.param(
            block("set", n="3", x="2.5", on="True", rows="[1, 2]", any='{"a": 1}', s="7"),
            "",
            [("set", {"n": 3, "x": 2.5, "on": True, "rows": [1, 2], "any": {"a": 1}, "s": "7"})],
            id="typed",
        ),
        pytest.param(
            block("set", n="three", x="", on="yes", rows="[1,", s="[1]", more="4"),
            "",
            [
                (
                    "set",
                    {"n": "three", "x": "", "on": "yes", "rows": "[1,", "s": "[1]", "more": "4"},
                )
            ],
            id="what-does-not-read-so-stays",
        ),
        # 3. Else markup: the first block, tools on offer.
        pytest.param(
            f"{invoke('read', path='b')}{A}", invoke("read", path="b"), [READ_A], id="2-3"
        ),
        pytest.param(f"Go.\n{invoke('read', path='a')}", "Go.", [READ_A], id="invoke"),
        pytest.param(
            f"<function_calls>{invoke('read', path='a')}{invoke('read', path='b')}"
            f"</function_calls><function_calls>{invoke('read', path='c')}</function_calls>",
            "",
            [READ_A, READ_B],
            id="the-first-block",
        ),
        pytest.param(
            f"{invoke('nothing')}{invoke('read', path='a')} or {INVOKED}",
            "",
            [READ_A],
            id="only-tools-on-offer",
        ),
        pytest.param(invoke("nothing"), invoke("nothing"), [], id="none-on-offer"),
        pytest.param(
            invoke("set", n="4", rows='\n["x"]\n', s="\n4\n"),
            "",
            [("set", {"n": 4, "rows": ["x"], "s": "4"})],
            id="invoke-typed",
        ),
        # 4. Else nothing but one object.
        pytest.param(BARE, "", [READ_A], id="bare"),
        pytest.param(f"\n```json\n{BARE}\n```\n", "", [READ_A], id="bare-in-a-fence"),
        pytest.param(f"Do {BARE}", f"Do {BARE}", [], id="not-alone"),
        pytest.param(f"{invoke('read', path='b')} {BARE}", "", [READ_B], id="3-before-4"),
        pytest.param(
            '{"name": "no", "input": {}}', '{"name": "no", "input": {}}', [], id="no-tool"
        ),
        pytest.param(
            '{"name": "read", "input": {}, "x": 1}',
            '{"name": "read", "input": {}, "x": 1}',
            [],
            id="another-key",
        ),
        pytest.param(
            '{"name": "read", "path": "a"}', '{"name": "read", "path": "a"}', [], id="bare-flat"
        ),
        # 5. Else text.
        pytest.param("Two words.", "Two words.", [], id="text"),
        pytest.param("", "", [], id="empty"),
        pytest.param("<tool_call>", "<tool_call>", [], id="a-lone-tag"),
    ],
)
def test_what_of_a_reply_is_run(
    reply: str, text: str, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    found = read(reply, SCHEMAS)
    assert [(call.name, json.loads(call.raw)) for call in found.calls] == calls
    assert found.text == text


def test_a_block_that_is_no_json_is_a_call_that_cannot_be_read() -> None:
    (call,) = read('<tool_call>{"name": "read", "input": {"path: }}</tool_call>', SCHEMAS).calls
    assert (call.name, call.raw) == ("read", '{"name": "read", "input": {"path: }}')


def test_a_conversation_is_told_in_words() -> None:
    function = {"name": "read", "arguments": '{"path": "é"}'}
    asked: list[Any] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Look."}]},
        {"role": "assistant", "content": "So.", "tool_calls": [{"id": "c1", "function": function}]},
        {"role": "tool", "tool_call_id": "c1", "content": "hello"},
        {"role": "user", "content": "Go on."},
    ]
    system, user, assistant, result = told(asked, TOOLS)
    assert [one["role"] for one in (system, user, assistant, result)] == [  # type: ignore[call-overload,index]  # JSON
        *("system", "user", "assistant", "user")
    ]
    words = str(system["content"])  # type: ignore[call-overload,index]  # JSON
    assert words.startswith("Be brief.\n\nYou act by writing tool calls")
    assert '- save: \n  {"type": "object", "properties": {"path": {"type": "string"}' in words
    assert user == {"role": "user", "content": "Look."}
    said = 'So.\n<tool_call>\n{"name": "read", "input": {"path": "é"}}\n</tool_call>'
    assert assistant == {"role": "assistant", "content": said}
    assert result == {
        "role": "user",
        "content": '<tool_result name="read">\nhello\n</tool_result>\n\nGo on.',
    }
    # What it writes itself it reads.
    assert [(c.name, json.loads(c.raw)) for c in read(said, SCHEMAS).calls] == [
        ("read", {"path": "é"})
    ]
