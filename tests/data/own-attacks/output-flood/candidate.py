import os

for _ in range(48 * 16):
    os.write(1, b"PASSED " * 9362)
