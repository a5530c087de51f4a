"""Journals of acks: nothing acked is told again, damage costs no more than itself, and the file stays short."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.store.acks import Acks, Mark, Record

GOLDEN = Path(__file__).parent.parent / "formats" / "golden_acks" / "v1.journal"


def everything(_run_id: str) -> bool:
    return True


def opened(path: Path) -> Acks:
    acks = Acks(path)
    acks.open(everything)
    return acks


def state(acks: Acks) -> tuple[object, ...]:
    return acks.marks, acks.leases, acks.dropped, acks.pruned, acks.since


@pytest.mark.requirement("1.9")
def test_keeps_what_was_put(tmp_path: Path) -> None:
    path = tmp_path / "b.journal"
    acks = Acks(path)
    assert acks.open(everything) is False
    acks.put(Record(at=1, marks={"a": Mark(3, (5,)), "b": Mark(1)}, leases={"l": 2}, dropped={"s": 4}), sync=True)
    acks.put(Record(at=2, marks={"a": Mark(5)}, dropped={"s": 0}, pruned={"p": ("s", 7)}, since="0"), sync=False)
    again = Acks(path)
    assert again.open(lambda run_id: run_id != "p") is True
    assert state(again) == ({"a": Mark(5), "b": Mark(1)}, {"l": 2}, {}, {"p": ("s", 7)}, "0")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("1.9")
@given(orders=st.permutations(list(range(1, 9))), cuts=st.sets(st.integers(1, 7)))
def test_any_order_of_acks_holds_just_those(orders: list[int], cuts: set[int]) -> None:
    acks, hits, done = Acks(Path("/nowhere")), {2 * number for number in orders}, set[int]()
    for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), 8], strict=True):
        seqs = {2 * number for number in orders[first:last]}
        done |= seqs
        mark = acks.mark_after("r", seqs, min(hits - done, default=None))
        acks.assume(Record(at=0, marks={"r": mark}))
        assert {seq for seq in hits if acks.holds("r", seq)} == done
    assert acks.marks["r"] == Mark(16)


@pytest.mark.requirement("1.9", "F25")
@pytest.mark.parametrize("damage", ["torn", "flipped", "zeros"])
def test_damage_costs_no_more_than_itself(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    """Injector: the last record is cut in the middle; or a bit of the second is turned over, or it is all zeros."""
    path = tmp_path / "b.journal"
    acks = Acks(path)
    for number in range(1, 4):
        acks.put(Record(at=number, marks={f"r{number}": Mark(number)}), sync=False)
    first, second, third = path.read_bytes().splitlines(keepends=True)
    if damage == "torn":
        path.write_bytes(first + second + third[:-9])
    elif damage == "flipped":
        path.write_bytes(first + second[:-9] + bytes([second[-9] ^ 1]) + second[-8:] + third)
    else:
        path.write_bytes(first + bytes(len(second) - 1) + b"\n" + third)
    again = opened(path)
    lost = 3 if damage == "torn" else 2
    assert again.marks == {f"r{number}": Mark(number) for number in {1, 2, 3} - {lost}}
    aside = list(tmp_path.glob("b.journal.broken-*"))
    assert len(aside) == (damage != "torn")
    assert ("cannot be read" in caplog.text) == (damage != "torn")
    again.put(Record(at=4, marks={"r9": Mark(9)}), sync=True)
    assert opened(path).marks == again.marks
    assert opened(path).damaged_records == 0


@pytest.mark.requirement("1.9")
def test_what_is_gone_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "b.journal"
    acks = Acks(path)
    acks.put(Record(at=1, marks={"a": Mark(1), "b": Mark(1)}, pruned={"a": ("s", 1), "c": ("s", 2)}), sync=True)
    again = Acks(path)
    again.open({"a"}.__contains__)
    # Of the run that was to be pruned and is there nothing went.
    assert (again.marks, again.pruned) == ({"a": Mark(1)}, {"c": ("s", 2)})


@pytest.mark.requirement("1.9")
def test_a_long_journal_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "b.journal"
    acks = Acks(path)
    for number in range(1, 12_000):
        acks.put(Record(at=number, marks={"0123456789abc": Mark(number)}, leases={f"{number:032x}": 1}), sync=False)
    assert path.stat().st_size < 1_100_000
    again = opened(path)
    assert again.marks == {"0123456789abc": Mark(11_999)}
    assert list(again.leases) == [f"{number:032x}" for number in range(11_000, 12_000)]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.requirement("1.9", "F16")
def test_what_the_disk_refuses_did_not_happen(tmp_path: Path) -> None:
    """Injector: a directory stands where the journal is to be."""
    path = tmp_path / "b.journal"
    acks = Acks(path)
    acks.put(Record(at=1, marks={"a": Mark(1)}), sync=True)
    kept = path.rename(tmp_path / "kept")
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        acks.put(Record(at=2, marks={"a": Mark(2)}, leases={"l": 1}), sync=True)
    assert (acks.marks, acks.leases) == ({"a": Mark(1)}, {})
    path.rmdir()
    kept.rename(path)
    acks.put(Record(at=3, marks={"a": Mark(3)}), sync=True)
    assert opened(path).marks == {"a": Mark(3)}


@pytest.mark.requirement("1.9", "F24")
def test_nothing_is_written_over_what_cannot_be_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Injector: a directory stands in the journal's place when it is opened, and is gone after that."""
    path = tmp_path / "b.journal"
    acks = Acks(path)
    acks.put(Record(at=1, marks={"a": Mark(1)}), sync=True)
    kept = path.rename(tmp_path / "kept")
    path.mkdir()
    blind = opened(path)
    assert "cannot be read" in caplog.text
    path.rmdir()
    kept.rename(path)
    with pytest.raises(OSError, match="directory"):
        blind.put(Record(at=2, marks={"b": Mark(1)}), sync=True)
    assert opened(path).marks == {"a": Mark(1)}


@pytest.mark.requirement("1.9", "1.12")
def test_a_recorded_journal_reads_as_ever() -> None:
    acks = Acks(GOLDEN)
    assert acks.open(lambda run_id: run_id != "1m7trr0j20511") is True
    assert state(acks) == (
        {"1m7trr0j2050e": Mark(12), "1m7trr0j2050f": Mark(3, (7, 9))},
        {"6f0c2a8be41d4c0c9b1f2d3e4a5b6c7d": 3},
        {"builds": 2},
        {"1m7trr0j20511": ("builds", 4)},
        "1m7trr0j20500",
    )
    assert acks.damaged_records == 0
