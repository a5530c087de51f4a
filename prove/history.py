"""What a home answered, page by page, and whether a later daemon answers the same to every cursor it ever gave out."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.contract.home import Answer
from tests.contract.items import checked_items
from tests.contract.surface import Http

PAGE_ITEMS = 200
PAGE_BYTES = 1 << 16


def digest(items: Sequence[Answer]) -> str:
    """Items in short: two that differ in anything have another."""
    return hashlib.sha256(json.dumps(items, sort_keys=True).encode()).hexdigest()


@dataclass(slots=True)
class Page:
    """Items that were answered behind a cursor, and the cursor to go on from."""

    since_seq: int
    count: int
    digest: str
    next_seq: int


@dataclass(slots=True)
class Reader:
    """One client that follows one run by both cursors, and remembers all that it was told."""

    run_id: str
    since_seq: int = 0
    offset: int = 0
    pages: list[Page] = field(default_factory=list[Page])
    # Each offset it was given, and the bytes up to the next.
    said: bytearray = field(default_factory=bytearray)
    offsets: list[int] = field(default_factory=lambda: [0])
    status: str = "queued"

    def poll(self, http: Http) -> int:
        """Asks once for what is new by `seq`; how many items came."""
        asked = {"action": "poll", "run_id": self.run_id, "since_seq": self.since_seq, "limit": PAGE_ITEMS}
        told = http.ok("shell", asked)
        items = checked_items(told["items"])
        seqs = [item["seq"] for item in items]
        assert seqs == list(range(self.since_seq + 1, self.since_seq + 1 + len(seqs))), (self.run_id, asked, seqs)
        assert told["next_seq"] == self.since_seq + len(seqs), (self.run_id, told["next_seq"], seqs)
        assert not (self.status == "running" and told["status"] == "queued"), f"{self.run_id} is queued again"
        assert told["attempt"] == 1, told
        self.status = told["status"]
        self.pages.append(Page(self.since_seq, len(items), digest(items), told["next_seq"]))
        self.since_seq = told["next_seq"]
        return len(items)

    def read(self, http: Http) -> int:
        """Asks once for what is new by offset; how many bytes came."""
        page = http.read(self.run_id, offset=self.offset, max_bytes=PAGE_BYTES, encoding="base64")
        data = base64.b64decode(page["data"], validate=True)
        assert (page["offset_bytes"], page["next_offset"]) == (self.offset, self.offset + len(data)), page
        assert page["total_bytes"] >= page["next_offset"], page
        self.said += data
        self.offset = page["next_offset"]
        self.offsets.append(self.offset)
        return len(data)

    def finish(self, http: Http) -> None:
        """Follows both cursors to the end of a run that is over."""
        while self.poll(http):
            pass
        while self.read(http):
            pass

    def check_all(self, http: Http) -> int:
        """Asks with every cursor that it was ever given: the same items and bytes; how many cursors that were."""
        for page in self.pages:
            if not page.count:
                continue
            asked = {"action": "log", "run_id": self.run_id, "since_seq": page.since_seq, "limit": page.count}
            again = http.ok("shell", asked)
            assert again["next_seq"] == page.next_seq, (self.run_id, page, again["next_seq"])
            assert digest(again["items"]) == page.digest, f"{self.run_id}: other items behind {page.since_seq}"
        offsets = sorted(set(self.offsets))
        for offset, following in zip(offsets, [*offsets[1:], len(self.said)], strict=True):
            page = http.read(self.run_id, offset=offset, max_bytes=max(1, following - offset), encoding="base64")
            data = base64.b64decode(page["data"], validate=True)
            assert data == self.said[offset:following], f"{self.run_id}: other bytes at {offset}"
        return len({page.since_seq for page in self.pages} | {self.pages[-1].next_seq}) + len(offsets)
