"""What binds a release: digests, signatures, and `verify`; the formats of its files, of format 2 and of now."""

import json
import math
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml

import pipeline
from mechanisms.accounting.events import booked_event
from mechanisms.public.schema.table_schema import Schema
from pipeline import __version__ as VERSION
from pipeline.release_folder import read_release
from pipeline.statement.advisories import advisories_of, all_advisories
from pipeline.statement.signing import load_signer, write_signature
from pipeline.statement.verify import verify
from tests.pipeline.conftest import TOWN, command, copy_of, done_once, edit, rebound, reply, worded
from tests.pipeline.formats import FILES, FORMATS, content_of, departures, problems, validator

FAST = ["evaluation.enabled=false", "selection=pairs", "synthesis=independent"]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def run_once(tmp_path_factory):
    return done_once(tmp_path_factory.mktemp("once"), "run", *TOWN, *FAST, "hydra.run.dir=out") / "out"


@pytest.fixture
def release(run_once, tmp_path, monkeypatch):
    return copy_of(run_once.parent, tmp_path, monkeypatch) / "out" / "release"


def key(path, kind="ed25519", password=None):
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

    made = ed25519.Ed25519PrivateKey.generate() if kind == "ed25519" else rsa.generate_private_key(65537, 2048)
    hidden = s.BestAvailableEncryption(password) if password else s.NoEncryption()
    path.write_bytes(made.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, hidden))
    public = made.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)
    path.with_suffix(".pub").write_bytes(public)
    return path


def refused(release, capsys, name, how):
    for line in (["synth", f"from={release}", "output=again"], ["query", f"from={release}", "marginal=[sex]"]):
        said = reply(capsys, *line, code=1).err
        assert f"{name} ({how})" in said and "fix: " in said and "Traceback" not in said, line
    assert not Path("again").exists()
    assert f"{name} ({how})" in reply(capsys, "verify", str(release), code=1).out


def test_an_edited_file_is_refused(release, capsys):
    files = [p for p in release.rglob("*") if p.is_file() and p.name != "manifest.json"]
    assert len(files) > 12
    for path in files:
        whole, name = path.read_bytes(), str(path.relative_to(release))
        path.write_bytes(whole + b" ")
        if name in ("schema.yaml", "measurements/answers.npz"):
            refused(release, capsys, name, "edited")
        assert f"{name} (edited)" in verify(release).as_text()
        path.write_bytes(whole)


def test_a_missing_and_a_foreign_file_are_refused(release, capsys):
    (release / "extra.txt").write_text("x")
    refused(release, capsys, "extra.txt", "foreign")
    (release / "extra.txt").unlink()
    (release / "marginals" / "0000_age.csv").unlink()
    refused(release, capsys, "marginals/0000_age.csv", "missing")


def test_a_release_without_its_manifest_or_with_a_damaged_one_is_refused(release, capsys):
    (release / "manifest.json").unlink()
    assert "manifest.json is missing" in reply(capsys, "query", f"from={release}", "marginal=[sex]", code=1).err
    assert "not bound" in reply(capsys, "verify", str(release), code=1).out
    for content in ("", "[]", "{}", '{"format": "release-manifest/1"}', '{"format": 1, "files": 2}'):
        (release / "manifest.json").write_text(content)
        for line in (["query", f"from={release}", "marginal=[sex]"], ["verify", str(release)]):
            assert "manifest is damaged" in "".join(reply(capsys, *line, code=1)), (content, line)


def test_a_sound_release_passes_and_so_does_what_synth_makes_of_it(release, capsys):
    said = reply(capsys, "verify", str(release)).out
    assert "sound" in said.splitlines()[-1]
    assert "6 charges add up to ε = 1" in said
    assert "ok  tables       marginals are those of the measurements, tables have the schema's columns, and no" in said
    assert command("synth", f"from={release}", "synthesis.rows=30", "output=again") == 0
    assert command("verify", "from=again/release") == 0
    assert "30 (from the settings)" in Path("again/release/statement.html").read_text()


def older(release):
    """The release as version 0.1.0 left it."""
    for name in ("manifest.json", "statement.html", "deployment.yaml", "croissant.json"):
        (release / name).unlink()
    said = {**worded(release), "max_records": 1}
    later = {"version", "guarantee", "original", "slots", "epsilon_at", "curve", "group_privacy", "table", "published"}
    later.add("running_total")
    said = {"format": "privacy-statement/1", **{k: v for k, v in said.items() if k not in later}}
    said["versions"]["pipeline"] = "0.1.0"
    (release / "privacy.json").write_text(json.dumps(said, indent=1))


def test_a_release_of_an_older_version_loads_everywhere_with_a_warning(town, capsys):
    assert command("run", *TOWN, "selection=pairs", "synthesis=independent", "hydra.run.dir=out") == 0
    release = town / "out" / "release"
    older(release)
    for line in (
        ["synth", f"from={release}", "output=again", "synthesis.rows=20"],
        ["query", f"from={release}", "marginal=[sex]"],
        ["report", "out"],
        ["query", "from=again/release", "marginal=[sex]"],
    ):
        assert "not bound" in reply(capsys, *line).err, line
    said = reply(capsys, "verify", str(release), code=1).out
    assert all(w in said for w in ("did not exist yet in its version", "6 charges add up", "DPSP-2026-02"))


def test_a_release_of_a_newer_version_is_refused(release, capsys):
    edit(release / "privacy.json", '"version": 3', '"version": 4')
    rebound(release)
    assert "version 4" in reply(capsys, "query", f"from={release}", "marginal=[sex]", code=1).err


@pytest.fixture(scope="module")
def signed_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("signed")
    mine = key(folder / "mine.pem")
    return done_once(folder, "run", *TOWN, *FAST, "hydra.run.dir=out", f"statement.key={mine}")


@pytest.fixture
def signed(signed_once, tmp_path, monkeypatch):
    """A town with a run `out` that is signed with mine.pem; it is the current folder."""
    return copy_of(signed_once, tmp_path, monkeypatch)


def test_a_signed_release_is_sound_and_a_forged_one_is_not(signed, capsys):
    town, mine, other = signed, signed / "mine.pem", key(signed / "other.pem")
    release = town / "out" / "release"
    fingerprint = json.loads((release / "manifest.json").read_text())["signer"]
    assert fingerprint in (release / "statement.html").read_text()
    assert b"PRIVATE KEY" not in b"".join(p.read_bytes() for p in release.rglob("*") if p.is_file())
    assert fingerprint in reply(capsys, "verify", str(release), "key=mine.pub").out
    assert "signed by another key than other.pub" in reply(capsys, "verify", str(release), "key=other.pub", code=1).out
    for wrong in ("absent.pub", str(mine)):
        told = reply(capsys, "verify", str(release), f"key={wrong}", code=1)
        assert "error: key: " in told.err
        assert "sound" not in told.out

    edit(release / "synthetic.csv", "f", "m")
    told = reply(capsys, "verify", str(release), "key=mine.pub", code=1).out
    assert "NO  files" in told
    assert f"signed by mine.pub: {fingerprint}" in told
    rebound(release)
    assert "signature is false" in reply(capsys, "verify", str(release), code=1).out
    assert "signature is false" in reply(capsys, "query", f"from={release}", "marginal=[sex]", code=1).err

    assert command("synth", "from=out/release", "output=again") == 1
    shutil.rmtree(release)
    (town / "out" / "internal" / "release.json").unlink()
    assert command("run", *TOWN, *FAST, "hydra.run.dir=out", "resume=true", f"statement.key={other}") == 0
    assert command("verify", str(release), "key=mine.pub") == 1


def test_a_signature_cannot_be_taken_away_or_brought_from_elsewhere(signed, run_once, capsys):
    town = signed
    Path("out").rename("a")
    shutil.copytree(run_once, "b")
    signature = town / "a" / "release" / "signature.json"
    shutil.copy(signature, town / "b" / "release")
    refused(town / "b" / "release", capsys, "signature.json", "foreign")
    signature.unlink()
    refused(town / "a" / "release", capsys, "signature.json", "missing")
    (town / "b" / "release" / "signature.json").unlink()
    assert "not signed" in reply(capsys, "verify", "b/release", "key=mine.pub", code=1).out


def test_synth_signs_with_its_own_key_or_not_at_all(signed):
    town, mine = signed, signed / "mine.pem"
    assert command("synth", "from=out/release", "output=plain") == 0
    assert not (town / "plain" / "release" / "signature.json").exists()
    assert "not signed" in (town / "plain" / "release" / "statement.html").read_text()
    assert command("synth", "from=out/release", "output=signed", f"statement.key={mine}") == 0
    assert command("verify", "signed/release", "key=mine.pub") == 0


@pytest.mark.parametrize("bad", ["absent", "garbage", "public", "rsa", "encrypted"])
def test_a_bad_key_is_one_clear_error_before_anything_is_charged(town, capsys, bad):
    path = town / "bad.pem"
    if bad == "garbage":
        path.write_text("no key")
    elif bad == "public":
        shutil.copy(key(town / "mine.pem").with_suffix(".pub"), path)
    elif bad in {"rsa", "encrypted"}:
        key(path, "rsa" if bad == "rsa" else "ed25519", b"password" if bad == "encrypted" else None)
    said = reply(capsys, "run", *TOWN, *FAST, "hydra.run.dir=out", f"statement.key={path}", code=1).err
    assert "statement.key" in said
    assert "fix: " in said
    assert not (town / "out" / "internal" / "ledger.jsonl").exists()


def test_a_schema_that_its_text_does_not_give_back_ends_a_run_before_anything_is_charged(town, monkeypatch):
    whole = Schema.to_fields
    lost = {"kind": "categorical", "values": ["f"], "missing": False}
    monkeypatch.setattr(Schema, "to_fields", lambda s: whole(s) | {"columns": whole(s)["columns"] | {"sex": lost}})
    assert command("run", *TOWN, *FAST, "hydra.run.dir=out") != 0
    assert not (town / "out" / "internal" / "ledger.jsonl").exists()


def test_without_the_library_there_is_a_way_out(signed, capsys, monkeypatch):
    town, mine = signed, signed / "mine.pem"
    for name in [n for n in sys.modules if n.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert command("run", *TOWN, *FAST, "hydra.run.dir=b", f"statement.key={mine}") == 1
    assert "pip install cryptography" in capsys.readouterr().err
    assert not (town / "b" / "internal" / "ledger.jsonl").exists()
    assert "was not checked" in reply(capsys, "query", "from=out/release", "marginal=[sex]").err
    assert "--  signature" in reply(capsys, "verify", "out/release").out
    assert "pip install cryptography" in reply(capsys, "verify", "out/release", "key=mine.pub", code=1).err


def test_what_is_no_release_is_one_clear_error(release, capsys):
    for line in (["verify"], ["verify", "nowhere"], ["verify", "out"], ["verify", str(release), "keys=a"]):
        said = reply(capsys, *line, code=1).err
        assert "fix: " in said
        assert "Traceback" not in said
    honest = json.loads((release / "privacy.json").read_text(encoding="utf-8"))
    for damaged in ("[]", json.dumps(honest | {"spent": {"epsilon": math.nan, "delta": 0.0}})):
        (release / "privacy.json").write_text(damaged)
        rebound(release)
        assert "damaged" in reply(capsys, "verify", str(release), code=1).err
    assert "key=" in reply(capsys, "verify", "--help").out


def test_receipts_become_the_booked_events():
    receipt = {"id": "a", "mechanism": "laplace", "sensitivity": 1, "scale": 9}
    event = booked_event({**receipt, "booked": {"sensitivity": 2, "scale": 3}})
    assert (event.l1_sensitivity, event.scale) == (2, 3)
    for bad in ({"scale": -1}, {"scale": float("nan")}, {"scale": True}, {"mechanism": "none"}):
        with pytest.raises(ValueError, match=r"got|no mechanism"):
            booked_event({**receipt, "mechanism": "gaussian", **bad})


def laplace(scale, query="GridQuery"):
    return [{"noise": "laplace", "scale": scale, "query": query}]


@pytest.mark.parametrize(
    ("answers", "affected"),
    [
        (laplace(8190.0), True),
        (laplace(4096.0), False),
        (laplace(8190.0, "Identity"), False),
        (laplace(2e8, "Identity"), True),
        ([{"noise": "gaussian", "scale": 1e6, "query": "GridQuery"}], False),
    ],
)
def test_advisories_are_told_from_the_receipts_of_a_release(answers, affected):
    said = {"versions": {"pipeline": "0.1.0"}, "holdout": "none", "unit": {"column": None}, "events": []}
    found = {a["id"]: affected for a, affected, _ in advisories_of(said, answers)}
    unit = {"DPSP-2026-03": False, "DPSP-2026-05": False}
    assert found == {"DPSP-2026-01": affected, "DPSP-2026-02": None, "DPSP-2026-04": None, "DPSP-2026-06": None, **unit}
    own = said | {"unit": {"column": "person", "missing": "own"}}
    assert {affected for a, affected, _ in advisories_of(own, answers) if a["id"] in unit} == {None}
    kept = {**said, "neighbouring": "replace"}
    assert {affected for a, affected, _ in advisories_of(kept, answers) if a["id"] == "DPSP-2026-02"} == {False}
    exchanged = own | {"neighbouring": "replace"}
    assert {affected for a, affected, _ in advisories_of(exchanged, answers) if a["id"] == "DPSP-2026-05"} == {False}
    assert advisories_of({**said, "versions": {"pipeline": VERSION}}, answers) == []
    assert len(advisories_of({**said, "versions": {}}, answers)) == 6  # who says no version is suspect


def test_an_affected_release_is_not_sound_whatever_else_holds(release, capsys):
    assert "DPSP" not in verify(release).as_text()
    edit(release / "privacy.json", f'"pipeline": "{VERSION}"', '"pipeline": "0.1.0"')
    index = json.loads((release / "measurements" / "index.json").read_text())
    index["answers"][0] |= {"noise": "laplace", "scale": 9000.0, "query": "GridQuery"}
    (release / "measurements" / "index.json").write_text(json.dumps(index))
    rebound(release)
    assert "NO  DPSP-2026-01" in reply(capsys, "verify", str(release), code=1).out


def test_every_advisory_stands_in_the_security_policy_and_version_is_said_once():
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    listed = yaml.safe_load((ROOT / "pipeline" / "statement" / "advisories.yaml").read_text(encoding="utf-8"))
    assert len(listed) == len(all_advisories()) >= 2
    for advisory in all_advisories():
        assert f"## {advisory['id']}: {advisory['title']}" in policy
        assert f"below {advisory['below']}" in policy
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


FROZEN = Path(__file__).parent / "format_2"


@pytest.fixture
def old_release(folder):
    return shutil.copytree(FROZEN, folder / "old")


def test_verify_checks_its_numbers_and_says_what_it_could_not_compare(old_release, capsys):
    lines = reply(capsys, "verify", str(old_release), code=2).out.splitlines()
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
def test_a_forged_number_of_it_is_found(old_release, change, line):
    path = old_release / "privacy.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    change(said)
    path.write_text(json.dumps(said), encoding="utf-8")
    rebound(old_release)
    verdict = verify(old_release)
    assert verdict.exit_code == 1 and line in verdict.as_text()


def test_synth_query_and_load_read_it(old_release, capsys):
    assert command("query", f"from={old_release}", "marginal=[sex]") == 0
    loaded = pipeline.load(old_release)
    assert "all records with the same value of 'person'" in repr(loaded) and len(loaded.sample(rows=7, seed=1)) == 7
    assert command("query", f"from={old_release}", "estimate=mean", "column=age") == 0
    assert command("synth", f"from={old_release}", "synthesis.rows=9", "output=new") == 0
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
