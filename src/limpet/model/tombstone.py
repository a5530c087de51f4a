"""What is still known of a run that was pruned: that it was, and what its key had been used for."""

import msgspec


class Tombstone(msgspec.Struct, frozen=True, kw_only=True):
    """Stands where a run was, so that its id is `gone` and its key starts nothing a second time."""

    run_id: str
    key: str | None
    request_digest: str | None
    pruned_at: int
