"""Which texts of a unit id mean the same unit: declared rules, applied wherever ids are read.

A rule that joins two units is safe: together they are held to one bound. One that leaves a unit split is not, since
each part then has the bound for itself; so all rules are on unless a setting takes some away.
"""

from __future__ import annotations

from collections.abc import Sequence

from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.tables.scan import INTEGERS, Source, literal
from mechanisms.public.units import ID_RULES

#: Texts that every rule leaves as they are, by far the most: they are not worked on.
_PLAIN = "[a-z0-9_-]*[a-z_][a-z0-9_-]*|[1-9][0-9]*|0"
_NUMBER = "[+-]?[0-9]+([.][0-9]*)?"


def check_rules(rules: Sequence[str]) -> None:
    """Raises:
    UserError: a rule that there is not.
    """
    for rule in rules:
        if rule not in ID_RULES:
            fix = f"{did_you_mean(rule, ID_RULES)} a list of: {', '.join(ID_RULES)}".strip()
            raise UserError(f"no rule {rule!r}", where="privacy.unit_id_rules", fix=fix)


def same_unit(source: Source, index: int, rules: Sequence[str]) -> str:
    """SQL for the text of a column of ids; equal for all texts that mean the same unit."""
    text = source.text(index)
    return text if source.types[index] in INTEGERS else normal_form(text, rules)


def normal_form(text: str, rules: Sequence[str]) -> str:
    """SQL for a text under the rules: applied twice, it is what it is applied once."""
    form = "t"
    if "unicode" in rules:
        # Composed before the case is mapped, too: of what is decomposed, the case of each part is mapped by itself.
        form = f"nfc_normalize(regexp_replace({form}, '[\\p{{Cf}}\\p{{Cc}}]', '', 'g'))"
    if "trim" in rules:
        form = f"regexp_replace({form}, '^[\\s\\p{{Z}}]+|[\\s\\p{{Z}}]+$', '', 'g')"
    if "case" in rules:
        form = f"lower(upper({form}))"
    if "unicode" in rules:
        form = f"nfc_normalize({form})"
    if "number" in rules:
        form = f"list_transform([{form}], lambda n: {_shortest('n')})[1]"
    if form == "t":
        return text
    return f"list_transform([{text}], lambda t: CASE WHEN regexp_full_match(t, '{_PLAIN}') THEN t ELSE {form} END)[1]"


def _shortest(number: str) -> str:
    """SQL for a decimal number without a plus sign, leading zeros, or zeros at its end; another text as it is."""
    unsigned = f"regexp_replace({number}, '^[+]', '')"
    short = f"regexp_replace({unsigned}, '[.]0*$|([.][0-9]*[1-9])0*$', '\\1')"
    plain = f"regexp_replace(regexp_replace({short}, '^(-?)0+([0-9])', '\\1\\2'), '^-0$', '0')"
    return f"CASE WHEN regexp_full_match({number}, '{_NUMBER}') THEN {plain} ELSE {number} END"


def said_rules(rules: Sequence[str], missing: Sequence[str]) -> str:
    """What counts as one unit, and what as none, in words."""
    apart = "; ".join(words for rule, words in ID_RULES.items() if rule in rules)
    same = f"ids are compared without regard to: {apart}" if apart else "ids are one where their texts are equal"
    texts = ", ".join(literal(text) for text in missing if text)
    return f"{same}. No id: blank text, NULL and NaN" + (f", and under the same rules: {texts}" if texts else "")
