def test_first_five(solution):
    assert solution.load("fizz").fizz(5) == ["1", "2", "Fizz", "4", "Buzz"]


def test_multiples_of_both(solution):
    said = solution.load("fizz").fizz(30)
    assert said[14] == "FizzBuzz"
    assert said[29] == "FizzBuzz"


def test_length(solution):
    fizz = solution.load("fizz")
    assert len(fizz.fizz(17)) == 17
    assert fizz.fizz(0) == []
