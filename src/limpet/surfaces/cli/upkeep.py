"""`limpet prune`, `verify` and `doctor`: the home itself."""

import re
from typing import Any, Final

from limpet.client.client import AsyncClient
from limpet.client.home import find_home, socket_of
from limpet.client.start import is_listening
from limpet.model.errors import Refusal
from limpet.surfaces.cli.daemon_client import succeeded, with_client
from limpet.surfaces.cli.say import say_failure, say_json, visible

_AGES_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SIZES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def prune(*, older_than: str | None, keep_bytes: str | None, dry_run: bool, as_json: bool) -> int:
    """Removes old runs that are over; with `dry_run` only says which."""
    asked: dict[str, Any] = {"dry_run": dry_run}
    try:
        if older_than is not None:
            asked["older_than_ms"] = amount("--older-than", older_than, _AGES_MS, "7d, 12h or 30m")
        if keep_bytes is not None:
            asked["keep_bytes"] = size("--keep-bytes", keep_bytes)
    except Refusal as wrong:
        say_failure(wrong.answer(), as_json=as_json)
        return 2

    async def call(client: AsyncClient) -> dict[str, Any]:
        return succeeded(await client.call_raw("runs.prune", asked))

    answer = with_client(call)
    if as_json:
        say_json(answer)
        return 0
    for run_id in answer["runs"]:
        print(visible(run_id))
    would = "would go" if dry_run else "removed"
    print(f"{len(answer['runs'])} runs {would}, {answer['bytes']} bytes")
    return 0


def size(option: str, text: str) -> int:
    """So many bytes."""
    return amount(option, text.upper().removesuffix("B"), _SIZES, "10G, 500M or bytes")


def amount(option: str, text: str, units: dict[str, int], examples: str) -> int:
    """A number with its unit; a refusal says what is meant."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z]?)", text)
    if found is None or found[2] not in units:
        raise Refusal("invalid_argument", f"`{option}`: {text!r} is no amount: say {examples}", field=option)
    return round(float(found[1]) * units[found[2]])


def verify(*, run_id: str | None, as_json: bool) -> int:
    """Exit code 0 when all is sound. Reads the files themselves, whether a daemon runs or not, and starts none."""
    from limpet.store.verify_home import verify_stored

    report = verify_stored(find_home(), run_id)
    if as_json:
        say_json({"ok": True, **report})
    else:
        for finding in report["findings"]:
            where = f"{finding['run_id']}/{finding['file']}"
            place = "" if finding["offset"] is None else f" at byte {finding['offset']}"
            print(f"{visible(where)}{place}: {finding['problem']}: {visible(finding['message'])}")
        word = "sound" if report["sound"] else f"{len(report['findings'])} findings"
        print(f"{report['runs']} runs, {report['bytes']} bytes: {word}")
    return 0 if report["sound"] else 1


def doctor(*, as_json: bool) -> int:
    """Exit code 0 when nothing is to be done. Asks the daemon where one runs; starts none."""
    home = find_home()
    if is_listening(socket_of(home)):
        answer = with_client(_examined, start=False)
    else:
        from limpet.engine.doctor import answer_without_daemon

        answer = answer_without_daemon(home)
    if as_json:
        say_json(answer)
    else:
        for check in answer["checks"]:
            print(f"{'ok  ' if check['ok'] else 'LOOK'}  {check['name']}: {visible(check['found'])}")
            if check["advice"]:
                print(f"      {visible(check['advice'])}")
    return 0 if answer["healthy"] else 1


async def _examined(client: AsyncClient) -> dict[str, Any]:
    return succeeded(await client.call_raw("daemon.doctor", {}))
