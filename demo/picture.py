"""Draws docs/images/demo.svg: runs the demo on a terminal and keeps what it showed there, colours and all."""

from __future__ import annotations

import io
import os
import pty
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "demo.svg"
COLUMNS = 104

# Nothing is fetched from anywhere: the fonts are the reader's own.
SVG = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def record() -> tuple[int, str]:
    """The demo's exit code, and what it wrote to its terminal."""
    said = bytearray()

    def keep(terminal: int) -> bytes:
        data = os.read(terminal, 65536)
        said.extend(data)
        return data

    status = pty.spawn([str(ROOT / "demo" / "run.sh")], keep)
    return os.waitstatus_to_exitcode(status), said.decode().replace("\r\n", "\n")


def draw(shown: str) -> str:
    """The same text as an SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(shown.strip("\n")), soft_wrap=True)
    return console.export_svg(title="make demo", code_format=SVG, unique_id="limpet-demo")


def main() -> int:
    code, shown = record()
    if code == 0:
        PICTURE.parent.mkdir(parents=True, exist_ok=True)
        PICTURE.write_text(draw(shown), "utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
