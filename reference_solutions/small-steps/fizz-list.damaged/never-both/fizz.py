def fizz(count):
    said = []
    for number in range(1, count + 1):
        if number % 3 == 0:
            said.append("Fizz")
        elif number % 5 == 0:
            said.append("Buzz")
        else:
            said.append(str(number))
    return said
