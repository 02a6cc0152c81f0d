"""Where the facts of a schema come from: a table is no source of its own."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from mechanisms.public.errors import UserError
from mechanisms.public.schema.facts_file import within_release

#: What a draft says until a person has named the source.
DRAFTED = "a draft from the table itself"
#: What names no source, as it is said.
OWN = "the table, this file, own data, min and max of each column, what its rows show"
#: A file's name is looked for without up to so many endings: a foreign schema may be called anything.
MOST_ENDINGS = 5
_THINGS = "table data dataset set file rows row records record csv excel sheet spreadsheet extract export dump sample "
_THINGS += "database values value columns column entries contents frame dataframe"
#: Words that name nothing beside the table: a source of these alone says nothing more.
_BESIDE = (
    "a an the this that these those our my own its it itself themselves s of in from by at as on is are was were and "
    "all same very real raw private actual original input given here what which found seen taken read derived inferred "
    "each every computed observed guessed looked looking look inspected inspection minimum maximum min max range "
    "ranges unique only distinct stand stands"
)
_OF_TABLE, _ALLOWED = set(_THINGS.split()), {*_THINGS.split(), *_BESIDE.split()}
_ITSELF = re.compile(rf"\b({'|'.join(_THINGS.split())}) (itself|themselves)\b|\bdraft(ed)? from\b")


def names_the_table(source: str, *names: str) -> bool:
    """Whether a source is the very table that it should tell about: a person's words, of which this knows a few forms.

    It is where it holds the name of the table's file, or where no word in it names anything else; Unicode's ways to
    write a character (NFKC), case, and marks between words are the same.

    Args:
        names: the table's file and the schema's name, where they are known.
    """
    text = re.sub(r"\b(?!file:)[a-z][a-z0-9+.-]{0,30}://\S+", " address ", _folded(source))
    glued = "".join(_words(text))
    if _ITSELF.search(" ".join(text.split())):
        return True
    for name in sorted((Path(_folded(n)).name for n in names), key=len, reverse=True):
        parts = name.rsplit(".", MOST_ENDINGS)
        for form in filter(None, (".".join(parts[:k]) for k in range(len(parts), 0, -1))):
            text, times = re.subn(rf"(?<![\w.-]){re.escape(form)}(?!\w|\.\w)", " table ", text)
            if times and "." in form:
                return True
            bare = _words(form)
            if bare and glued == "".join(bare):
                return True
            if len(bare) > 1:  # marks between the words are as good as any others
                spaced, times = re.subn(rf"\b{' '.join(bare)}\b", "table", " ".join(_words(text)))
                if times and "." in form:
                    return True
                text = spaced if times else text
    words = _words(text)
    return any(w in _OF_TABLE for w in words) and all(w in _ALLOWED for w in words)


def _folded(text: str) -> str:
    """As NFKC, without capitals and without characters that nobody sees."""
    seen = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", seen).casefold()


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text)


def check_source(source: str, *names: str, confirmed: bool, where: str) -> None:
    """A release that was made already says itself what it is worth (`why_not_private`, `verify`).

    Raises:
        UserError: a confirmed schema whose source is the table itself.
    """
    if confirmed and names_the_table(source, *names) and not within_release():
        problem = f"source: {source!r} is the table itself: confirmed or not, what only its rows show is not public"
        problem += f" (no source is {OWN}, or the name of its file)"
        fix = "source: where the lists and bounds are published (a codebook, a form, a law), once you compared them; "
        fix += "values: discover, bounds: discover for what stands nowhere; or confirmed_public: false"
        raise UserError(problem, where=where, fix=fix)
