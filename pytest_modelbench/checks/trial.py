"""A trial: the candidate's tests on one implementation, as a program in a box."""

from __future__ import annotations

from pytest_modelbench.checks.programs import Result

PASSED = "passed"
FAILED = "failed"
NO_TESTS = "no-tests"
TIMED_OUT = "timed-out"
OTHER = "broken"

# The words come from the box that the candidate's tests ran in: they are evident, not trusted. What
# makes forging useless is that the tests do not know which implementation is before them.
TRIAL = """
import os, sys
out = os.dup(1)
null = os.open(os.devnull, os.O_RDWR)
for fd in (1, 2):
    os.dup2(null, fd)
import pytest
class Count:
    passed = failed = 0
    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed += 1
        elif report.when == "call" and report.passed:
            self.passed += 1
count = Count()
with open(os.environ["TMPDIR"] + "/pytest.ini", "w") as ini:
    ini.write("[pytest]\\n")
code = pytest.main(
    ["-q", "-p", "no:cacheprovider", "-c", ini.name, "--rootdir", os.getcwd(), "--noconftest",
     "--import-mode=importlib", "-o", "pythonpath=" + os.getcwd(), *sys.argv[1:]],
    plugins=[count],
)
word = "broken"
if code == 5 or (code == 0 and not count.passed):
    word = "no-tests"
elif code == 0 and not count.failed:
    word = "passed"
elif code == 1:
    word = "failed"
os.write(out, word.encode())
os._exit(0)
"""


def read_trial(result: Result) -> str:
    """Return the outcome of one trial."""
    if result.timed_out:
        return TIMED_OUT
    if result.status == 0 and result.stdout in (PASSED, FAILED, NO_TESTS):
        return result.stdout
    return OTHER
