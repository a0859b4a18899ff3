BROKEN = ("deaf-core", "no-mark", "all-forgets", "deaf-cli", "stdin-whispers")


def herald(solution, *arguments, stdin=""):
    ended = solution.run(["python", "-m", "herald", *arguments], stdin=stdin)
    return ended.status, ended.stdout


def test_core_shouts(solution):
    core = solution.load("herald.core")
    assert core.announce("Ada", shout=True) == "PLEASE WELCOME ADA!"
    assert core.announce(" Ada ", greeting="Hail", shout=True) == "HAIL ADA!"
    assert core.announce_all(["Ada", "Bo"], shout=True) == [
        "PLEASE WELCOME ADA!",
        "PLEASE WELCOME BO!",
    ]


def test_does_not_shout_unasked(solution):
    core = solution.load("herald.core")
    assert core.announce("Ada") == "Please welcome Ada."
    assert core.announce("Ada", greeting="Hail", shout=False) == "Hail Ada."
    assert core.announce_all(["Ada", "Bo"], greeting="Hail") == ["Hail Ada.", "Hail Bo."]


def test_command_line_shouts(solution):
    assert herald(solution, "--shout", "Ada", "Bo") == (
        0,
        "PLEASE WELCOME ADA!\nPLEASE WELCOME BO!\n",
    )
    assert herald(solution, "Ada", "--greeting", "Hail", "--shout") == (0, "HAIL ADA!\n")


def test_shouts_names_from_standard_input(solution):
    assert herald(solution, "--shout", "-", stdin="Ada\n\nBo\n") == (
        0,
        "PLEASE WELCOME ADA!\nPLEASE WELCOME BO!\n",
    )


def test_command_line_without_the_option(solution):
    assert herald(solution, "Ada") == (0, "Please welcome Ada.\n")
    assert herald(solution, "-", "--greeting", "Hail", stdin="Bo\n") == (0, "Hail Bo.\n")
    assert herald(solution, " ")[0] == 2


def test_own_tests_tell_right_from_broken(solution):
    outcomes = solution.judge_tests(
        "tests/test_*.py",
        implementations={name: f"implementations/{name}" for name in ("right", *BROKEN)},
    )
    assert outcomes == {"right": "passed"} | dict.fromkeys(BROKEN, "failed")
