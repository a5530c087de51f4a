"""Waits for what a conversation says, for its prompt, for quiet, or for the end of what runs."""

from collections.abc import Callable
from typing import Literal

import msgspec

from limpet.engine import reading
from limpet.engine.conversations.conversation import STREAM, Conversation
from limpet.engine.engine import Engine
from limpet.engine.shown import line_around, match_text
from limpet.engine.waiting import Condition, Match, Quiet, Told, Waiting
from limpet.model.blocks import Block
from limpet.model.errors import Refusal
from limpet.model.watch import MATCH_MAX_BYTES

MatchType = Literal["substring", "regex", "line", "prompt", "quiet", "exit"]


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What held, and where in the spool; `text` and `line` are cut, and `truncated` says so."""

    start: int
    end: int
    text: str = ""
    line: str | None = None
    groups: dict[str, str | None] | None = None
    truncated: bool = False
    block: Block | None = None


async def wait_for(
    engine: Engine, conversation: Conversation, match: str, match_type: MatchType, from_cursor: int, timeout_ms: int
) -> Seen | None:
    """What holds first from that place on; None when nothing did in time, or nothing can any more."""
    check_cursor(conversation, from_cursor)
    active = conversation.standing.active

    def prompt_seen() -> Seen | None:
        place = first_prompt(conversation, from_cursor)
        return None if place is None else _prompt_seen(engine, conversation, place)

    by_facts: dict[MatchType, Callable[[], Seen | None]] = {
        "prompt": prompt_seen,
        "exit": lambda: _end_of(conversation, active),
    }
    found = by_facts.get(match_type)
    condition: Condition = (
        Told(lambda: found() is not None) if found is not None else await _condition(engine, match, match_type)
    )
    looked = Waiting(
        [conversation.live],
        [condition],
        {conversation.live.run.run_id: {STREAM: from_cursor}},
        engine.blobs,
        engine.thread,
    )
    try:
        met = await looked.first(timeout_ms / 1000)
    finally:
        looked.close()
    if found is not None:
        if met is None:
            # Nobody listened to output: the size that is answered is that of now, and what it covers was looked at.
            conversation.catch_up()
        return found()
    if met is None:
        return None
    if met.matched is None:
        return Seen(start=conversation.size, end=conversation.size)
    hit, run = met.matched.hit, conversation.live.run

    def read(name: str, start: int, end: int) -> bytes:
        return reading.read_exactly(run, engine.blobs, name, start, end)

    line = line_around(run, STREAM, hit.start, hit.end, read)
    text, is_cut = match_text(read(STREAM, hit.start, min(hit.end, hit.start + MATCH_MAX_BYTES)), hit.end - hit.start)
    return Seen(
        start=hit.start,
        end=hit.end,
        text=text,
        line=line.text,
        groups=hit.groups,
        truncated=is_cut or line.is_cut,
    )


async def _condition(engine: Engine, match: str, match_type: MatchType) -> Match | Quiet:
    if match_type == "quiet":
        if not match.isdecimal() or len(match) > 8:
            message = "`match`: for `quiet` it is a number of milliseconds, written as text"
            raise Refusal("invalid_argument", message, field="match")
        return Quiet(int(match))
    assert match_type in ("substring", "regex", "line")
    return Match(await engine.compile(match, match_type, "match"), STREAM)


def first_prompt(conversation: Conversation, from_cursor: int) -> int | None:
    """The place of the first genuine prompt whose line begins there or later."""
    prompts = conversation.prompts
    low, high = 0, len(prompts)
    while low < high:
        middle = (low + high) // 2
        if prompts[middle].start < from_cursor:
            low = middle + 1
        else:
            high = middle
    return low if low < len(prompts) else None


def _prompt_seen(engine: Engine, conversation: Conversation, place: int) -> Seen:
    prompt = conversation.prompts[place]
    end = prompt.end - 1
    text = reading.read_exactly(conversation.live.run, engine.blobs, STREAM, prompt.start, end).decode()
    block = conversation.prompted[place]
    return Seen(start=prompt.start, end=end, text=text, line=text, block=block)


def _end_of(conversation: Conversation, active: Block | None) -> Seen | None:
    """The end of what ran when somebody began to wait; of what ran last when nothing did."""
    if active is None:
        if not conversation.blocks:
            return Seen(start=conversation.size, end=conversation.size)
        block = conversation.blocks[-1]
    else:
        ended = [each for each in reversed(conversation.blocks) if each.block_id == active.block_id]
        if not ended:
            return None
        block = ended[0]
    end = conversation.size if block.end is None else block.end
    return Seen(start=end, end=end, block=block)


def check_cursor(conversation: Conversation, from_cursor: int) -> None:
    """Refuses a cursor beyond the end."""
    size = conversation.size
    if from_cursor > size:
        message = f"`from_cursor` is beyond the end: the spool has {size} bytes so far"
        raise Refusal("invalid_argument", message, reason="cursor_ahead", field="from_cursor", resume_cursor=size)
