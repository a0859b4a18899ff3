from __future__ import annotations

import random
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.records import Identity, Role, Usage
from pytest_modelbench.report.escape import escape, escape_markdown, shorten
from pytest_modelbench.report.markdown import markdown
from pytest_modelbench.report.names import shown_names
from pytest_modelbench.report.terminal import render

LONG = [f"openai/some-organisation/model-family-{n:02}b" for n in range(30)]


def chance(candidates: list[str], cases: int, repeats: int, faults: float = 0.0) -> Any:
    draw = random.Random(7)
    return {
        name: {
            f"case-{case:02}": "".join(
                "f" if draw.random() < faults else draw.choice("ppu") for _ in range(repeats)
            )
            for case in range(cases)
        }
        for name in candidates
    }


SHAPES: dict[str, Any] = {
    "one cell": {"a": {"x": "p"}},
    "one case": {"a": {"x": "pup"}, "b": {"x": "upu"}},
    "no verdict": {"a": {"x": "f"}, "b": {"x": "-"}},
    "thirty": chance(LONG, 12, 1),
    "thirty with faults": chance(LONG, 6, 3, 0.1),
    "usual": chance(["local-coder", "hosted-pro", "local-fast"], 30, 5, 0.02),
    "built in": {"reference": {"x": "p"}, "seed": {"x": "u"}},
    "hostile": {"\x1b[31mred\x1b[0m\nnext": {"\u202evil": "p"}, "b": {"\u202evil": "u"}},
}


@pytest.mark.parametrize("utf8", [True, False], ids=["utf8", "ascii"])
@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_fits_its_width(results: Any, shape: str, width: int, utf8: bool) -> None:
    lines = render(results.card(SHAPES[shape]), width, utf8)

    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() and line.isprintable() for line in lines)
    if not utf8:
        assert all(line.isascii() for line in lines)
    names = [name for name in SHAPES[shape] if name.isprintable()]
    text = " ".join(" ".join(lines).split())
    assert all(name in text for name in names)  # a shortened one stands in the legend


def test_completeness_first(results: Any) -> None:
    outcomes = {"cand": {f"c{n:02}": "p" * (n < 12) or "u" * (n < 16) or "f" for n in range(20)}}
    lines = render(results.card(outcomes))

    assert lines[0] == " modelbench: executor ".center(80, "=")
    assert lines[1] == "20 cases x 1 repeat x 1 candidate = 20 cells     16 verdicts     4 faults"
    assert lines[2] == (
        "INTERIM: 4 of 20 cells have no verdict, so no scorecard. Run them: pytest --lf"
    )
    assert lines[3] == "faults   cand: server-error 4"
    broken = " ".join(" ".join(render(results.card({"cand": {"x": "p", "y": "g"}}))).split())
    assert "Run them: mend what the faults name, then pytest --lf" in broken
    told = " ".join(" ".join(lines).split())
    assert (
        "cand: 12 of 16 verdicts, 75.0 % [50.5-89.8]; 4 of 20 cells have no verdict, "
        "as fails or as passes they make it 60.0 to 80.0 %"
    ) in told


def test_a_row_holds_counts_rate_interval_money_tokens_and_time(results: Any) -> None:
    lines = render(results.card({"cand": {f"c{n:02}": "pppu"[n % 4] for n in range(20)}}))

    heads, cells = lines[3].split(), lines[4].split()
    assert heads[:4] == ["candidate", "passed", "rate", "[95%]"]
    assert heads[-5:] == ["$/try", "$/pass", "tokens", "med", "s"]
    assert cells[:4] == ["cand", "15/20", "75", "[53-89]"]
    assert cells[-4:] == [".0100", ".0133", "1.0k+100", "2.0"]


def test_the_interval_is_drawn_only_where_it_costs_no_width(results: Any) -> None:
    outcomes = {"cand": {f"c{n:02}": "pppu"[n % 4] for n in range(20)}}
    wide = render(results.card(outcomes), 200)
    plain = render(results.count(outcomes), 200, utf8=False)
    narrow = render(results.card({"c" * 25: {"x": "p"}}), 80)

    # 75 % within 53 to 89 %, over 31 places whose middle is 50 %.
    assert wide[4].split("[53-89]")[1].rstrip().startswith(" " * 17 + ":├─────●────┤")
    assert plain[4].split("[53-89]")[1].rstrip().startswith(" " * 17 + ":|-----o----|")
    assert "├" not in "\n".join(narrow)


def test_undecided_says_why_in_words(results: Any) -> None:
    few = render(
        results.card(
            {
                "a": {f"c{n}": "p" for n in range(5)},
                "b": dict.fromkeys((f"c{n}" for n in range(5)), "u"),
            }
        )
    )
    text = "\n".join(few)

    assert " a - b  +100 pt" in text
    assert "p 0.063  undecided" in text
    assert "of 5 cases both pass 0, only a 5, only b 0, neither 0" in text
    assert "5 differ: even a clean sweep of 5 could not decide; it takes 6 all one way" in text
    assert "no detectable difference at these cases" in text


def test_a_decided_pair_names_the_better_one(results: Any) -> None:
    a = {f"c{n:02}": "p" if n < 42 else "u" for n in range(67)}
    b = {f"c{n:02}": "u" if n < 42 else "p" for n in range(67)}
    text = "\n".join(render(results.card({"a": a, "b": b})))

    assert "p 0.0498  a BETTER" in text


def test_agreement_has_no_p(results: Any) -> None:
    text = "\n".join(render(results.card({"a": {"x": "p"}, "b": {"x": "p"}})))

    assert "the two agree on every case" in text
    assert " p " not in text.split("paired")[1].split("\n")[1]


def test_unknown_money_is_a_question_mark_and_its_cover_is_said(results: Any, record: Any) -> None:
    priced = {Role.CANDIDATE: Usage(calls=1, input=1, output=1, list_usd=0.31 / 40)}
    free = {Role.CANDIDATE: Usage(calls=1, input=1, output=1)}
    results.append(
        *(record("a", f"c{n:02}", 1, "p", usage=priced if n < 40 else free) for n in range(60))
    )
    lines = render(results.count({"a": {f"c{n:02}": "-" for n in range(60)}}))

    assert lines[4].split()[-4:] == ["?", "?", "1+1", "2.0"]
    assert "  a: list price $0.31 for 40 of 60 cells, unknown for the others" in lines
    assert "spend    $0.31 list for 40 of 60 cells" in lines


def test_scripted_and_excluded_are_said(results: Any, record: Any) -> None:
    from pytest_modelbench.records import Identity

    newer = Identity(task="t2", check="c1", candidate="m1")
    results.append(
        record("a", "x", 1, "u"),
        record("a", "x", 1, "p", identity=newer, scripted=True),
        record("a", "y", 1, "p"),
    )
    text = "\n".join(
        render(
            results.count({"a": {"x": "-", "y": "-"}}, uncertified={"y": "the seed\npasses"}), 100
        )
    )

    assert "excluded case y: the seed␊passes" in text
    assert "a: scripted: answers were played from a file, no model was asked" in text


def test_old_verdicts_that_were_replaced_are_no_line_any_more(results: Any, record: Any) -> None:
    newer = Identity(task="t2", check="c1", candidate="m1")
    results.store({"a": {"x": "u", "y": "u"}})
    results.append(record("a", "x", 1, "p", identity=newer))
    before = results.count({"a": {"x": "-", "y": "-"}}, lambda *_: newer)
    results.append(record("a", "y", 1, "p", identity=newer))
    after = results.count({"a": {"x": "-", "y": "-"}}, lambda *_: newer)

    assert "old      not counted above: y (task changed) 0 of 1 passed" in render(before)
    assert not any(line.startswith("old") for line in render(after))
    assert [(one.case, one.replaced) for one in after.old] == [("x", True), ("y", True)]
    assert "### Versions" in markdown(after)


def test_many_pairs_show_the_decided_ones(results: Any) -> None:
    outcomes = {
        f"m{n}": {f"c{c:02}": "p" if c < 30 - n else "u" for c in range(30)} for n in range(7)
    }
    outcomes["worst"] = {f"c{c:02}": "u" for c in range(30)}
    text = "\n".join(render(results.card(outcomes)))

    assert "7 of 28 pairs are decided, and 21 are not" in text
    assert "m0 - worst  +100 pt" in text
    assert "m0 - m1" not in text
    against = "\n".join(render(results.count(outcomes, baseline="m0")))
    assert "m1 - m0" in against


@given(st.text(max_size=30))
def test_escaped_text_can_do_nothing(text: str) -> None:
    for utf8 in (True, False):
        shown = escape(text, utf8=utf8)
        assert utf8 or shown.isascii()
        assert not any(
            unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Mn") for c in shown
        )
        assert len(shorten(text, 9, utf8=utf8)) <= 9


def test_escapes_are_shown_as_marks() -> None:
    assert escape("\x1b[2J\tend\r\n") == "␛[2J␉end␍␊"
    assert escape("a\u202eb\u200bc\ud800") == "a<U+202E>b<U+200B>c<U+D800>"
    assert escape("\x1b[0m é", utf8=False) == "<U+001B>[0m \\xe9"
    assert escape("plain é 漢") == "plain é 漢"
    assert escape_markdown("a|b <i>*x*</i> [l](u) @me") == (
        "a\\|b &lt;i&gt;\\*x\\*&lt;/i&gt; \\[l\\](u) \\@me"
    )


@given(st.lists(st.text("ab/:", min_size=1, max_size=60), unique=True, max_size=12))
def test_shortened_names_stay_apart(names: list[str]) -> None:
    shown, legend = shown_names(names, 16)

    assert len(set(shown.values())) == len(names)
    assert all(len(short) <= 16 for short in shown.values())
    assert {legend.get(shown[name], name) for name in names} == set(names)


def test_where_no_model_was_asked_there_is_no_price_to_know(results: Any, record: Any) -> None:
    """Not 0 and not unknown; a judge of such a candidate was asked, and stands apart."""
    played = {Role.CANDIDATE: Usage(requests=3, calls=3)}
    judged = {Role.JUDGE: Usage(requests=1, calls=1, list_usd=0.25)}
    results.append(
        record("played", "x", 1, "f", scripted=True, usage=played),
        record("played", "x", 1, "p", scripted=True, usage=played),
        record("function", "x", 1, "p", usage=judged),
        record("seed", "x", 1, "u", usage={}),
        record("model", "x", 1, "p", usage=played),
    )
    names = ["played", "function", "seed"]
    card = results.count({name: {"x": "p"} for name in names})
    table = [line.split() for line in render(card)[4:7]]
    assert {words[0]: words[-4:-1] for words in table} == {name: ["-", "-", "-"] for name in names}
    assert [line for line in render(card) if line.startswith("spend")] == [
        "spend    judge $0.25, apart"
    ]
    assert "tokens unknown" not in "\n".join(render(card))
    assert "?" not in markdown(card)
    card = results.count({"model": {"x": "p"}})
    assert "spend    list price unknown for 1 cell" in render(card)


def test_intervals_of_two_kinds_say_whose_they_are(results: Any) -> None:
    """Wilson's where nearly all cases agree, the case score interval elsewhere."""
    varied = {f"c{n:02}": "ppu" if n % 2 else "puu" for n in range(20)}
    steady = dict.fromkeys(varied, "ppp")
    several = results.card({"steady": steady, "varied": varied})
    assert "[95%]: 95% Wilson (steady), 95% case score (the other); the case is the unit" in (
        " ".join("\n".join(render(several)).split())
    )
    assert "Interval: 95% Wilson (steady), 95% case score (the other)." in markdown(several)
    one = results.count({"varied": varied})
    assert "[95%]: 95% case score; the case is the unit" in " ".join("\n".join(render(one)).split())


def test_a_count_stays_with_its_word(results: Any) -> None:
    names = ("careful-script", "hasty-script")
    card = results.card({name: {"w": "p", "x": "p", "y": "u", "z": "u"} for name in names})
    text = render(card, 80)
    (first,) = (n for n, line in enumerate(text) if "both pass" in line)
    assert text[first].endswith("only hasty-script 0,")
    assert text[first + 1].strip() == "neither 2"
