"""A release from somebody else is data: it opens no other file, and what is wrong with it is said in words.

Whoever makes such a release binds it as well, so that its digests hold.
"""

import json
import shutil

import pytest
import yaml

from tests.pipeline.conftest import command, rebound

SECRET = "root,x,0,0\nsecret-line\n"
NAMES = {
    "hierarchy": {"hierarchy": "{}"},
    "distances": {"distances": "{}"},
    "coordinates": {"coordinates": "{}"},
    "geojson": {"geojson": {"file": "{}", "key": "name"}},
}


@pytest.fixture
def release(one_run, town):
    shutil.copytree(one_run, town / "out")
    (town / "secret.txt").write_text(SECRET)
    return town / "out" / "release"


def refused(capsys):
    for arguments in (["synth", "from=out/release", "output=again"], ["query", "from=out/release", "marginal=[sex]"]):
        assert command(*arguments) == 1
        error = capsys.readouterr().err
        assert "fault of the pipeline" not in error
        assert "secret-line" not in error
        assert "root,x" not in error
        assert "'root'" not in error
    return error


@pytest.mark.parametrize("field", NAMES)
@pytest.mark.parametrize("place", ["../../secret.txt", "/etc/passwd", "absolute", "beside.csv"])
def test_the_schema_of_a_release_names_no_other_file(field, place, release, town, capsys):
    place = str(town / "secret.txt") if place == "absolute" else place
    (release / "beside.csv").write_text(SECRET)
    content = yaml.safe_load((release / "schema.yaml").read_text())
    text = json.dumps(NAMES[field]).replace("{}", place)
    content["columns"]["sex"] |= json.loads(text)
    (release / "schema.yaml").write_text(yaml.safe_dump(content))
    rebound(release)
    assert "names another file" in refused(capsys)


RULES = [{"base": "../../secret.txt"}, {"unit_id": {"name": "id", "units": "../../secret.txt"}}]


@pytest.mark.parametrize("rule", RULES)
def test_nor_do_its_rules(rule, release, capsys):
    content = yaml.safe_load((release / "schema.yaml").read_text())
    (release / "schema.yaml").write_text(yaml.safe_dump(content | rule))
    rebound(release)
    assert "names another file" in refused(capsys)


@pytest.mark.parametrize("name", ["schema.yaml", "privacy.json", "measurements/index.json", "measurements"])
def test_no_part_of_a_release_leads_out_of_it(name, release, town, capsys):
    path = release / name
    target = town / "elsewhere" if path.is_dir() else town / "secret.txt"
    if path.is_dir():
        shutil.move(path, target)
    else:
        path.unlink()
    path.symlink_to(target)
    assert "leads out of the release" in refused(capsys)


@pytest.mark.parametrize("total", ["x", -1, 1.5, True, [600], {"n": 1}])
def test_a_total_that_is_no_number_of_records_is_refused(total, release, capsys):
    path = release / "measurements" / "index.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"public_total": total}))
    rebound(release)
    assert "not readable as measurements" in refused(capsys)


@pytest.mark.parametrize("field", ["domain", "answers", "histogram"])
@pytest.mark.parametrize("value", ["x", 3, [3], [{"name": "age"}], {"age": 1}, None])
def test_a_damaged_index_is_refused_in_words(field, value, release, capsys):
    if field == "histogram" and value is None:
        return
    path = release / "measurements" / "index.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    rebound(release)
    refused(capsys)
