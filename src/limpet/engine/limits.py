"""What a run may use at most: whether this machine can hold it to that, and what its keeper is told for it."""

import asyncio
import os
import resource
from collections.abc import Mapping
from threading import Lock
from typing import Any, Final, NamedTuple

from limpet.config import RunConfig
from limpet.engine.cgroups import Place, Setting, find_place
from limpet.model.errors import Refusal


class _Controller(NamedTuple):
    """How a cgroup is told a limit, by v1's files or by v2's. Those behind the first close swap as a way out."""

    name: str
    v1: tuple[Setting, ...]
    v2: tuple[Setting, ...]
    tried_with: int


_CONTROLLERS: Final = {
    "memory_bytes": _Controller(
        "memory",
        (Setting("memory.limit_in_bytes", "{}"), Setting("memory.memsw.limit_in_bytes", "{}")),
        (Setting("memory.max", "{}"), Setting("memory.swap.max", "0")),
        1 << 30,
    ),
    "pids": _Controller("pids", (Setting("pids.max", "{}"),), (Setting("pids.max", "{}"),), 1000),
}
NAMES: Final = (*_CONTROLLERS, "cpu_secs")


def limits_of(asked: Mapping[str, int], config: RunConfig) -> dict[str, int]:
    """The limits of a run: those asked for, above those of the configuration."""
    configured = {name: getattr(config, f"limit_{name}") for name in NAMES}
    return {name: most for name, most in configured.items() if most} | dict(asked)


class Limits:
    """What this machine can hold runs to. Found by trying, when it is first asked for."""

    def __init__(self, cgroup_root: str) -> None:
        self._root = cgroup_root
        self._places: dict[str, Place | str] = {}
        self._trying = Lock()

    async def check(self, limits: Mapping[str, int]) -> None:
        """Refuses what cannot be held. Afterwards `frame` waits for nothing."""
        if any(name in _CONTROLLERS and name not in self._places for name in limits):
            await asyncio.to_thread(self._try_all, limits)
        for name, most in limits.items():
            why = self.why_not(name, most)
            if why is not None:
                raise Refusal("unavailable", _refusal(name, why), reason="limit_unsupported", field=f"limits.{name}")

    def why_not(self, name: str, most: int = 1) -> str | None:
        """Why this machine cannot hold a run to that; None where it can."""
        if name in _CONTROLLERS:
            place = self._place(name)
            return place if isinstance(place, str) else None
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        if hard in (resource.RLIM_INFINITY, -1) or most < hard or os.geteuid() == 0:
            return None
        return f"the hard limit of this user is {hard} (`ulimit -Ht`)"

    def frame(self, group: str, limits: Mapping[str, int]) -> dict[str, Any]:
        """What the start frame says of it. Limits that one hierarchy holds share a group of that name there."""
        groups: dict[str, dict[str, str]] = {}
        for name, most in limits.items():
            if name in _CONTROLLERS and not isinstance(place := self._place(name), str):
                settings = groups.setdefault(str(place.base / group), {})
                settings.update({each.file: each.text.format(most) for each in place.settings})
        frame: dict[str, Any] = {}
        if groups:
            frame["cgroups"] = [{"path": path, "settings": settings} for path, settings in groups.items()]
        if "cpu_secs" in limits:
            frame["rlimits"] = {"cpu": limits["cpu_secs"]}
        return frame

    def _try_all(self, limits: Mapping[str, int]) -> None:
        for name in limits:
            if name in _CONTROLLERS:
                self._place(name)

    def _place(self, name: str) -> Place | str:
        with self._trying:
            if name not in self._places:
                how = _CONTROLLERS[name]
                self._places[name] = find_place(how.name, how.v1, how.v2, how.tried_with, self._root)
            return self._places[name]


def _refusal(name: str, why: str) -> str:
    if name in _CONTROLLERS:
        todo = (
            f"leave it out, or give limpet a cgroup with the controller `{_CONTROLLERS[name].name}` below "
            "`run.cgroup_root` in which it may make others (systemd: `Delegate=yes`, `DelegateSubgroup=daemon`), "
            "and restart it"
        )
    else:
        todo = "leave it out, or ask for less"
    return f"this machine cannot hold a run to `limits.{name}` (or `run.limit_{name}`): {why}; {todo}"
