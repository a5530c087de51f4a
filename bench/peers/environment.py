"""Sets peers up outside of `.venv`: Python packages by uv's group `peers`, codex as npm publishes its binary."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
from pathlib import Path

from bench.build import cache_directory

ROOT = Path(__file__).resolve().parents[2]
CODEX_VERSION = "0.169.0"
CODEX_URL = f"https://registry.npmjs.org/@openai/codex/-/codex-{CODEX_VERSION}-linux-x64.tgz"
CODEX_SHA512 = "o05NyAOCDygSPRo1yinzxvkRSdmsZyBD9E7mbpmjRanSfM8lypqWtQgEo4XfNkwhuCR2aFu8mlGOsQGFXVbVww=="
CODEX_MEMBER = "package/vendor/x86_64-unknown-linux-musl/bin/codex"


def directory() -> Path:
    return cache_directory() / "peers"


def python() -> Path:
    """The interpreter that has the peers' packages."""
    return directory() / "venv" / "bin" / "python"


def codex() -> Path:
    return directory() / f"codex-{CODEX_VERSION}"


def set_up() -> dict[str, str]:
    """Makes ready what is missing; for each peer that cannot be had, why."""
    directory().mkdir(parents=True, exist_ok=True)
    missing: dict[str, str] = {}
    try:
        _packages()
    except (OSError, subprocess.CalledProcessError) as error:
        missing |= dict.fromkeys(("pexpect", "SWE-ReX"), f"its package cannot be installed: {error}")
    try:
        _codex()
    except (OSError, KeyError, ValueError, tarfile.TarError) as error:
        missing["codex exec-server"] = f"its binary cannot be had: {error}"
    return missing


def _packages() -> None:
    uv = Path(sys.executable).with_name("uv")
    environment = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(python().parents[1])}
    subprocess.run(
        [str(uv), "sync", "--quiet", "--locked", "--only-group", "peers", "--python", sys.executable],
        cwd=ROOT,
        env=environment,
        check=True,
    )


def _codex() -> None:
    if codex().exists():
        return
    if os.uname().machine != "x86_64":
        raise ValueError(f"no digest is known of the package for {os.uname().machine}")
    with tempfile.TemporaryDirectory(dir=directory()) as scratch:
        package = Path(scratch) / "codex.tgz"
        urllib.request.urlretrieve(CODEX_URL, package)
        with package.open("rb") as file:
            digest = base64.b64encode(hashlib.file_digest(file, "sha512").digest()).decode()
        if digest != CODEX_SHA512:
            raise ValueError(f"the package has the digest {digest}")
        with tarfile.open(package) as archive:
            archive.extract(CODEX_MEMBER, scratch, filter="data")
        binary = Path(scratch) / CODEX_MEMBER
        binary.chmod(0o755)
        binary.rename(codex())  # whole or not at all
