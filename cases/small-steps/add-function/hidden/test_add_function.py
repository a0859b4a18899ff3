def test_sum(solution):
    calc = solution.load("calc")
    assert calc.add(2, 3) == 5
    assert calc.add(0, 0) == 0


def test_sum_of_negatives(solution):
    assert solution.load("calc").add(-4, -7) == -11
