"""Text that is not what it seems: invisible, direction-changing, control and look-alike characters.

`segments` cuts a text into pieces, so that each surface can show what is hidden in its own way.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

# Letters, per Unicode's categories, that draw nothing.
BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
VARIATION = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")
HIDDEN_CATEGORIES = frozenset({"Cf", "Cc", "Cs", "Co", "Cn", "Zl", "Zp"})
BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
IMITATORS = frozenset({"CYRILLIC", "GREEK", "COPTIC", "ARMENIAN", "CHEROKEE", "LISU"})
DRESSED = ("FULLWIDTH", "MATHEMATICAL")
# Letters of other scripts that look like a Latin one in most fonts.
TWINS = frozenset(
    "аеоорсухіјѕһԁԛԝѵгвмнтклпАВЕКМНОРСТУХІЈЅԌԚԜ"  # Cyrillic
    "ονιρκτυχαεΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"  # Greek
    "օսոհցզքԼՕՍ"  # Armenian
)
WORD = re.compile(r"\w+")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class Segment:
    """A piece of text. ``mark`` is "" for plain text, else what is odd about it.

    Marks: hidden, bidi, control, space, lookalike. The text of a look-alike is the letters
    themselves; that of the others is the code point in words, like U+202E.
    """

    text: str
    mark: str = ""
    name: str = ""


def segments(text: str) -> Iterator[Segment]:
    """``text`` from start to end; joined, the plain pieces and marks leave nothing out."""
    twins = _twin_positions(text)
    kinds = [_kind(text, i) or ("lookalike" if i in twins else "") for i in range(len(text))]
    place = 0
    for kind, run in groupby(kinds):
        size = len(list(run))
        piece = text[place : place + size]
        place += size
        if kind == "":
            yield Segment(piece)
        else:
            yield from (_marked(char, kind) for char in piece)


def suspicious(text: str) -> bool:
    """Whether any character of ``text`` hides, turns the text around or imitates another."""
    if text.isascii():
        return bool(CONTROL.search(text))
    return any(segment.mark for segment in segments(text))


def _marked(char: str, kind: str) -> Segment:
    code = f"U+{ord(char):04X}"
    name = f"{unicodedata.name(char, 'no name')} ({code})"
    return Segment(char, kind, name) if kind == "lookalike" else Segment(code, kind, name)


def _kind(text: str, place: int) -> str:
    """What is odd about the character by itself; "" for an ordinary one, or a part of an emoji."""
    char = text[place]
    if " " <= char <= "~" or char in "\n\t":
        return ""
    if char in BIDI:
        return "bidi"
    category = unicodedata.category(char)
    if category == "Cc":
        return "control"
    if category == "Zs":
        return "space"
    if (char in "\u200d\ufe0f") and _in_emoji(text, place):
        return ""
    if category in HIDDEN_CATEGORIES or char in BLANK_LETTERS or VARIATION.match(char):
        return "hidden"
    return ""


def _in_emoji(text: str, place: int) -> bool:
    """A joiner or selector that does its job: straight after a symbol, a joiner also before one."""
    before = text[place - 1] if place else ""
    after = text[place + 1] if place + 1 < len(text) else ""
    symbol = before != "" and unicodedata.category(before) in ("So", "Sk", "Sm")
    if text[place] == "\ufe0f":
        return symbol or (before in set("#*0123456789") and after == "\u20e3")
    return (symbol or before == "\ufe0f") and after != "" and unicodedata.category(after) == "So"


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    """The first word of a letter's name, which for letters is the script; "" for others."""
    if not char.isalpha():
        return ""
    return unicodedata.name(char, "").partition(" ")[0]


def _twin_positions(text: str) -> frozenset[int]:
    """Where letters pass for Latin ones: inside a Latin word, or as a whole word of twins.

    A word of twins alone is ordinary in a text that is really written in its script, so it counts
    only where no other letter of that script shows that it is.
    """
    if text.isascii():
        return frozenset()
    native = {_script(c) for c in text if _script(c) in IMITATORS and c not in TWINS}
    places: set[int] = set()
    for word in WORD.finditer(text):
        letters = [c for c in word.group() if c.isalpha()]
        scripts = {_script(c) for c in letters}
        whole = len(letters) > 1 and TWINS.issuperset(letters) and not scripts & native
        imitates = "LATIN" in scripts or whole
        places.update(
            word.start() + offset
            for offset, char in enumerate(word.group())
            if (char in TWINS and imitates) or _script(char) in DRESSED
        )
    return frozenset(places)
