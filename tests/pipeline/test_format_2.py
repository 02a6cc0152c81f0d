"""The formats of released files: of format 2, which is read as it was, and of now, each as its JSON Schema says."""

import json
import re
import shutil
from pathlib import Path

import pytest

import pipeline
from pipeline.release_folder import read_release
from pipeline.statement.signing import load_signer, write_signature
from pipeline.statement.verify import verify
from tests.pipeline.conftest import command, rebound, reply
from tests.pipeline.formats import FILES, FORMATS, content_of, departures, problems, validator
from tests.pipeline.test_binding import key

FROZEN = Path(__file__).parent / "format_2"


@pytest.fixture
def release(folder):
    return shutil.copytree(FROZEN, folder / "old")


def test_verify_checks_its_numbers_and_says_what_it_could_not_compare(release, capsys):
    lines = reply(capsys, "verify", str(release), code=2).out.splitlines()
    marks = {line.split()[1]: line.split()[0] for line in lines[:-1]}
    numbers = ("files", "receipts", "promise", "accepted", "answers", "sensitivity", "private")
    assert all(marks[name] == "ok" for name in numbers)
    assert [name for name, mark in marks.items() if mark == "--"] == ["signature", "terms", "page", "tables"]
    assert "in format 2" in lines[-1] and lines[-1].startswith("NOT compared")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda said: said["guarantee"].update(epsilon=0.5), "NO  promise"),
        (lambda said: said["spent"].update(epsilon=0.5), "NO  receipts"),
        (lambda said: said.update(max_records=7), "NO  sensitivity"),
        (lambda said: said["selection"]["total"].update(epsilon=0.1), "all tries are said to cost"),
        (lambda said: said["events"][-1].update(noisy=1e5), "NO  accepted"),
        (lambda said: said["events"].pop(0), "was never paid for"),
        (lambda said: said.update(reasons_not_private=["a seed"]), "NOT private: a seed"),
        (lambda said: said.pop("max_records"), "NO  statement"),
    ],
)
def test_a_forged_number_of_it_is_found(release, change, line):
    path = release / "privacy.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    change(said)
    path.write_text(json.dumps(said), encoding="utf-8")
    rebound(release)
    verdict = verify(release)
    assert verdict.exit_code == 1 and line in verdict.as_text()


def test_synth_query_and_load_read_it(release, capsys):
    assert command("query", f"from={release}", "marginal=[sex]") == 0
    loaded = pipeline.load(release)
    assert "all records with the same value of 'person'" in repr(loaded) and len(loaded.sample(rows=7, seed=1)) == 7
    assert command("query", f"from={release}", "estimate=mean", "column=age") == 0
    assert command("synth", f"from={release}", "synthesis.rows=9", "output=new") == 0
    made = Path("new/release")
    assert (made / "privacy.json").read_bytes() == (FROZEN / "privacy.json").read_bytes()
    assert not (made / "statement.html").exists()  # its page would need fields that it has not
    assert read_release(made)[1]["version"] == 2
    assert verify(made).exit_code == 2


PAGE = (Path(__file__).parents[2] / "docs" / "release-files.md").read_text(encoding="utf-8")


@pytest.fixture
def of_now(one_run, tmp_path):
    return shutil.copytree(one_run / "release", tmp_path / "release")


def test_each_file_of_a_release_is_as_its_schema_says_and_lacks_no_key_that_this_requires(of_now):
    assert departures(of_now) == []
    for name in FILES.keys() - {"signature"}:
        content = content_of(of_now / FILES[name])
        for required in validator(name).schema["required"]:
            assert problems(name, {k: v for k, v in content.items() if k != required}), (name, required)
        assert problems(name, content | {"foreign": 1}), name


def test_a_signature_is_as_its_schema_says(of_now, tmp_path):
    write_signature(of_now, load_signer(str(key(tmp_path / "key.pem"))), (of_now / "manifest.json").read_bytes())
    assert (of_now / "signature.json").exists() and departures(of_now) == []


def test_the_page_names_every_field_of_privacy_json_and_every_schema():
    for name in FILES:
        assert f"`{name}.schema.yaml`" in PAGE and (FORMATS / f"{name}.schema.yaml").is_file()
    table = PAGE[PAGE.index("## privacy.json") : PAGE.index("## The other files")]
    named = set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines() if "|" in line)))
    assert named - {"field"} == validator("privacy").schema["properties"].keys()
