"""What the hostile programs are started with, how many processes each becomes, and the tree of fifty of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

# The chains hop as fast as they can when alone; in the tree they leave the others some of the processor.
SPECS: dict[str, tuple[str, ...]] = {
    "daemon-keeps": ("tree", "daemon,keep"),
    "daemon-closes": ("tree", "daemon,close"),
    "hydra": ("hydra", "8"),
    "chains": ("tree", *["chain,session,100"] * 8),
    "chain": ("tree", "chain,group"),
    "chain-sessions": ("tree", "chain,session"),
    "deaf": ("deaf",),
    "stopped": ("stopped",),
    "session_changer": ("session_changer",),
    "nameless-argv": ("nameless", "argv"),
    "nameless-env": ("nameless", "env"),
    "headless": ("headless",),
    "sibling": ("sibling",),
    "traced": ("traced",),
    "vforker": ("vforker",),
    "jailed": ("jailed",),
    "mix": (
        "tree",
        *["deaf"] * 5,
        *["stopped"] * 5,
        *["daemon,keep", "daemon,close"] * 4,
        "hydra,8",
        "chain,group,500",
        "chain,session,500",
        *["session_changer"] * 3,
        *["nameless,argv", "nameless,env"],
        *["headless", "sibling", "traced", "vforker"],
        "jailed",
    ),
}

# How often each program says that it is in place, and how many processes of it there are then.
ARRIVALS = Counter({"hydra": 8, "session_changer": 4, "headless": 2, "sibling": 2, "traced": 2, "jailed": 3})
SILENT = Counter({"vforker": 1})

# Those that are sent TERM in a state in which it reaches them, and note it.
NOTES_TERM = frozenset({"tree", "daemon", "stopped", "session_changer", "nameless", "headless", "sibling", "tidy"})


@dataclass(frozen=True, slots=True)
class Tree:
    """One tree to be killed."""

    program: str
    options: tuple[str, ...]

    @property
    def expected(self) -> Counter[str]:
        """How often each program arrives."""
        names = [self.program]
        if self.program == "tree":
            names += [spec.partition(",")[0] for spec in self.options]
        return Counter({name: count * (ARRIVALS[name] or 1) for name, count in Counter(names).items()})

    @property
    def processes(self) -> int:
        """How many processes live in it when all have arrived."""
        return self.expected.total() + sum(SILENT[name] * count for name, count in self.expected.items())


TREES = {name: Tree(program, options) for name, (program, *rest) in SPECS.items() for options in [tuple(rest)]}
assert TREES["mix"].processes >= 50, TREES["mix"].processes
