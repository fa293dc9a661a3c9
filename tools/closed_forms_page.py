"""The catalogue of closed forms in Markdown, as `docs/explanation/closed-forms.md` shows it.

python tools/closed_forms_page.py
"""

from collections.abc import Iterator

import sympy

from btqueue.baseband import PACKET_TYPES
from btqueue.study.closed_forms import SUBJECTS, entries


def page() -> str:
    """Return a block for each subject; of the packet types only DM1 and DH5."""
    return "\n".join(line for subject in SUBJECTS for line in block(subject))


def block(subject: str) -> Iterator[str]:
    """Yield the lines of a subject."""
    shown = [
        entry
        for entry in entries(subject)
        if {"DM1", "DH5"}.issuperset(PACKET_TYPES.keys() & entry.name.replace(",", "").split())
    ]
    yield from (f":::{{dropdown}} {subject}: {len(shown)} forms", "")
    symbols = {name: about for entry in shown for name, about in entry.symbols.items()}
    listed = (
        f"${sympy.latex(sympy.Symbol(name))}$ {meaning} ({unit})" for name, (unit, meaning) in symbols.items()
    )
    yield from (f"{'; '.join(listed)}.", "")
    for entry in shown:
        yield from (f"**{entry.name}** ({entry.unit}); twin: `{entry.twin}`", "")
        yield from (entry.about, "")
        for line in entry.lines():
            yield from (f"$${line}$$", "")
    yield from (":::", "")


if __name__ == "__main__":
    print(page())
