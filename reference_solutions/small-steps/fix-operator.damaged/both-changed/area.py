def area(width, height):
    """Return the area of a rectangle."""
    return width * height


def perimeter(width, height):
    """Return the length around a rectangle."""
    return 2 * (width * height)
