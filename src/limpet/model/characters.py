"""Where characters begin and end in UTF-8 that may be cut anywhere, and may be none."""

import codecs


def whole_characters(data: bytes) -> bytes:
    """Leaves off a character at the end that has only begun."""
    return data[: len(data) - begun_bytes(data)]


def begun_bytes(data: bytes) -> int:
    """How many bytes at the end are a character that has only begun."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    # A character has four bytes at most: what lies further back cannot be open.
    decoder.decode(data[-4:] if len(data) > 4 else data)
    return len(decoder.getstate()[0])


def boundary(data: bytes, place: int) -> int:
    """The first place from `place` on where `data` can be cut and both halves say what the whole says."""
    begun = begun_bytes(data[max(0, place - 4) : place])
    if not begun:
        return place
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    decoder.decode(data[place - begun : place])
    for end in range(place + 1, len(data) + 1):
        decoder.decode(data[end - 1 : end])
        left = len(decoder.getstate()[0])
        if left < end - (place - begun):
            return end - left
    return len(data)
