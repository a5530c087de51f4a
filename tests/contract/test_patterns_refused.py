"""A pattern that cannot be matched in linear time, or at all, is refused before anything starts (1.8, 3.5, F70)."""

from pathlib import Path

import pytest

from .hits import names, wait_params, watch
from .home import Answer
from .surface import Http, Surface

NO_SYNTAX = {
    "unclosed": "(",
    "backreference": r"(a)\1",
    "look-ahead": "(?=a)b",
    "negative-look-ahead": "(?!a)b",
    "look-behind": "(?<=a)b",
    "negative-look-behind": "(?<!a)b",
    "atomic": "(?>a)b",
    "possessive": "a++",
    "bad-repeat": "*a",
    "bad-class": "[z-a]",
}
MATCHES_NOTHING = {
    "empty": "",
    "star": "a*",
    "optional": "(ab)?",
    "start": "^",
    "empty-line": "^$",
    "boundary": r"\b",
    "alternative": "a|",
}
TOO_LARGE = {
    "repeats": "((a{100}){100}){100}",
    "counted": "a.{299}b.{399}c",
    "left-out": "a?b?c?d?" * 250 + "z",
}
REFUSED = {**NO_SYNTAX, **MATCHES_NOTHING, **TOO_LARGE}


@pytest.mark.requirement("1.8", "3.5", "0.3", "F70")
@pytest.mark.parametrize("match_type", ["regex", "line"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_watcher_is_refused_and_nothing_starts(http: Http, tmp_path: Path, name: str, match_type: str) -> None:
    label = f"refused-{name}-{match_type}"
    request: Answer = {"action": "spawn", "command": f"touch '{tmp_path}/started'", "labels": [label]}
    watchers = [watch("fine"), watch(REFUSED[name], match_type=match_type)]
    refusal = http.refused("shell", {**request, "watch": watchers}, "invalid_argument")
    assert names(refusal, "watch[1]", "regex"), refusal
    assert http.ok("runs.list", {"label": label})["runs"] == []
    assert not (tmp_path / "started").exists()


@pytest.mark.requirement("0.11", "3.5", "0.3", "F70")
@pytest.mark.parametrize("match_type", ["regex", "line"])
@pytest.mark.parametrize("name", REFUSED)
def test_a_wait_is_refused_at_once(http: Http, name: str, match_type: str) -> None:
    run_id = http.ok("shell", {"command": "echo a"})["run_id"]
    params = wait_params([run_id], {"exit": True}, {"regex": REFUSED[name], "match_type": match_type})
    refusal = http.refused("runs.wait", params, "invalid_argument")
    assert names(refusal, "for[1]", "regex"), refusal


@pytest.mark.requirement("0.11", "0.3", "F70")
@pytest.mark.parametrize("name", NO_SYNTAX)
def test_a_search_is_refused(http: Http, name: str) -> None:
    assert names(http.refused("runs.search", {"regex": NO_SYNTAX[name]}, "invalid_argument"), "regex")


@pytest.mark.requirement("1.8", "3.5", "F70")
def test_the_message_says_what_is_wrong_on_every_surface(surface: Surface) -> None:
    request: Answer = {"action": "spawn", "command": "true", "watch": [watch(r"(a)\1")]}
    refusal = surface.refused("shell", request, "invalid_argument")
    assert "Traceback" not in refusal["message"]
    assert names(refusal, "regex")


@pytest.mark.requirement("1.8", "0.3")
@pytest.mark.parametrize(
    ("watcher", "field"),
    [
        ({"event": "hit"}, "regex"),
        ({"regex": "a"}, "event"),
        ({"regex": 5, "event": "hit"}, "regex"),
        ({"regex": "a", "event": 5}, "event"),
        ({"regex": "a", "event": "hit", "once": 1}, "once"),
        ({"regex": "a", "event": "hit", "once": "true"}, "once"),
        ({"regex": "a", "event": "hit", "scope": "both"}, "scope"),
        ({"regex": "a", "event": "hit", "match_type": "substring"}, "match_type"),
        ({"regex": "a", "event": "hit", "match_type": "prompt"}, "match_type"),
        ({"regex": "a", "event": "hit", "stream": "stdout"}, "stream"),
        ("a", "watch"),
    ],
    ids=str,
)
def test_a_watcher_is_strict(http: Http, watcher: object, field: str) -> None:
    request: Answer = {"action": "spawn", "command": "true", "labels": ["strict-watch"], "watch": [watcher]}
    refusal = http.refused("shell", request, "invalid_argument")
    assert names(refusal, field), refusal
    assert names(refusal, "watch"), refusal
    assert http.ok("runs.list", {"label": "strict-watch"})["runs"] == []


@pytest.mark.requirement("1.8", "0.3")
@pytest.mark.parametrize("watchers", [{"regex": "a", "event": "hit"}, "a", 1, True])
def test_watchers_are_a_list(http: Http, watchers: object) -> None:
    request: Answer = {"action": "spawn", "command": "true", "watch": watchers}
    assert names(http.refused("shell", request, "invalid_argument"), "watch")
