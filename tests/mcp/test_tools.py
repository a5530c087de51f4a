"""What tools are listed: their names, sets, schemas and hints, and how many tokens the default ones cost (6.4)."""

import json
import math
import re
from typing import Any

import jsonschema_rs
import msgspec
import pytest

from limpet.dialects import ROWS
from limpet.model.errors import Refusal
from limpet.surfaces.mcp.chosen import FAMILIES, SETS, choose
from limpet.surfaces.mcp.schemas import answers_of
from limpet.surfaces.mcp.tools import Tools
from limpet.surfaces.mcp.words import AGENT, INSTRUCTIONS, WORDS

TOKENS_MAX = 6000
BYTES_FOR_A_TOKEN = 3.5
"""Fewer than any tokenizer takes of these texts: o200k_base takes 4.1, cl100k_base 4.2, Claude 2's 4.0 of them."""
ALL = Tools(ROWS, "all")


def tokens(text: str) -> int:
    return math.ceil(len(text.encode()) / BYTES_FOR_A_TOKEN)


@pytest.mark.requirement("6.4")
def test_the_default_tools_are_few_and_cheap() -> None:
    listed = [tool.listed for tool in Tools(ROWS, "agent").every]
    assert len(listed) == len(AGENT) <= 12
    assert tokens(json.dumps(listed, separators=(",", ":")) + INSTRUCTIONS) < TOKENS_MAX


@pytest.mark.requirement("6.4")
def test_model_apis_take_every_name() -> None:
    names = [tool.name for tool in ALL.every]
    assert len(set(names)) == len(names) == len(ROWS)
    for row in ROWS:
        tool = ALL.find(row.name)
        assert tool is not None
        assert tool is ALL.find(row.name.replace(".", "_"))
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool.name)


@pytest.mark.requirement("6.4")
def test_every_row_is_in_a_set_of_its_own() -> None:
    families = {name: {row.name for row in choose(ROWS, name)} for name in FAMILIES}
    for row in ROWS:
        found = [name for name, rows in families.items() if row.name in rows]
        assert len(found) == (0 if row.name.startswith("daemon.") else 1), (row.name, found)
    assert {row.name for row in choose(ROWS, "all")} == {row.name for row in ROWS}
    assert [row.name for row in choose(ROWS, "shell, backlog,shell")] == ["shell", "backlog.take", "backlog.ack"]
    assert {row.name for row in choose(ROWS, "agent")} == set(AGENT)


@pytest.mark.requirement("6.4")
@pytest.mark.parametrize("tools", ["", "agents", "shell,,runs", "all;", "x" * 10_000])
def test_an_unknown_set_is_refused(tools: str) -> None:
    with pytest.raises(Refusal) as refused:
        Tools(ROWS, tools)
    assert refused.value.code == "invalid_argument"
    assert refused.value.fields["field"] == "tools"
    assert len(refused.value.message) < 500
    assert "agent" in SETS


def test_words_speak_of_what_there_is() -> None:
    rows = {row.name: row for row in ROWS}
    for name, words in WORDS.items():
        fields = rows[name].request.__struct_encode_fields__
        for told in (words.notes, words.defaults, words.most):
            assert set(told) <= set(fields), name
    for name in re.findall(r"\b(?:runs|pty|blocks|backlog)_\w+", json.dumps([WORDS[name].text for name in WORDS])):
        assert ALL.find(name) is not None, name


def test_words_of_the_default_set_speak_of_its_tools() -> None:
    """Whoever reads them is not sent to a tool that cannot be called."""
    default = Tools(ROWS, "agent")
    for name in AGENT:
        for other in re.findall(r"\b(?:runs|pty|blocks)_[a-z_]+", WORDS[name].text):
            assert default.find(other) is not None, (name, other)


@pytest.mark.requirement("6.4")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_schemas_say_what_the_row_takes(row: Any) -> None:
    tool = ALL.find(row.name)
    assert tool is not None
    listed = tool.listed
    for schema in (listed["inputSchema"], listed["outputSchema"]):
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
        assert schema["type"] == "object"
    taken = listed["inputSchema"]
    assert taken["additionalProperties"] is False
    fields = {field.encode_name: field for field in msgspec.structs.fields(row.request)}
    assert set(taken.get("properties", {})) == set(fields)
    assert set(taken.get("required", [])) == {name for name, field in fields.items() if field.required}
    told = {name for kind in answers_of(row) for name in kind.__struct_encode_fields__}
    assert set(listed["outputSchema"]["properties"]) == told | {"ok"}


@pytest.mark.requirement("6.4")
def test_hints() -> None:
    def hints(name: str) -> dict[str, bool]:
        tool = ALL.find(name)
        assert tool is not None
        assumed = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
        return {**assumed, **tool.listed["annotations"]}

    assert hints("shell") == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    }
    assert hints("runs.read")["readOnlyHint"] is True
    assert hints("runs.read")["openWorldHint"] is False
    assert hints("runs.kill") == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert hints("pty.open")["destructiveHint"] is False
    for row in ROWS:
        assert hints(row.name)["readOnlyHint"] is row.reads_only
        assert hints(row.name)["idempotentHint"] is row.repeatable


@pytest.mark.parametrize(
    ("arguments", "sent"),
    [
        ({}, {"max_bytes": 16_384}),
        ({"max_bytes": 10}, {"max_bytes": 10}),
        ({"max_bytes": 1 << 23}, {"max_bytes": 65_536}),
        ({"max_bytes": True}, {"max_bytes": True}),
        ({"max_bytes": "7"}, {"max_bytes": "7"}),
    ],
)
def test_pages_have_a_size_that_fits(arguments: dict[str, Any], sent: dict[str, Any]) -> None:
    tool = ALL.find("runs.read")
    assert tool is not None
    assert tool.filled(arguments) == sent


def test_a_page_of_items_has_its_size_where_there_are_items() -> None:
    tool = ALL.find("shell")
    assert tool is not None
    assert tool.filled({"action": "log"}) == {"action": "log", "limit": 50}
    assert tool.filled({"command": "true"}) == {"command": "true"}
    assert tool.filled({"action": "kill"}) == {"action": "kill"}
