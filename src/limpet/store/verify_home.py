"""All runs of a home verified: read only, beside a daemon or without one."""

from pathlib import Path
from typing import Any, Final

import msgspec

from limpet.model.errors import Refusal
from limpet.model.ids import is_made_id
from limpet.store.stored_runs import stored_runs
from limpet.store.verify import Finding, RunCheck

# More are counted, not told one by one.
MOST_FINDINGS: Final = 1000


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was looked at, and what was found."""

    sound: bool
    runs: int
    bytes: int
    findings: list[Finding]


def verify_stored(home: str, run_id: str | None) -> dict[str, Any]:
    """The same for a home of which no daemon need run: the report as an answer has it."""
    runs = Path(home) / "runs"
    if run_id is not None and not (is_made_id(run_id) and (runs / run_id).is_dir()):
        raise Refusal("not_found", f"there is no run {run_id[:80]} in {home}")
    return msgspec.to_builtins(verify_home(runs, Path(home) / "memory" / "sessions.db", run_id))


def verify_home(runs: Path, database: Path, run_id: str | None = None) -> Report:
    """Looks at one run, or at all. One that is pruned meanwhile is none."""
    names = [run_id] if run_id is not None else _names(runs)
    findings: list[Finding] = []
    looked_at = size = 0
    with stored_runs(database) as stored:
        for name in names:
            check = RunCheck(runs / name, stored)
            try:
                check.check()
            except FileNotFoundError as gone:
                if not (runs / name).exists():
                    continue
                check.say(Path(gone.filename or "").name, "missing", "a file is not there", None)
            looked_at += 1
            size += check.bytes
            findings += check.findings
    return Report(sound=not findings, runs=looked_at, bytes=size, findings=findings[:MOST_FINDINGS])


def _names(runs: Path) -> list[str]:
    return sorted(path.name for path in runs.iterdir() if is_made_id(path.name)) if runs.is_dir() else []
