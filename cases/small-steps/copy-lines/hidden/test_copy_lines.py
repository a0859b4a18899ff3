NAMES = ["Noor", "Ignatius", "Mei", "Olu", "Saoirse"]


def test_the_copy(solution):
    assert solution.text("names-copy.txt").split("\n")[:5] == NAMES
    assert solution.text("names-copy.txt").strip() == "\n".join(NAMES)


def test_the_original_is_kept(solution):
    assert solution.text("names.txt") == "\n".join(NAMES) + "\n"
