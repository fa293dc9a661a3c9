"""Files as accidents leave them: any bytes, damaged in a way that a seed chooses."""

import random
import re
from collections.abc import Callable

NUMBER = re.compile(rb"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
STRANGE_NUMBERS = (
    *(
        b"nan",
        b"inf",
        b"-inf",
        b"1e308",
        b"-1e308",
        b"1e400",
        b"1e-320",
        b"1e31",
        b"-1",
        b"0",
        b"-0.0",
        b"1_0",
    ),
    *(b"9" * 400, b"18446744073709551616", b"4294967296", b"0x10", b"1,5", b"", b"1e", b"+-1"),
    "١٢".encode(),
)
CONTROL = bytes(range(32)) + b"\x7f\x85\x9b"
ENTITIES = b'<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + b"".join(
    b'<!ENTITY a%d "%s">' % (n, b"&a%s;" % (b"" if n == 1 else b"%d" % (n - 1)) * 10) for n in range(1, 10)
)
ENCODINGS = (
    "utf-16",
    "utf-16-le",
    "utf-32",
    "utf-32-be",
    "utf-8-sig",
    "latin-1",
    "gbk",
    "big5",
    "cp037",
    "utf-7",
)
MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", b"\0\0\xfe\xff")

Damage = Callable[[bytes, random.Random], bytes]


def damaged(content: bytes, seed: int) -> bytes:
    """Return *content* with one to four damages; the same for the same seed."""
    chance = random.Random(seed)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        content = chance.choice(DAMAGES)(content, chance)
    return content


def _place(content: bytes, chance: random.Random) -> int:
    """Return a place, of two in the first bytes: formats have their headers there."""
    return chance.randrange(min(len(content), chance.choice((64, len(content) + 1))) + 1)


def _slice(content: bytes, chance: random.Random) -> tuple[int, int]:
    place = _place(content, chance)
    return place, min(len(content), place + chance.choice((1, 2, 4, 16, 100, 1000)))


def _bits(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 8, 64)) if content else 0):
        changed[min(_place(content, chance), len(content) - 1)] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: _place(content, chance)]


def _beheaded(content: bytes, chance: random.Random) -> bytes:
    return content[_place(content, chance) :]


def _without(content: bytes, chance: random.Random) -> bytes:
    begin, end = _slice(content, chance)
    return content[:begin] + content[end:]


def _twice(content: bytes, chance: random.Random) -> bytes:
    begin, end = _slice(content, chance)
    return content[:end] + content[begin:end] * chance.choice((1, 1, 2, 50)) + content[end:]


def _all_twice(content: bytes, chance: random.Random) -> bytes:
    return content + content


def _swapped(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if len(lines) > 1:
        one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def _line_twice(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if lines:
        lines.insert(chance.randrange(len(lines)), chance.choice(lines))
    return b"".join(lines)


def _overwritten(content: bytes, chance: random.Random) -> bytes:
    begin, end = _slice(content, chance)
    fill = chance.choice((b"\0", b"\xff", b"a", None))
    new = chance.randbytes(end - begin) if fill is None else fill * (end - begin)
    return content[:begin] + new + content[end:]


def _inserted(content: bytes, chance: random.Random) -> bytes:
    place = _place(content, chance)
    new = chance.choice(
        (
            bytes([chance.choice(CONTROL)]),
            bytes(chance.choices(CONTROL, k=5)),
            b"\x1b[2J\x1b]0;x\x07",
            *(b'"', b"'", b"\\", b",", b";", b"\t", b"\n", b"<", b"&", b"&a9;", b"#", b",,,,", b"[", b"]"),
            b"x" * chance.choice((100, 200_000)),
            b"<a>" * 5000,
            chance.randbytes(30),
        )
    )
    return content[:place] + new + content[place:]


def _renumbered(content: bytes, chance: random.Random) -> bytes:
    found = list(NUMBER.finditer(content))
    for _ in range(chance.choice((1, 1, 3)) if found else 0):
        one = chance.choice(found)
        if content[one.start() : one.end()] == one[0]:  # not moved by the last change
            content = content[: one.start()] + chance.choice(STRANGE_NUMBERS) + content[one.end() :]
    return content


def _recoded(content: bytes, chance: random.Random) -> bytes:
    encoding = chance.choice(ENCODINGS)
    text = content.decode("latin-1")
    if chance.random() < 0.5:
        text = re.sub(r'encoding="[^"]*"|(?<=xml version="1.0")', f' encoding="{encoding}"', text, count=1)
    return text.encode(encoding, "replace")


def _declared(content: bytes, chance: random.Random) -> bytes:
    name = chance.choice(
        (*ENCODINGS, "punycode", "idna", "rot13", "hex", "unicode_escape", "nonsense", "zlib")
    )
    return b'<?xml version="1.0" encoding="%s"?>' % name.encode() + content[content.find(b"?>") + 2 :]


def _marked(content: bytes, chance: random.Random) -> bytes:
    return chance.choice(MARKS) + content


def _line_ends(content: bytes, chance: random.Random) -> bytes:
    return content.replace(b"\n", chance.choice((b"\r\n", b"\r", b"\n\n", b"\x0b", b"\x85", b"\0", b"")))


def _commas(content: bytes, chance: random.Random) -> bytes:
    """Return a table with further columns: empty ones, or one that is there twice."""
    more = chance.choice((b",", b",,", b",value", b",metric", b",ci95", b",1", b";", b"\t"))
    lines = content.split(b"\n")
    count = chance.choice((1, len(lines)))
    return b"\n".join([line + more if place < count else line for place, line in enumerate(lines)])


def _entities(content: bytes, chance: random.Random) -> bytes:
    place = content.find(b"?>") + 2
    return content[:place] + ENTITIES + b"]>" + b"<x>&a9;</x>" * chance.choice((0, 1)) + content[place:]


DAMAGES: tuple[Damage, ...] = (
    *(_bits, _bits, _cut, _cut, _renumbered, _renumbered, _renumbered, _inserted, _inserted),
    *(_beheaded, _without, _twice, _all_twice, _swapped, _line_twice, _overwritten, _recoded, _declared),
    *(_marked, _line_ends, _commas, _entities),
)
