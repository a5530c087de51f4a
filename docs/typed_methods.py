"""Writes the typed methods of the Python client from the rows: `client.runs.get(run_id=...)` for `runs.get`.

Part of `python -m docs.generate`. For each namespace of operations a module of limpet.client.types holds parameters and
answers as TypedDicts, one of limpet.client.methods two classes of methods, async and sync; `inherited` has what clients
inherit.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from pathlib import Path
from textwrap import indent
from typing import Any, Final

import msgspec
from msgspec import inspect

from docs.rows import answers_of, is_unset
from limpet.dialects import ROWS
from limpet.model.operation import Operation, Timeout

CLIENT: Final = Path(__file__).resolve().parents[1] / "src" / "limpet" / "client"
TYPES, METHODS = CLIENT / "types", CLIENT / "methods"
WRITTEN: Final = "# Written by `python -m docs.generate`: change the rows, then run it again."
_PLAIN: Final[dict[type[inspect.Type], str]] = {
    inspect.AnyType: "Any",
    inspect.NoneType: "None",
    inspect.BoolType: "bool",
    inspect.IntType: "int",
    inspect.FloatType: "float",
    inspect.StrType: "str",
}

Row = Operation[Any, Any]
# Where one parameter decides what is answered: its name, and for each of its values the answer's name, what is always
# in it, and what may be. tests/client/test_typed_methods.py holds it against real answers.
Shape = tuple[str, str, str]
_POLLED: Final = "run_id session_id command status exit_code signal ended_by attempt truncated error_message created_at"
SHAPES: Final[dict[str, tuple[str, dict[str | None, Shape]]]] = {
    "shell": (
        "action",
        {
            None: (
                "ShellResult",
                "run_id status exit_code signal stdout stderr truncated timed_out duration_ms error_message",
                "",
            ),
            "spawn": (
                "ShellSpawned",
                "run_id session_id status next_seq",
                f"{_POLLED} started_at finished_at snippet items has_more waiting_for",
            ),
            "poll": (
                "ShellPolled",
                f"{_POLLED} started_at finished_at snippet items next_seq has_more",
                "waiting_for",
            ),
            "log": ("ShellLog", "items next_seq has_more", ""),
            "kill": ("ShellKilled", "run_id status stopping", ""),
            "send_keys": ("ShellTyped", "run_id status written", ""),
        },
    ),
}


def pages() -> dict[Path, str]:
    """Every generated module and what it must say."""
    spaces: dict[str, list[Row]] = defaultdict(list)
    for row in ROWS:
        spaces[_space(row)].append(row)
    texts = {TYPES / f"{space}.py": _types(space, rows) for space, rows in spaces.items()}
    texts |= {METHODS / f"{space}.py": _methods(space, rows) for space, rows in spaces.items() if _is_dotted(rows)}
    texts[METHODS / "inherited.py"] = _inherited(spaces)
    return dict(zip(texts, _formatted(texts.values()), strict=True))


def _space(row: Row) -> str:
    """`runs` for `runs.get`; an operation without a dot has a module by its own name."""
    return row.name.partition(".")[0]


def _camel(row: Row) -> str:
    words = row.name.replace(".", "_").split("_")
    return "".join(word[:1].upper() + word[1:] for word in words)


def _title(space: str) -> str:
    return "".join(word.capitalize() for word in space.split("_"))


def _is_dotted(rows: list[Row]) -> bool:
    return "." in rows[0].name


def _names(row: Row) -> list[str]:
    """The types of what it takes and answers."""
    return [f"{_camel(row)}Params", *_returns(row).split(" | ")]


def _returns(row: Row) -> str:
    if row.name in SHAPES:
        return " | ".join(name for name, *_ in SHAPES[row.name][1].values())
    name = _camel(row)
    return " | ".join(f"{name}{'Timeout' if issubclass(each, Timeout) else 'Answer'}" for each in answers_of(row))


def _types(space: str, rows: list[Row]) -> str:
    what = f"the operations `{space}.*` take and answer" if _is_dotted(rows) else f"`{space}` takes and answers"
    types = Types()
    parts = [part for row in rows for part in types.of(row)]
    imports = "from typing import Any, Literal, NotRequired, Required, TypedDict"
    return "\n\n".join([f'"""What {what}."""', WRITTEN, imports, *types.inner.values(), *parts])


def _methods(space: str, rows: list[Row]) -> str:
    names = ", ".join(name for row in rows for name in _names(row))
    return "\n\n".join(
        [
            f'"""`client.{space}`: the operations `{space}.*`."""',
            WRITTEN,
            "from typing import Unpack, cast",
            "from limpet.client.methods.asking import Ask, AskNow, named",
            f"from limpet.client.types.{space} import {names}",
            _class(space, rows, is_async=True),
            _class(space, rows, is_async=False),
        ]
    )


class Types:
    """The TypedDicts of one module; those inside of others by their own names, once."""

    def __init__(self) -> None:
        self.inner: dict[str, str] = {}

    def of(self, row: Row) -> Iterator[str]:
        """What the operation takes and answers."""
        name = _camel(row)
        yield self._dict(f"{name}Params", row.request, is_request=True, leave_out=SHAPES.get(row.name, ("",))[0])
        if row.name in SHAPES:
            yield from self._shapes(row)
            return
        for answer in answers_of(row):
            ending = "Timeout" if issubclass(answer, Timeout) else "Answer"
            yield self._dict(f"{name}{ending}", answer, is_request=False, is_whole=True)

    def _shapes(self, row: Row) -> Iterator[str]:
        kinds = {field.encode_name: self._kind(field.type, is_request=False) for field in _fields(row.response)}
        selector, shapes = SHAPES[row.name]
        for value, (name, always, sometimes) in shapes.items():
            words = f"The answer with `{selector}` {value}." if value else f"The answer without `{selector}`."
            lines = [f'class {name}(TypedDict):\n    """{words}"""\n\n    ok: Literal[True]']
            lines += [f"    {key}: {kinds[key]}" for key in always.split()]
            lines += [f"    {key}: NotRequired[{kinds[key]}]" for key in sometimes.split() if key not in always.split()]
            yield "\n".join(lines)

    def _dict(
        self,
        name: str,
        struct: type[msgspec.Struct],
        *,
        is_request: bool,
        is_whole: bool = False,
        leave_out: str = "",
    ) -> str:
        taken = [field for field in _fields(struct) if field.encode_name != leave_out]
        fields = {_keyword(field): self._field(field, is_request=is_request) for field in taken}
        if is_whole:
            fields["ok"] = f"Literal[{not issubclass(struct, Timeout)}]"
        if issubclass(struct, Timeout):
            fields["error"] = 'Literal["timeout"]'
        total = ", total=False" if is_request else ""
        said = cleandoc(struct.__doc__ or "")
        ending = "\n" if "\n" in said else ""
        words = indent(f'"""{said}{ending}"""\n', "    ")
        body = "\n".join(f"    {key}: {kind}" for key, kind in fields.items())
        return f"class {name}(TypedDict{total}):\n{words}\n{body}"

    def _field(self, field: inspect.Field, *, is_request: bool) -> str:
        kind = self._kind(field.type, is_request=is_request)
        if is_request:
            return f"Required[{kind}]" if field.required else kind
        may_be_missing = field.default is msgspec.UNSET
        return f"NotRequired[{kind}]" if may_be_missing else kind

    def _kind(self, kind: Any, *, is_request: bool) -> str:
        if isinstance(kind, inspect.Metadata):
            return self._kind(kind.type, is_request=is_request)
        if isinstance(kind, inspect.UnionType):
            return " | ".join(self._kind(each, is_request=is_request) for each in kind.types if not is_unset(each))
        if isinstance(kind, inspect.LiteralType):
            return f"Literal[{', '.join(repr(value) for value in kind.values)}]"
        if isinstance(kind, inspect.ListType | inspect.VarTupleType):
            return f"list[{self._kind(kind.item_type, is_request=is_request)}]"
        if isinstance(kind, inspect.DictType):
            return f"dict[str, {self._kind(kind.value_type, is_request=is_request)}]"
        if isinstance(kind, inspect.StructType):
            name = kind.cls.__name__
            if name not in self.inner:
                self.inner[name] = ""  # its place, before those that it needs itself
                self.inner[name] = self._dict(name, kind.cls, is_request=is_request)
                self.inner[name] = self.inner.pop(name)
            return name
        return _PLAIN[type(kind)]


def _fields(struct: type[msgspec.Struct]) -> tuple[inspect.Field, ...]:
    described = inspect.type_info(struct)
    assert isinstance(described, inspect.StructType)
    return described.fields


def _keyword(field: inspect.Field) -> str:
    """The field's public name, or where Python has that word for itself the one with `_` behind it."""
    return field.name if field.name == f"{field.encode_name}_" else field.encode_name


def _method(row: Row, *, is_async: bool, ask: str) -> str:
    name = row.name.rpartition(".")[2]
    begin, wait = ("async def", "await ") if is_async else ("def", "")
    if row.name in SHAPES:
        return _overloads(row, begin, wait)
    return (
        f"    {begin} {name}(self, **params: Unpack[{_camel(row)}Params]) -> {_returns(row)}:\n"
        f'        """{row.summary}"""\n'
        f'        return cast("{_returns(row)}", {wait}{ask}("{row.name}", named(params)))'
    )


def _overloads(row: Row, begin: str, wait: str) -> str:
    """For a method whose answer one parameter decides."""
    selector, shapes = SHAPES[row.name]
    params = f"**params: Unpack[{_camel(row)}Params]"
    lines: list[str] = []
    for value, (answer, *_) in shapes.items():
        taken = f'{selector}: Literal["{value}"]' if value else f"{selector}: None = None"
        lines += ["    @overload", f"    {begin} {row.name}(self, *, {taken}, {params}) -> {answer}: ...", ""]
    values = ", ".join(f'"{value}"' for value in shapes if value)
    taken = f"{selector}: Literal[{values}] | None = None"
    return "\n".join(
        [
            *lines,
            f"    {begin} {row.name}(self, *, {taken}, {params}) -> {_returns(row)}:",
            f'        """{row.summary}"""',
            "        asked = named(params)",
            f"        if {selector} is not None:",
            f'            asked["{selector}"] = {selector}',
            f'        return cast("{_returns(row)}", {wait}self._ask("{row.name}", asked))',
        ]
    )


def _class(space: str, rows: list[Row], *, is_async: bool) -> str:
    kind, door = ("Async", "Ask") if is_async else ("Sync", "AskNow")
    methods = "\n\n".join(_method(row, is_async=is_async, ask="self._ask") for row in rows)
    return (
        f"class {kind}{_title(space)}:\n"
        f'    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""\n\n'
        f"    def __init__(self, ask: {door}) -> None:\n        self._ask = ask\n\n{methods}"
    )


def _inherited(spaces: dict[str, list[Row]]) -> str:
    """The two classes that clients inherit: what they use of it is imported when it is used."""
    imports = [
        f"    from limpet.client.methods.{space} import Async{_title(space)}, Sync{_title(space)}"
        if _is_dotted(rows)
        else f"    from limpet.client.types.{space} import {', '.join(_names(rows[0]))}"
        for space, rows in spaces.items()
    ]
    parts = [
        '"""What clients inherit: a typed method for each operation."""\n\n' + WRITTEN,
        "from __future__ import annotations",
        "from typing import TYPE_CHECKING, Any, cast, overload",
        "from limpet.client.methods.asking import named",
        "if TYPE_CHECKING:\n    from typing import Literal, Unpack\n\n" + "\n".join(imports),
    ]
    for kind, is_async in (("Async", True), ("Sync", False)):
        begin, result = ("async def", "await ") if is_async else ("def", "")
        lines = [
            f"class {kind}Methods:",
            '    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""\n',
            f"    {begin} _ask(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:",
            f"        return {result}self.call_checked(operation, **params)\n",
            f"    {begin} call_checked(self, operation: str, /, **params: Any) -> dict[str, Any]:",
            '        """Calls an operation by its name; the clients say how."""',
            "        raise NotImplementedError",
        ]
        for space, rows in spaces.items():
            if not _is_dotted(rows):
                lines += ["", _method(rows[0], is_async=is_async, ask="self._ask")]
                continue
            name = f"{kind}{_title(space)}"
            lines += [
                "",
                f"    @property\n    def {space}(self) -> {name}:",
                f'        """The operations `{space}.*`."""',
                f"        from limpet.client.methods.{space} import {name}\n",
                f"        return {name}(self._ask)",
            ]
        parts.append("\n".join(lines))
    return "\n\n\n".join(parts)


def _formatted(texts: Iterable[str]) -> Iterator[str]:
    """As the linter would have them: unused imports out, in order, wrapped."""
    for text in texts:
        for command in (["check", "--select", "F401,I", "--fix", "--quiet", "-"], ["format", "-"]):
            ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(CLIENT / "any.py")]
            done = subprocess.run(ruff, input=text, capture_output=True, text=True, check=False)
            assert done.stdout, done.stderr
            text = done.stdout
        yield text
