def test_even_count(solution):
    middle = solution.load("middle")
    assert middle.median([1, 2, 3, 10]) == 2.5
    assert middle.median([9, 1]) == 5
    assert middle.median([6, 1, 5, 2, 4, 3]) == 3.5


def test_odd_count(solution):
    middle = solution.load("middle")
    assert middle.median([5]) == 5
    assert middle.median([9, 1, 4]) == 4
