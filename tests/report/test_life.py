"""Which events touch a block or a branch."""

from __future__ import annotations

from pathlib import Path

from kvsan.checker.replay.life import life_of_block, life_of_branch
from kvsan.traces.read import open_log
from report_logs import e, write_log


def lines_of_block(path: Path, block: int, pool: str = "gpu", until: int | None = None) -> list[int]:
    return [line for line, _ in life_of_block(open_log(path), block, pool, until).events]


def test_a_block_is_touched_by_what_names_it_and_through_tables(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "a.jsonl",
        e("admit", branch="p", tokens=8),  # 2
        e("alloc", block=[3, 4], branch="p"),  # 3
        e("map", branch="p", pos=0, block=[3, 4]),  # 4
        e("fork", branch="c", parent="p"),  # 5
        e("fork", branch="d", parent="p", upto=4),  # 6
        e("alloc", block=5),  # 7
        e("step", op=1, stream="s", copies=[[4, 5, 0, 4]], writes=[["c", 5, 0, 1]], reads=[["d", 4]]),  # 8
        e("done", op=1),  # 9
        e("map", branch="c", pos=1, block=5),  # 10, replaces 4
        e("finish", branch="c"),  # 11
        e("finish", branch="d"),  # 12
        e("read", branch="p", upto=4),  # 13
        e("cancel", branch="p"),  # 14
        e("free", block=4),  # 15
    )
    assert lines_of_block(log, 4) == [3, 4, 5, 8, 9, 10, 14, 15]
    assert lines_of_block(log, 3) == [3, 4, 5, 6, 8, 9, 11, 12, 13, 14]
    assert lines_of_block(log, 4, until=8) == [3, 4, 5, 8]


def test_equal_ids_of_two_pools_are_two_blocks(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "a.jsonl",
        e("alloc", block=1),  # 2
        e("alloc", block=1, pool="cpu"),  # 3
        e("copy", src=1, dst=1, slots=[0, 4], src_pool="gpu", dst_pool="cpu"),  # 4
        e("free", block=1),  # 5
        pools={"cpu": {"blocks": 2}},
    )
    assert lines_of_block(log, 1) == [2, 4, 5]
    assert lines_of_block(log, 1, pool="cpu") == [3, 4]


def test_a_fork_shares_positions_by_the_block_size_of_its_group(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "a.jsonl",
        e("alloc", block=[1, 2]),  # 2
        e("map", branch="p", pos=1, block=1),  # 3
        e("map", branch="p", pos=1, block=2, group="1"),  # 4
        e("fork", branch="c", parent="p", upto=6),  # 5: position 1 starts at token 4, in group 1 at token 8
        e("finish", branch="c"),  # 6
        groups={"1": {"block_size": 8}},
    )
    assert lines_of_block(log, 1) == [2, 3, 5, 6]
    assert lines_of_block(log, 2) == [2, 4]


def test_a_branch_is_touched_by_steps_and_by_forks_from_it(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "a.jsonl",
        e("admit", branch=1),  # 2
        e("alloc", block=3),  # 3
        e("fork", branch="c", parent=1),  # 4
        e("step", op=7, stream="s", reads=[["c", 4]]),  # 5
        e("step", op=8, stream="s", writes=[[1, 3, 0, 1]]),  # 6
        e("done", op=7),  # 7
        e("done", op=8),  # 8
        e("finish", branch=1),  # 9
    )
    life = life_of_branch(open_log(log), "1")
    assert life.about == "branch 1"
    assert [line for line, _ in life.events] == [2, 4, 6, 8, 9]
