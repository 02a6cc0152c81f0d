"""Every command, example and cell of README.md and of docs/ runs as it stands there, in its order, on small tables.

What a line needs, a line before it makes. Comments in a page say:

<!-- small: SETTING=VALUE … --> settings that the tests add to the `run` commands of the next block
<!-- file: PATH -->             the next block is the content of that file

The pages of docs/adding have a test of their own: tests/plugins/test_guide.py. The code cells of the notebook run once,
in this process, by the hook that makes its page: what they name is looked at.
"""

import contextlib
import importlib.util
import io
import json
import math
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import yaml

import pipeline
from evaluation.metrics import METRICS
from mechanisms.public.persons.person_unit import FIELDS as PERSON_FIELDS
from mechanisms.public.plain_files import DEEPEST, LARGEST_TEXT
from mechanisms.public.queries.query_matrices import MATRIX_BITS
from mechanisms.public.rules.computed import FIELD
from mechanisms.public.rules.rule_transforms import RULE_FIELDS
from mechanisms.public.rules.table_rules import RULES
from mechanisms.public.rules.unit_ids import FIELDS as UNIT_FIELDS
from mechanisms.public.schema.column_parse import COMMON, FIELDS
from mechanisms.public.schema.schema_text import LARGEST as SCHEMA
from mechanisms.public.schema.table_schema import load_schema
from mechanisms.public.settings import declared
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.losses import losses_of
from mechanisms.public.units import MAX_SCALE, WEIGHT_BITS
from mechanisms.sensitive.deviates import SATURATED
from mechanisms.sensitive.exact_answers import LARGEST as ANSWERS
from mechanisms.sensitive.exact_answers import LIMIT
from mechanisms.sensitive.exponential import ROUNDING
from pipeline.conf_folder import CONF
from pipeline.demo import write_demo
from pipeline.demo.__main__ import main as write_table
from pipeline.look.rehearse import write_rows
from pipeline.settings.compose import compose_config
from pipeline.settings.compose import setting_names as keys
from pipeline.settings.config import DataConfig, EvaluationConfig
from pipeline.statement.verify import verify
from tests.pipeline.conftest import command
from tests.public.table_worlds import source

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {p.stem: p.read_text(encoding="utf-8") for p in sorted((ROOT / "docs").glob("*.md"))}
BLOCK = re.compile(r"((?:<!-- .*? -->\n)*)```(bash|yaml|python|diff)\n(.*?)```", re.DOTALL)


def blocks(page: str) -> list[tuple[dict[str, str], str, str]]:
    mark = r"<!-- (\w+):? ?(.*?) -->"
    return [(dict(re.findall(mark, said)), language, text) for said, language, text in BLOCK.findall(PAGES[page])]


def run_line(words: list[str], small: list[str]) -> None:
    """One command, in this process where it is the pipeline's."""
    if words[:3] == ["python", "-m", "pipeline"]:
        further = small if words[3] == "run" else []
        kept = [w for w in words[3:] if w.partition("=")[0] not in {s.partition("=")[0] for s in further}]
        assert command(*kept, *further) == 0, words
    elif words[:3] == ["python", "-m", "pipeline.demo"]:
        assert write_table([words[3], "500"]) == 0, words
    elif words[0] == "python" and words[1].startswith("docs/"):
        subprocess.run([sys.executable, ROOT / words[1], *words[2:]], check=True)
    elif words[0] == "openssl":
        subprocess.run(words, check=True, capture_output=True)
    elif words[:2] == ["cp", "-r"]:
        shutil.copytree(words[2], words[3])
    else:
        raise AssertionError(f"the tests do not know how to run {words}")


#: Where the README sends its reader next: these run always, the other pages by `make slow`, whose settings exist.
FIRST = ("bring-your-own-table", "python")
RUN = [p for p in PAGES if any(b[1] in {"bash", "python"} for b in blocks(p))]


@pytest.mark.parametrize("page", [p if p in FIRST else pytest.param(p, marks=pytest.mark.slow) for p in RUN])
def test_every_command_of_a_page_runs(page, folder, capsys):
    names: dict[str, object] = {}
    for marks, language, text in blocks(page):
        if "file" in marks:
            Path(marks["file"]).write_text(text, encoding="utf-8")
        elif language == "bash":
            for words in (shlex.split(line) for line in text.splitlines() if line.strip()):
                run_line(words, marks.get("small", "").split())
        elif language == "python":
            exec(text, names)
    assert "fix: " not in capsys.readouterr().err
    if page == "bring-your-own-table":
        assert '"private": true' in Path("admissions-release/privacy.json").read_text()
        assert len(pd.read_csv("ward.csv")) == 8
    if page == "python":
        assert len(names["made"]) == 1000 and names["same"].shape == names["made"].shape  # type: ignore[arg-type, attr-defined]
        assert sorted(p.name for p in folder.iterdir()) == ["outputs"]
    if page == "sweeps-and-experiments":
        assert same_form(Path("error_by_epsilon.svg"), ROOT / "docs" / "figures" / "error_by_epsilon.svg")


MADE = re.compile(r'(?:hydra\.(?:run|sweep)\.dir=|\boutput=|folder="|\.save\(")((?:outputs|multirun)/\w+)')


def test_no_two_pages_make_one_folder_nor_does_one_page_twice():
    """Whoever follows all pages in one place is never told that a folder holds a run already."""
    pages = {**PAGES, "README": README}
    made = [folder for text in pages.values() for folder in MADE.findall(text)]
    assert "outputs/mine" in made and "multirun/figure" in made
    assert sorted(made) == sorted(set(made))


def same_form(made: Path, kept: Path) -> bool:
    """Two drawings with the same size and the same words; the noise is fresh, so that points and ticks differ."""

    def form(path: Path) -> tuple[object, ...]:
        drawing = ElementTree.parse(path).getroot()
        words = [t.text or "" for t in drawing.iter("{http://www.w3.org/2000/svg}text")]
        return drawing.get("width"), drawing.get("height"), [w for w in words if re.search("[a-zA-Zε]", w)]

    return form(made) == form(kept)


def test_every_experiment_stands_on_its_page_with_its_command():
    page = PAGES["sweeps-and-experiments"]
    for path in (CONF / "experiment").glob("*.yaml"):
        given = re.findall("^# .*?(python -m pipeline run .*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert path.stem == "none" or (f"| `{path.stem}` |" in page and any(g in page for g in given)), path


def test_every_choice_and_metric_stands_on_its_page():
    assert all(f"`{name}`" in PAGES["score-and-report"] for name in METRICS)
    for group, page in (("selection", "select-and-measure"), ("synthesis", "synthesize"), ("data", "load-and-clip")):
        for path in (CONF / group).glob("*.yaml"):
            assert f"`{path.stem}`" in PAGES[page] or path.stem == "table", path


def test_every_function_of_python_stands_in_a_call_on_a_page():
    """`pipeline.itemsets` stood on none, and has no command."""
    own = {n for n in pipeline.__all__ if getattr(getattr(pipeline, n), "__module__", "") == "pipeline.api"}
    pages = "\n".join(PAGES.values())
    assert {n for n in own if not re.search(rf"\b{n}\(", pages)} == {"synthesize"}, "of which `synth` is the command"


#: Choices of whole files, and where Hydra leaves a run and a sweep.
HYDRAS = {"hydra.run.dir", "hydra.sweep.dir", "hydra/launcher"}
HYDRAS |= {"experiment", "data", "engine", "selection", "synthesis"}
GROUPS = "privacy|selection|synthesis|data|evaluation|plan|engine|budget|limits|statement|experiment"
SETTING = re.compile(rf"`((?:{GROUPS})\.(?!(?:json|md|py|html)\b|schema\.)[a-z_]+)(?=[`=. ])")
#: Pages beside docs/ that speak of settings; those of docs/adding speak of their own too.
BESIDE = {name: (ROOT / f"{name}.md").read_text(encoding="utf-8") for name in ("PRIVACY", "SECURITY", "CONTRIBUTING")}


def test_settings_and_links_of_the_pages_exist():
    choices = [f"selection={path.stem}" for path in (CONF / "selection").glob("*.yaml")]
    experiments = [f"experiment={name}" for name in ("mgd_table1", "nist_crc", "anita_tradeoff", "all")]
    known = {"privacy.max_records", *keys(compose_config("config", []))}
    for choice in ("data=table", "engine=spark", *experiments, *choices):
        known |= {*keys(compose_config("config", [choice]))}
    for name, text in {**PAGES, **BESIDE, "README": README}.items():
        for setting in SETTING.findall(text):
            assert setting in known, (name, setting)
        for line in re.findall(r"^python -m pipeline ((?:run|plan) .*)$", text, flags=re.MULTILINE):
            given = [w.lstrip("+-").partition("=")[0] for w in shlex.split(line) if "=" in w]
            assert {*given} <= known | HYDRAS, (name, line)
        for link in re.findall(r"\]\((?!https?:)([^)#]+)", text):
            assert (ROOT / ("docs" if name in PAGES else "") / link).exists(), (name, link)


def in_words(number: float, digits: int) -> str:
    """As PRIVACY.md writes it: 1.1 · 10¹²."""
    mantissa, _, power = f"{number:.{digits - 1}e}".partition("e")
    return f"{mantissa} · 10{raised(int(power))}"


def raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


#: What may stop a run, by its name in a statement → how it is set.
STOPS = {
    "column": "`outside: refuse`",
    "rule": "`conflict: refuse`",
    "missing_unit": "`privacy.missing_unit=refuse`",
    "clip": "`privacy.clip=none`",
    "public_table": "`selection.public` or `synthesis.public`",
    "unplaced": "`data.max_unplaced`",
}


def test_the_numbers_and_the_stops_of_privacy_md_are_those_of_the_code():
    said = " ".join((ROOT / "PRIVACY.md").read_text(encoding="utf-8").split())
    most = next(s.most for s in declared(EvaluationConfig) if s.name == "holdout")
    for words in (
        f"leaves each unit out with this probability, at most {'one half' if most == 0.5 else most},",
        f"`data.max_unplaced` ({DataConfig.max_unplaced} by default)",
        f"weights are whole multiples of 2{raised(-WEIGHT_BITS)} records, rounded down",
        f"on a lattice of 2{raised(-WEIGHT_BITS)} records (2{raised(-WEIGHT_BITS - MATRIX_BITS)} for adaptive grids",
        f"ε gives up 2{raised(round(math.log2(ROUNDING)))} for rounding",
        f"within ±{in_words(LIMIT / 2**WEIGHT_BITS, 2)} records",
        f"a scale above {in_words(MAX_SCALE, 2)} records",
        f"for more than {in_words(ANSWERS / 2**WEIGHT_BITS, 2)} records",
        f"draws beyond {in_words(SATURATED / 2**WEIGHT_BITS, 1)} records",
        f"more than {DEEPEST} levels deep, texts above {LARGEST_TEXT >> 20} MiB (a schema: {SCHEMA >> 20} MiB)",
    ):
        assert words in said
    kinds = yaml.safe_load((ROOT / "pipeline/statement/formats/privacy.schema.yaml").read_text(encoding="utf-8"))
    stops = [kind["properties"]["stop"] for kind in kinds["$defs"]["stop"]["oneOf"]]
    assert {name for stop in stops for name in stop.get("enum", [stop.get("const")])} == STOPS.keys()
    stopping = said.partition("### Whether a run fails")[2].partition("###")[0]
    assert all(words in stopping for words in STOPS.values())


#: Settings of the README that the tests make smaller: nothing else of it changes.
SMALL = {"50000": "600", "data.rows=50000": "data.rows=600", "data.rows=20000": "data.rows=600"}


def commands() -> list[list[str]]:
    """The lines of the README's bash blocks that start a program of the package, in their order."""
    blocks = re.findall(r"```bash\n(.*?)```", README, flags=re.DOTALL)
    lines = [shlex.split(line) for block in blocks for line in block.splitlines()]
    return [[SMALL.get(word, word) for word in words[2:]] for words in lines if words[:2] == ["python", "-m"]]


@contextlib.contextmanager
def _heard():
    with contextlib.redirect_stderr(io.StringIO()) as said, contextlib.redirect_stdout(said):
        yield said


def test_every_command_and_the_python_example_of_the_readme_run(folder):
    """In one folder, as they stand there: each finds what those before it made."""
    with _heard() as heard:
        for program, *arguments in commands():
            assert (write_table(arguments) if program == "pipeline.demo" else command(*arguments)) == 0, arguments
    said = heard.getvalue()
    names = ["my.csv", "schema", "check", "rehearse", "run", "plan", "run", "synth", "query", "query", "query"]
    assert [c[1] for c in commands()] == [*names, "verify", "score", "score", "run", "run"]
    assert len(pd.read_csv("outputs/again/release/synthetic.csv")) == 1000
    assert len(list(Path("multirun/demo").glob("*/*/release/privacy.json"))) == 4
    assert Path("scores.json").exists()
    assert Path("outputs/mine/internal/report.html").exists()
    shown = Path("report.html").read_text(encoding="utf-8")
    assert "pie chart score" in shown or "pie_chart" in shown  # so few rows may leave a synthetic table without any
    assert len(pd.read_csv("hour.csv")) == 24
    assert "fix: " not in said and "does NOT hold" not in said
    made = Path("my.csv").read_bytes()
    Path("my.csv").rename("toured.csv")
    assert write_table(commands()[0][1:]) == 0 and Path("my.csv").read_bytes() == made, "no command writes over it"

    drafted = Path("my.yaml").read_text(encoding="utf-8")
    confirmed = re.sub("^confirmed_public: .*$", "confirmed_public: true", drafted, flags=re.MULTILINE)
    confirmed = re.sub("^source: .*$", "source: made up for a test", confirmed, flags=re.MULTILINE)
    Path("my.yaml").write_text(confirmed, encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert code is not None
    given: dict[str, object] = {}
    exec(code[1], given)
    assert len(given["made"]) == 1000 and given["release"].private  # type: ignore[arg-type, attr-defined]
    assert verify(Path("outputs/python")).sound


def test_the_table_of_the_tour_is_the_one_that_its_run_protects_and_is_never_written_over(folder, capsys):
    assert write_table(commands()[0][1:]) == 0
    table = pd.read_csv("my.csv")
    write_demo(folder / "same.parquet", rows=600, seed=0)
    assert (table["caller_id"] == pd.read_parquet("same.parquet")["caller_id"]).all()
    before = Path("my.csv").read_bytes()
    assert write_table(["my.csv", "7"]) == 1 and Path("my.csv").read_bytes() == before
    assert write_table([]) == write_table(["x.csv", "many"]) == write_table(["x.txt"]) == 1
    assert "already" in (said := capsys.readouterr().err) and "python -m pipeline.demo FILE" in said


PAGE = PAGES["schema"]
#: Rows under an example.
ROWS = 4


@dataclass(frozen=True)
class Example:
    """A schema of the page with the rows beside it, which are made from it (rows) or read under it (table)."""

    title: str
    kind: str
    schema: str
    shown: str


def examples(page: str) -> list[Example]:
    made = re.compile(r"<!-- rows -->\n```yaml\n(.*?)```\n```csv\n(.*?)```", re.DOTALL)
    read = re.compile(r"<!-- table -->\n```csv\n(.*?)```\n```yaml\n(.*?)```", re.DOTALL)
    found = []
    for section in re.split(r"\n#+ ", page):
        title = section.partition("\n")[0]
        found += [Example(title, "rows", m[1], m[2]) for m in made.finditer(section)]
        found += [Example(title, "table", m[2], m[1]) for m in read.finditer(section)]
    return found


def rows_of(schema: str, folder: Path) -> str:
    for name, text in re.findall(r"<!-- file: (.*?) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "s.yaml").write_text(schema, encoding="utf-8")
    facts = load_schema(folder / "s.yaml")
    write_rows(folder / "rows.csv", facts, ROWS, column=None, most=1, rng=np.random.default_rng(0))
    return (folder / "rows.csv").read_text(encoding="utf-8")


EXAMPLES = examples(PAGE)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.kind == "rows"], ids=lambda e: e.title)
def test_the_rows_on_the_page_are_those_that_the_schema_makes(example, tmp_path):
    assert rows_of(example.schema, tmp_path) == example.shown and example.shown.count("\n") == ROWS + 1


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.kind == "table"], ids=lambda e: e.title)
def test_the_schema_places_every_value_of_the_table_on_the_page(example, tmp_path):
    (tmp_path / "s.yaml").write_text(example.schema, encoding="utf-8")
    (tmp_path / "t.csv").write_text(example.shown, encoding="utf-8")
    facts = load_schema(tmp_path / "s.yaml")
    _, report = encode_columns(source(tmp_path / "t.csv"), facts, workdir=tmp_path / "work")
    assert losses_of(report, facts) == () and report.rows == example.shown.count("\n") - 1


def test_every_section_has_an_example_and_every_field_and_rule_a_section(tmp_path):
    titles = [s.partition("\n")[0] for s in re.split(r"\n### ", PAGE)[1:]]
    assert {e.title for e in EXAMPLES} == set(titles)
    named = set(re.findall(r"`([a-z_]+)`", " ".join(titles)))
    assert {*RULES, "base", "gaps", *FIELDS} <= named
    first = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "first.yaml").write_text(first[1], encoding="utf-8")
    assert load_schema(tmp_path / "first.yaml")["age"].missing_texts == ("-999",)


def field_names(content: object) -> set[str]:
    """All names of fields in a schema, at any depth."""
    inner = content.values() if isinstance(content, dict) else content if isinstance(content, list) else []
    return {str(k) for k in (content if isinstance(content, dict) else ())}.union(*map(field_names, inner))


def test_every_field_of_columns_and_rules_stands_in_an_example_that_is_executed():
    of_units = {*UNIT_FIELDS, *PERSON_FIELDS}
    fields = {*COMMON, *of_units, *RULES, FIELD, *(f for own in (FIELDS, RULE_FIELDS) for k in own for f in own[k])}
    shown = set().union(*(field_names(yaml.safe_load(e.schema)) for e in EXAMPLES))
    words = set(re.findall(r"\w+", " ".join(e.schema for e in EXAMPLES)))
    assert fields <= shown | {"True", "False", "true", "false"}, fields - shown
    assert {"discover", "month", "refuse", "missing", "common"} <= words


NOTEBOOK = json.loads((ROOT / "docs" / "notebook.ipynb").read_text(encoding="utf-8"))
CODE = [c for c in NOTEBOOK["cells"] if c["cell_type"] == "code"]


def test_the_notebook_is_whole_and_holds_no_output():
    assert (NOTEBOOK["nbformat"], NOTEBOOK["nbformat_minor"]) == (4, 5)
    assert all(c["outputs"] == [] and c["execution_count"] is None for c in CODE)
    ids = [c["id"] for c in NOTEBOOK["cells"]]
    assert len(set(ids)) == len(ids) and len(CODE) > 8


@pytest.fixture(scope="module")
def ran() -> tuple[str, dict]:
    """The page of the site, and what its cells named."""
    path = ROOT / "docs" / "site" / "notebook_page.py"
    spec = importlib.util.spec_from_file_location("notebook_page", path)
    assert spec is not None and spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    names: dict = {}

    def at_the_end(folder: Path) -> None:
        names["files"] = sorted(p.name for p in folder.iterdir())
        names["sound"] = verify(folder / "visits-release").sound

    return hook.on_page_markdown(PAGES["notebook"], names=names, at_the_end=at_the_end), names


def test_the_notebook_runs_from_top_to_bottom(ran):
    names = ran[1]
    release, frame, made, summer = (names[n] for n in ("release", "frame", "made", "summer"))
    assert release.private and names["again"].statement == release.statement
    assert made.dtypes.equals(frame.drop(columns="patient").dtypes) and len(made) == 2000
    assert names["again"].sample(5).dtypes.equals(made.dtypes), "kinds are kept"
    assert len(summer) == 500 and (summer["ward"] == "children").all()
    assert summer["day"].between("2025-06-15", "2025-08-31").all() and "exact" in summer.attrs["given"]["rows"]
    assert release.count({"age": [30, 50], "ward": "surgery"})["cut"][0].count("age") == 2
    assert names["files"] == ["visits-release", "visits-release.frame.json"] and names["sound"]
    assert made["age"].mean() == pytest.approx(frame["age"].mean(), abs=5)
    assert made.groupby("ward")["age"].mean()["children"] < 18 < made["age"].mean()


def test_the_page_of_the_site_shows_every_cell_with_its_tables_pictures_and_texts(ran):
    page = ran[0]
    assert all("".join(c["source"]) in page for c in NOTEBOOK["cells"])
    assert "<!-- notebook" not in page and page.count("```python") == len(CODE)
    assert page.count('<div class="output">') >= 8 and page.count("data:image/svg+xml") == 1
    assert "no column loses more than" in page, "what is printed"
