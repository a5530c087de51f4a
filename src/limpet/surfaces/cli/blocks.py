"""`limpet blocks`: what was run in a conversation, what each said, and text in all of it."""

import os
import sys
from typing import Any, Final

from limpet.client.client import AsyncClient
from limpet.surfaces.cli.daemon_client import succeeded, with_client
from limpet.surfaces.cli.say import note, say_failure, say_json, visible

ACTIONS: Final = ("list", "get", "read", "search")
_COMMAND_WIDTH: Final = 60
_PAGE_BYTES: Final = 1 << 20


def blocks(
    *, action: str, conversation: str, word: str | None, regex: bool, limit: float | None, raw: bool, as_json: bool
) -> int:
    """`list` and `search` show text that no terminal can be taken over by; so does `read` on one, unless `raw`."""
    if action not in ACTIONS or (word is None) != (action == "list"):
        words = "list CONVERSATION, get or read CONVERSATION BLOCK, search CONVERSATION TEXT"
        say_failure({"message": f"blocks {action}: say {words}"})
        return 2
    of: dict[str, Any] = {"conversation_id": conversation}

    async def show(client: AsyncClient) -> None:
        if action == "list":
            await _list(client, of, as_json=as_json)
        elif action == "search":
            asked = of | {"query": word, "regex": regex} | ({} if limit is None else {"limit": int(limit)})
            answer = succeeded(await client.call_raw("blocks.search", asked))
            for hit in answer["hits"]:
                if as_json:
                    say_json(hit)
                else:
                    print(f"{visible(hit['block_id'])}@{hit['span']['start']}: {visible(hit['lines'])}")
            if answer["has_more"]:
                note("there may be more: raise --limit")
        elif action == "get":
            block = succeeded(await client.call_raw("blocks.get", of | {"block_id": word}))["block"]
            if as_json:
                say_json(block)
            else:
                for name, value in block.items():
                    print(f"{name}: {visible(str(value))}")
        else:
            await _read(client, of | {"block_id": word}, is_safe=not raw and os.isatty(1), as_json=as_json)

    with_client(show)
    return 0


async def _list(client: AsyncClient, of: dict[str, Any], *, as_json: bool) -> None:
    after: dict[str, str] = {}
    while True:
        answer = succeeded(await client.call_raw("blocks.since", of | after))
        for block in answer["blocks"]:
            if as_json:
                say_json(block)
                continue
            command = visible(block["cmd"])
            command = command if len(command) <= _COMMAND_WIDTH else f"{command[: _COMMAND_WIDTH - 1]}…"
            code = "" if block["exit_code"] is None else str(block["exit_code"])
            print(f"{visible(block['block_id'])}  {block['status']:<11}  {code:>3}  {command}")
        if not answer["has_more"]:
            return
        after = {"after_block_id": answer["blocks"][-1]["block_id"]}


async def _read(client: AsyncClient, asked: dict[str, Any], *, is_safe: bool, as_json: bool) -> None:
    offset = 0
    while True:
        page = succeeded(await client.call_raw("blocks.read", asked | {"offset": offset, "max_bytes": _PAGE_BYTES}))
        if as_json:
            say_json(page)
        else:
            sys.stdout.write(visible(page["data"], lines=True) if is_safe else page["data"])
            sys.stdout.flush()
        if page["next_offset"] in (offset, page["total_bytes"]):
            return
        offset = page["next_offset"]
