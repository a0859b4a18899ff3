def fizz(count):
    said = []
    for number in range(1, count + 1):
        word = "Fizz" * (number % 3 == 0) + "Buzz" * (number % 5 == 0)
        said.append(word or str(number))
    return said
