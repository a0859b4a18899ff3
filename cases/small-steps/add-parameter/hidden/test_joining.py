def test_default(solution):
    joining = solution.load("joining")
    assert joining.join_names(["a", "b"]) == "a, b"
    assert joining.join_names([]) == ""


def test_another_separator(solution):
    joining = solution.load("joining")
    assert joining.join_names(["a", "b"], " + ") == "a + b"
    assert joining.join_names(["a", "b", "c"], separator="/") == "a/b/c"
