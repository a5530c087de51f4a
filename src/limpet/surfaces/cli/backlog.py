"""`limpet backlog take` and `limpet backlog ack`: what a session's watchers found."""

from typing import Any

from limpet.client.client import AsyncClient
from limpet.surfaces.cli.daemon_client import succeeded, with_client
from limpet.surfaces.cli.say import note, say_failure, say_json, visible


def backlog(*, action: str, name: str, most: float | None, wait: float | None, as_json: bool) -> int:
    """Messages go to stdout, one a line; the lease to ack them with to stderr, or with `as_json` all in one object."""
    if action not in ("take", "ack"):
        say_failure({"message": f"backlog {action}: say `take` or `ack`"})
        return 2
    asked: dict[str, Any] = {"lease": name}
    if action == "take":
        asked = {"session_id": name}
        asked |= {} if most is None else {"max": int(most)}
        asked |= {} if wait is None else {"wait_ms": int(wait * 1000)}

    async def call(client: AsyncClient) -> dict[str, Any]:
        return succeeded(await client.call_raw(f"backlog.{action}", asked))

    answer = with_client(call)
    if as_json:
        say_json(answer)
    elif action == "ack":
        print(f"acked {answer['acked']}")
    else:
        _say(answer)
    return 0


def _say(answer: dict[str, Any]) -> None:
    for message in answer["messages"]:
        print(f"{visible(message['id'])} {visible(message['text'])}")
    for word, why in (("dropped", "there were too many"), ("pruned", "their runs were pruned")):
        if answer[word]:
            note(f"{answer[word]} messages are gone: {why}")
    if answer["lease"] is not None:
        note(f"done with them? limpet backlog ack {answer['lease']}")
