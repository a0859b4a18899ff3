def test_sums(solution):
    series = solution.load("series")
    assert series.sum_to(4) == 10
    assert series.sum_to(100) == 5050


def test_ends(solution):
    series = solution.load("series")
    assert series.sum_to(1) == 1
    assert series.sum_to(0) == 0
