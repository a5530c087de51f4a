"""The words for how a run stands, as everybody sees them: a total map from what is known of it."""

from typing import Final, Literal, get_args

from limpet.model.run import Phase, Run

Status = Literal["queued", "running", "completed", "failed", "killed", "timed_out"]
STATUSES: Final[tuple[Status, ...]] = get_args(Status)


def status_of(run: Run) -> Status:
    """One of STATUSES."""
    match run.phase:
        case Phase.QUEUED | Phase.STARTING:
            return "queued"
        case Phase.RUNNING | Phase.DRAINING:
            return "running"
        case Phase.ENDED:
            if run.ended_by == "kill":
                return "killed"
            if run.ended_by == "timeout":
                return "timed_out"
            return "completed" if run.exit_code == 0 and run.error_message is None else "failed"
