import os
import socket

os.mkfifo("conftest.py")
os.mkfifo("tests/test_fifo.py")
socket.socket(socket.AF_UNIX).bind("sock")
