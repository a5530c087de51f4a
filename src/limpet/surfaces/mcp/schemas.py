"""JSON Schema of what rows take and answer, in as few words as a model needs."""

import typing
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect

from limpet.model.operation import Operation

Schema = dict[str, Any]

_PLAIN: Final[dict[type[inspect.Type], str]] = {
    inspect.NoneType: "null",
    inspect.BoolType: "boolean",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
    inspect.StrType: "string",
}
_BOUNDS: Final = (("ge", "minimum"), ("gt", "exclusiveMinimum"), ("le", "maximum"), ("lt", "exclusiveMaximum"))
# Bounds that nobody comes near say nothing, and cost every client words; the daemon holds all of them.
_LEAST_SAID: Final = 1
_MOST_SAID: Final = 10_000_000


def input_schema(
    row: Operation[Any, Any],
    notes: Mapping[str, str] = {},
    defaults: Mapping[str, Any] = {},
    most: Mapping[str, int] = {},
) -> Schema:
    """What a call takes. `defaults` and `most` stand in the place of the row's own."""
    schema = _Writer(inputs=True).struct(inspect.type_info(row.request), notes)
    for name, default in defaults.items():
        schema["properties"][name]["default"] = default
    for name, bound in most.items():
        schema["properties"][name]["maximum"] = bound
    return schema


def output_schema(row: Operation[Any, Any]) -> Schema:
    """What a call answers: when it went well, and when a wait's time was over."""
    writer = _Writer(inputs=False)
    properties: Schema = {"ok": {"type": "boolean"}}
    for kind in answers_of(row):
        properties |= writer.struct(inspect.type_info(kind)).get("properties", {})
    properties["ok"] = {"type": "boolean"}
    schema: Schema = {"type": "object", "properties": properties, "required": ["ok"]}
    if writer.definitions:
        schema["$defs"] = writer.definitions
    return schema


def answers_of(row: Operation[Any, Any]) -> tuple[type[msgspec.Struct], ...]:
    """The types of a row's answers: its response, and the timeouts that its handler may answer with."""
    answer = typing.get_type_hints(row.handle)["return"]
    return typing.get_args(answer) or (row.response,)


class _Writer:
    """Of inputs every nested type stands in its place; of outputs each stands once, under `$defs`."""

    def __init__(self, *, inputs: bool) -> None:
        self._inputs: Final = inputs
        self.definitions: Schema = {}

    def struct(self, info: Any, notes: Mapping[str, str] = {}) -> Schema:
        properties: Schema = {}
        required: list[str] = []
        for field in info.fields:
            written = self.type(field.type)
            if self._inputs and field.required:
                required.append(field.encode_name)
            default = field.default
            if self._inputs and isinstance(default, int | str) and default:
                written["default"] = default
            if note := notes.get(field.encode_name):
                written["description"] = note
            properties[field.encode_name] = written
        schema: Schema = {"type": "object"}
        if properties:
            schema["properties"] = properties
        if required:
            schema["required"] = required
        if info.forbid_unknown_fields:
            schema["additionalProperties"] = False
        return schema

    def type(self, info: Any) -> Schema:
        if isinstance(info, inspect.Metadata):
            return self.type(info.type)
        if isinstance(info, inspect.UnionType):
            return self._union([each for each in info.types if not _is_unset(each)])
        if isinstance(info, inspect.LiteralType):
            return {"enum": list(info.values)}
        if isinstance(info, inspect.StructType):
            return self._nested(info)
        if isinstance(info, inspect.ListType | inspect.VarTupleType):
            return {"type": "array", "items": self.type(info.item_type)} | _lengths(info, "Items")
        if isinstance(info, inspect.DictType):
            values = self.type(info.value_type)
            return {"type": "object"} | ({"additionalProperties": values} if values else {})
        if isinstance(info, inspect.AnyType):
            return {}
        return {"type": _PLAIN[type(info)]} | (self._bounds(info) if self._inputs else {})

    def _nested(self, info: inspect.StructType) -> Schema:
        if self._inputs:
            return self.struct(inspect.type_info(info.cls))
        name = info.cls.__name__
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = self.struct(inspect.type_info(info.cls))
            self.definitions[name].pop("additionalProperties", None)
        return {"$ref": f"#/$defs/{name}"}

    def _union(self, kinds: Iterable[Any]) -> Schema:
        written = [self.type(each) for each in kinds]
        others = [each for each in written if each != {"type": "null"}]
        if len(others) == len(written) or self._inputs:
            # To leave a field out says the same as null: an input need not be offered both.
            return others[0] if len(others) == 1 else {"anyOf": others}
        if len(others) == 1 and set(others[0]) == {"type"}:
            return {"type": [others[0]["type"], "null"]}
        if len(others) == 1 and set(others[0]) == {"enum"}:
            return {"enum": [*others[0]["enum"], None]}
        return {"anyOf": written}

    def _bounds(self, info: Any) -> Schema:
        said = {word: getattr(info, bound, None) for bound, word in _BOUNDS}
        said = {word: bound for word, bound in said.items() if bound is not None and _LEAST_SAID < bound < _MOST_SAID}
        return said | (_lengths(info, "Length") if isinstance(info, inspect.StrType) else {})


def _lengths(info: Any, what: str) -> Schema:
    said = {f"min{what}": info.min_length, f"max{what}": info.max_length}
    return {word: bound for word, bound in said.items() if bound is not None and bound > _LEAST_SAID}


def _is_unset(info: Any) -> bool:
    return isinstance(info, inspect.CustomType) and info.cls is msgspec.UnsetType
