"""Archives made from seeds: what is in them, and what damaged wikis of them are worth."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_modelbench.benchmarks.benchmark import Met
from pytest_modelbench.benchmarks.tools import run_tool
from pytest_modelbench.benchmarks.wiki.answers import DAMAGED, wiki_of
from pytest_modelbench.benchmarks.wiki.archive import Archive, Settings, archive_of
from pytest_modelbench.benchmarks.wiki.generating import generate
from pytest_modelbench.benchmarks.wiki.provider import PASS_AT, Wiki, derived_seed
from pytest_modelbench.benchmarks.wiki.scoring import said, score

LEVELS = [(prose, noise) for prose in range(3) for noise in range(5)]

CALIBRATION = {
    "": (1.0, 0.0),
    "everything-pasted": (0.32, 0.025),
    "no-citations": (0.50, 0.005),
    "missing-pages": (0.77, 0.015),
    "invented-numbers": (0.90, 0.005),
    "stale-values": (0.92, 0.005),
    "a-distractor": (0.95, 0.005),
    "not-completed": (0.0, 0.0),
}
"""What each is worth, and by how much that may differ over archives."""


@pytest.mark.parametrize(("prose", "noise"), LEVELS)
def test_damaged_wikis_are_worth_what_they_should(prose: int, noise: int) -> None:
    for seed in (11, 12):
        archive = generate(Settings(seed, 1, prose, noise))
        for variant, loses in {"": (), **DAMAGED}.items():
            found = score(archive, wiki_of(archive, variant), variant != "not-completed")
            lost = {name for name, share in found.parts.items() if share < PASS_AT}
            assert lost == set(loses) - {"completed"}, (seed, variant)
            if variant in CALIBRATION:
                worth, slack = CALIBRATION[variant]
                assert found.reward == pytest.approx(worth, abs=slack), (seed, variant)


@pytest.mark.parametrize("scale", [1, 2, 3])
def test_what_an_archive_has(scale: int) -> None:
    archive = generate(Settings(5, scale))
    assert len(archive.documents) == 12 * scale
    assert len(archive.entities) == len({one.name for one in archive.entities}) == 9 * scale
    assert len(archive.facts) == 21 * scale
    stale = [fact for fact in archive.facts if fact.stale is not None]
    assert len(stale) == 5 * scale
    assert len(archive.relations) == 6 * scale
    values = [one for fact in archive.facts for one in (fact.value, fact.stale) if one]
    assert len(values) == len(set(values)) == 26 * scale
    kinds = {one.kind for one in archive.documents}
    assert len(kinds) == 5
    assert score(archive, wiki_of(archive)).reward == 1.0


@pytest.mark.parametrize(("prose", "noise"), LEVELS)
def test_documents_say_what_the_truth_says(prose: int, noise: int) -> None:
    archive = generate(Settings(3, 1, prose, noise))
    texts = {one.id: one.text for one in archive.documents}
    for fact in archive.facts:
        for document in fact.sources:
            assert said(texts[document], fact.value), fact
        if fact.stale is not None:
            for document in fact.stale_sources:
                assert said(texts[document], fact.stale), fact
        elsewhere = set(texts) - set(fact.sources)
        if noise < 4:
            assert not any(said(texts[one], fact.value) for one in elsewhere), fact
    # Two documents are about something else, and about nothing else.
    about = [one for one in archive.documents if any(n in one.text for n in archive.distractors)]
    assert [one.title.split()[0] for one in about] == ["Aquarium", "Aquarium"]


def texts_at(noise: int, seed: int = 3) -> str:
    return "\n".join(one.text for one in generate(Settings(seed, 1, 1, noise)).documents)


def test_each_level_of_noise_adds_to_those_before() -> None:
    assert " ~\n" not in texts_at(0)
    assert " ~\n" in texts_at(1)
    assert "Erratum" not in texts_at(1)
    assert "Erratum" in texts_at(2)
    archive = generate(Settings(3, 1, 1, 3))
    stations = [one for one in archive.entities if one.kind == "vessel"]
    assert texts_at(2).count(stations[0].name) > texts_at(3).count(stations[0].name)
    noisiest = generate(Settings(3, 1, 1, 4))
    assert len(noisiest.documents) == 13
    assert noisiest.documents[-1].title.endswith("(copy)")
    name = noisiest.documents[-1].title.removesuffix(" (copy)")
    original = next(one for one in noisiest.documents if one.title == name)
    assert original.text != noisiest.documents[-1].text


def test_an_erratum_decides_over_the_report_that_it_corrects() -> None:
    archive = generate(Settings(3, 1, 1, 2))
    titles = {one.id: one.title for one in archive.documents}
    (corrected,) = [
        fact
        for fact in archive.facts
        if fact.stale is not None and titles[fact.sources[0]] == "Minutes of the board, spring"
    ]
    assert [titles[one] for one in corrected.stale_sources] == ["Annual report 2024"]


def test_the_same_settings_give_the_same_archive_and_data_its_own() -> None:
    first = generate(Settings(8, 1, 2, 4))
    assert first == generate(Settings(8, 1, 2, 4))
    assert first != generate(Settings(9, 1, 2, 4))
    assert isinstance(again := archive_of(first.as_data()), Archive)
    assert again == first


@pytest.mark.parametrize("wrong", [{"scale": 0}, {"scale": 4}, {"prose": 3}, {"noise": 5}])
def test_levels_that_there_are_not_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="scale is 1 to 3"):
        Settings(1, **wrong)


def test_test_archives_are_made_from_a_key(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    wiki = Wiki(tmp_path, {"test": [{"noise": 1}, {}], "key": "key"})
    first, second = wiki.cases()
    assert [first.id, second.id] == ["test-1-p1-n1", "test-2-p1-n0"]
    assert first.tags == ("test",)
    (tmp_path / "key").write_text("other")
    assert next(iter(Wiki(tmp_path, {"test": [{"noise": 1}], "key": "key"}).cases())).public != (
        first.public
    )
    assert derived_seed(b"secret", 1) == derived_seed(b"secret\n", 1) != derived_seed(b"secret", 2)
    with pytest.raises(ValueError, match="key is empty"):
        derived_seed(b"\n", 1)


@pytest.mark.parametrize(
    ("options", "said_so"),
    [
        ({}, "it needs dev"),
        ({"seeds": [1]}, "no option seeds"),
        ({"dev": [{"noise": 1}]}, "whole numbers for seed"),
        ({"dev": [1]}, "whole numbers for seed"),
        ({"dev": [{"seed": 1, "noise": True}]}, "whole numbers for seed"),
        ({"dev": [{"seed": 1, "noise": 9}]}, "noise 0 to 4"),
        ({"test": [{}]}, "test needs key"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    tmp_path: Path, options: dict[str, object], said_so: str
) -> None:
    with pytest.raises(ValueError, match=said_so):
        Wiki(tmp_path, options)  # type: ignore[arg-type]  # as a manifest may have it


def test_a_writer_has_its_own_pages_and_its_last_word(tmp_path: Path) -> None:
    wiki = Wiki(tmp_path, {"dev": [{"seed": 1}]})
    (case,) = wiki.cases()
    world = wiki.setup(case.public, tmp_path)
    tools = {tool.name: tool for tool in wiki.tools(world)}

    def call(tool: str, /, **arguments: str) -> str:
        return run_tool(tools[tool], arguments)[0]

    assert call("list_documents").startswith("D01 · Register of stations and vessels · register")
    assert "Northreach" in call("read_document", id="D02")
    assert "there is no document 'D99'" in call("read_document", id="D99")
    assert "is no name" in call("write_page", name="../a.md", text="x")
    assert "is no name" in call("write_page", name="a.txt", text="x")
    assert "characters at most" in call("write_page", name="a.md", text="x" * 20_001)
    assert call("write_page", name="a.md", text="# A") == "a.md is written."
    assert call("read_page", name="a.md") == "# A"
    assert call("write_page", name="b.md", text="# B") == "b.md is written."
    assert call("delete_page", name="b.md") == "b.md is gone."
    assert "no page" in call("delete_page", name="b.md")
    before = wiki.harvest(world, Met(True))
    assert before == {"pages": {"a.md": "# A"}, "finished": False}
    assert wiki.verify(case.private, before).reason == "not-completed"
    assert tools["finish"].ends
    call("finish")
    verdict = wiki.verify(case.private, wiki.harvest(world, Met(True)))
    assert (verdict.passed, verdict.reason) == (False, "wrong")
    assert 0 < verdict.reward < 0.6
