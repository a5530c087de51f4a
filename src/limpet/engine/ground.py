"""What an engine stands on and cannot be without: its store, the thread that syncs, its keepers."""

import os
from collections.abc import Callable

from limpet.config import Config
from limpet.engine import cgroups
from limpet.engine.durable import Durable
from limpet.engine.home import Home
from limpet.engine.nursery import Nursery
from limpet.store.runs import RunStore
from limpet.store.sqlite import SqliteRunStore


class Ground:
    """The machine as it is. limpet.testing.simulation puts another under an engine."""

    def open_store(self, home: Home, on_news: Callable[[], None]) -> RunStore:
        """The store of runs; `on_news` as SqliteRunStore has it."""
        return SqliteRunStore(home.database, on_news=on_news)

    def open_durable(self, home: Home) -> Durable:
        return Durable(home.runs)

    def open_nursery(self, home: Home, config: Config) -> Nursery:
        return Nursery(home.nursery, home.log, cgroups.find_parent(config.run.cgroup_root))

    def serial(self) -> int:
        """Where the numbers in ids begin: another one each time, most likely."""
        return int.from_bytes(os.urandom(2))
