"""`runs.prune` and `runs.verify`."""

from typing import Annotated, Final

import msgspec

from limpet.dialects.runs.types import Size
from limpet.engine.engine import Engine
from limpet.model.ids import check_id
from limpet.model.operation import Caller, Operation


class PruneRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs that are over are to go; without a bound, those of the configuration hold."""

    older_than_ms: Size | None = None
    keep_bytes: Size | None = None
    dry_run: bool = False


class PruneResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The runs that went, or would go, oldest first, and the room that they took."""

    dry_run: bool
    runs: list[str]
    bytes: int


class VerifyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run, or all."""

    run_id: Annotated[str, msgspec.Meta(min_length=1)] | None = None


class FindingInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as it was written: in which file, at which byte, in which record."""

    run_id: str
    file: str
    offset: int | None
    record: int | None
    problem: str
    message: str


class VerifyResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Whether all is sound, what was looked at, and what was found."""

    sound: bool
    runs: int
    bytes: int
    findings: list[FindingInfo]


async def prune(engine: Engine, request: PruneRequest, _caller: Caller) -> PruneResponse:
    pruned = await engine.prune(request.older_than_ms, request.keep_bytes, dry_run=request.dry_run)
    return PruneResponse(dry_run=request.dry_run, runs=pruned.runs, bytes=pruned.bytes)


async def verify(engine: Engine, request: VerifyRequest, _caller: Caller) -> VerifyResponse:
    if request.run_id is not None:
        engine.find(check_id("run_id", request.run_id))
    report = await engine.verify(request.run_id)
    return VerifyResponse(
        sound=report.sound,
        runs=report.runs,
        bytes=report.bytes,
        findings=[FindingInfo(**msgspec.structs.asdict(finding)) for finding in report.findings],
    )


ROWS: Final = (
    Operation(
        name="runs.prune",
        request=PruneRequest,
        response=PruneResponse,
        handle=prune,
        summary="Removes runs that are over, oldest first, by age or by the room they take; `dry_run` only says which.",
        reads_only=False,
        repeatable=True,
    ),
    Operation(
        name="runs.verify",
        request=VerifyRequest,
        response=VerifyResponse,
        handle=verify,
        summary="Compares every record, spool and row with what was written; changes nothing, may run at any time.",
        reads_only=True,
        repeatable=True,
    ),
)
