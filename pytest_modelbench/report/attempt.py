"""One attempt as lines of a terminal: what was asked, thought, called, answered, used and judged.

Every word of it may come from a model, a server or a hostile file: all is masked, then escaped.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from pytest_modelbench.parsing import parse
from pytest_modelbench.records import AttemptRecord, CheckRecord, Usage
from pytest_modelbench.report.costs import oddity
from pytest_modelbench.report.escape import escape
from pytest_modelbench.report.masking import Masking
from pytest_modelbench.report.numbers import dollars, duration, plural

LONGEST_BLOCK = 40
"""Lines of one message that are shown unless all are asked for."""

LONGEST_TEXT = 1000
"""Characters of one text within data."""

Entry = Mapping[str, JsonValue]

_NOTHING_SAID: Mapping[str, str] = {}


def render_attempt(
    record: AttemptRecord,
    entries: Sequence[Entry],
    *,
    width: int = 80,
    utf8: bool = True,
    full: bool = False,
    missing: str = "",
    said: Mapping[str, str] = _NOTHING_SAID,
    judged: JsonValue = None,
    wanted: JsonValue = None,
    own: Sequence[CheckRecord] = (),
) -> list[str]:
    """Return an attempt in lines; ``entries`` are its transcript.

    ``missing`` says why there is no transcript where there was one. ``said`` is what failing checks
    said, by name: it may quote what is hidden, and is evidence, so not in a record. ``judged`` is
    what the rules of a benchmark saw, ``wanted`` what its reference gives. ``own`` is what users'
    own tests found.
    """
    page = _Page(max(width, 60), utf8, full)
    body = [*page.heading(record), *page.transcript(entries)]
    if missing:
        body += ["", *page.block("no transcript", missing)]
    body += ["", *page.usage(record), *page.ending(record, said)]
    body += [*page.data("what was judged", judged), *page.data("what the reference gives", wanted)]
    body += page.own_tests(own)
    if page.masking.count:
        body.append(f"{plural(page.masking.count, 'key')} masked")
    return body


class _Page:
    def __init__(self, width: int, utf8: bool, full: bool) -> None:
        self.width = width
        self.utf8 = utf8
        self.full = full
        self.masking = Masking()

    def heading(self, record: AttemptRecord) -> Iterator[str]:
        cell = f"{record.pack} / {record.case} : {record.candidate} : {record.repeat}"
        yield self.line(f"attempt {record.id}   {cell}")
        facts = [f"started {record.started}", f"{duration(record.seconds)} s"]
        if record.working is not None and record.seconds - record.working >= 0.1:
            facts.append(f"{duration(record.working)} s of work")
        facts.append(f"try {record.tries}")
        facts += [f"box {record.box}"] * bool(record.box)
        facts += [f"served by {record.served_model}"] * bool(record.served_model)
        facts += ["scripted"] * record.scripted
        facts += [f"note: {record.note}"] * bool(record.note)
        if record.grades:
            facts.append(f"a new grading of attempt {record.grades}")
        yield from self.wrapped(" · ".join(facts))

    def transcript(self, entries: Sequence[Entry]) -> Iterator[str]:
        said: Entry = {}
        count = 0
        judged = False
        for entry in entries:
            kind = entry.get("kind")
            if entry.get("role") == "judge" and not judged:
                judged, said, count = True, {}, 0
            if kind == "request":
                yield from self.request(entry, said, count)
                count = _number(entry.get("kept")) + len(_list(entry.get("messages")))
            elif kind == "reply":
                reply = _dict(entry.get("reply"))
                said = reply
                yield from self.reply(entry, reply)
            elif kind == "program":
                yield from self.program(entry)

    def request(self, entry: Entry, said: Entry, count: int) -> Iterator[str]:
        yield ""
        judge = "the judge, " if entry.get("role") == "judge" else ""
        yield self.rule(f"{judge}call {entry.get('step')}")
        kept = _number(entry.get("kept"))
        if kept < count:
            yield self.line(f"(messages {kept + 1} to {count} of the history were rewritten)")
        tools = [_name_of_tool(tool) for tool in _list(entry.get("tools"))]
        if count == 0 and tools:
            yield from self.wrapped(f"tools on offer: {', '.join(tools)}")
        params = _dict(entry.get("params"))
        if count == 0 and params:
            yield from self.wrapped(f"parameters: {json.dumps(params)}")
        for message in _list(entry.get("messages")):
            if isinstance(message, dict):
                yield from self.message(message, said)

    def message(self, message: Entry, said: Entry) -> Iterator[str]:
        role = str(message.get("role") or message.get("type") or "?")
        text = _text(message.get("content") or message.get("output") or message.get("arguments"))
        if role == "assistant":
            calls = _list(message.get("tool_calls"))
            if _is_echo(text, calls, said):
                return
            yield from self.block("assistant, in the history", text)
            for call in calls:
                function = _dict(_dict(call).get("function"))
                yield from self.call(function.get("name"), function.get("arguments"))
        elif role == "tool":
            yield from self.block(f"result of {message.get('tool_call_id', '?')}", text)
        else:
            yield from self.block(role, text)

    def reply(self, entry: Entry, reply: Mapping[str, JsonValue]) -> Iterator[str]:
        if reply.get("reasoning"):
            yield from self.block("thinking", str(reply["reasoning"]))
        if reply.get("answer"):
            yield from self.block("assistant", str(reply["answer"]))
        for call in _list(reply.get("tool_calls")):
            one = _dict(call)
            label = f"call {one.get('id')}" + (f" ({one['problem']})" if one.get("problem") else "")
            yield from self.call(one.get("name"), one.get("raw"), label)
        facts = [_used(_dict(reply.get("usage")))]
        usd = entry.get("usd")
        facts += [dollars(float(usd))] if isinstance(usd, (int, float)) else []
        held = entry.get("held")
        if isinstance(held, (int, float)) and held >= 0.05:
            facts.append(f"held {duration(float(held))} s")
        finish = reply.get("finish")
        facts += [f"finish {finish}"] if finish else []
        outcome = str(reply.get("outcome", ""))
        if reply.get("reason"):
            status = entry.get("status")
            facts.append(
                f"{outcome}: {reply['reason']}" + (f" (status {status})" if status else "")
            )
        yield from self.wrapped("= " + " · ".join(facts))
        if reply.get("quote"):
            yield from self.wrapped(f"  {reply['quote']}")

    def program(self, entry: Entry) -> Iterator[str]:
        yield ""
        argv = " ".join(str(word) for word in _list(entry.get("argv")))
        if entry.get("version") == "function":
            yield self.rule("the function")
            yield from self.wrapped(argv)
            if "returned" in entry:
                returned = entry["returned"]
                yield from self.block(
                    "what it returned", "None" if returned is None else str(returned)
                )
        else:
            yield self.rule("the agent program")
            yield from self.wrapped(f"{entry.get('version') or 'version unknown'} $ {argv}")
        yield from self.block("what it printed", str(entry.get("output", "")))
        yield from self.wrapped(f"= {entry.get('how')}")

    def call(self, name: JsonValue, arguments: JsonValue, label: str = "call") -> Iterator[str]:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        try:
            parsed = parse(text)
        except ValueError:
            parsed = None
        if isinstance(parsed, dict):
            lines = [
                f"{key}: {one if isinstance(one, str) else json.dumps(one)}"
                for key, one in parsed.items()
            ]
            text = "\n".join(lines)
        yield from self.block(f"{label}: {name}", text)

    def usage(self, record: AttemptRecord) -> Iterator[str]:
        for role, usage in record.usage.items():
            yield from self.wrapped(f"{role}: {_sum(usage)}")
        counts = ", ".join(f"{name} {n}" for name, n in record.counts.items() if n)
        if counts:
            yield from self.wrapped(f"counts: {counts}")

    def ending(self, record: AttemptRecord, said: Mapping[str, str]) -> Iterator[str]:
        if record.end or record.detail:
            yield from self.wrapped(f"end: {record.end or 'ordinary'}  {record.detail}")
        if record.fault is not None:
            fault = record.fault
            status = f", status {fault.status}" if fault.status else ""
            yield self.line(f"FAULT {fault.kind} (stage {fault.stage}{status}): no verdict")
            yield from self.block("", fault.text)
        verdict = record.verdict
        if verdict is None:
            return
        why = f" ({verdict.reason})" if verdict.reason else ""
        word = "PASSED" if verdict.passed else f"NOT PASSED{why}"
        yield self.line(f"{word}   reward {verdict.reward:g}   {verdict.trust}")
        for name, value in verdict.measures.items():
            yield from self.wrapped(f"  {name} {value:.4g}")
        for check in verdict.checks:
            mark = "pass" if check.passed else "FAIL"
            reason = f": {check.reason}" if check.reason else ""
            yield from self.wrapped(f"  {mark}  {check.name}{reason}")
            if not check.passed and (text := said.get(check.name, "")):
                yield from self.block("", text)

    def own_tests(self, own: Sequence[CheckRecord]) -> Iterator[str]:
        for check in own:
            mark = "pass" if check.passed else "FAIL"
            reason = f": {check.reason}" if check.reason else ""
            yield from self.wrapped(f"  {mark}  {check.name}{reason}   (a test of your own)")

    def data(self, label: str, data: JsonValue) -> Iterator[str]:
        """Yield data as JSON, of each text the beginning unless all is asked for; None is none."""
        if data is not None:
            shown = data if self.full else _shortened(data)
            yield from self.block(label, json.dumps(shown, indent=2, ensure_ascii=False))

    def block(self, label: str, text: str) -> Iterator[str]:
        if label:
            yield self.line(label)
        lines = self.masking.text(text).expandtabs(4).splitlines() or ["(nothing)"]
        cut = 0 if self.full else max(0, len(lines) - LONGEST_BLOCK)
        head = lines if not cut else lines[: LONGEST_BLOCK // 2]
        tail = [] if not cut else lines[-(LONGEST_BLOCK // 2) :]
        bar = "│ " if self.utf8 else "| "
        for line in head:
            yield from self.folded(bar, line)
        if cut:
            yield f"{bar}[{plural(cut, 'line')} left out; --full shows them]"
        for line in tail:
            yield from self.folded(bar, line)

    def folded(self, bar: str, line: str) -> Iterator[str]:
        """Fold at spaces, each of which stays where it was; within a word only where it must be."""
        shown = escape(line, utf8=self.utf8)
        room = self.width - len(bar)
        while len(shown) > room:
            space = shown.rfind(" ", 1, room + 1)
            # Not within the indent, nor so early that most of the line would stay empty.
            end = space if space > room // 2 and shown[:space].strip() else room
            yield f"{bar}{shown[:end]}".rstrip()
            shown = shown[end + 1 :] if end == space else shown[end:]
        yield f"{bar}{shown}".rstrip()

    def wrapped(self, text: str) -> list[str]:
        shown = escape(self.masking.text(text), utf8=self.utf8)
        return textwrap.wrap(shown, self.width, subsequent_indent="  ", break_on_hyphens=False) or [
            ""
        ]

    def line(self, text: str) -> str:
        return escape(self.masking.text(text), utf8=self.utf8)

    def rule(self, title: str) -> str:
        dash = "─" if self.utf8 else "-"
        return f"{dash * 2} {escape(title, utf8=self.utf8)} ".ljust(min(self.width, 72), dash)


def _shortened(data: JsonValue) -> JsonValue:
    if isinstance(data, str) and len(data) > LONGEST_TEXT:
        return f"{data[:LONGEST_TEXT]}… ({len(data)} characters; --full shows them)"
    if isinstance(data, list):
        return [_shortened(one) for one in data]
    return {k: _shortened(v) for k, v in data.items()} if isinstance(data, dict) else data


def _used(usage: Mapping[str, JsonValue]) -> str:
    given, made = usage.get("input"), usage.get("output")
    text = f"{'?' if given is None else given} in"
    if usage.get("cached"):
        text += f" ({usage['cached']} cached)"
    text += f" + {'?' if made is None else made} out"
    return text + (f" ({usage['reasoning']} thought)" if usage.get("reasoning") else "")


def _sum(usage: Usage) -> str:
    parts = [plural(usage.calls, "call"), plural(usage.requests, "request")]
    parts.append(_used(usage.model_dump()) + " tokens")
    if usage.unmetered:
        parts.append(f"{plural(usage.unmetered, 'call')} without usage")
    price = f" by {usage.price}" if usage.price else ""
    parts.append(f"list price {dollars(usage.list_usd)}{price}")
    parts.append(f"billed {dollars(usage.billed_usd)}")
    if usage.reported_usd is not None:
        parts.append(f"reported by the program {dollars(usage.reported_usd)}")
    if usage.derived_usd is not None:
        parts.append(f"derived from the server's price an hour {dollars(usage.derived_usd)}")
    if odd := oddity(usage.list_usd, usage.reported_usd):
        parts.append(f"WARNING: {odd}")
    if usage.waits:
        parts.append(f"{plural(usage.waits, 'wait')} of {duration(usage.wait_seconds)} s in all")
    return ", ".join(parts)


def _is_echo(text: str, calls: Sequence[JsonValue], said: Mapping[str, JsonValue]) -> bool:
    """Tell whether a message of the history is the reply that was shown just before."""
    if not said:
        return False
    names = [_dict(_dict(call).get("function")).get("name") for call in calls]
    theirs = [_dict(call).get("name") for call in _list(said.get("tool_calls"))]
    return names == theirs and text.strip() == str(said.get("answer") or "").strip()


def _text(content: JsonValue) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_text_of_part(_dict(part)) for part in _list(content))


def _text_of_part(part: Mapping[str, JsonValue]) -> str:
    """Return the words of one part, in whichever API's form; its kind where it has none."""
    for key in ("text", "thinking"):
        if isinstance(part.get(key), str):
            return str(part[key])
    kind = str(part.get("type", "part"))
    if kind == "tool_use":
        return f"[{part.get('name')} {json.dumps(part.get('input'))}]"
    inner = _text(part.get("content"))
    return f"[{kind}] {inner}" if inner else f"[{kind}]"


def _name_of_tool(tool: JsonValue) -> str:
    one = _dict(tool)
    return str(_dict(one.get("function")).get("name") or one.get("name") or "?")


def _number(value: JsonValue) -> int:
    return value if isinstance(value, int) else 0


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def _dict(value: JsonValue) -> Mapping[str, JsonValue]:
    return value if isinstance(value, dict) else {}
