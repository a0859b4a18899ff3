def is_palindrome(text):
    letters = [one for one in text if one.isalpha()]
    return letters == letters[::-1]
