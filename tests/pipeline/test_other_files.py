"""Files of a release that contradict its measurements, or that no run writes: `verify` calls none of them sound."""

import re
import shutil

import numpy as np
import pytest

from pipeline.statement.verify import verify
from tests.pipeline.conftest import done_once, rebound
from tests.pipeline.test_contradictions import FAST, forged, read


def edited(name, old, new):
    """One place of a text is another."""

    def change(release):
        text = (release / name).read_text(encoding="utf-8")
        assert re.search(old, text)
        (release / name).write_text(re.sub(old, new, text, count=1), encoding="utf-8")

    return change


def added(name):
    """One more file, with what nobody paid for."""

    def change(release):
        (release / name).write_text("age,count\n34,12\n", encoding="utf-8")

    return change


def answered(name, make):
    """An array of the answers is another, or one more."""

    def change(release):
        path = release / "measurements" / "answers.npz"
        with np.load(path) as arrays:
            held = {k: arrays[k] for k in arrays.files}
        np.savez(path, **{**held, name: make(held["0.values"])})

    return change


def _table_of_other_columns(release):
    (release / "synthetic.csv").write_text("name,salary\nbob,1\n", encoding="utf-8")


CROISSANT = "NO  page         croissant.json does not say what privacy.json says"
TABLES = "NO  tables       "
CHANGES = {
    "a file more": (added("raw.csv"), TABLES + "no run writes raw.csv"),
    "a marginal more": (added("marginals/0009_exact.csv"), TABLES + "no run writes marginals/0009_exact.csv"),
    "a folder more": (lambda r: (r / "exact_600").mkdir(), TABLES + "no run writes exact_600"),
    "no marginals": (lambda r: shutil.rmtree(r / "marginals"), TABLES + "every run writes marginals"),
    "exact marginal": (
        edited("marginals/0001_sex.csv", r"\nf,[^,]+", "\nf,240"),
        TABLES + "marginals/0001_sex.csv does not say what was measured",
    ),
    "other consistent counts": (
        edited("marginals/0001_sex.csv", r"\nf,([^,]+),([^,]+),[^,]+", r"\nf,\1,\2,240"),
        TABLES + "marginals/0001_sex.csv: consistent does not follow",
    ),
    "less noise in the list": (
        edited("marginals/index.csv", r"[0-9]+[.][0-9]+", "0.001"),
        TABLES + "marginals/index.csv does not say what was measured",
    ),
    "an array more": (answered("exact", lambda v: v), TABLES + "answers.npz holds arrays of no answer: exact"),
    "answers beyond the range": (
        answered("0.values", lambda v: 0 * v + 1e300),
        TABLES + "age: answers that are not on",
    ),
    "answers off the lattice": (answered("0.values", lambda v: v + 1e-9), TABLES + "age: answers that are not on"),
    "a remark in the schema": (edited("schema.yaml", "^", "# epsilon: 0.001\n"), TABLES + "schema.yaml holds words"),
    "a table of others": (_table_of_other_columns, TABLES + "synthetic.csv has the columns name, salary"),
}


@pytest.fixture
def release(one_run, tmp_path, monkeypatch):
    """A copy of a run's release, to be changed."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(one_run / "release", tmp_path / "release")


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_contradicts_the_measurements_is_found_though_all_papers_were_made_anew(release, name):
    change, line = CHANGES[name]
    change(release)
    forged(release, *read(release))
    verdict = verify(release)
    assert not verdict.sound
    assert line in verdict.as_text()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("A synthetic table of", "ε = 0.001. A synthetic table of"),
        ('"sha256": "[0-9a-f]{4}', '"sha256": "zzzz'),
        ("{", '{"rai:dataLimitations": "ε = 0.001",'),
    ],
)
def test_every_word_of_the_metadata_is_compared(release, old, new):
    edited("croissant.json", old, new)(release)
    rebound(release)
    assert CROISSANT in verify(release).as_text()


@pytest.mark.parametrize("name", ["privacy.json", "measurements/index.json"])
def test_a_key_that_stands_there_twice_is_refused(release, name):
    edited(name, "{", '{"public_total": 600, "budget": {"epsilon": 0.001, "delta": 0}, "public_total": 600,')(release)
    rebound(release)
    with pytest.raises(Exception, match=f"{name} is damaged"):
        verify(release)


def test_a_release_with_fine_columns_and_distances_is_sound(tmp_path):
    """Fine columns are asked before the distances, though their slots stand behind them."""
    done_once(tmp_path, "run", "data.rows=400", *FAST, "hydra.run.dir=out")
    release = tmp_path / "out" / "release"
    said, index = read(release)
    assert {"scores", "fine"} <= {e.get("stage") for e in said["events"]}
    assert index["distances"]["answers"] > 0
    verdict = verify(release)
    assert verdict.sound, verdict.as_text()
