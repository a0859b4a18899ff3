def test_plain_words(solution):
    words = solution.load("words")
    assert words.is_palindrome("level") is True
    assert words.is_palindrome("Python") is False


def test_upper_case(solution):
    assert solution.load("words").is_palindrome("Hannah") is True


def test_only_letters_count(solution):
    words = solution.load("words")
    assert words.is_palindrome("Never odd or even!") is True
    assert words.is_palindrome("Was it a cat I saw?") is True
