"""`limpet events`: what runs of whitelisted programs do."""

import sys
import time
from typing import Any

from limpet.client.client import AsyncClient
from limpet.surfaces.cli.daemon_client import succeeded, with_client
from limpet.surfaces.cli.say import note, say_json, visible


def events(*, follow: bool, names: tuple[str, ...], session: str | None, as_json: bool) -> int:
    """The latest that the daemon keeps, one a line; with `follow` those too that are still to come."""

    async def latest(client: AsyncClient) -> None:
        asked: dict[str, Any] = {"after": 0, "limit": 1000}
        asked |= {"events": list(names)} if names else {}
        asked |= {"session": session} if session is not None else {}
        while True:
            answer = succeeded(await client.call_raw("exec_events.recent", asked))
            for event in answer["events"]:
                _say({"type": "event", **event}, as_json=as_json)
            if not answer["has_more"]:
                return
            asked["after"] = answer["next_after"]

    async def all_to_come(client: AsyncClient) -> None:
        async with client.events(*names, session=session, after=0) as heard:
            async for frame in heard:
                _say(frame, as_json=as_json)

    with_client(all_to_come if follow else latest)
    return 0


def _say(frame: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        say_json(frame)
    elif frame["type"] == "event":
        print(_line(frame["event"], frame["payload"]))
    elif frame["type"] == "dropped":
        note(f"{frame['count']} pieces of output were not told: this reader is slow; see `limpet logs`")
    sys.stdout.flush()


def _line(event: str, payload: dict[str, Any]) -> str:
    at = time.strftime("%H:%M:%S", time.localtime(payload["ts"] / 1000))
    if event == "exec.started":
        what = f"pid {payload['pid']}: {payload['command']}"
    elif event == "exec.output":
        gone = f" ({payload['droppedBytes']} bytes left out before)" if payload["truncated"] else ""
        what = f"{payload['stream']}{gone}: {payload['output'].rstrip()}"
    else:
        end = payload["signal"] or payload["exitCode"]
        what = f"{payload['status']}, {'nobody knows how' if end is None else end}, after {payload['durationMs']} ms"
        what += f": {payload['error']}" if "error" in payload else ""
    return visible(f"{at} {event} {payload['commandName']} {payload['execId']} {what}")
