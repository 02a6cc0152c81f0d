"""`run` from end to end: a table in; a private table, its statement and scores out; its look before, rows in chunks."""

import filecmp
import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.schema.dialect import Dialect
from mechanisms.public.schema.table_schema import load_schema, parse_schema
from mechanisms.public.tables.scan import open_table
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.private_table import EMBEDDED
from mechanisms.sensitive.shared_table import shared_private
from pipeline import api
from pipeline.folders import RunFolder, changes, claimed
from pipeline.look import run_look
from pipeline.look.run_look import failure_lines, look_before_spending
from pipeline.measuring.attempts import DrawChunk, streamed_rows
from pipeline.release_folder import read_release
from pipeline.settings import build, memory
from pipeline.settings.compose import compose_config
from pipeline.settings.config import Config, load_config
from pipeline.settings.design import bound_settings, design_of, post_processing
from pipeline.settings.specs import build_specs
from pipeline.stage_bars import Stages
from pipeline.stages import run
from pipeline.statement.signing import file_digests
from synthesis.numbers.value_shapes import for_synthesis
from synthesis.synthesizers import SYNTHESIZERS
from tests.pipeline.conftest import TOWN, command, people, reply, statement_of
from tests.public.table_worlds import source

UNSCORED = ["evaluation.enabled=false"]


def test_a_run_leaves_a_release_and_an_internal_folder_and_nothing_else(one_run):
    out = one_run
    assert sorted(p.name for p in out.iterdir()) == ["internal", "release"]
    assert sorted(p.name for p in (out / "release").iterdir()) == [
        *("croissant.json", "deployment.yaml", "manifest.json", "marginals", "measurements", "privacy.json"),
        *("schema.yaml", "statement.html", "synthetic.csv"),
    ]
    said = "".join(p.read_text() for p in (out / "release").rglob("*") if p.suffix in {".json", ".yaml"})
    assert "town.csv" not in said and str(out.parent) not in said, "no path of the raw table"
    assert stat.S_IMODE((out / "internal").stat().st_mode) == 0o700
    assert "NOT PRIVATE" in (out / "internal" / "NOT_PRIVATE.txt").read_text()
    assert not (out / "internal" / "tmp").exists()
    scores = json.loads((out / "internal" / "scores.json").read_text())
    assert 0 <= scores["mgd"]["score"] < 5
    assert {"attributes", "aemc"} <= scores["mgd"]["marginals"][0].keys()
    assert 0 <= scores["tvd"]["2-way"]["mean"] <= 1
    assert (out / "internal" / "hydra" / "overrides.yaml").exists()


def test_the_synthetic_table_has_the_columns_kinds_and_shape_of_the_real_one(town):
    assert command("run", *TOWN, *UNSCORED, "hydra.run.dir=out", "privacy.epsilon=100", "synthesis.rows=500") == 0
    made = pd.read_csv(town / "out" / "release" / "synthetic.csv")
    assert list(made.columns) == ["age", "sex", "job"]
    assert len(made) == 500
    assert made["age"].between(0, 99).all()
    assert made["age"].dtype.kind == "i"
    real = people(600)
    assert abs((made["sex"] == "f").mean() - (real["sex"] == "f").mean()) < 0.05
    young = made["age"] < 30
    assert (made.loc[young, "job"] == "baker").mean() > 0.9


def test_a_file_of_a_schema_alone_says_that_the_table_is_ones_own(town):
    """As `plan`, `check` and `rehearse` read it; of a sweep too."""
    own = [*TOWN[1:], *UNSCORED, "selection=oneway", "synthesis=independent"]
    assert command("run", *own, "hydra.run.dir=out") == 0
    assert statement_of(town / "out")["public_facts"][0]["name"] == "town"
    assert command("run", "-m", *own, "privacy.epsilon=1,2", "hydra.sweep.dir=many") == 0
    assert len(list((town / "many").glob("*/release/privacy.json"))) == 2


def test_the_number_of_rows_is_noisy_by_default_and_public_under_replace(town):
    for name, relation in (("a", "add_remove"), ("b", "replace")):
        settings = ["privacy.epsilon=0.3", f"privacy.neighbouring={relation}", f"hydra.run.dir={name}"]
        assert command("run", *TOWN, *UNSCORED, *settings) == 0
    rows = {name: len(pd.read_csv(town / name / "release" / "synthetic.csv")) for name in "ab"}
    assert rows["b"] == 600
    assert abs(rows["a"] - 600) < 200


def refuse(*_, **__):
    raise UserError("too many rows")


def test_a_synthesis_that_ends_in_an_error_is_another_one_at_no_further_cost(town, capsys, monkeypatch):
    own = ["run", *TOWN, "selection=oneway", "hydra.run.dir=out"]
    with monkeypatch.context() as late:
        late.setattr(memory, "check_rows", refuse)
        assert command(*own, "synthesis=pgm", *UNSCORED) == 1
    free = "(synthesis.*, release.*, evaluation.* and statement.* may differ) and hydra.run.dir="
    assert free in capsys.readouterr().err
    inside = town / "out" / "internal"
    before = {p: p.read_bytes() for p in [inside / "ledger.jsonl", *inside.glob("answers/*")]}
    assert len(before) == 4
    other = ["synthesis=independent", "synthesis.rows=77", "release.format=parquet", "resume=true"]
    for fixed in ("evaluation.holdout=0.5", "privacy.epsilon=2", "selection=pairs"):
        assert command(*own, *other, *UNSCORED, fixed) == 1
        assert "changed since the run began: settings." + fixed.partition("=")[0] in capsys.readouterr().err
    assert command(*own, *other, *UNSCORED) == 0
    assert {p: p.read_bytes() for p in before} == before
    assert len(pd.read_parquet(town / "out" / "release" / "synthetic.parquet")) == 77
    release = file_digests(town / "out" / "release")
    assert command(*own, *other, "evaluation.metrics=[tvd]", "evaluation.references=false") == 0
    assert (inside / "scores.json").exists() and file_digests(town / "out" / "release") == release
    for gone in (False, True):
        if gone:
            shutil.rmtree(town / "out" / "release")
        said = reply(capsys, *own, *other, "synthesis.rows=78", code=1).err
        assert "changed since the run began: settings.synthesis.rows" in said
        assert ("python -m pipeline synth from=" in said) is not gone
        assert gone or "(evaluation.* may differ)" in said
    assert command(*own, *other) == 0, "made anew from the same answers"


@pytest.mark.slow
def test_who_publishes_may_change_until_there_is_a_release_and_is_never_taken_and_ignored(town, capsys, monkeypatch):
    own = ["run", *TOWN, "selection=oneway", "synthesis=independent", *UNSCORED, "hydra.run.dir=out"]
    with monkeypatch.context() as late:
        late.setattr(memory, "check_rows", refuse)
        assert command(*own, "statement.publisher=Town") == 1
    assert "release.*, evaluation.* and statement.* may differ" in " ".join(capsys.readouterr().err.split())
    assert command(*own, "statement.publisher=County", "resume=true") == 0
    release = town / "out" / "release"
    before = file_digests(release)
    assert "County" in (release / "statement.html").read_text(encoding="utf-8")
    for late_words in (["statement.publisher=Land"], [], ["statement.publisher=County", "statement.date=2027-03-01"]):
        said = " ".join(reply(capsys, *own, *late_words, "resume=true", code=1).err.split())
        assert "changed since the run began: settings.statement." in said
        assert "out/release says who publishes it, and stays as it is; move it away, and the same command" in said
        assert file_digests(release) == before
    release.rename(town / "old")
    assert command(*own, "statement.publisher=Land", "resume=true") == 0
    assert "Land" in (release / "statement.html").read_text(encoding="utf-8")
    answers = "measurements/answers.npz"
    assert (release / answers).read_bytes() == (town / "old" / answers).read_bytes()


@pytest.mark.parametrize(
    ("settings", "free", "fixed"),
    [
        ([], ["synthesis.kind", "synthesis.options.max_cells", "evaluation.metrics", "statement.date"], ["accept"]),
        (["selection=aim"], ["synthesis.rows", "synthesis.seed"], ["synthesis.kind", "synthesis.options.max_cells"]),
        (["accept=[{metric: l1, marginals: 1, at_most: 9}]"], ["release.format"], ["synthesis.rows", "accept"]),
        (["synthesis=gum", "synthesis.public=town.csv"], ["synthesis.options.alpha"], ["synthesis.options.public"]),
        (["evaluation.holdout=0.3"], ["evaluation.k"], ["evaluation.holdout", "data.path", "privacy.epsilon"]),
    ],
)
def test_whatever_enters_a_charge_or_is_compared_with_rows_stays_when_a_run_goes_on(town, settings, free, fixed):
    config = load_config([*TOWN, *settings])
    specs = build_specs(config)
    plan = design_of(specs, build.build_schema(specs)).plan
    folder = RunFolder(town / "out")
    may = post_processing(config, plan, folder)
    assert [may(f"settings.{name}") for name in [*free, *fixed]] == [True] * len(free) + [False] * len(fixed)
    assert not any(may(name) for name in ("start", "data", "schema", "pipeline", "plugins"))
    folder.release.mkdir(parents=True)
    late = [name for name in [*free, *fixed] if may(f"settings.{name}")]
    assert late == [name for name in free if "evaluation" in name]


def test_a_run_goes_on_with_every_synthesizer_whichever_it_began_with(town):
    kinds = [name for name in SYNTHESIZERS if name != "mbi"]
    bound = {kind: bound_settings(load_config([*TOWN, "selection=oneway", f"synthesis={kind}"])) for kind in kinds}
    specs = build_specs(load_config([*TOWN, "selection=oneway"]))
    plan = design_of(specs, build.build_schema(specs)).plan
    may = post_processing(specs.config, plan, RunFolder(town / "out"))
    pairs = itertools.permutations(({"settings": one} for one in bound.values()), 2)
    differ = {name for pair in pairs for name in changes(*pair)}
    assert "settings.synthesis.kind" in differ and [n for n in sorted(differ) if not may(n)] == []


def test_nothing_is_spent_where_a_release_could_not_be_put_or_would_hold_what_saw_rows(tmp_path):
    """Links: of `release` to nowhere, of `internal` into a release, and to a disk that nothing is moved from whole."""
    published, memory_disk = tmp_path / "published", Path("/dev/shm")
    (published / "measurements").mkdir(parents=True)
    (published / "privacy.json").touch()
    links = {"release": (tmp_path / "nowhere", "a release of something else")}
    links["internal"] = (published, "lies in the release folder")
    for name, (target, said) in links.items():
        (tmp_path / f"to {name}").mkdir()
        (tmp_path / f"to {name}" / name).symlink_to(target)
        with pytest.raises(UserError, match=said), claimed(tmp_path / f"to {name}", resume=False):
            pass
    assert sorted(p.name for p in published.iterdir()) == ["measurements", "privacy.json"]
    if not os.access(memory_disk, os.W_OK) or memory_disk.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("left out: one file system")
    with tempfile.TemporaryDirectory(dir=memory_disk) as away:
        (tmp_path / "internal").symlink_to(away)
        with pytest.raises(UserError, match="another file system"), claimed(tmp_path, resume=False):
            pass


@pytest.mark.parametrize("resume", ["resume=false", "resume=true"])
@pytest.mark.parametrize("other", ["privacy.unit=job", "data.path=others.csv"])
def test_answers_whose_unit_and_table_nobody_knows_any_more_are_released_for_no_other(town, capsys, other, resume):
    people(700).to_csv("others.csv", index=False)
    run = [*TOWN, "synthesis=independent", "evaluation.enabled=false", "hydra.run.dir=out", "privacy.max_records=3"]
    assert command("run", *run, "privacy.unit=person") == 0
    shutil.rmtree("out/release")
    Path("out/internal/manifest.json").unlink()
    kept = {p: p.read_bytes() for p in Path("out/internal/answers").iterdir()}
    assert command("run", *run, "privacy.unit=person", other, resume) == 1
    assert "its record of the settings and the table (internal/manifest.json) is gone" in capsys.readouterr().err
    assert not Path("out/release").exists() and {p: p.read_bytes() for p in kept} == kept


def charged_in(run):
    lines = map(json.loads, (run / "internal" / "ledger.jsonl").read_text().splitlines())
    return [line["event"]["id"] for line in lines if "event" in line]


def test_a_killed_run_goes_on_and_equals_an_uninterrupted_one(town):
    columns = {f"c{i}": np.random.default_rng(i).integers(0, 3, 200) for i in range(11)}
    pd.DataFrame(columns).to_csv(town / "wide.csv", index=False)
    (town / "wide.json").write_text(json.dumps(dict.fromkeys(columns, 3)))
    wide = ["data=table", "data.path=wide.csv", "data.schema=wide.json", "seed=3", "evaluation.enabled=false"]
    wide += ["selection=pairs", "synthesis=independent", "synthesis.rows=100"]
    assert command("run", *wide, "hydra.run.dir=whole") == 0
    line = [sys.executable, "-m", "pipeline", "run", *wide, "hydra.run.dir=killed"]
    started = subprocess.Popen(line, stderr=subprocess.DEVNULL)
    answers = town / "killed" / "internal" / "answers"
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and started.poll() is None:
        if answers.is_dir() and sum(1 for _ in answers.iterdir()) >= 20:
            break
        time.sleep(0.01)
    started.kill()  # nothing, where it has ended by now
    started.wait()
    saved = sum(1 for _ in answers.iterdir())
    assert saved >= 20
    assert not (town / "killed" / "release").exists() or saved >= 66
    assert command("run", *wide, "hydra.run.dir=killed", "resume=true") == 0
    charged = charged_in(town / "killed")
    assert len(charged) == len(set(charged)) == 66
    lost = [e["id"] for e in statement_of(town / "killed")["events"] if not e["answered"]]
    assert len(lost) <= 1
    if not lost:
        made = [(town / n / "release" / "synthetic.csv").read_bytes() for n in ("whole", "killed")]
        assert made[0] == made[1]


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("synthesis", ["gum", "independent"])
def test_an_empty_table_and_one_row_work(town, rows, synthesis):
    people(600).head(rows).to_csv(town / "town.csv", index=False)
    assert command("run", *TOWN, "hydra.run.dir=out", f"synthesis={synthesis}") == 0
    assert (town / "out" / "release" / "synthetic.csv").read_text().startswith("age,sex,job")


def test_a_constant_and_an_all_missing_column_work(town):
    table = people(300).assign(sex="f", job=None)
    table.to_csv(town / "town.csv", index=False)
    assert command("run", *TOWN, *UNSCORED, "hydra.run.dir=out", "privacy.epsilon=10", "synthesis.rows=300") == 0
    made = pd.read_csv(town / "out" / "release" / "synthetic.csv")
    assert (made["sex"] == "f").mean() > 0.9
    assert made["job"].isna().mean() > 0.9


def test_a_run_asks_for_the_second_opinion_before_anything_is_written(town, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "autodp.mechanism_zoo", None)
    assert command("run", *TOWN, "selection=oneway", "mechanism=gaussian", "hydra.run.dir=out") == 1
    assert "autodp" in capsys.readouterr().err
    assert not [p for p in (town / "out").rglob("*") if p.is_file()]


def test_without_a_seed_two_runs_differ(town):
    for name in "ab":
        assert command("run", *TOWN, *UNSCORED, f"hydra.run.dir={name}") == 0
    a, b = ((town / n / "release" / "synthetic.csv").read_bytes() for n in "ab")
    assert a != b


@pytest.mark.slow
def test_a_run_that_is_killed_many_times_never_measures_twice(town):
    people(3000).to_csv("town.csv", index=False)
    many = [*TOWN, "selection=pairs", "privacy.unit=person", "privacy.max_records=3", "synthesis=independent"]
    many.append("hydra.run.dir=out")
    rng = np.random.default_rng(1)
    for attempt in range(200):
        more = ["resume=true"] if (town / "out" / "internal" / "manifest.json").exists() else []
        started = subprocess.Popen([sys.executable, "-m", "pipeline", "run", *many, *more], stderr=subprocess.DEVNULL)
        try:
            started.wait(rng.uniform(1.0, 4.0) if attempt < 15 else 120)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()
            continue
        break
    charged = charged_in(town / "out")
    assert len(charged) == len(set(charged)) == 6
    assert statement_of(town / "out")["spent"]["epsilon"] <= 1


QUIET = ["data=table", "data.schema=town.yaml", "evaluation.enabled=false", "synthesis=independent"]


def test_a_look_that_cannot_be_made_stops_no_run_and_says_nothing_of_it(town, capsys, monkeypatch):
    """One text that is no UTF-8, in a column that the schema leaves out: no answer depends on it, nor does the run."""
    monkeypatch.setattr(run_look, "failure_lines", failure_lines)
    table = pa.Table.from_pandas(people(600), preserve_index=False)
    parts = [None, pa.py_buffer(np.arange(601, dtype=np.int32)), pa.py_buffer(b"\xff" + b"x" * 599)]
    odd = pa.Array.from_buffers(pa.string(), 600, parts)
    said = []
    for note in (table["note"], odd):
        pq.write_table(table.set_column(table.schema.get_field_index("note"), "note", note), town / "town.parquet")
        assert command("run", *QUIET, "data.path=town.parquet", f"hydra.run.dir=out{len(said)}") == 0
        text = re.sub(r"out\d|[\d.]+ (m?s|ms)", "", " ".join(capsys.readouterr().err.split()))
        said.append(text)
    assert "could not be looked at" in (town / "out1/internal/check.txt").read_text()
    assert "could not be looked at" not in (town / "out0/internal/check.txt").read_text()
    assert "what the schema does to the rows" in said[1] and "looked at" not in said[1]
    # at a terminal it is told: all warnings of the look were lost there without a word
    assert command("run", *QUIET, "data.path=town.parquet", "hydra.run.dir=out2", "console=always") == 0
    assert "warning (NOT private): the table could not be looked at" in " ".join(capsys.readouterr().err.split())


def test_a_look_changes_no_file_of_the_table_that_the_jobs_of_a_sweep_share(town, tmp_path):
    table = people(600)
    table.loc[:9, "sex"] = "x"
    table.to_csv(town / "town.csv", index=False)
    schema = load_schema(town / "town.yaml")
    rows = source(town / "town.csv")
    private = shared_private(tmp_path / "shared", rows, schema, PrivacyUnit(), data="", key=bytes(32))
    assert private.as_read(schema) is None and private.folder is not None
    before = {p: p.stat().st_mtime_ns for p in private.folder.rglob("*.codes")}
    folder = RunFolder(tmp_path / "run")
    folder.internal.mkdir(parents=True)
    look_before_spending(private, rows, schema, Config(), folder, Stages(quiet=True))
    assert folder.look.read_text().startswith("town.csv: 600 rows") and before
    assert {p: p.stat().st_mtime_ns for p in private.folder.rglob("*.codes")} == before


def test_the_jobs_of_a_sweep_share_no_table_that_is_read_in_another_dialect(town, tmp_path):
    """É and é are one unit's id in one encoding, and other letters, of several units, in another."""
    rows = "".join(f"q{letter}{i},1\n" for i in range(9) for letter in "Éé")
    Path("ids.csv").write_bytes(f"person,age\n{rows}".encode("cp1252"))
    schema = load_schema(town / "town.yaml")
    ages = parse_schema({**schema.to_fields(), "columns": {"age": schema.to_fields()["columns"]["age"]}}, where="ages")
    unit, totals = PrivacyUnit("person", 1), []
    for encoding in ("cp437", "cp1252"):
        limits = {"workdir": tmp_path, "memory_limit_bytes": 1 << 28, "threads": 1}
        rows = open_table(Path("ids.csv"), dialect=Dialect(encoding=encoding), **limits)
        private = shared_private(tmp_path / "shared", rows, ages, unit, data="the same bytes", key=bytes(32))
        weights = private.coded.weights
        totals.append(private.coded.rows if weights is None else int(weights.sum()) / 2**WEIGHT_BITS)
    assert totals == [18, 9]


@pytest.mark.parametrize("text", ["\x9bJ", "\x7fx", "\u202ex", "\x1b[2J", "a\nb"])
def test_texts_of_a_table_neither_clear_a_terminal_nor_write_its_lines(text, town, capsys):
    table = people(600).astype({"age": object})
    table.loc[:9, "age"] = text
    table.to_csv(town / "town.csv", index=False)
    assert all(line.isprintable() for line in reply(capsys, "check", *TOWN[1:]).out.split("\n"))


RUN = ["run", *TOWN, "selection=pairs", "seed=5", "evaluation.enabled=false"]


def rows_of(folder: str) -> pd.DataFrame:
    return pd.read_csv(Path(folder) / "release" / "synthetic.csv")


@pytest.mark.some(3)
@pytest.mark.parametrize("synthesis", ["pgm", "auto", "independent"])
def test_more_rows_than_a_chunk_holds_have_the_models_marginals(town, monkeypatch, synthesis) -> None:
    settings = [*RUN, f"synthesis={synthesis}", "synthesis.rows=2500"]
    assert command(*settings, "hydra.run.dir=whole") == 0
    monkeypatch.setattr("pipeline.settings.memory.CHUNK_ROWS", 1000)
    for folder in ("one", "other"):
        assert command(*settings, f"hydra.run.dir={folder}") == 0
    whole, one, other = (rows_of(folder) for folder in ("whole", "one", "other"))
    pd.testing.assert_frame_equal(one, other)
    assert len(one) == 2500 and not any(Path("one/internal/tmp").glob("*"))
    for column in ("sex", "job"):
        shares = [table[column].value_counts(normalize=True).sort_index() for table in (whole, one)]
        assert np.abs(shares[0] - shares[1]).max() < 0.02


def test_a_chunk_depends_on_the_seed_and_its_number_alone(one_run, tmp_path) -> None:
    schema, _, measurements = read_release(one_run / "release")
    coarse = for_synthesis(measurements, schema)
    model = SYNTHESIZERS["pgm"]().model(coarse)
    made = [
        streamed_rows(
            DrawChunk(model, schema, coarse, measurements, n, 100, tuple(np.random.default_rng(3).spawn(chunks))),
            tmp_path / str(n),
            EMBEDDED.spread,
        )
        for n, chunks in ((250, 3), (430, 5))
    ]
    assert [t.rows for t in made] == [250, 430]
    for one, other in zip(made[0].columns, made[1].columns, strict=True):
        assert (one[:200] == other[:200]).all()
    assert any((c[:100] != c[100:200]).any() for c in made[1].columns)


def test_only_rows_that_are_changed_until_they_fit_need_memory_for_all_of_them(town, capsys) -> None:
    asked = [*TOWN, "selection=pairs", "synthesis.rows=20000000000"]
    megabytes = re.search(r"predicted memory: ([0-9,]+) MB", reply(capsys, "plan", *asked, "synthesis=pgm").out)
    assert megabytes is not None and int(megabytes[1].replace(",", "")) < 2_000
    assert "is predicted to need" in reply(capsys, "run", *asked, "synthesis=gum", "hydra.run.dir=out", code=1).err
    assert not Path("out/internal/ledger.jsonl").exists() and not Path("out/release").exists()


def test_synth_without_overrides_makes_the_table_of_the_run_again(town: Path, tmp_path: Path) -> None:
    settings = [*TOWN, "privacy.noise_seed=3", "synthesis.seed=4", "evaluation.enabled=false"]
    done = run(load_config(settings), tmp_path / "run", quiet=True)
    again = api.synthesize(done, tmp_path / "again", "synthesis.seed=4")
    assert filecmp.cmp(done.table, again, shallow=False)
    of_run, of_synth = (compose_config(command, []).synthesis for command in ("config", "synth"))
    assert of_run == of_synth and of_synth.kind == "auto"
    other = api.synthesize(done, tmp_path / "other", "synthesis.seed=4", "synthesis=gum")
    assert not filecmp.cmp(done.table, other, shallow=False)


@pytest.mark.slow  # of fewer rows no pair is asked twice
def test_so_it_does_where_pairs_over_coarser_values_were_asked_twice(tmp_path: Path) -> None:
    """What is read from the release are other objects than what was asked: their answers are summed up all the same."""
    settings = ["data.rows=20000", "privacy.unit=record", "privacy.epsilon=5", "seed=5", "evaluation.enabled=false"]
    done = run(load_config(settings), tmp_path / "run", quiet=True)
    again = api.synthesize(done, tmp_path / "again", "seed=5")
    assert filecmp.cmp(done.table, again, shallow=False)
