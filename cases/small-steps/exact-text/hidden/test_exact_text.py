def test_the_line(solution):
    assert solution.text("hello.txt").rstrip("\n") == "Hello, small world!"


def test_nothing_else_is_there(solution):
    assert sorted(solution.files) == ["README.md", "hello.txt"]
