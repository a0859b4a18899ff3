from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_modelbench.errors import StoreProblem
from pytest_modelbench.store.evidence import Evidence


@pytest.mark.parametrize("data", [b"", b"\0\xff" * 5000, b"text\r\n"])
def test_bytes_come_back_by_their_hash(tmp_path: Path, data: bytes) -> None:
    evidence = Evidence(tmp_path / "results")

    name = evidence.put(data)

    assert name == "sha256:" + hashlib.sha256(data).hexdigest()
    assert evidence.put(data) == name
    assert evidence.get(name) == data
    assert evidence.has(name)
    blobs = [path for path in (tmp_path / "results/.evidence").rglob("*") if path.is_file()]
    assert [path.name for path in blobs] == [name.removeprefix("sha256:")]
    assert blobs[0].parent.name == blobs[0].name[:2]
    assert (tmp_path / "results/.gitignore").exists()


def test_missing_evidence_says_where_it_may_be(tmp_path: Path) -> None:
    evidence = Evidence(tmp_path)
    name = "sha256:" + "0" * 64

    assert not evidence.has(name)
    with pytest.raises(StoreProblem, match=r"is not here; it is not committed: copy \.evidence"):
        evidence.get(name)


@pytest.mark.parametrize("harm", ["cut", "other", "rubbish"])
def test_damaged_evidence_is_not_believed(tmp_path: Path, harm: str) -> None:
    evidence = Evidence(tmp_path)
    name, other = evidence.put(b"what was written"), evidence.put(b"something else")
    path = tmp_path / ".evidence" / name[7:9] / name[7:]
    whole = path.read_bytes()
    stranger = (tmp_path / ".evidence" / other[7:9] / other[7:]).read_bytes()
    path.write_bytes({"cut": whole[:-3], "other": stranger, "rubbish": b"???"}[harm])

    with pytest.raises(StoreProblem, match="evidence is damaged"):
        evidence.get(name)


@pytest.mark.parametrize("name", ["", "md5:00", "sha256:../../../etc/passwd", "sha256:0"])
def test_a_name_of_another_form_reaches_no_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreProblem, match="is no name of evidence"):
        Evidence(tmp_path).get(name)


def test_a_full_disk_leaves_no_half_blob(tmp_path: Path) -> None:
    script = """
import os, resource, sys
from pathlib import Path
from pytest_modelbench.store.evidence import Evidence
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
Evidence(Path(sys.argv[1])).put(os.urandom(20000))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True
    )

    assert "20000 bytes of evidence were not stored: File too large" in done.stderr
    assert [path for path in (tmp_path / ".evidence").rglob("*") if path.is_file()] == []
