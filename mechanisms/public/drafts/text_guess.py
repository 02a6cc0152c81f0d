"""The declaration that the texts of a column suggest: a flag, a list with its spellings, codes, none. NOT private.

No text is listed or quoted that fewer than FEWEST_UNITS units hold: no value, no spelling, no beginning of a code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import le

from mechanisms.public.drafts.column_facts import MAX_VALUES, SAMPLED, Look
from mechanisms.public.drafts.seen import ColumnFacts, few_units
from mechanisms.public.schema.discover_fields import FieldDict
from mechanisms.public.schema.spellings import NO, YES, folded, spelled_yes_or_no
from mechanisms.public.tables.doubts import NUMBERED_NAME, POSTAL_NAME, codes_of_others, several_units, shorter_codes
from mechanisms.public.tables.listed_gaps import listed_gaps
from mechanisms.public.tables.losses import percent
from mechanisms.public.tables.persons import PERSONAL, addresses, may_be_names, of_name_column
from mechanisms.public.tables.text_forms import (
    CODES_OF_GAPS,
    CROSSES,
    CURRENCIES,
    ID_NAME,
    gap_words,
    misspelt,
    share_of,
    without,
)

#: Of a long list so many texts are drafted, where they stand in most cells; else as many as are listed at all, where
#: these do, or where each text stands for that many rows in the mean.
FREQUENT, ROWS_EACH = 50, 20
#: A list is drafted where the texts on it stand in at least this share of the filled cells; else it is free text.
LISTED = 0.75
#: An id by its name is left out where it has more distinct texts.
FEW_IDS = 20
#: Columns are yes and no where at least this share of the cells is, in so many words.
ANSWERS, ANSWER_WORDS = 0.9, 3
#: Codes of diagnoses (ICD), and the share of the texts that are; they begin with so many letters, ids with few.
DIAGNOSIS, CODED, CHAPTERS = re.compile(r"[A-Z][0-9][0-9A-Z](\.[0-9A-Z]{1,4}|[0-9A-Z]{0,2})"), 0.95, 3
#: A code of digits with a letter in place of one, as those of communes of Corsica (2A004).
LETTERED = re.compile("(?=.*[0-9].*[0-9])[0-9]*[A-Z][0-9]*")
#: A school year, a quarter, a half year: 2019/20, 2019-Q1, 2019H2; their texts sort as they follow each other. Digits
#: alone name a quarter, or a week or month of two, or a second year: 19104 and 20125 are postal codes.
PERIOD = re.compile(
    r"(19|20)[0-9]{2}([-/ ]?(19|20)[0-9]{2}|[-/ ]?[A-Z]{1,2}[0-9]{1,2}|[-/ ][0-9]{1,2}|[1-4]|[0-5][0-9])"
)
#: A whole number in a text, its thousands maybe parted.
NUMBER = re.compile(r"\d{1,3}(?:[ .,'\u2019\u00a0\u202f]\d{3})+(?!\d)|\d+")
#: Two numbers in one text: 120/80, 30 x 40.
TWO = re.compile(r"\d+([.,]\d+)? ?[/xX×] ?\d+([.,]\d+)?")
#: A number of a register: 1851/0017, 17/1851.
OF_A_YEAR = re.compile(r"(1[5-9]|20)\d\d ?/ ?\d+|\d+ ?/ ?(1[5-9]|20)\d\d")
#: A day with its month in words, of which there are so many at most: 12 mei 2024, 1er mars 2024, 12 de mayo de 2024.
MONTHS, MONTH_WORDS = 12, 24
DAY_IN_WORDS = re.compile(r"(0?[1-9]|[12]\d|3[01])\D{0,6}?([^\W\d_]{3,})\D{0,6}?(1[89]|2[01])?\d\d")
#: Postal codes with letters.
POSTCODE = re.compile("(?=.*[A-Z])[A-Z0-9]{2,5}[- ]?[A-Z0-9]{2,4}")
#: More than so many texts are codes rather than a list that a person reads; so long are their beginnings.
FEW_CODES, BEGINNINGS = 100, (3, 1)
#: Spellings of yes and of no that are each other's opposites.
OPPOSITES = (*zip(YES[:8], NO[:8], strict=True), ("j", "n"), ("j", "nein"), ("ja", "n"), ("oui", "non"), ("si", "no"))
OPPOSITES += (("sí", "no"), ("sim", "não"), ("sim", "nao"), ("da", "net"), ("tak", "nie"))
OPPOSITES += (("wahr", "falsch"), ("vrai", "faux"), ("j", "no"), ("y", "nein"))
#: Answers from least to most; those of one place are other words for it.
SCALES = (
    "strongly disagree < disagree < somewhat disagree/slightly disagree/rather disagree < neutral/undecided/neither/"
    "neither agree nor disagree < somewhat agree/slightly agree/rather agree < agree < strongly agree",
    "never < rarely/seldom/hardly ever/almost never < sometimes/occasionally < often/frequently/usually < always",
    "very dissatisfied < dissatisfied < neutral < satisfied < very satisfied",
    "very poor/very bad < poor/bad < fair/average/ok < good < very good < excellent",
    "none < mild/slight < moderate < severe < very severe",
    "very low < low < medium/moderate < high < very high",
    "very small/tiny < small < medium < large/big < very large",
    "xs < s < m < l < xl < xxl",
    "sehr klein < klein < mittel/mittelgroß < groß < sehr groß",
    "sehr niedrig/sehr gering < niedrig/gering < mittel < hoch < sehr hoch",
    "not at all < a little/slightly < somewhat/moderately < quite a bit/very < extremely",
    "trifft gar nicht zu/trifft überhaupt nicht zu/stimme gar nicht zu < trifft nicht zu/trifft eher nicht zu/"
    "stimme nicht zu/stimme eher nicht zu < teils-teils/teils teils/weder noch/neutral < trifft zu/trifft eher zu/"
    "stimme zu/stimme eher zu < trifft voll zu/trifft voll und ganz zu/stimme voll zu/stimme voll und ganz zu",
    "sehr unzufrieden < unzufrieden/eher unzufrieden < neutral < zufrieden/eher zufrieden < sehr zufrieden",
    "nie < selten < manchmal < oft/häufig/meistens < immer",
    "jamais < rarement < parfois/quelquefois < souvent < toujours",
    "nunca < rara vez/casi nunca < a veces < a menudo/casi siempre < siempre",
)
FREE = (
    "free text; where a list is wanted, and privacy.unit names the person: "
    "{kind: categorical, values: discover, other: Other}"
)
#: Asked of ids, those of persons among them.
OF_OTHERS = "ids of others (animals, vehicles, accounts)? Where they are persons', privacy.unit names the column"
LIST = "is there a public list? else values: discover"

#: A whole number without zeros before it; signs of a class of numbers.
WHOLE, OPEN_OR_RANGE = re.compile("0|[1-9][0-9]*"), re.compile("[<>≤≥+]|[0-9] ?[-–] ?[0-9]")
#: What stands around the digits of numbers below 0 in accounts, these digits, and what is said of such numbers.
BELOW = re.compile(r"(?=.*-$|\(.*\)$)\(?([^()-]*)[-)]")
AMOUNT = re.compile("[0-9][0-9., '’]*")
BELOW_ZERO = "below 0, with the minus behind or in brackets"

#: What is said of numbers that are listed.
NUMBERED = "numbers that stand for names, as the column's name says (or are they amounts?): a list without order"

Guess = tuple[FieldDict | None, str]


def guess_texts(look: Look, index: int, facts: ColumnFacts) -> Guess:
    """A flag, a list, the most frequent of a long list, codes by their beginning, or nothing."""
    texts, name = look.sample(index), look.source.names[index]
    if flag := _flag(look, index, facts, texts):
        return flag
    many = f"{facts.distinct:,} distinct text{'s' * (facts.distinct != 1)}"
    if ID_NAME.search(name) and facts.distinct > FEW_IDS:
        return None, f"{many}: an id, by its name"
    days = [(int(m[1]), m[2]) for t in texts if (m := DAY_IN_WORDS.fullmatch(t.strip()))]
    varied = 2 < len({word for _, word in days}) <= MONTH_WORDS and max(days)[0] > MONTHS
    if varied and len(days) >= CODED * len(texts):  # but no 4 doors 2024
        return None, f"{many}: days with their months in words that are not read: write 2024-05-12 in the table"
    if of_name_column(name, texts):
        return None, f"{many}: names of persons, by its name"
    if names := may_be_names(name, texts):
        remark = f"{len(names):,} of {len(texts):,} texts may be names of persons, and a release would show them"
        return None, f"{remark}; if they are none, list them"
    if len(addresses(texts, name)) > 0.5 * len(texts):
        return None, f"{many}: {PERSONAL}"
    digits = {t: n for t, n in texts.items() if re.search("[0-9]", t)}  # 120/80, and n.m. where nobody measured
    pairs = len(texts) == SAMPLED and share_of(digits, lambda t: TWO.fullmatch(t.strip()) is not None) >= CODED
    if pairs and share_of(texts, lambda t: OF_A_YEAR.fullmatch(t.strip()) is not None) >= CODED:
        return None, f"{many}: a year and a number, as in a register: an id"
    if pairs:
        return None, f"{many}: two numbers in each, as 120/80: write them in two columns of the table"
    if facts.distinct > FEW_IDS and (units := several_units(look.shapes(index)) or _of_accounts(look.shapes(index))):
        return None, f"{many}: {units}"
    if codes_of_others(texts, name):
        often = "each in several rows" if facts.filled >= 2 * facts.distinct else "most in one row alone"
        return None, f"{many}: letters and many digits, {often}: {OF_OTHERS}; where a public list has them, list them"
    if codes := _codes(look, index, facts, texts):
        return codes
    spelled = _spelled(texts, look.listable(index, texts))
    if len(texts) == SAMPLED or len(spelled) > MAX_VALUES:
        return _long_list(look, index, facts, spelled)
    return _list(look, index, facts, spelled)


def guess_numbered(look: Look, index: int, facts: ColumnFacts, guess: Guess) -> Guess:
    """The same, but whole numbers from 1 on in a column of places or trades are names: a list without an order.

    It holds all from the least to the largest, where half of them or more occur; else those that enough units have.
    """
    fields, words = guess
    named = NUMBERED_NAME.search(look.source.names[index]) is not None and 2 < facts.distinct <= MAX_VALUES
    if not named or fields is None or fields["kind"] != "integer" or fields["min"] < 1:
        return guess
    if {"strip", "decimal"} & fields.keys() or any(t != t.strip(" +") for t in look.sample(index)):
        return guess  # 1 km is an amount, and a list takes texts as they are written
    numbers = range(fields["min"], fields["max"] + 1)
    if len(numbers) > 2 * facts.distinct:
        listed, others = guess_texts(look, index, facts)
        return guess if listed is None else (listed, f"{others}; {NUMBERED}")
    values = [str(n) for n in numbers]
    return {"kind": "categorical", "values": values, "missing": fields["missing"]}, f"{NUMBERED}; {words}"


def _spelled(texts: Mapping[str, int], listable: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """One spelling of each text → all that differ from it in capitals and spaces, with their rows.

    It is one that may be told, where there is one; then without spaces around it; then the most frequent one.
    """
    alike: dict[str, dict[str, int]] = {}
    for text, n in texts.items():
        alike.setdefault(folded(text), {})[text] = n
    return {max(own, key=lambda t: (t in listable, t == t.strip(), own[t])): own for own in alike.values()}


def _list(look: Look, index: int, facts: ColumnFacts, spelled: Mapping[str, Mapping[str, int]]) -> Guess:
    """All texts but rare ones."""
    counts = {text: sum(own.values()) for text, own in spelled.items()}
    codes = {f"{c:g}" for c in CODES_OF_GAPS if c < -1}
    coded = look.listable(index, {v: own[v] for v, own in spelled.items() if v in codes})
    gaps = sorted({*facts.gaps, *coded}) if len(counts) > 1 else list(facts.gaps)
    values = sorted(v for v in counts if v not in gaps)
    missing, doubt = _missing(gaps, facts)
    listable = look.listable(index, {v: spelled[v][v] for v in values})
    frequent = [v for v in values if v in listable]
    rare = f"{len(values) - len(frequent)} that {few_units(look.unit)}"
    named = addresses(values, look.source.names[index])
    rare += f", or that hold {PERSONAL}" if named else ""
    free, public = ("free text", "is there a public list?") if named else (FREE, LIST)
    if not frequent or sum(counts[v] for v in frequent) < LISTED * sum(counts[v] for v in values):
        return None, f"{len(values)} distinct texts, of them {rare}: {free}"
    if len(values) == 1 and facts.empty and not gaps and len(spelled[values[0]]) == 1:
        return {"kind": "flag", "true": values, "false": [""], "missing": False}, "one text or empty: a flag"
    fields, remark = _with_spellings(frequent, spelled)
    doubt += remark
    if facts.digits >= CODED * facts.filled and (facts.padded or POSTAL_NAME.search(look.source.names[index])):
        doubt += "".join(f"; {remark}" for remark in shorter_codes(counts, facts.longest, listed=True))
    words = f"{len(values)} distinct texts; "
    if len(frequent) == len(values):
        return {**fields, "missing": missing}, f"{words}is the list complete?{doubt}"
    words += f"not listed, but other: {rare}; {public}{doubt}"
    return {**fields, "other": unused(list(counts)), "missing": missing}, words


def _missing(gaps: list[str], facts: ColumnFacts) -> tuple[list[str] | bool, str]:
    """What means missing in a list, an empty cell first where there is one or several texts mean so; and a question."""
    missing = ["", *gaps] if gaps and (facts.empty or len(gaps) > 1) else gaps or facts.empty
    return missing, f"; {', '.join(gaps)} taken for a gap: is it?" if gaps else ""


def _with_spellings(values: Sequence[str], spelled: Mapping[str, Mapping[str, int]]) -> tuple[FieldDict, str]:
    """The list, with the spellings that nearly all who look would join, and what may be one too, in words."""
    counts = {v: sum(spelled[v].values()) for v in values}
    words, own, remark = _letters(counts), sum(len(spelled[v]) for v in values), ""
    fields: FieldDict = {"kind": "categorical", "values": [v for v in values if v not in words.values()]}
    gaps = listed_gaps(values)
    if len(values) > 2 and all(PERIOD.fullmatch(v) for v in values):
        fields["ordinal"], remark = True, "; in the order of years"
    elif classes := in_order([v for v in fields["values"] if v not in gaps]):
        fields["values"], remark = [*classes, *gaps], "; from least to most"
        fields |= {} if gaps else {"ordinal": True}
    if words:
        fields["spellings"] = {letter: [word] for letter, word in words.items()}
        remark += "; letters are joined with the words that begin with them: are they the same?"
    if own > len(values):
        fields.setdefault("spellings", "common")
        remark += f"; {own} spellings in the table: capitals and spaces around do not count"
    wrong = misspelt({v: counts[v] for v in values})
    remark += f"; {_few(gaps)} among the values: a gap?" if gaps else ""
    return fields, remark + (f"; {wrong}" if wrong else "")


def classes_in_order(values: Sequence[str]) -> list[str]:
    """Classes of a number in their order, as 5-9, 10-19, 20 and more: most are ranges, one form, none in another.

    Beside one such as <1, 3-5 or 90+ single numbers are ranges too.
    """
    single = [v for v in values if WHOLE.fullmatch(v)] if any(map(OPEN_OR_RANGE.search, values)) else []
    ends = {v: [int(re.sub(r"\D", "", n)) for n in NUMBER.findall(v)] for v in values} | {
        v: [int(v)] * 2 for v in single
    }
    ranges = sorted((own, v) for v, own in ends.items() if len(own) == 2)
    lows, highs = [own[0] for own, _ in ranges], [own[1] for own, _ in ranges]
    follow = all(low < high for (low, high), v in ranges if v not in single) and all(map(le, highs, lows[1:]))
    if len(ranges) < 3 or not follow or len({NUMBER.sub("", v) for _, v in ranges if v not in single}) > 1:
        return []
    below = [v for v, own in ends.items() if len(own) == 1 and own[0] <= lows[0]]
    above = [v for v, own in ends.items() if len(own) == 1 and own[0] >= highs[-1]]
    whole = [*below, *(v for _, v in ranges), *above]
    return whole if len(below) < 2 and len(above) < 2 and len(whole) == len(values) else []


def in_order(values: Sequence[str]) -> list[str]:
    """Classes of a number, or answers of one scale, from least to most; none in another."""
    for scale in SCALES:
        place = {word: i for i, alike in enumerate(scale.split(" < ")) for word in alike.split("/")}
        words = {v: folded(v).replace("/", "-") for v in values}  # teils/teils
        if len(values) > 2 and all(word in place for word in words.values()):
            return sorted(values, key=lambda v: place[words[v]])
    return classes_in_order(values)


def _letters(counts: Mapping[str, int]) -> dict[str, str]:
    """Letter → the word that it begins, where two letters or more stand beside words, and each begins one alone."""
    letters = [t for t in counts if len(t) == 1 and t.isalpha()]
    words = {
        letter: [t for t in counts if len(t) > 2 and t.isalpha() and folded(t).startswith(folded(letter))]
        for letter in letters
    }
    sure = len(letters) > 1 and all(len(own) == 1 for own in words.values())
    return {letter: own[0] for letter, own in words.items()} if sure else {}


def _flag(look: Look, index: int, facts: ColumnFacts, texts: Mapping[str, int]) -> Guess | None:
    """Yes and no in any spelling, with crosses and a few words for neither."""
    answers = {t: n for t, n in texts.items() if folded(t) in {*YES, *NO}}
    odd = {t: n for t, n in texts.items() if t not in answers}
    if not answers or len(texts) == SAMPLED or not spelled_yes_or_no(list(answers)):
        return None
    listable = look.listable(index, odd)
    gaps = gap_words(listable, numbers=False)
    crosses = [t for t in listable if folded(t) in CROSSES]
    rest = [t for t in odd if t not in {*gaps, *crosses}]
    sides = {folded(t) in YES for t in answers}
    several = len({folded(t) for t in answers}) >= ANSWER_WORDS or not set(listable) & set(rest)
    if odd and (share_of(texts, answers.__contains__) < ANSWERS or len(sides) < 2 or not several):
        return None
    own = _own_words(list(look.listable(index, answers)))
    true = list(dict.fromkeys([*own.get("true", ["yes"]), *(folded(t) for t in crosses)]))
    own |= {"true": true} if crosses else {}
    fields: FieldDict = {"kind": "flag", "spellings": "common", **own}
    words = f"yes and no in {len(answers)} spelling{'s' if len(answers) > 1 else ''}"
    words += f"; {_few(crosses)} taken for yes: is it?" if crosses else ""
    words += f"; do {_few(gaps)} mean a gap?" if gaps else ""
    if rest:
        shown = [t for t in rest if t in listable][:3]
        words += f"; {sum(odd[t] for t in rest):,} cells are neither{f', such as {_few(shown)}' if shown else ''}"
        words += ": they become missing"
    signs = sorted({*facts.gaps, *gaps})
    missing = ["", *signs] if signs and facts.empty else signs or facts.empty or bool(rest)
    return {**fields, "missing": missing}, words


def _few(texts: Iterable[str]) -> str:
    return ", ".join(map(repr, texts))


def _own_words(answers: Sequence[str]) -> FieldDict:
    """The most frequent spelling with an opposite in the table, and that, as a release writes them; else any two.

    Args:
        answers: spellings that may be told, the most frequent first; of none, yes and no are kept.
    """
    texts = [t.strip() for t in answers]
    each = list(enumerate(texts))
    pairs = [(a, b, min(i, k), max(i, k)) for i, a in each for k, b in each if (a.lower(), b.lower()) in OPPOSITES]
    if pairs:
        yes, no, *_ = min(pairs, key=lambda p: (p[2], _capitals(p[0]) != _capitals(p[1]), p[3]))
    elif not texts:
        return {}
    else:
        own, first = texts[0], texts[0].lower() in YES
        word = next(p[first] for p in OPPOSITES if p[not first] == own.lower())
        word = word.upper() if own.isupper() else word.capitalize() if own.istitle() else word
        other = next((t for t in texts if t.lower() in (NO if first else YES)), word)
        yes, no = (own, other) if first else (other, own)
    return {side: [text] for side, text in (("true", yes), ("false", no)) if text not in {"yes", "no"}}


def _capitals(text: str) -> tuple[bool, bool]:
    return text.isupper(), text.istitle()


def _codes(look: Look, index: int, facts: ColumnFacts, texts: Mapping[str, int]) -> Guess | None:
    """Codes such as I21.4 or K1A 0B1, too many to list, by as many first characters as leave few of them out."""
    postal = bool(POSTAL_NAME.search(look.source.names[index]))
    lettered = facts.distinct > MAX_VALUES and 2 * facts.digits > facts.filled and facts.shortest == facts.longest
    form = LETTERED if lettered else POSTCODE if postal else DIAGNOSIS
    fits = {t: n for t, n in texts.items() if form.fullmatch(t.strip()) or (lettered and t.strip().isdecimal())}
    if sum(fits.values()) < CODED * sum(texts.values()) or not FEW_CODES < facts.distinct <= 0.5 * facts.filled:
        return None
    if not (postal or lettered) and len({t.strip()[:1] for t in fits}) < CHAPTERS:
        return None
    for length in BEGINNINGS:
        begun = look.begun(index, length)
        covered = sum(begun.values()) / facts.filled
        if covered < LISTED:
            continue
        values = sorted(begun)
        fields: FieldDict = {"kind": "categorical", "prefix": length, "values": values, "other": unused(values)}
        above = sorted({v[:1] for v in values})
        if 1 < len(above) < len(values):
            fields["hierarchy"] = {c: [v for v in values if v[:1] == c] for c in above}
        words = f"{facts.distinct:,} codes, by their first {length} characters: the {len(values)} beginnings that"
        words += f" enough rows hold ({percent(covered)} of the filled cells); {LIST}"
        return {**fields, "missing": facts.missing}, words
    return None


def _long_list(look: Look, index: int, facts: ColumnFacts, spelled: Mapping[str, Mapping[str, int]]) -> Guess:
    """The most frequent texts: as many as make up most of the cells, or a few that each have many rows."""
    many = f"{facts.distinct:,} distinct texts"
    listable = look.listable(index, {v: own[v] for v, own in [*spelled.items()][:MAX_VALUES]})
    each = {v: sum(spelled[v].values()) for v in listable}
    few = [*listable][:FREQUENT]
    often = few if sum(each[v] for v in few) >= LISTED * facts.filled else [*listable]
    enough = sum(each[v] for v in often) >= LISTED * facts.filled
    gaps = sorted({*facts.gaps, *gap_words({t: listable[t] for t in often}, numbers=False)})
    values = sorted(t for t in often if t not in gaps)
    if not values or (facts.filled < ROWS_EACH * facts.distinct and not enough):
        named = addresses(look.sample(index), look.source.names[index])
        return None, f"{many}: {'an id, or ' * (not facts.wordy)}{'free text' if named else FREE}"
    covered = percent(sum(each[v] for v in often) / facts.filled)
    words = f"{many}; the {len(values)} most frequent ({covered} of the filled cells) are listed: {LIST}"
    fields, remark = _with_spellings(values, spelled)
    missing, doubt = _missing(gaps, facts)
    return {**fields, "other": unused(values), "missing": missing}, words + doubt + remark


def _of_accounts(shapes: Mapping[str, int]) -> str:
    """That most of the texts are numbers below 0 as accounts write them; empty where they are not."""
    below = {t for t in shapes if (m := BELOW.fullmatch(without(t, CURRENCIES))) and AMOUNT.fullmatch(m[1])}
    share = share_of(shapes, below.__contains__)
    return f"{percent(share)} are numbers {BELOW_ZERO}; write it in front in the table" if share > 0.5 else ""


def unused(values: Sequence[str]) -> str:
    """A label for what is not listed."""
    return next(t for t in ("Other", "Other value", "Other value (not listed)") if t not in values)
