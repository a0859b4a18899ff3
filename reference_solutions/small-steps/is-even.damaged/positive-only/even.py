def count_even(numbers):
    return sum(number > 0 and number % 2 == 0 for number in numbers)
