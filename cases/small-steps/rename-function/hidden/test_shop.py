def test_the_new_name(solution):
    assert solution.load("shop").price_of("cake") == 5


def test_the_old_name_is_gone(solution):
    ended = solution.run(["python", "-c", "import shop; print(hasattr(shop, 'get'))"])
    assert ended.stdout.strip() == "False"


def test_the_bill(solution):
    assert solution.load("shop").bill(["tea", "cake", "tea"]) == 11
