def test_counts(solution):
    even = solution.load("even")
    assert even.count_even([1, 2, 3, 4]) == 2
    assert even.count_even([7]) == 0


def test_empty(solution):
    assert solution.load("even").count_even([]) == 0


def test_zero_and_negatives(solution):
    assert solution.load("even").count_even([0, -2, -3]) == 2
