def test_plain(solution):
    assert solution.load("counting").count_words("a b a") == {"a": 2, "b": 1}


def test_upper_case(solution):
    assert solution.load("counting").count_words("Tick tick TOCK") == {"tick": 2, "tock": 1}


def test_punctuation(solution):
    counting = solution.load("counting")
    assert counting.count_words("Stay, dog. Stay!") == {"stay": 2, "dog": 1}
    assert counting.count_words("Why?! Because.") == {"why": 1, "because": 1}


def test_empty(solution):
    assert solution.load("counting").count_words("  ") == {}
