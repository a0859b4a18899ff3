"""Run in a box: listen on its loopback port, hand the listener out, become the program.

    launcher.py PORT SOCKET PROGRAM [ARGUMENT …]

Standard library only, run with ``-I -S``. A socket belongs to the network namespace that it was
made in, so who gets the listener accepts the connections that are made in the box.
"""

import os
import socket
import sys


def main() -> None:
    """Hand the listener out and become the program; 125 where it is not taken, 127 as a shell."""
    port, place, *argv = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)), backlog=64)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as out:
        out.connect(place)
        socket.send_fds(out, [b"listener\n"], [listener.fileno()])
        answer = out.recv(4096)
    listener.close()
    if answer != b"ok\n":
        sys.stderr.write(f"the gateway is not there: {answer.decode(errors='replace')}")
        sys.exit(125)
    os.execvp(argv[0], argv)


if __name__ == "__main__":
    main()
