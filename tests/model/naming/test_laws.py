"""Laws of names: nothing makes the reader fail or take long, and no wrapping hides a name."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.model.naming import might_name, names_in, names_of

BOUND_S = 5.0
"""Far above the 0.2 s that the worst of these takes: a square or worse takes minutes."""
HOSTILE = [
    "a|", "a;", "(", "$(", "`", "${", "'", '"$(', "<<a ", "{ ", "case a in ", "if a;then ", "[[ a ", "(( ", "((", "a",
    "\n", "\\", "cat <<E\n", ">&", "a=", "a=(", ")", ";;", "a&&", "<(", "$((", "[", "a b ", "a [", "sudo ", "{", "{a,",
    "a[", "`a`", "eval ", "find -exec ", "for x in ", " ", "\\\n", "a[b", "bash -c ", "npx ", "$'\\x", "\0", "\ud800",
]  # fmt: skip

texts = st.lists(
    st.sampled_from(
        [*"abc \t\n;&|()<>{}[]'\"\\$`#=*?!-1", "codex", "<<E\nE\n", "case x in", "esac", "$(", "${", "((", "))"]
    ),
    max_size=40,
).map("".join)
plain_names = st.from_regex(r"[a-z][a-z0-9_.+-]{0,11}", fullmatch=True).filter(
    lambda name: (
        name
        not in {
            "if",
            "then",
            "else",
            "elif",
            "fi",
            "do",
            "done",
            "while",
            "until",
            "for",
            "case",
            "in",
            "esac",
            "time",
            "coproc",
            "function",
            "select",
        }
    )
)


@st.composite
def quoted(draw: st.DrawFn, text: str) -> str:
    """The text as a shell word: each of its characters bare, escaped, or in quotes of any kind."""
    ways = draw(
        st.lists(st.sampled_from(["{}", "\\{}", "'{}'", '"{}"', "$'{}'"]), min_size=len(text), max_size=len(text))
    )
    return "".join(way.format(sign) for way, sign in zip(ways, text, strict=True))


@st.composite
def wrapped(draw: st.DrawFn, name: str) -> str:
    """A command line that runs the name, through any number of wrappers."""
    line = (
        draw(st.sampled_from(["", "/usr/bin/", "./", "$HOME/"]))
        + draw(quoted(name))
        + draw(st.sampled_from(["", " x", " 'a b'", " >f", " <f 2>&1"]))
    )
    for _ in range(draw(st.integers(0, 4))):
        way = draw(
            st.sampled_from(
                [
                    "A=1 {}",
                    "env A=1 {}",
                    "sudo -u me {}",
                    "timeout -k 1 5 {}",
                    "nice -n 3 {}",
                    "xargs -n1 {}",
                    "nohup {}",
                ]
            )
        )
        line = way.format(line)
        if way == "A=1 {}":  # no wrapper runs an assignment
            break
    for _ in range(draw(st.integers(0, 3))):
        line = draw(
            st.sampled_from(
                [
                    "cd x && {}",
                    "{} | wc",
                    "a | {}",
                    "( {})",
                    "{{ {}; }}",
                    "if a; then {}; fi",
                    "echo $( {})",
                    'echo "$( {})"',
                    "f() {{ {}; }}",
                    "for i in 1 2; do {}; done",
                    "case x in x) {};; esac",
                    "! {}",
                    "cat <(:; {})",
                    "cat <<E\n$( {})\nE\n",
                    "a; {} & b",
                    "time {}",
                ]
            )
        ).format(line)
    if draw(st.booleans()):
        line = f"bash -c '{line.replace(chr(39), chr(39) + chr(92) + chr(39) + chr(39))}'"
    return line


@pytest.mark.requirement("2.1")
@given(texts | st.text(max_size=200))
def test_whatever_comes_is_read(text: str) -> None:
    found = names_in(text)
    assert len(set(found.names)) == len(found.names)
    assert all((name and "/" not in name.removeprefix("@")) or name.startswith("@") for name in found.names)
    assert names_in(text) == found


@pytest.mark.requirement("2.1")
@given(st.data(), plain_names)
def test_no_wrapping_hides_a_name(data: st.DataObject, name: str) -> None:
    line = data.draw(wrapped(name))
    assert name in names_in(line).names, line


@pytest.mark.requirement("2.7")
@given(texts)
def test_the_quick_look_misses_nothing(text: str) -> None:
    for name in names_in(text).names:
        assert set(name) & set("'\"\\\n") or might_name(text, (name.casefold(),))


@pytest.mark.requirement("2.1")
@given(st.lists(st.text(st.characters(exclude_characters="\0/"), min_size=1, max_size=8), min_size=1, max_size=6))
def test_words_and_their_quoted_text_are_one(argv: list[str]) -> None:
    text = " ".join("'" + word.replace("'", "'\\''") + "'" for word in argv)
    assert names_in(text) == names_of(argv)


@pytest.mark.requirement("2.1")
@given(plain_names, texts)
def test_what_follows_takes_no_name_away(name: str, text: str) -> None:
    assert name in names_in(f"{name} x\n{text}").names


@pytest.mark.requirement("2.7")
@pytest.mark.parametrize("piece", HOSTILE)
def test_a_hostile_mebibyte_costs_little(piece: str) -> None:
    text = piece * ((1 << 20) // len(piece))
    began = time.thread_time()
    names_in(text)
    might_name(text, ("codex",))
    assert time.thread_time() - began < BOUND_S
