from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_modelbench.worlds.supervision import CappedOutput


@given(st.lists(st.binary(max_size=50)), st.integers(min_value=0, max_value=60))
def test_head_and_tail_are_kept(chunks: list[bytes], limit: int) -> None:
    output = CappedOutput(limit)
    for chunk in chunks:
        output.add(chunk)
    whole = b"".join(chunks)
    assert output.total == len(whole)
    if len(whole) <= limit:
        assert output.value() == whole
        return
    head, tail = limit - limit // 2, limit // 2
    left_out = b"\n[... %d bytes left out ...]\n" % (len(whole) - limit)
    assert output.value() == whole[:head] + left_out + whole[len(whole) - tail :]
