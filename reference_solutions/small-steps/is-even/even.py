def count_even(numbers):
    return sum(number % 2 == 0 for number in numbers)
