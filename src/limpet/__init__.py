"""The shell that holds on: runs that go on, can be waited on, steered, read again and replayed."""

TYPE_CHECKING = False  # typing's own would cost half as much as the interpreter
if TYPE_CHECKING:
    from typing import Any

    from limpet.client.client import AsyncClient as AsyncClient
    from limpet.client.client import connect as connect
    from limpet.client.portal import SyncClient as SyncClient
    from limpet.client.portal import connect_sync as connect_sync
    from limpet.daemon import open as open  # noqa: A004  (limpet.open reads well and shadows nothing of a caller's)
    from limpet.engine.sinks import ExecEventSink as ExecEventSink
    from limpet.engine.sinks import OutputEvent as OutputEvent
    from limpet.engine.sinks import StatusEvent as StatusEvent
    from limpet.engine.sinks import WatchEvent as WatchEvent
    from limpet.model.context import exec_event_context as exec_event_context
    from limpet.model.errors import Refusal as LimpetError
    from limpet.model.version import VERSION as __version__  # noqa: N811

__all__ = [
    "AsyncClient",
    "ExecEventSink",
    "LimpetError",
    "OutputEvent",
    "StatusEvent",
    "SyncClient",
    "WatchEvent",
    "__version__",
    "connect",
    "connect_sync",
    "exec_event_context",
    "open",
]

_HOMES = {
    "AsyncClient": ("limpet.client.client", "AsyncClient"),
    "ExecEventSink": ("limpet.engine.sinks", "ExecEventSink"),
    "LimpetError": ("limpet.model.errors", "Refusal"),
    "OutputEvent": ("limpet.engine.sinks", "OutputEvent"),
    "StatusEvent": ("limpet.engine.sinks", "StatusEvent"),
    "WatchEvent": ("limpet.engine.sinks", "WatchEvent"),
    "__version__": ("limpet.model.version", "VERSION"),
    "SyncClient": ("limpet.client.portal", "SyncClient"),
    "connect": ("limpet.client.client", "connect"),
    "connect_sync": ("limpet.client.portal", "connect_sync"),
    "exec_event_context": ("limpet.model.context", "exec_event_context"),
    "open": ("limpet.daemon", "open"),
}


def __getattr__(name: str) -> "Any":
    """Imports a name when it is first asked for: importing limpet costs next to nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'limpet' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _HOMES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
