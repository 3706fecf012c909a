"""How the blocks of a family of tables are shared out over splits."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tailrace.connectors.postgres.snapshot.partitions import PartitionMember, shared_out


def blocks_of(parts: Sequence[tuple[PartitionMember, object]]) -> int:
    return sum(len(numbers(member, blocks)) for member, blocks in parts)


def numbers(member: PartitionMember, blocks: object) -> range:
    first, last = getattr(blocks, "first", None), getattr(blocks, "last", None)
    return range(first or 0, member.blocks if last is None else last)


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), max_size=12), st.integers(2, 9))
def test_every_block_is_read_once_and_the_pieces_are_even(sizes: list[tuple[int, bool]], pieces: int) -> None:
    members = [
        PartitionMember("s", f"m{n}", is_foreign, 0 if is_foreign else size)
        for n, (size, is_foreign) in enumerate(sizes)
    ]
    shared = shared_out(members, pieces)
    total = sum(member.blocks for member in members)
    assert len(shared) <= pieces
    assert all(blocks_of(parts) <= -(-total // pieces) for parts in shared)
    for member in members:
        read = [blocks for parts in shared for other, blocks in parts if other == member]
        assert sorted(n for blocks in read for n in numbers(member, blocks)) == list(range(member.blocks))
        if member.is_foreign:
            assert [(blocks.first, blocks.last) for blocks in read] == [(None, None)]
        elif member.blocks:
            assert read[0].first is None
            assert read[-1].last is None


def test_many_small_ones_are_read_together() -> None:
    shared = shared_out([PartitionMember("s", f"m{n}", False, 1) for n in range(100)], 4)
    assert [len(parts) for parts in shared] == [25, 25, 25, 25]
