from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_modelbench.errors import Fault
from pytest_modelbench.worlds.box import Box
from pytest_modelbench.worlds.repository import SeedRepository
from pytest_modelbench.worlds.world import World, open_world


def test_it_is_private_and_named_at_random(seed: SeedRepository, tmp_path: Path) -> None:
    with open_world(seed, tmp_path) as world, open_world(seed, tmp_path) as other:
        assert world.folder != other.folder
        assert world.folder.parent == tmp_path
        assert world.folder.stat().st_mode & 0o777 == 0o700
        (world.tree / "run.sh").write_text("changed")
        assert (other.tree / "run.sh").read_text() == "#!/bin/sh\necho ran\n"


def test_nothing_is_left(box: Box, seed: SeedRepository, tmp_path: Path) -> None:
    with open_world(seed, tmp_path, box.owner) as world:
        script = """
            mkdir -p closed/inner && touch closed/inner/file && chmod 000 closed/inner closed
            mkfifo pipe; ln -s / link; touch "$(printf 'odd\\nname\\377')"
            mkdir read-only && touch read-only/file && chmod 500 read-only
            i=0; while [ $i -lt 300 ]; do mkdir -p deep && cd deep && i=$((i + 1)); done; touch end
            chmod 000 ~ /tmp
        """
        done = box.run(["sh", "-c", script], world.spec(), seconds=60)
        assert done.status == 0, done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "seed"]


def test_an_exception_leaves_nothing_either(seed: SeedRepository, tmp_path: Path) -> None:
    with pytest.raises(KeyError), open_world(seed, tmp_path):
        raise KeyError
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "seed"]


def test_trouble_is_a_fault_that_names_the_place(seed: SeedRepository, tmp_path: Path) -> None:
    with (
        pytest.raises(Fault, match="absent") as raised,
        open_world(seed, tmp_path / "absent"),
    ):
        pass
    assert raised.value.kind == "world"


def test_environment_and_variables_reach_the_box(world: World, box: Box, tmp_path: Path) -> None:
    (tmp_path / "environment" / "bin").mkdir(parents=True)
    program = tmp_path / "environment" / "bin" / "tool"
    program.write_text("#!/bin/sh\necho tool $WORD\n")
    program.chmod(0o755)
    spec = world.spec(tmp_path / "environment", extra={"WORD": "given"})
    assert box.run(["tool"], spec, seconds=60).output == b"tool given\n"
    assert box.run(["/env/bin/tool"], spec, seconds=60).output == b"tool given\n"


def test_files_belong_to_the_owner(seed: SeedRepository, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    with open_world(seed, tmp_path, 65534) as world:
        folders = [world.tree, world.repository, world.home, world.temporary]
        owners = {p.lstat().st_uid for f in folders for p in (f, *f.rglob("*"))}
        assert owners == {65534}
        assert world.folder.stat().st_uid == 0
