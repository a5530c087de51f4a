"""`limpet search`: text in the output of runs."""

from typing import Any, Final

from limpet.client.client import AsyncClient
from limpet.surfaces.cli.daemon_client import succeeded, with_client
from limpet.surfaces.cli.say import note, say_json, visible

_LIMIT: Final = 100
_PAGE: Final = 1000


def search(
    *,
    text: str,
    regex: bool,
    session: str | None,
    run_id: str | None,
    stream: str | None,
    limit: float | None,
    as_json: bool,
) -> int:
    """Each hit as soon as it is known; what could not be looked at is said on stderr."""
    asked: dict[str, Any] = {"regex" if regex else "query": text}
    given = {"session_id": session, "run_id": run_id, "stream": stream}
    asked |= {name: value for name, value in given.items() if value is not None}
    left = _LIMIT if limit is None else int(limit)

    async def look(client: AsyncClient) -> None:
        nonlocal left
        cursor: dict[str, str] = {}
        while True:
            page = {**asked, **cursor, "limit": min(left, _PAGE)}
            answer = succeeded(await client.call_raw("runs.search", page))
            for hit in answer["hits"]:
                _say(hit, as_json=as_json)
            for gap in answer["skipped"]:
                span = gap["span"]
                note(f"{gap['run_id']} {gap['stream']}: bytes {span['start']} to {span['end']} are {gap['reason']}")
            if answer["skipped_more"]:
                note(f"{answer['skipped_more']} more ranges could not be looked at")
            left -= len(answer["hits"])
            if not answer["has_more"]:
                return
            if left <= 0:
                note("there may be more: raise --limit")
                return
            cursor = {"cursor": answer["next_cursor"]}

    with_client(look)
    return 0


def _say(hit: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        say_json(hit)
    else:
        print(f"{visible(hit['run_id'])} {hit['stream']}@{hit['span']['start']}: {visible(hit['line'])}")
