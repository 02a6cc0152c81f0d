"""Values, names and damages that people get wrong, by the commands and settings that they belong to."""

from collections.abc import Callable

from tests.pipeline.conftest import TOWN
from tests.pipeline.refused import REHEARSE

RUN = ["run", *TOWN, "hydra.run.dir=out", "budget.ledger=town.json"]
CHECK = ["check", "data.path=town.csv", "data.schema=town.yaml"]
SYNTH, QUERY = ["synth", "from=R/release", "output=again"], ["query", "from=R/release"]
SCORE = ["score", "real=town.csv", "synthetic=R/release/synthetic.csv", "schema=town.yaml", "output=scores.json"]
SWEEP = ["run", "-m", *TOWN, "hydra.sweep.dir=swept", "budget.ledger=town.json"]
BASES = {
    "run": RUN,
    "plan": ["plan", *TOWN],
    "sweep": SWEEP,
    "rehearse": REHEARSE,
    "check": CHECK,
    "synth": SYNTH,
    "query": [*QUERY, "marginal=[age]"],
    "score": SCORE,
    "verify": ["verify", "R/release"],
    "report": ["report", "R", "output=seen.html"],
    "budget": ["budget", "town.json"],
    "schema": ["schema", "town.csv", "output=draft.yaml"],
}
#: Those whose first argument is a file, without it.
ALONE = {"verify": ["verify"], "report": ["report", "output=seen.html"], "budget": ["budget"]}
ALONE["schema"] = ["schema", "output=draft.yaml"]
#: Commands that take the settings of a run.
OF_RUNS = ("run", "plan", "sweep", "rehearse")
NO_SETTINGS = ["=5", "==", "privacy.epsilon", "a=[", "a={", "a='", "~data", "+new=1", "x=${nope}", "a,b=1"]
NO_WORDS = ["nonsense", "", "[a]", "{a: 1}", "Ω", "'a b'", "x" * 200, "${nope}"]
WORDS = ["privacy.accountant", "privacy.unit", "mechanism", "synthesis", "selection", "data", "release.format"]
WORDS += ["evaluation.metrics", "experiment"]
LISTS = {
    "selection.marginals": [
        *("[]", "[[]]", "[age]", "[[nobody]]", "[[age,age]]", "x", "{a: b}", "[[age,sex],[age,nope]]")
    ],
    "selection.k": ["[9]", "x", "[1.5]"],
    "selection.closure": ["[[nobody]]", "x", "[age]"],
    "selection.weights": ["[{marginal: [age]}]", "[3]", "x", "[{marginal: [nobody], weight: 2}]"],
    "accept": ["[{}]", "[{metric: l1}]", "[{metric: nothing, marginals: 2}]", "x", "[{metric: l1, marginals: 99}]"],
    "budget.limit": ["{}", "{epsilon: -1, delta: 0}", "3", "{epsilon: 1, delt: 0}", "{epsilon: x, delta: 0}"],
    "privacy.unit_id_rules": ["x", "[nonsense]"],
    "data.roles": ["{time: nobody}", "{nonsense: age}", "x", "[age]"],
    "plugins": ["[no_such_module]", "x"],
}
NAMES = ["nope.csv", "R", "no/such/folder/x.csv", "/", "town.yaml/x", "Ω\n'x\"y", "${nope}", "x" * 300, "", "~nobody/x"]
#: Where a command takes a file or a folder.
PLACES = {
    "run": ("data.path", "data.schema", "statement.key", "hydra.run.dir", "budget.ledger"),
    "plan": ("data.schema",),
    "sweep": ("data.path", "data.schema", "budget.ledger"),
    "rehearse": ("data.schema", "data.path"),
    "check": ("data.path", "data.schema"),
    "synth": ("from", "statement.key"),
    "query": ("from",),
    "score": ("real", "synthetic", "schema", "holdout"),
    "verify": ("from", "key"),
    "report": ("run",),
    "budget": ("file",),
    "schema": ("table",),
}
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda b: b"",
    "binary": lambda b: bytes(range(1, 256)) * 2,
    "cut off": lambda b: b[: max(1, len(b) // 3)],
    "a line of one megabyte": lambda b: b + b"x" * 3_000_000 + b"\n",
    "UTF-16": lambda b: b.decode("utf-8", "replace").encode("utf-16"),
    "Latin-1": lambda b: b.replace(b"a", "ä".encode("latin-1")),
    "something else": lambda b: b'{"an": "other"}',
    "null": lambda b: b"null",
    "a zip archive": lambda b: b"PK\x03\x04" + b,
}
HEADERS = {
    "a name twice": (b"person,age,sex,job,note", b"person,age,age,job,note"),
    "a name is absent": (b"sex", b"gender"),
    "another delimiter": (b",", b";"),
    "an open quote": (b"job", b'"job'),
    "a cell too many": (b",x\n", b",x,y\n"),
}
SCHEMAS = {
    "no columns": ("columns:", "colums:"),
    "a kind that is none": ("kind: integer", "kind: whole"),
    "a kind in letters of its own": ("kind: integer", "Kind: integer"),
    "bounds that are crossed": ("min: 0, max: 99", "min: 99, max: 0"),
    "a bound that is a word": ("max: 99", "max: many"),
    "a bound that is endless": ("max: 99", "max: .inf"),
    "a bound that is no number": ("min: 0", "min: .nan"),
    "no bounds": ("min: 0, max: 99, ", ""),
    "no bins": ("{count: 10}", "{count: 0}"),
    "bins below nothing": ("{count: 10}", "{count: -4}"),
    "bins of a wrong form": ("{count: 10}", "[9, 5, 1]"),
    "bins in a word": ("bins: {count: 10}", "bins: lots"),
    "a value twice": ("[f, m]", "[f, f]"),
    "no values": ("[f, m]", "[]"),
    "values of a wrong form": ("[f, m]", "{f: m}"),
    "an open bracket": ("[f, m]", "[f, m"),
    "a field that is none": ("missing: false}", "mising: false}"),
    "a truth in a word": ("missing: false", "missing: perhaps"),
    "an absent column": ("  sex:", "  gender:"),
    "a tab": ("  sex:", "\tsex:"),
    "a list of columns": ("columns:\n  age:", "columns:\n  - age:"),
    "a column twice": ("  sex:", "  age:"),
    "a column left out as well": ("leave_out: [note]", "leave_out: [note, age]"),
    "a left out column that is none": ("leave_out: [note]", "leave_out: 7"),
    "an anchor into nothing": ("[f, m]", "*nothing"),
    "a tag of Python": ("name: town", "name: !!python/object/apply:os.getcwd []"),
    "a rule that is none": ("leave_out:", "impossibel: []\nleave_out:"),
    "an impossible rule": ("leave_out:", "impossible: [{nobody: [1]}]\nleave_out:"),
    "an order of nothing": ("leave_out:", "ordered: [[age, nobody]]\nleave_out:"),
    "another id": ("leave_out:", "unit_id: 7\nleave_out:"),
    "nothing confirmed in a word": ("confirmed_public: true", "confirmed_public: perhaps"),
}
IN_A_RELEASE = ("schema.yaml", "privacy.json", "manifest.json", "synthetic.csv", "measurements/index.json")
