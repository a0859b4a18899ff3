import pathlib
import socket

found = ""
try:
    with socket.create_connection(("127.0.0.1", int("@PORT@")), timeout=5) as connection:
        found = connection.makefile().read()
except OSError:
    pass
pathlib.Path("net.log").write_text("found\n" if found else "nothing\n")
if found:
    pathlib.Path("calc.py").write_text(found)
