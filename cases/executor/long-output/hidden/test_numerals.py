from pathlib import Path

ORIGINAL = Path(__file__).parent / "original"

WRONG_IN_SEED = 178

SYMBOLS = (
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
)


def roman(number):
    numeral = ""
    for size, symbol in SYMBOLS:
        count, number = divmod(number, size)
        numeral += symbol * count
    return numeral


def test_the_wrong_entry_is_mended(solution):
    table = solution.load("numerals.table").TABLE
    assert table[WRONG_IN_SEED] == "CLXXVIII"


def test_the_other_entries_are_kept(solution):
    table = solution.load("numerals.table").TABLE
    others = [number for number in range(1, 301) if number != WRONG_IN_SEED]
    assert {number: table.get(number) for number in others} == {
        number: roman(number) for number in others
    }
    assert len(table) == 300


def test_the_failure_is_named(solution):
    named = solution.text("FAILED.txt").strip()
    assert named.splitlines() == [named]
    assert named.removeprefix("tests/test_table.py::") == f"test_entry[{WRONG_IN_SEED}]"


def test_settings_and_tests_are_untouched(solution):
    assert solution.files["tests/test_table.py"] == (ORIGINAL / "test_table.txt").read_bytes()
    assert solution.files["pytest.ini"] == (ORIGINAL / "pytest.ini.txt").read_bytes()
