SYMBOLS = [(100, "C"), (50, "L"), (10, "X"), (5, "V"), (1, "I")]


def to_roman(number):
    numeral = ""
    for size, symbol in SYMBOLS:
        count, number = divmod(number, size)
        numeral += symbol * count
    return numeral
