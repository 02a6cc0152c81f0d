"""What stands for no answer, in languages of Europe: one list, for drafts and for `check`. Guesses."""

from __future__ import annotations

import re
from collections.abc import Collection

from mechanisms.public.schema.spellings import NO, YES

#: Words for it, as a pattern.
WORDS = (
    "unknown|not known|none|missing|not stated|no answer|don.?t know|unbekannt|unbek\\.|keine angaben?|k\\. ?a\\."
    "|wei(ß|ss) nicht|verweigert|entf\\.|(on|niet )bekend|geen (antwoord|opgave)|weet niet|inconnue?s?"
    "|non (communiqu|renseign)ée?s?|ne sait pas|sans (réponse|objet)|no contesta|ns/nc|no sabe|sin (datos?|respuesta)"
    "|descon(oc|hec)id[oa]|não (sabe|responde)|sem resposta|non (noto|disponibile|risponde)"
    "|sconosciut[oa]|brak( danych| odpowiedzi)?|nie (wiem|dotyczy)|nieznan[aey]|okän[dt]|vet (ej|inte|ikke)"
    "|uppgift saknas|uken(d|dt)|ukjent|uoplyst|ved ikke|tuntematon|ei tiedossa|en osaa sanoa|teadmata|nezināms"
    "|nežinoma|nezn[aá]m[yýé]|neuveden[oéý]|nev(ím|iem)|ismeretlen|nincs adat|nem tudja|necunoscut[aă]?|nu știu"
    "|nepoznato|neznano|ne (vem|znam)|неизвестн[оа]|няма данни|άγνωστ[οη]|δεν (ξέρω|απαντώ)|mhux magħruf|anaithnid"
)
#: Two letters for it, as n.c., n.d., s/o and b.d.; ND and NC may be states.
_SHORT = re.compile(r"(?i:(n[./]? ?[cdr]|s[./]? ?[do]|b[./]? ?d)[.]?)")


def short_words(texts: Collection[str]) -> list[str]:
    """The one text of two letters that may stand for no answer, where no other but yes and no has two."""
    bare = {t: "".join(filter(str.isalpha, t)).casefold() for t in texts}
    short = [t for t, word in bare.items() if len(word) == 2 and len(t.strip()) < 6 and word not in {*YES, *NO}]
    return [t for t in short if len(short) == 1 and _SHORT.fullmatch(t.strip())]
