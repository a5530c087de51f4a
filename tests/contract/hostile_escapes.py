"""Escapes that take a terminal over, lie to whoever looks, or are meant to be too much: as a program may say them."""

from typing import Final

ESCAPES: Final[dict[str, bytes]] = {
    "clipboard is written": b"\x1b]52;c;cm0gLXJmIH4=\x07",
    "clipboard is read": b"\x1b]52;c;?\x07",
    "primary is written": b"\x1b]52;p;cm0gLXJmIH4=\x1b\\",
    "link": b"\x1b]8;;javascript:alert(1)\x1b\\here\x1b]8;;\x1b\\",
    "link to a file": b"\x1b]8;id=1;file:///etc/passwd\x07x\x1b]8;;\x07",
    "title": b"\x1b]0;owned\x07",
    "icon": b"\x1b]1;owned\x07",
    "window": b"\x1b]2;owned\x1b\\",
    "title is read back": b"\x1b]2;;rm -rf ~;\x07\x1b[21t",
    "title is stacked": b"\x1b[22t\x1b[23t",
    "directory": b"\x1b]7;file://host/etc\x07",
    "palette": b"\x1b]4;1;rgb:00/00/00\x07",
    "palette is read": b"\x1b]4;1;?\x07",
    "colours": b"\x1b]10;black\x07\x1b]11;black\x07\x1b]12;black\x07",
    "notification": b"\x1b]9;you won\x07\x1b]777;notify;you;won\x07",
    "image": b"\x1b]1337;File=inline=1:AAAA\x07",
    "iterm copies": b"\x1b]1337;Copy=;cm0gLXJmIH4=\x07",
    "kitty image": b"\x1b_Ga=T,f=24,s=1,v=1;AAAA\x1b\\",
    "kitty file": b"\x1b_Ga=T,t=f;L2V0Yy9wYXNzd2Q=\x1b\\",
    "sixel": b"\x1bPq#0;2;0;0;0~-~\x1b\\",
    "keys are defined": b"\x1bP1;1|17/6c73\x1b\\",
    "terminfo is read": b"\x1bP+q544e\x1b\\",
    "settings are read": b"\x1bP$qm\x1b\\",
    "who are you": b"\x1b[c\x1b[>c\x1b[=c\x1bZ\x05",
    "where am I": b"\x1b[6n\x1b[?6n",
    "answerback": b"\x05\x05\x05",
    "screen is cleared": b"\x1b[2J\x1b[3J\x1b[H",
    "other screen": b"\x1b[?1049h",
    "reset": b"\x1bc\x1b[!p",
    "mouse": b"\x1b[?1000h\x1b[?1003h\x1b[?1006h",
    "keyboard": b"\x1b[?1h\x1b=\x1b[>4;2m\x1b[>31u",
    "pastes": b"\x1b[?2004h",
    "cursor is hidden": b"\x1b[?25l",
    "text is hidden": b"\x1b[8mhidden\x1b[30;40m",
    "cursor goes up": b"ok\x1b[99A\x1b[2Kforged\n",
    "backspaces": b"rm -rf /\b\b\b\b\b\b\b\bls      ",
    "returns": b"rm -rf /\rls      ",
    "other letters": b"\x1b(0qqq\x0e\x0f",
    "C1": "\x9b31m\x9d0;owned\x9c\x90q\x9c".encode() + b"\x9b2J",
    "writing turned around": "\u202etxt.exe\u202c \u2066a\u2069 \u200f".encode(),
    "margins": b"\x1b[5;6r\x1b[?6h\x1b[?69h",
    "text is doubled": b"\x1b#3\x1b#6\x1b#8",
    "printing": b"\x1b[5i\x1b[4i\x1b[?5i",
    "never ends": b"\x1b]0;" + b"x" * 100,
    "sync is held": b"\x1b[?2026h\x1bP=1s\x1b\\",
}
BOMBS: Final[dict[str, bytes]] = {
    "a string of 3 MB": b"\x1b]0;" + b"x" * 3_000_000 + b"\x07",
    "numbers of 3 MB": b"\x1b[" + b"1;" * 1_500_000 + b"m",
    "a character with a million accents": ("e" + "\u0301" * 1_000_000).encode(),
    "repeats": b"x\x1b[2147483647b" * 200,
    "inserted lines": b"\x1b[2147483647L\x1b[2147483647@\x1b[2147483647S" * 1000,
    "screens": b"\x1b[?1049h\x1b[?1049l" * 100_000,
    "stacked titles": b"\x1b[22t" * 500_000,
    "links": b"".join(b"\x1b]8;;http://%d\x07x" % number for number in range(100_000)),
    "images": b"\x1b_Ga=t,f=24,s=1000,v=1000,m=1;" + b"A" * 3_000_000 + b"\x1b\\",
    "strings that never end": (b"\x1bP" + b"y" * 1000) * 3000,
}
SHOWN_AS_IT_IS: Final = "\t\r\n"
TURNS: Final = "\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"

UNSAFE: Final = frozenset(
    {
        *(set(map(chr, range(0x20))) - set(SHOWN_AS_IT_IS)),
        *map(chr, range(0x7F, 0xA0)),
        *map(chr, range(0xDC80, 0xDD00)),
        *TURNS,
    }
)


def is_safe(text: str) -> bool:
    """Whether no terminal can be moved by it, and nobody misled. What was no text stands in it as lone surrogates."""
    return not any(each in UNSAFE for each in text)
