def test_area(solution):
    area = solution.load("area")
    assert area.area(3, 4) == 12
    assert area.area(10, 0) == 0


def test_perimeter_is_kept(solution):
    assert solution.load("area").perimeter(3, 4) == 14
