"""What names a person: e-mail addresses, telephones, accounts, titles, initials, two words in capitals. Guesses.

Nothing here is released.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection
from functools import lru_cache
from itertools import dropwhile

from mechanisms.public.tables.listed_gaps import usual
from mechanisms.public.tables.text_forms import STAFF

#: What columns are called that hold numbers of those who serve persons.
STAFF_COLUMN = re.compile(rf"(?i)(^|[_\W])({STAFF})")
#: Small words inside of names.
PARTICLES = re.compile("van|von|der|den|de|del|della|di|da|dos|du|la|le|ter|ten|bin|al|el|zu|y")
#: Capitals of Latin, Greek and Cyrillic letters, as in Šimek and Łukasz.
_INITIAL = "[" + "".join(c for c in map(chr, range(0x530)) if unicodedata.category(c) == "Lu") + "]"
_NAME = rf"([a-z]+ )*{_INITIAL}[\w'’-]+"
#: Staff by what they are, and words behind it that name more of that, or a place: Nurse Practitioner, Nurse Station.
_STAFF = "[Nn]urse|Doctor|OA|OÄ|(Ober|Chef|Stations|Assistenz)(arzt|ärztin)|Schwester|Pfleger(in)?|Schw|[Ss]estra"
_STAFF += (
    r"|Sister|Matron|RN|Rev|Mgr|Mag(?=\.)|Ing|PD|Dipl\. Arzt|Dott|Sig(ra|na)?|(MU|MV|JU|Ph|RN)Dr|D\.ssa|[Mm]ed\. ?pract"
)
_NO_STAFF = (
    "practitioner|ana?esthetist|specialist|manager|assistant|aide|midwife|educator|consultant|coordinator|led|visits?"
    "|call|line|care|clinic|unit|on|in|and|und|mit|station|dienst|visite|ward|office|city"
)
#: MR is magnetic resonance, DR CONGO a country, M. Crohn a disease, and P. VIVAX a germ.
_NO_NAME = r"angio|imag|scan|head|brain|spine|knee|neck|chest|abdo|pelv|card|enter|chol|thor|kopf|mamm|prost|lumb|cerv"
_NO_NAME = rf"(?!(?i:{_NO_NAME}|(congo|{_NO_STAFF})\b))"
_DISEASES = "Crohn|Parkinson|Alzheimer|Bechterew|Basedow|Hodgkin|Meni[eè]re|Paget|Scheuermann|Dupuytren|Ledderhose"
_DISEASES += "|Sudeck|Perthes|Addison|Cushing|Raynaud|Boeck|Behçet|Gaucher|Fabry|Whipple|Wilson|Still|Huntington|Osler"
_GERMS = "aeruginosa|mirabilis|vulgaris|falciparum|vivax|malariae|ovale|multocida|acnes|stuartii|jirovecii|carinii"
#: Titles before a name, with a point or without; MW is a megawatt, and of a family the short form alone has a name, but
#: for departments (Fam. Med.) and plants. J.P. Morgan is a bank, and Pani Puri a dish.
_TITLE = r"Mr|Mrs|Ms|Herrn?|Frau|Hr|Fr|Mme|Mlle|Madame|Monsieur|[Dd]r|DR(?=\.)|[Pp]rof|Fru|Señora?|Senhora?|Doña"
_TITLE += rf"|[Pp]an[ia](?! P(u|oo)ri\b)|(?<!\.)[Pp](?=\. ?[^\W\d_]{{3}})(?!\. ?(?i:{_GERMS})\b)"
_TITLE += "|[Dd]hr|[Mm]evr(ouw)?|[Mm]w|[Dd]e [Hh]eer|[Mm]eneer"
_TITLE += r"|[Ff]am(?=\.)(?!\. *(?i:med(icine|izin)?|practice|hx|history|planning|\w+(aceae|idae))\b)"
_KIN = "mother|father|daughter|son|wife|husband|sister|brother|aunt|uncle|Mutter|Vater|Tochter|Sohn|Ehefrau|Ehemann"
#: Telephones within a country: 0171/2345678, 030-1234567, (0351) 24 84 45, 044 668 18 00, 06 12345678, 01 23 45 67 89.
_NATIONAL = (
    "0[1-9]([0-9]{2,4} ?[-/] ?[1-9][0-9]{4,8}|[0-9] ?[-/] ?[1-9][0-9]{6,7}|[- ][1-9][0-9]{7})"
    r"|\(0[1-9][0-9]{1,4}\)( ?[0-9]){5,8}|0[1-9](?P<gap>[ .])[0-9]{2}((?P=gap)[0-9]{2}){3}"
    "|(?=([0-9][ /]*){9,12}(?![0-9]))0[1-9][0-9]{1,3}[ /]+[1-9][0-9]+( [0-9]{2,})*(?! ?[0-9])"
)
#: Numbers of persons (Austria's, Nordic and Czech ones with the day of birth, of the US, Switzerland, Italy, Belgium,
#: Brazil, Britain, France), ORCIDs, payment cards, addresses of computers; folders of their users, and names of
#: accounts: @anna_huber.
_DAY, _MONTH, _BYTE = "(0[1-9]|[12][0-9]|3[01])", "(0[1-9]|1[0-2])", "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_REGISTERED = (
    rf"[1-9][0-9]{{3}} {_DAY}{_MONTH}[0-9]{{2}}"
    rf"|({_DAY}{_MONTH}[0-9]{{2}}|([0-9]{{2}})?[0-9]{{2}}{_MONTH}{_DAY})[-+][0-9]{{3}}[0-9A-Z]"
    r"|[0-9]{3}-[0-9]{2}-[0-9]{4}|756\.[0-9]{4}\.[0-9]{4}\.[0-9]{2}|[A-Z]{6}[0-9]{2}[A-Z][0-9]{2}[A-Z][0-9]{3}[A-Z]"
    rf"|[0-9]{{2}}\.{_MONTH}\.{_DAY}-[0-9]{{3}}\.[0-9]{{2}}|{_DAY}{_MONTH}[0-9]{{2}} [0-9]{{5}}"
    rf"|[0-9]{{2}}(0[1-9]|1[0-2]|5[1-9]|6[0-2]){_DAY}/[0-9]{{3,4}}|([0-9]{{3}}\.){{2}}[0-9]{{3}}-[0-9]{{2}}"
    rf"|[A-Z]{{2}} ?([0-9]{{2}} ?){{3}}[A-D]|[12] [0-9]{{2}} {_MONTH} [0-9][0-9AB]( [0-9]{{3}}){{2}}( [0-9]{{2}})?"
    r"|(?!((19|20)[0-9]{2}[ -]){3})[0-9]{4}(?P<sign>[ -])([0-9]{4}(?P=sign)){2}[0-9]{3}[0-9X]"
    r"|[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}"
    rf"|(?=[1-9][0-9]){_BYTE}(\.{_BYTE}){{3}}"
)
_ACCOUNT = r"(?<!\S)@\w+[._0-9]\w*|\b[A-Za-z]:\\Users\\\w|^/home/\w"
#: Pages of persons in social networks, in whose addresses stand no persons but groups, firms and searches too.
_NO_PAGE = r"(groups|pages|events|places|watch|search|explore|hashtag|share|sharer|home|about|p|i|reel|intent)([/?.]|$)"
_ACCOUNT += r"|(?<![\w.-])((www|m|[a-z]{2})\.)?(linkedin\.com/in|xing\.com/profile"
_ACCOUNT += rf"|(facebook|instagram|twitter|x|threads|tiktok)\.(com|net))/@?(?!{_NO_PAGE})\w"
#: What names one person, or one household: e-mail addresses, bank accounts (IBAN), telephones, names after a title.
ADDRESS = re.compile(
    r"[^@\s]+@[^@\s]+\.[^\W\d_]{2,}|\b[A-Z]{2}[0-9]{2}( ?[A-Z0-9]{4}){3,7}( ?[A-Z0-9]{1,3})?\b"
    r"|\b(?i:tel|telefon|telephone|phone|mobil|mobile|handy|fax)\b[.:]? *[+(]?([0-9][ /().-]*){6}"
    rf"|(?<![\w+])\+[1-9][0-9]([ /().-]*[0-9]){{7}}|(?<![\w-])({_NATIONAL})(?![\w-])"
    r"|(?<![\w-])(\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[ .-])[0-9]{3}[ .-][0-9]{4}(?![\w-])"
    rf"|(?<![\w.:-])({_REGISTERED})(?![\w-]|\.[0-9])|{_ACCOUNT}"
    rf"|^(Miss|Sra?)\.? +{_INITIAL}|\b({_TITLE})(\.-Ing\. *|\. *| +)"
    rf"(([a-z]{{1,5}}\.|(med|dent|{PARTICLES.pattern})(?= )) *)*{_INITIAL}"
    rf"|\b({_STAFF})\.? +(?!(?i:{_NO_STAFF})\b){_INITIAL}\w"
    rf"|(\b(MRS|FRAU|HERRN?|PROF|MR)|^(MISS|DR))\.? +{_NO_NAME}{_INITIAL}|\bMS\.? +{_INITIAL} {_INITIAL}{{2}}"
    rf"|\b(?i:dr|prof|mrs?|frau|herrn?|hr|schw)\. *(?!(?i:{_NO_STAFF})\b)[^\W\d_]{{3}}"
    rf"|^M\. +(?!{_DISEASES})({_INITIAL}[.-] ?)*{_INITIAL}\w|\b(?i:{_KIN})[ :,(]+{_INITIAL}\w+ {_INITIAL}\w"
)
#: Homes: a street and a house number, as Am Anger 104, Hauptstr. 12a, Ring 7/3, 12 High Street, Via Po 3; and what
#: columns of homes are called, where any text with a word and such a number is one.
_NUMBER = r"[0-9]+( ?[a-z])?( ?[-/] ?[0-9]+( ?[a-z])?)*"
_ENDS = r"(.* )?[^\W\d]*(str\.?|stra(ß|ss)e|weg|gasse|allee|platz|ring|ufer|damm|steig|straat|laan|gracht|gatan|vej)"
_STARTS = "(am|an de[rn]|auf de[rm]|im|in de[rn]|zum|zur|via|viale|piazza|calle|avenida|rua|ulica|rue|avenue|quai)"
_ROADS = "(street|st|road|rd|avenue|ave|lane|ln|drive|dr|court|ct|place|boulevard|blvd|square|terrace|close|crescent)"
HOME = re.compile(rf"(?i)(({_ENDS}|{_STARTS} \D+),? {_NUMBER}|{_NUMBER},? (.+ {_ROADS}\b\.?|{_STARTS} .+))(,.*)?")
ANY_HOME = re.compile(rf"(?i)(?=.*[^\W\d_]{{2}})(.+ {_NUMBER}|{_NUMBER},? .+)")
HOME_COLUMN = re.compile("(?i)add?ress|anschrift|stra(ss|ß)e|street|indirizzo|direcci[oó]n|domicil")
#: What may name persons among texts, in words.
PERSONAL = "names, e-mail addresses, telephones or accounts of persons, their homes, numbers or computers"
#: One word in capitals in brackets behind others: Penicillin (Sauer); who gave it, where Penicillin is listed too.
SIGNED = re.compile(r"(.+?) *\(([A-ZÀ-Þ][a-zß-ÿ'’-]{2,})\)")
#: Names with an initial: A. Whitfield, C. de la Cruz, Weber, S., Sabine W.
BY_INITIAL = re.compile(rf"({_INITIAL}\.[ -]?)+{_NAME}|{_NAME}, ?({_INITIAL}\.[ -]?)+|{_NAME} ({_INITIAL}\. ?)+")
#: Nouns behind which médico is no doctor: an insurance (seguro médico), a centre, an examination.
_NO_DOCTOR = r"(?<!seguro[_ ])(?<!centro[_ ])(?<!servicio[_ ])(?<!plan[_ ])(?<!examen[_ ])(?<!informe[_ ])"
#: What columns of names of persons are called.
NAME_COLUMN = re.compile(
    r"(?i)(^|[_\W])(sur|fore|first|last|full|family|given|maiden|middle)[_ ]?names?$"
    r"|^(nach|vor|familien|geburts|ruf|zu|m(ä|ae)dchen)name|^(birth[_ ]?name|(pre|pré|sur)nom|cognome|apellido)s?$"
    r"|(patient|person|client|customer|member|staff|employee|student|owner|contact|landlord|tenant|doctor)s?[_ ]?name"
    r"|^(landlord|tenant|next of kin|achternaam|voornaam|roepnaam|nazwisko|imi(ę|e)|sobrenome)$"
    r"|^(etternavn|efternavn|fornavn|efternamn|f(ö|oe?)rnamn)$"
    r"|^arts$|(^|[_\W])((huis|tand)arts|behandelaar|mantelzorger|verpleegkundige|lekarz|piel(ę|e)gniarka|m(é|e)decin"
    rf"|m(é|e)decin[_ ]traitant|infirmi(è|e)re?|{_NO_DOCTOR}m(é|e)dico|enfermer[oa]|l(ä|ae?)kare|sjuksk(ö|oe?)terska)$"
    r"|(arzt|ärztin|pflegekraft|(^|[_\W])pflege|schwester|pfleger|bearb(eiter)?|behandler|therapeut|berater|betreuer|lehrer"
    r"|sachbearbeitung|kontoinhaber|hebamme|gutachter|ansprechpartner|beamt(er?)?)(in)?$"
    r"|((^|[_\W])|(?-i:(?<=[a-z])(?=[A-Z])))(doctor|physician|nurse|clerk|case[_ ]?worker|teacher|officer|agent|handler"
    r"|staff|surgeon|author|editor|therapist|dentist|midwife|instructor|supervisor"
    r"|(signed|seen|entered|treated|reviewed|created|approved|checked|examined|recorded|written|edited)[_ ]?by)$"
)
#: What columns of places and things are called, at the end of their name or in front of "of": first of those that are
#: themselves called after persons, then of all; the words of things are no names.
_CALLED = (
    "city|town|county|state|country|nation|place|location|address|street|road|district|neighbou?rhoods?|borough|region"
    "|area|suburb|village|parish|stadt|ort|land|kreis|stra(ss|ß)e|station|hospital|clinic|ward|department|dept|school"
    "|university|college|company|employer|firm|brand|product|model|make|team|species|genus|event|disease|breed|park"
    "|building|manufacturer"
)
_THINGS = (
    f"{_CALLED}|drug|medication|substance|diagnosis|condition|procedure|treatment|cause|reason|type|category|class|group"
    "|kind|status|race|ethnicity|colou?r|religion|language|occupation|profession|job|beruf|title|position|sport|league"
    "|payment|method"
)
#: What columns are called that often hold names, logins, visa or plates of persons, whatever their texts look like.
ASKED_COLUMN = re.compile(
    r"(?i)(^|[_\W]|(?-i:(?<=[a-z])(?=[A-Z])))(visum|visa|consultant|conjoint|instructeur|clinician|physician|resp|responsible|worker|user"
    r"|user[_ ]?name|login|kin|relative|contact|staff|operator|signature|k(ü|ue)rzel|verantwortliche?r?|referrer"
    r"|prescriber|requester|initials|kfz|kennzeichen|(number|licen[cs]e)[_ ]?plate"
    r"|kontakt(person)?|angeh(ö|oe)rige[rn]?|(zu|über|ueber)weiser(in)?|einsender|anforderer"
    r"|(validier|erfass|erstell|befunde|behandel|beurteil|(an|auf)geleg|gepr(ü|ue)f)t[_ ]?(von|durch)"
    r"|(freigegeben|unterschrieben|aufgenommen)[_ ]?(von|durch)|assigned[_ ]?to"
    r"|(collect|verifi|validat|authori[sz]|perform|administer|draw|dispens|assess|register|confirm|prescrib|order|issu"
    r"|tak|handl|updat|modifi|complet|interview|witness|releas|inspect|report)(e?d|e?n)[_ ]?by"
    r"|(ingevoerd|afgenomen|behandeld|voorgeschreven)[_ ]?door|(prescrit|saisi|valid(é|e))[_ ]?par"
    r"|kenteken|immatriculation|targa)s?$"
)
#: Columns of things, and of what is called after persons.
THING_COLUMN, CALLED_COLUMN = (re.compile(rf"(?i)({each})s?$|^({each}) of\b") for each in (_THINGS, _CALLED))
#: Numbers of four parts, as addresses of computers have; versions and sections have parts below this one.
FOUR_PARTS, SMALL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9}){3}"), 100
#: What columns of versions and sections are called.
VERSION_COLUMN = re.compile(r"(?i)(^|[_\W])(version|firmware|section|chapter)")
#: Numbers of lots by their day: so many have one year, as no day of a month has that persons in Denmark begin with; and
#: persons in Sweden have a check digit.
LOT, LOTS = re.compile(rf"(20)?(?P<digits>(?P<year>[123][0-9]){_MONTH}{_DAY}-[0-9]{{4}})"), 10
#: Frequent first names that are no places, and no words that stand before others: Anna Meier is somebody anywhere.
GIVEN = re.compile(
    "adam|agnieszka|ahmed|aisha|alejandro|alessandro|ali|alice|amanda|amir|amy|andrea|andreas|andrew|angela|anita"
    "|anja|ann|anna|anne|annette|anthony|antonio|astrid|ayşe|barbara|beate|benjamin|bernd|birgit|brian|brigitte"
    "|carlos|carmen|caroline|catherine|christa|christina|christine|christoph|christopher|claudia|daniel|daniela|david"
    "|deborah|diana|dieter|dmitri|dorothea|edward|elena|elisabeth|elizabeth|elke|emily|emma|eric|erika|eva|fatima"
    "|fernando|florian|francesca|francesco|frank|franziska|françois|gabriele|georg|george|gerhard|giovanni|giulia"
    "|giuseppe|günter|hannah|hans|harald|hassan|heike|heinrich|heinz|helga|helmut|horst|ibrahim|ingrid|irina|isabel"
    "|isabelle|jakob|james|jan|jana|janet|jean|jennifer|jessica|joachim|joan|johann|johanna|john|jonas|joseph|josé"
    "|juan|julia|julian|jürgen|karen|karin|karl|katarzyna|katharina|katja|kevin|klaus|krzysztof|lars|laura|lena|leon"
    "|linda|lisa|lucas|luis|lukas|magdalena|manfred|manuel|marco|margaret|maria|marie|mario|marion|markus|marta"
    "|martha|martin|martina|mary|matthias|mehmet|melanie|michael|michaela|michelle|miguel|mohamed|mohammad|mohammed"
    "|monika|muhammad|mustafa|nancy|natalia|nicole|nikolai|nina|olga|oliver|omar|patricia|patrick|paul|pedro|peter"
    "|petra|philipp|pierre|piotr|priya|rachel|rainer|ralf|rebecca|renate|ricardo|richard|robert|roberto|ruth|samantha"
    "|samuel|sandra|sara|sarah|sebastian|sergio|silvia|simon|sofia|sophie|stefan|stefanie|stephanie|steven|susan"
    "|susanne|sven|svetlana|sylvia|tanja|teresa|thomas|thorsten|timothy|tomasz|ulrich|ulrike|ursula|ute|uwe|vera"
    "|volker|walter|werner|william|wolfgang|yusuf"
)
#: Words of places, of things and of answers, which few names of persons hold.
COMMON = re.compile(
    "north|south|east|west|new|old|upper|lower|great|little|big|central|inner|outer|san|santa|santo|los|las|el|la"
    "|le|les|saint|st|fort|port|lake|mount|river|bay|beach|hill|hills|heights|valley|park|island|islands|city"
    "|town|village|county|square|street|road|avenue|bridge|harbor|harbour|point|rock|springs|field|grove|garden"
    "|gardens|center|centre|general|internal|external|intensive|emergency|acute|chronic|primary|secondary|day"
    "|night|care|unit|room|clinic|ward|surgery|medicine|medical|nursing|hospital|school|university|service"
    "|services|department|office|station|not|no|none|non|other|unknown|any|all|full|part|high|low|very|more|less"
    "|partly|fully|never|always|good|bad|hour|time|year|month|week|left|right|black|white|red|blue|green|yellow"
    "|african|american|asian|native|pacific|indian|european|free|paid|public|private|credit|card|cash|bank|online"
    "|single|double|married|maybe|refused|declined|not applicable|prefer not to (say|answer)"
)
#: Of fewer texts, or where fewer than this share of them are two words in capitals, none is taken for a name; nor where
#: this share of those holds a word of places and things, or half of them the same last word: Heart and Renal Failure.
FEWEST, MOSTLY, HARDLY = 5, 2 / 3, 0.2
#: One word of so many capitals beside others may be a surname: shorter ones are short forms.
SURNAME = 4


def addresses(texts: Collection[str], column: str = "", beside: Collection[str] = ()) -> list[str]:
    """The texts that hold an e-mail address, a telephone or account number, or a name after a title or in brackets.

    And a first name with another name, but in columns of what is called after persons. All, where half of them or more
    are homes, or names with initials, which differ: U.S. Army and U.S. Navy are no persons.
    """
    form = ANY_HOME if HOME_COLUMN.search(column) else HOME
    if len(texts) >= FEWEST and 2 * sum(form.fullmatch(t.strip()[:90]) is not None for t in texts) >= len(texts):
        return list(texts)
    named = [t for t in texts if BY_INITIAL.fullmatch(t.strip())]
    initials = {re.search(rf"{_INITIAL}\.", t)[0] for t in named}  # type: ignore[index]
    if len(initials) > 1 and 2 * len(named) >= len(texts):
        return list(texts)
    signed = {t: match for t in texts if (match := SIGNED.fullmatch(t.strip())) and match[1] in {*texts, *beside}}
    full = [] if CALLED_COLUMN.search(column) else [t for t in texts if _full_name(t)]
    candidates = {*full, *(t for t, match in signed.items() if not COMMON.fullmatch(match[2].casefold()))}
    personal = {t for t in texts if ADDRESS.search(t)}
    things = _numbers_of_things(frozenset((*texts, *beside)), column) if personal else frozenset()
    return [t for t in texts if t in candidates or (t in personal and t.strip() not in things)]


@lru_cache(8)  # a draft asks of each text of a column
def _numbers_of_things(texts: frozenset[str], column: str) -> frozenset[str]:
    """Texts that number versions, sections or lots, by those beside them, and look like addresses or ids of persons."""
    bare = {t.strip() for t in texts}
    numbers = {t: [*map(int, t.split("."))] for t in bare if FOUR_PARTS.fullmatch(t)}
    things = {t for t, parts in numbers.items() if max(parts) < SMALL}
    first, large = {parts[0] for parts in numbers.values()}, sum(max(parts) > 255 for parts in numbers.values())
    varied = len(things) == len(numbers) >= FEWEST and len(first) > 2 and min(first) < 10
    parents = sum(t.rpartition(".")[0] in bare for t in numbers)
    if not (varied or VERSION_COLUMN.search(column) or large > HARDLY * len(numbers) or 2 * parents > len(numbers)):
        things = set()
    lots = [match for t in bare if (match := LOT.fullmatch(t))]
    for year in {lot["year"] for lot in lots}:
        own = [lot for lot in lots if lot["year"] == year]
        if len(own) >= max(LOTS, HARDLY * len(lots)) and 2 * sum(_checked(lot["digits"]) for lot in own) < len(own):
            things |= {lot[0] for lot in own}
    return frozenset(things)


def _checked(digits: str) -> bool:
    """Whether the last digit checks those before it, as of payment cards and of persons in Sweden."""
    every = [int(c) * (1 + k % 2) for k, c in enumerate(reversed(digits.replace("-", "")))]
    return sum(n - 9 * (n > 9) for n in every) % 10 == 0


def of_name_column(column: str, texts: Collection[str]) -> list[str]:
    """The texts of a column that is called as columns of names are, but for usual answers and common words."""
    return _telling(texts) if NAME_COLUMN.search(column) else []


def may_be_names(column: str, texts: Collection[str]) -> list[str]:
    """Those of a column's texts that may be names of persons, as Anna Meier and Meier, Anna are; none where few are.

    Rather too many columns than too few: who leaves out the wards Brown and Green loses a column, and no secret.
    """
    words = {t: own_words for t in texts if (own_words := _words_of_name(t))}
    if len(words) < FEWEST or len(words) < MOSTLY * len(texts) or THING_COLUMN.search(column):
        return []
    if sum(any(map(COMMON.fullmatch, own_words)) for own_words in words.values()) >= HARDLY * len(words):
        return []
    ((shared, same),) = Counter(word for own_words in words.values() for word in {*own_words}).most_common(1)
    first = sum(own_words[0] == shared for own_words in words.values())  # Lord Smith, Team Huber; but not Heart Failure
    return list(words) if 2 * same < len(words) or (first == same and not COMMON.fullmatch(shared)) else []


def persons_in_words(column: str, texts: Collection[str], which: str, fate: str = "as they are") -> str:
    """That texts of a column may name persons, or that its name says so, as a sentence; empty where nothing does.

    Args:
        which: texts these are: listed, frequent.
        fate: how they would be released, or where.
    """
    groups = of_name_column(column, texts), addresses(texts, column), may_be_names(column, texts)
    if named := len(max(groups, key=len)):
        most = f"{named:,} of the {len(texts):,} {which} texts hold {PERSONAL}"
        rest = "" if named == len(texts) else " (look at all of them: this finds some names, not all)"
        return f"{most}, and would be released {fate}{rest}"
    if len(_telling(texts)) < 2 or not ASKED_COLUMN.search(column):
        return ""
    return f"called as columns of persons' names, logins or plates are, and the {which} texts would be released {fate}"


def _telling(texts: Collection[str]) -> list[str]:
    """The texts but for answers, signs of gaps and common words, which name nobody."""
    return [t for t in texts if not (usual(w := t.strip()) or COMMON.fullmatch(w.casefold()))]


def _full_name(text: str) -> bool:
    """Whether a text is a frequent first name and another name: Maria Huber, HUBER, MARIA."""
    words = _words_of_name(text)
    first = words["," in text and -1] if words else ""
    return bool(GIVEN.fullmatch(first.partition("-")[0])) and not any(map(COMMON.fullmatch, words))


def _words_of_name(text: str) -> list[str]:
    """The two or three words of what may be a name (see Anna Meier too), in small letters; empty where it is none."""
    parts = [p.split() for p in text.strip().split(",")]
    words = [w for part in parts for w in part if not PARTICLES.fullmatch(w.lower() if w.isupper() else w)]
    words = list(dropwhile(str.islower, words))
    if len(parts) > 2 or not all(parts) or not 2 <= len(words) <= 3:
        return []
    capitals = all(w.isupper() and len(w) > 2 for w in words)  # HARTFORD, CT is none
    surname = len({w.isupper() for w in words}) == 2  # DURAND Luc; but MRI Brain is none
    named = all(_capitalised(w, capitals or (surname and len(w) >= SURNAME)) for w in words)
    return [w.casefold() for w in words] if named else []


def _capitalised(word: str, capitals: bool) -> bool:
    """Whether a word begins with a capital and ends without, or has capitals alone where all have; or is an initial."""
    if re.fullmatch(r"[^\W\d_]\.?", word):
        return word[0].isupper()
    return re.sub("['’-]", "", word).isalpha() and word[0].isupper() and (capitals or word[-1].islower())
