"""The files of releases are as their JSON Schemas and their page of the documentation say."""

import re
import shutil
from pathlib import Path

import pytest

from tests.pipeline.formats import FILES, FORMATS, content_of, departures, problems, validator
from tests.pipeline.test_binding import key

PAGE = (Path(__file__).parents[2] / "docs" / "release-files.md").read_text(encoding="utf-8")


@pytest.fixture
def release(one_run, tmp_path):
    return shutil.copytree(one_run / "release", tmp_path / "release")


def test_each_file_of_a_release_is_as_its_schema_says_and_lacks_no_key_that_this_requires(release):
    assert departures(release) == []
    for name in FILES.keys() - {"signature"}:
        content = content_of(release / FILES[name])
        for required in validator(name).schema["required"]:
            assert problems(name, {k: v for k, v in content.items() if k != required}), (name, required)
        assert problems(name, content | {"foreign": 1}), name


def test_a_signature_is_as_its_schema_says(release, tmp_path):
    from pipeline.statement.signing import load_signer, write_signature

    write_signature(release, load_signer(str(key(tmp_path / "key.pem"))), (release / "manifest.json").read_bytes())
    assert (release / "signature.json").exists() and departures(release) == []


def test_the_page_names_every_field_of_privacy_json_and_every_schema():
    for name in FILES:
        assert f"`{name}.schema.yaml`" in PAGE and (FORMATS / f"{name}.schema.yaml").is_file()
    table = PAGE[PAGE.index("## privacy.json") : PAGE.index("## The other files")]
    named = set(re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.splitlines() if "|" in line)))
    assert named - {"field"} == validator("privacy").schema["properties"].keys()
