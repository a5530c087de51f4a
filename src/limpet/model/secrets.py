"""Which environment variables are named like secrets; their values never reach a fact."""

import re
from functools import lru_cache
from typing import Final

REDACTED: Final = "[redacted]"
# A shorter value is too much like any word to be looked for in a text.
LEAST_CHARS: Final = 8
# Anywhere in a name; at the end of one of its parts (SSHPASS); or as a whole part.
_secret: Final = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|APIKEY"
    r"|PASSS?(?:_|$)"
    r"|(?:^|_)(?:AUTH|COOKIE|DSN|KEY|PAT|PRIVATE|PWD)S?(?:_|$)",
    re.IGNORECASE,
)
# Named like secrets, and none.
_HARMLESS: Final = frozenset({"PWD", "OLDPWD", "SSH_AUTH_SOCK"})


@lru_cache(maxsize=4096)
def is_secret(name: str) -> bool:
    """Whether a variable of that name may hold a secret."""
    return name not in _HARMLESS and _secret.search(name) is not None


def conceal(text: str, env: dict[str, str]) -> str:
    """A text of the run's with no value of a secret variable in it, as far as such a value can be told from a word."""
    for value in sorted((env[name] for name in env if is_secret(name)), key=len, reverse=True):
        if len(value) >= LEAST_CHARS:
            text = text.replace(value, REDACTED)
    return text


def redact(env: dict[str, str]) -> dict[str, str]:
    """The environment as it may be shown."""
    return {name: REDACTED if is_secret(name) else value for name, value in env.items()}
