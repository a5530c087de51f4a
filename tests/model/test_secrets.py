"""No value of a variable that is named like a secret gets through; nothing else is touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.model.secrets import REDACTED, conceal, is_secret, redact

WORDS = (
    *("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "CREDENTIAL"),
    *("APIKEY", "KEY", "AUTH", "COOKIE", "PRIVATE", "DSN"),
)
PARTS = st.from_regex(r"[A-Z][A-Z0-9]{0,8}", fullmatch=True)
HARMLESS_NAMES = ["PATH", "HOME", "LANG", "LC_ALL", "TERM", "PWD", "OLDPWD", "SHELL", "USER", "EDITOR", "DISPLAY"]
CASES = (str.upper, str.lower, str.title)


@pytest.mark.requirement("0.10", "F72")
@given(
    before=st.lists(PARTS, max_size=2),
    word=st.sampled_from(WORDS),
    plural=st.booleans(),
    after=st.lists(PARTS, max_size=2),
    case=st.sampled_from(CASES),
    value=st.text(min_size=1),
)
def test_a_secret_named_value_is_not_let_through(
    before: list[str], word: str, plural: bool, after: list[str], case: type[str], value: str
) -> None:
    """The word may stand anywhere among the parts of the name, as one or as many, in any case."""
    name = case("_".join([*before, word + ("S" if plural else ""), *after]))
    assert redact({name: value})[name] == REDACTED, name


@pytest.mark.requirement("0.10", "F72")
@pytest.mark.parametrize(
    "name",
    [
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "GITHUB_TOKEN",
        "GITHUB_PAT",
        "PGPASSWORD",
        "MYSQL_PWD",
        "SSHPASS",
        "OPENAI_API_KEY",
        "OPENAI_API_KEYS_JSON",
        "DOCKER_AUTH_CONFIG",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "DJANGO_SECRET_KEY",
        "SENTRY_DSN",
        "VAULT_TOKEN",
    ],
)
def test_names_that_programs_really_use(name: str) -> None:
    assert is_secret(name)


@given(st.dictionaries(st.sampled_from(HARMLESS_NAMES) | PARTS, st.text()))
def test_the_rest_stays_as_it_is(env: dict[str, str]) -> None:
    shown = redact(env)
    assert list(shown) == list(env)
    assert all(shown[name] == (REDACTED if is_secret(name) else env[name]) for name in env)
    assert not any(is_secret(name) for name in HARMLESS_NAMES)


@pytest.mark.requirement("0.10", "F72")
def test_a_secret_that_is_written_out_is_concealed() -> None:
    env = {
        "API_TOKEN": "s3cret-value",
        "DB_PASSWORD": "s3cret-value-longer",
        "PIN_SECRET": "1234",
        "PLAIN": "plain-value",
    }
    text = "curl -H s3cret-value s3cret-value-longer 1234 plain-value"
    assert conceal(text, env) == "curl -H [redacted] [redacted] 1234 plain-value"
    assert conceal(text, {}) == text
