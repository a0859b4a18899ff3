"""A table becomes a pack, and every row that cannot be a case is told with its place."""

from __future__ import annotations

import csv
import json
import os
import re
import resource
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_modelbench.benchmarks.tables.certifying import Columns, certify, counted
from pytest_modelbench.benchmarks.tables.checking import read_checks
from pytest_modelbench.benchmarks.tables.comparing import parse_rule
from pytest_modelbench.benchmarks.tables.importing import write_pack
from pytest_modelbench.benchmarks.tables.provider import Table
from pytest_modelbench.benchmarks.tables.reading import read_table
from pytest_modelbench.cli import main
from pytest_modelbench.errors import PackProblem, UsageProblem
from pytest_modelbench.packs.reading import read_pack

FILES = Path(__file__).parents[3] / "data" / "field-reports" / "files"


def columns(case_id: str, shown: str, expected: str, *join: str) -> Columns:
    return Columns(case_id, (shown,), {expected: parse_rule("exact")}, join=join)


def imported(path: Path, wanted: Columns) -> dict[str, dict[str, Any]]:
    """Return each row as the certification has it, by id."""
    found = certify(read_table(path), wanted)
    return {
        one.id: {"input": one.input, "reasons": one.reasons, "notes": one.notes, "row": one.row}
        for one in found
    }


def test_fr29_a_byte_order_mark_is_no_part_of_a_name() -> None:
    found = imported(FILES / "FR29-bom.csv", columns("case_id", "prompt", "expected"))
    assert list(found) == ["T-1", "T-2", "T-3"]
    assert [one["reasons"] for one in found.values()] == [[], [], []]
    assert found["T-3"]["input"] == {"prompt": 'Say "yes"'}


def test_fr30_a_line_is_a_line_of_the_file() -> None:
    wanted = columns("case_id", "prompt", "expected")
    found = imported(FILES / "FR30-newlines-in-cells.csv", wanted)
    assert len(found) == 4
    assert found["T-3"]["row"].place == "record 3, line 6"
    assert found["T-3"]["reasons"] == [("unlabelled", "expected")]
    assert found["T-1"]["input"]["prompt"] == "Line one\nline two\nline three"
    assert found["T-4"]["input"]["prompt"] == 'Quote "this", then\nstop'
    assert found["T-4"]["row"].line == 10


def test_fr31_a_repeated_column_is_joined_or_refused_never_one_of_them() -> None:
    path = FILES / "FR31-duplicate-headers.csv"
    with pytest.raises(PackProblem, match=r"'Labels' is there 3 times, as columns 3, 4, 5"):
        imported(path, columns("Issue key", "Summary", "Labels"))
    found = imported(path, columns("Issue key", "Comment", "Resolution", "Comment"))
    assert found["PRJ-1"]["input"]["Comment"] == (
        "09/Jan/26 9:30;u1;Seen at 9;30; then gone\n10/Jan/26 8:00;u2;Fixed in r12"
    )


def test_fr32_one_text_with_two_outcomes_is_no_case() -> None:
    found = imported(FILES / "FR32-conflicting-labels.csv", columns("case_id", "text", "label"))
    assert found["101"]["reasons"] == [("conflicting-outcomes", "with 103 (record 3, line 4)")]
    assert found["103"]["reasons"] == [("conflicting-outcomes", "with 101 (record 1, line 2)")]
    assert found["105"]["reasons"] == [("repeated", "the same as 102 (record 2, line 3)")]
    assert found["102"]["notes"] == ["stands for 105 (record 5, line 6) as well"]
    assert found["104"]["reasons"] == []
    assert "in capitals only" in found["104"]["notes"][0]


def test_all_reasons_of_a_row(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("x")
    table = tmp_path / "t.csv"
    table.write_text(
        "id;text;file;amount\n"
        ";a;note.txt;1\n"          # no id
        "x;b;note.txt;1\n"         # the id twice
        "x;c;none.txt;\n"          # the id twice, no outcome, a missing file
        "d e;d;;much\n"            # an unfit id, an outcome that is no number
        "f;g;../t.csv;2\n"         # a file that is not below the table
        "h;3;;3\n"                 # shows its outcome
        "i; ;;4\n"                 # shows nothing
        "k;k;note.txt;5\n"
        f"l;l;{'n' * 5000};6\n"   # no file can have that name
    )  # fmt: skip
    wanted = Columns("id", ("text",), {"amount": parse_rule("number")}, ("file",))
    found = certify(read_table(table), wanted)
    assert [[reason for reason, _ in one.reasons] for one in found] == [
        ["no-id"],
        ["duplicate-id"],
        ["duplicate-id", "unlabelled", "missing-attachment"],
        ["unfit-id", "outcome-not-gradable"],
        ["missing-attachment"],
        ["gold-in-input"],
        ["empty-input"],
        [],
        ["missing-attachment"],
    ]
    assert counted(found)["duplicate-id"] == 2


def test_a_second_import_brings_the_pack_up_to_date(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "mail.tsv"
    table.write_text("key\ttext\tkind\tfile\nA-1\tone\tbill\tf.txt\nA-2\ttwo\torder\t\n")
    (tmp_path / "f.txt").write_text("attached")
    arguments = ["import", str(table), "--id", "key", "--input", "text", "--expected", "kind=ci"]
    arguments += ["--attachment", "file", "--cases", str(tmp_path / "cases")]
    assert main(arguments) == 0
    assert "2 rows, 2 certified" in capsys.readouterr().out
    folder = tmp_path / "cases" / "mail"
    pack = read_pack(folder, tmp_path / "references")
    assert [case.id for case in pack.cases] == ["A-1", "A-2"]
    assert "text: one" in pack.cases[0].prompt
    assert "bill" not in pack.cases[0].prompt
    # A small model reads no file that it was not told of.
    assert "Files, which `read_file` reads: f.txt" in pack.cases[0].prompt
    assert "read_file" not in pack.cases[1].prompt
    assert (folder / "attachments" / "A-1" / "f.txt").read_text() == "attached"

    manifest = folder / "pack.toml"
    manifest.write_text(manifest.read_text().replace('title = "mail"', 'title = "Mine"'))
    table.write_text(table.read_text() + "A-3\tthree\tbill\t\n")
    assert main(arguments) == 0
    pack = read_pack(folder, tmp_path / "references")
    assert (pack.title, len(pack.cases)) == ("Mine", 3)
    assert json.loads((folder / "summary.json").read_text())["majority"]["kind"] == {
        "outcome": "bill",
        "share": 0.6667,
    }


@pytest.mark.parametrize(
    ("rule", "golds", "guess", "share"),
    [
        ("exact", ["Open", "Open ", " Open", "shut", "shut"], "Open", 0.6),
        ("ci", ["shut", "shut", "Open", "open", "OPEN"], "Open", 0.6),
        ("number:2", ["10", "12", "14", "99", "99"], "12", 0.6),
        ("set", ["a, b", "b; a", "B|a", "a", "a"], "a, b", 0.6),
        ("date", ["2026-01-05", "5.1.2026", "05.01.2026", "2026-01-06", "2026-01-06"], "", 0.6),
        ("ordinal:low<high", ["low", "low", "High", "HIGH", "high"], "High", 0.6),
        ("check", ["xa", "xb", "xc", "y", "y"], "xa", 0.6),
    ],
)
def test_guessing_gets_what_the_rule_says_in_import_and_report(
    tmp_path: Path, rule: str, golds: list[str], guess: str, share: float
) -> None:
    """Counted as texts, the commonest outcome would be another one, and right less often."""
    (tmp_path / "check.py").write_text("def kind(gold, answer): return gold[0] == answer[0]\n")
    table = tmp_path / "t.jsonl"
    lines = [{"id": str(at), "text": f"t{at}", "kind": gold} for at, gold in enumerate(golds)]
    table.write_text("".join(json.dumps(line) + "\n" for line in lines))
    wanted = Columns("id", ("text",), {"kind": parse_rule(rule, "kind", read_checks(tmp_path))})
    write_pack(tmp_path, table, certify(read_table(table), wanted), wanted)
    told = json.loads((tmp_path / "summary.json").read_text())["majority"]["kind"]
    assert told == {"outcome": guess or "2026-01-05", "share": share}
    benchmark = Table(tmp_path, {"fields": {"kind": rule}})
    assert benchmark.guesses(list(benchmark.cases())) == {"the commonest kind": share}


@pytest.mark.parametrize(
    ("content", "said", "line"),
    [
        (b'id,text\n1,"open\n2,x\n', "record 1 cannot be read", 2),
        (b"id,text\n1,\xff\n", "is not utf-8 text", 2),
        (b"", "is empty", None),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(
    tmp_path: Path, content: bytes, said: str, line: int | None
) -> None:
    table = tmp_path / "t.csv"
    table.write_bytes(content)
    with pytest.raises(PackProblem, match=said) as caught:
        read_table(table)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "2", "text": "\\ud800"}', "half of a surrogate pair"),
        ('{"id": ' + "9" * 5000 + "}", "a number of thousands of digits$"),
        ('{"id": ' + "[" * 500 + "]" * 500 + "}", "nested deeper than 100 levels"),
    ],
)
def test_a_line_of_json_that_cannot_be_a_case_is_told(tmp_path: Path, line: str, said: str) -> None:
    table = tmp_path / "t.jsonl"
    table.write_text('{"id": "1", "text": "\\ud83d\\ude00"}\n' + line)
    with pytest.raises(PackProblem) as caught:
        read_table(table)
    assert re.search(said, caught.value.what)
    assert caught.value.line == 2


def test_a_pipe_is_no_table_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.csv")
    with pytest.raises(PackProblem, match="cannot be read: it is no file"):
        read_table(tmp_path / "t.csv")


def test_a_row_with_too_many_cells_stops_no_other(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("id,text,kind\n1,a,x\n2,a,y,b,c\n3,d,x,\n")
    found = certify(read_table(table), columns("id", "text", "kind"))
    told = "5, and the header 3: quote the delimiter"
    assert [one.reasons for one in found] == [[], [("too-many-cells", told)], []]


def test_a_second_import_holds_to_the_rules_that_the_pack_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "mail.csv"
    table.write_text("key,text,kind,team\n1,one,Bill,a\n2,two,Order,b\n")

    def load(*expected: str) -> tuple[int, str]:
        asked = [word for text in expected for word in ("--expected", text)]
        cases = str(tmp_path / "cases")
        arguments = ["import", str(table), "--id", "key", "--input", "text", "--cases", cases]
        status = main([*arguments, *asked])
        said = capsys.readouterr()
        return status, said.out + said.err

    said = load("kind=ci")[1]
    assert f"written: {tmp_path}/cases/mail/pack.toml\nwritten: {tmp_path}/cases/mail/cases" in said
    assert said.endswith(
        f"\n\nIs it sound?  pytest --models reference,seed {tmp_path}/cases/mail\n"
    )
    before = {path: path.read_bytes() for path in (tmp_path / "cases/mail").iterdir()}
    for expected in (["kind=exact"], ["team"], ["kind=ci", "team"]):
        status, said = load(*expected)
        assert status == 4
        assert "pack.toml: compares kind=ci, and --expected asks for " in said
    assert before == {path: path.read_bytes() for path in (tmp_path / "cases/mail").iterdir()}
    status, said = load("kind")  # by the pack's rule
    assert status == 0
    assert "pack.toml" not in said, "it is not written again"
    assert f"unchanged: {tmp_path}/cases/mail/cases.jsonl\n" in said
    table.write_text("key,text,kind,team\n1,one,Bill,a\n2,two,,b\n")
    said = load("kind")[1]
    assert f"rewritten: {tmp_path}/cases/mail/cases.jsonl\n" in said
    table.write_text("key,text,kind,team\n1,one,,a\n")
    status, said = load("kind")
    assert status == 1
    assert said.endswith(
        f"\n\nNo row is a case; {tmp_path}/cases/mail/certification.jsonl says why\n"
    )


@pytest.mark.parametrize("name", ["bad name", "-x", "x.damaged", "a/b"])
def test_a_name_that_no_pack_can_have_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("key,text,kind\n1,one,x\n")
    arguments = ["import", str(table), "--id", "key", "--input", "text", "--expected", "kind"]
    assert main([*arguments, "--cases", str(tmp_path / "cases"), f"--name={name}"]) == 4
    assert f"{name!r} cannot be the id of a pack" in capsys.readouterr().err
    assert not (tmp_path / "cases").exists()


def test_workbooks_and_json_lines_read_as_text_does(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="workbooks need openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["id", "text", "amount"])
    book.active.append(["a", "x\ny", 3.0])
    book.active.append(["b", None, 2.5])
    book.save(tmp_path / "t.xlsx")
    (tmp_path / "t.jsonl").write_text(
        '{"id": "a", "text": "x\\ny", "amount": 3}\n{"id": "b", "amount": 2.5}\n'
    )
    (tmp_path / "t.csv").write_text('id,text,amount\na,"x\ny",3\nb,,2.5\n')
    cells = [
        [row.cells for row in read_table(tmp_path / f"t.{kind}").rows]
        for kind in ("xlsx", "jsonl", "csv")
    ]
    assert cells[0] == cells[1] == cells[2] == [("a", "x\ny", "3"), ("b", "", "2.5")]


def test_a_cell_of_a_workbook_without_a_value_is_no_empty_cell(tmp_path: Path) -> None:
    """A formula that nothing has calculated, and an error, are told; an empty text is a value."""
    openpyxl = pytest.importorskip("openpyxl", reason="workbooks need openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["id", "text", "hint", "amount", "by"])
    sheet.append(["a", "x", "y", "=1+1", "=3"])
    sheet.append(["b", "=A1", "y", None])
    sheet.append(["c", "x c", "=CALCULATED", 3, "=4"])
    sheet.append([None, None, None, "=2"])
    sheet.append(["e", "#N/A", "#N/A", "#N/A"])
    sheet.append(["f", "x f", None, 4])
    sheet["C7"].number_format = "0.00"  # there, and empty
    book.save(tmp_path / "made.xlsx")
    with (
        zipfile.ZipFile(tmp_path / "made.xlsx") as made,
        zipfile.ZipFile(tmp_path / "t.xlsx", "w") as file,
    ):
        for name in made.namelist():
            text = made.read(name)
            text = text.replace(b'"C4"><f>CALCULATED</f><v />', b'"C4" t="str"><f>""</f><v></v>')
            text = text.replace(b'<dimension ref="A1:E7" />', b'<dimension ref="A1:B3" />')
            file.writestr(name, text)
    wanted = Columns("id", ("text", "hint"), {"amount": parse_rule("exact")})
    table = read_table(tmp_path / "t.xlsx")
    found = certify(table, wanted)
    remedy = ": open and save the workbook in a spreadsheet program, or write a value"
    assert [(one.id, one.reasons) for one in found] == [
        ("a", [("uncalculated", f"amount{remedy}")]),
        ("b", [("uncalculated", f"text{remedy}"), ("unlabelled", "amount")]),
        ("c", []),
        ("", [("no-id", ""), ("uncalculated", f"amount{remedy}")]),
        ("e", [("uncalculated", f"amount (#N/A){remedy}")]),
        ("f", []),
    ]
    assert [row.line for row in table.rows] == [2, 3, 4, 5, 6, 7]


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=12)


@settings(max_examples=60)
@given(
    cells=st.lists(st.lists(TEXT, min_size=3, max_size=3), max_size=6),
    delimiter=st.sampled_from(",;\t"),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_what_was_written_is_read(
    tmp_path: Path, cells: list[list[str]], delimiter: str, encoding: str
) -> None:
    path = tmp_path / "t.csv"
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=csv.QUOTE_ALL)
        writer.writerows([["a", "b", "c"], *cells])
    assert [list(row.cells) for row in read_table(path).rows] == cells


LATIN = st.text(st.characters(codec="latin-1", exclude_characters="\r\0"), max_size=12)


@settings(max_examples=60)
@given(
    cells=st.lists(st.lists(LATIN, min_size=3, max_size=3), max_size=6),
    delimiter=st.sampled_from(",;\t"),
    encoding=st.sampled_from(["latin-1", "utf-8", "utf-16", "utf-32"]),
    ending=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC]),
)
def test_quotes_only_where_they_are_needed_and_an_encoding_that_is_named(
    tmp_path: Path,
    cells: list[list[str]],
    delimiter: str,
    encoding: str,
    ending: str,
    quoting: Any,
) -> None:
    path = tmp_path / "t.csv"
    with path.open("w", encoding=encoding, newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=ending, quoting=quoting)
        writer.writerows([["a", "b", "c"], *cells])
    table = read_table(path, encoding)
    assert [list(row.cells) for row in table.rows] == cells
    assert table.columns == ("a", "b", "c")


PIECES = st.lists(
    st.sampled_from([b'"', b",", b";", b"\t", b"\n", b"\r", b"\0", b"a", b"\xff", b"\xef\xbb\xbf"])
    | st.binary(max_size=4),
    max_size=30,
)


@settings(max_examples=150)
@given(pieces=PIECES, kind=st.sampled_from(["csv", "tsv", "jsonl", "xlsx"]))
def test_any_file_is_a_table_or_is_refused_with_its_path(
    tmp_path: Path, pieces: list[bytes], kind: str
) -> None:
    path = tmp_path / f"t.{kind}"
    path.write_bytes(b"".join(pieces))
    rows, told = [], str(path)
    try:
        table = read_table(path)
        rows = [(len(row.cells) == len(table.columns), row.line >= 1) for row in table.rows]
    except (PackProblem, UsageProblem) as problem:
        told = str(problem)
    assert set(rows) <= {(True, True)}
    assert str(path) in told


@pytest.mark.slow
def test_many_rows_in_little_time_and_room(tmp_path: Path) -> None:
    table = tmp_path / "many.csv"
    with table.open("w", encoding="utf-8") as file:
        file.write("id,text,kind\n")
        for number in range(100_000):
            file.write(f"id-{number},a text of some length number {number},{number % 7}\n")
    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.process_time()
    wanted = columns("id", "text", "kind")
    write_pack(tmp_path / "many", table, certify(read_table(table), wanted), wanted)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert time.process_time() - started < 10
    assert (after.ru_maxrss - before.ru_maxrss) / 1024 < 200
    assert len((tmp_path / "many" / "cases.jsonl").read_text().splitlines()) == 100_000
