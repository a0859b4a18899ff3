def test_sums(solution):
    roman = solution.load("roman")
    assert roman.to_roman(1) == "I"
    assert roman.to_roman(8) == "VIII"
    assert roman.to_roman(166) == "CLXVI"


def test_differences(solution):
    roman = solution.load("roman")
    assert roman.to_roman(4) == "IV"
    assert roman.to_roman(49) == "XLIX"
    assert roman.to_roman(390) == "CCCXC"
    assert roman.to_roman(99) == "XCIX"
