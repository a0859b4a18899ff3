SYMBOLS = [
    (100, "C"),
    (90, "XC"),
    (50, "L"),
    (40, "XL"),
    (10, "X"),
    (9, "IX"),
    (5, "V"),
    (4, "IV"),
    (1, "I"),
]


def to_roman(number):
    numeral = ""
    for size, symbol in SYMBOLS:
        count, number = divmod(number, size)
        numeral += symbol * count
    return numeral
