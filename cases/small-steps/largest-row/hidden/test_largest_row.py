def test_the_town(solution):
    assert solution.text("wettest.txt").strip() == "Cork"
