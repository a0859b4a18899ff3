import os

ESC = chr(27)
open(f"{ESC}[2J{ESC}]0;owned{chr(7)}.py", "w").close()
open("two" + chr(10) + "lines <script>alert(1).py", "w").close()
fd = os.open(b"not-utf8-\xff\xfe", os.O_CREAT | os.O_WRONLY)
os.close(fd)
os.write(1, f"{ESC}[2J{ESC}[31mPASSED{ESC}]8;;http://example.invalid{chr(7)}<img src=x onerror=alert(1)>".encode())
