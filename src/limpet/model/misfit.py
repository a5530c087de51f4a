"""Says in plain words why a request does not fit its type, from the codec's complaint."""

import difflib
import re
from typing import Any, Final

import msgspec
import msgspec.inspect

from limpet.model.errors import Refusal

_KINDS: Final = {
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "null": "null",
    "object": "an object",
    "array": "a list",
    "bytes": "base64 text",
}
_PATH: Final = re.compile(r"^(?P<what>.*?)(?: - at `(?P<path>[^`]*)`)?$", re.DOTALL)
_EXPECTED: Final = re.compile(r"^Expected `(?P<kind>[^`]*)`(?P<bound>.*?)(?:, got `(?P<got>[^`]*)`)?$", re.DOTALL)
_MISSING: Final = re.compile(r"^Object missing required field `(?P<name>[^`]*)`$")
_UNKNOWN: Final = re.compile(r"^Object contains unknown field `(?P<name>.*)`$", re.DOTALL)


def explain(error: Exception, body: bytes | bytearray, request: type[msgspec.Struct]) -> Refusal:
    """The refusal for a body that the codec would not take."""
    if isinstance(error, RecursionError):
        return Refusal("invalid_argument", "the request is nested too deeply: flatten it")
    if isinstance(error, UnicodeError):
        return Refusal("invalid_argument", "the request is not valid UTF-8: encode it as UTF-8")
    if not isinstance(error, msgspec.ValidationError):
        return Refusal("invalid_argument", f"the request is not valid JSON: {_syntax(str(error), body)}")
    complaint = str(error)
    if len(complaint) > 1000:  # it repeats what the caller sent; what matters is at both ends
        complaint = complaint[:500] + complaint[-500:]
    found = _PATH.match(complaint)
    what, path = (found["what"], found["path"]) if found else (complaint, None)
    inside = (path or "$").removeprefix("$").removeprefix(".").replace("[...]", "")
    if missing := _MISSING.match(what):
        name = _join(inside, missing["name"])
        return Refusal("invalid_argument", f"`{name}` is missing: it is required", field=name)
    if unknown := _UNKNOWN.match(what):
        return _unknown(inside, unknown["name"], request)
    if not inside:
        return Refusal("invalid_argument", f"the request must be a JSON object: {_plain(what, inside, request)}")
    return Refusal("invalid_argument", f"`{inside}` {_plain(what, inside, request)}", field=inside)


def explain_encoding(error: Exception) -> Refusal:
    """The refusal for Python values that JSON cannot say."""
    if isinstance(error, UnicodeError):
        return Refusal("invalid_argument", "a text in the request has lone surrogates: send its bytes instead")
    if isinstance(error, RecursionError):
        return Refusal("invalid_argument", "the request is nested too deeply: flatten it")
    return Refusal("invalid_argument", f"the request cannot be said in JSON: {error}")


def _join(inside: str, name: str) -> str:
    return f"{inside}.{name}" if inside else name


def _syntax(complaint: str, body: bytes | bytearray) -> str:
    if b"\\ud" in body.lower() and ("surrogate" in complaint or complaint == "Input data was truncated"):
        return "an escape stands for half a character (a lone surrogate)"
    if complaint == "Input data was truncated":
        return "it ends too early"
    return complaint.removeprefix("JSON is malformed: ")


def _unknown(inside: str, name: str, request: type[msgspec.Struct]) -> Refusal:
    name = _short(name)  # before anything looks for near ones, which takes the square of its length
    full = _join(inside, name)
    if inside:
        return Refusal("invalid_argument", f"`{full}` is not known: leave it out", field=full)
    known = request.__struct_encode_fields__
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known) or 'none'}"
    return Refusal("invalid_argument", f"`{full}` is not known: {hint}", field=full)


def _plain(what: str, inside: str, request: type[msgspec.Struct]) -> str:
    if expected := _EXPECTED.match(what):
        wanted = " or ".join(_KINDS.get(kind, kind) for kind in expected["kind"].split(" | "))
        got = expected["got"]
        not_that = f", not {_KINDS.get(got, got)}" if got else ""
        return f"must be {wanted}{expected['bound']}{not_that}"
    if what.startswith("Invalid enum value"):
        allowed = _allowed(inside, request)
        return f"must be one of {', '.join(allowed)}" if allowed else f"is not allowed: {what}"
    if what.endswith("out of range"):
        return "is out of range"
    return f"is not valid: {what}"


def _allowed(inside: str, request: type[msgspec.Struct]) -> list[str]:
    known: Any = msgspec.inspect.type_info(request)
    for field in known.fields:
        if field.encode_name != inside:
            continue
        kinds: Any = field.type.types if isinstance(field.type, msgspec.inspect.UnionType) else (field.type,)
        for kind in kinds:
            if isinstance(kind, msgspec.inspect.LiteralType):
                return [str(value) for value in kind.values]
            if isinstance(kind, msgspec.inspect.EnumType):
                return [str(member.value) for member in kind.cls]
    return []


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
