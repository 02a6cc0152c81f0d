"""A release from somebody else is data: it opens no other file, and what is wrong with it is said in words.

Whoever makes such a release binds it as well, so that its digests hold.
"""

import io
import json
import os
import shutil
import signal
import socket
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import pipeline
from mechanisms.public.errors import UserError
from pipeline.scores.release_beside import release_beside
from tests.pipeline.conftest import rebound, reply

SECRET = "root,x,0,0\nsecret-line\n"
NAMES = {name: {name: "{}"} for name in ("hierarchy", "distances", "coordinates")}
NAMES["geojson"] = {"geojson": {"file": "{}", "key": "name"}}
RULES = {"base": {"base": "{}"}, "unit_id": {"unit_id": {"name": "id", "units": "{}"}}}


@pytest.fixture
def release(one_run, town):
    shutil.copytree(one_run, town / "out")
    (town / "secret.txt").write_text(SECRET)
    return town / "out" / "release"


def refused(capsys):
    """The words with which `query` refuses a release, as `synth` does."""
    said_by(capsys, "synth")
    return said_by(capsys, "query")


def refused_to_load():
    with pytest.raises(UserError) as error:
        pipeline.load("out/release")
    return of_nothing_else(str(error.value))


def of_nothing_else(said):
    """The words; none of them is of the secret file, or tells of a fault of ours."""
    told = ("secret-line", "root,x", "'root'", "api_key", "sk-4711", "fault of the pipeline", "Traceback")
    assert not [word for word in told if word in said], said
    return said


@pytest.mark.parametrize("field", [*NAMES, *RULES])
def test_the_schema_of_a_release_names_no_other_file(field, release, town, capsys):
    (release / "beside.csv").write_text(SECRET)
    whole = (release / "schema.yaml").read_text()
    for place in ("../../secret.txt", "/etc/passwd", str(town / "secret.txt"), "beside.csv"):
        content = yaml.safe_load(whole)
        own = json.loads(json.dumps((NAMES | RULES)[field]).replace("{}", place))
        (content if field in RULES else content["columns"]["sex"]).update(own)
        (release / "schema.yaml").write_text(yaml.safe_dump(content))
        rebound(release)
        assert "names another file" in refused_to_load()
    assert "names another file" in refused(capsys)
    tables = ["real=town.csv", "synthetic=out/release/synthetic.csv", "schema=out/release/schema.yaml"]
    assert "names another file" in reply(capsys, "score", *tables, code=1).err


def fitted(schema):
    with pytest.raises(UserError) as error:
        pipeline.fit(pd.read_csv("town.csv"), schema, quiet=True)
    return str(error.value)


def scored(schema):
    with pytest.raises(UserError) as error:
        pipeline.score("town.csv", "out/release/synthetic.csv", schema=schema)
    return str(error.value)


#: Whoever takes the schema of a release for tables of their own.
TAKERS = {"fit": fitted, "score": scored}


@pytest.mark.parametrize("taker", ["check", "plan", "run", *TAKERS])
@pytest.mark.parametrize("way", ["link", "base"])
def test_the_schema_of_a_release_leads_nowhere_for_another_table_either(taker, way, release, town, capsys):
    """`check` and a run opened what a schema of somebody else named, and a run would have published it."""
    schema = release / "schema.yaml"
    if way == "link":
        schema.unlink()
        a_link(schema)
    else:
        (release / "mine.yaml").write_text("columns: {api_key: sk-4711}\n")
        schema.write_text("base: mine.yaml\n")
    if taker in TAKERS:
        said = TAKERS[taker]("out/release/schema.yaml")
    else:
        tables = ["data=table", "data.path=town.csv", f"data.schema={schema}", "hydra.run.dir=new"]
        said = reply(capsys, taker, *tables[: 3 + (taker == "run")], code=1).err
    assert ("is no plain file, but a link" if way == "link" else "names another file") in of_nothing_else(said)
    assert not Path("new").exists()


def test_no_folder_of_a_release_leads_out_of_it(release, town, capsys):
    shutil.move(release / "measurements", town / "elsewhere")
    (release / "measurements").symlink_to(town / "elsewhere")
    assert "is no plain file, but a link" in refused(capsys)


def test_an_index_that_is_damaged_in_one_field_is_refused_in_words(release, capsys):
    path = release / "measurements" / "index.json"
    whole = json.loads(path.read_text())
    odd = ["x", 3, [3], [{"name": "age"}], {"age": 1}, None]
    wrong = [(field, v) for field in ("domain", "answers", "histogram") for v in odd]
    wrong.remove(("histogram", None))
    wrong += [("public_total", v) for v in ("x", -1, 1.5, True, [600], {"n": 1})]
    for field, value in wrong:
        path.write_text(json.dumps(whole | {field: value}))
        rebound(release)
        said = refused_to_load()
        assert field != "public_total" or "not readable as measurements" in said
    assert "not readable as measurements" in refused(capsys)


#: Whoever reads a release goes through the one reader.
READERS = {"verify": ["verify", "out/release"], "query": ["query", "from=out/release", "marginal=[sex]"]}
READERS |= {"synth": ["synth", "from=out/release", "output=again"], "load": []}


@contextmanager
def seconds(most):
    """The block ends in time, or fails: a pipe without a writer waits for ever."""

    def late(*_):
        pytest.fail(f"longer than {most} s")  # no Exception, which a reader might take for a damaged file

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, most)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def said_by(capsys, reader):
    with seconds(20):
        if reader == "load":
            return refused_to_load()
        return of_nothing_else("".join(reply(capsys, *READERS[reader], code=1)))


def a_link(path):
    secret = Path("secret.yaml").resolve()
    secret.write_text("api_key: sk-4711\n")
    path.symlink_to(secret)


def a_link_within(path):
    path.symlink_to(Path("out/release/manifest.json").resolve())


def a_socket(path):
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(os.path.relpath(path))


@pytest.mark.parametrize("put", [a_link, a_link_within, os.mkfifo, a_socket], ids=["link", "inner", "pipe", "socket"])
def test_a_release_of_anything_but_plain_files_is_opened_nowhere(put, release, capsys):
    others = ("statement.html", "privacy.json", "measurements/index.json", "extra")
    readers = {"schema.yaml": READERS, **dict.fromkeys(others, ("load",))}
    for name, own in readers.items():
        (release / name).unlink(missing_ok=True)
        put(release / name)
        for reader in own:
            said = said_by(capsys, reader)
            assert f"{name} is no plain file" in said
            if reader == "verify":
                assert said.splitlines()[0].startswith("  NO  files") and len(said.splitlines()) == 2
        (release / name).unlink()
        (release / name).write_text("x")


@pytest.mark.parametrize("name", ["privacy.json", "manifest.json", "synthetic.csv"])
def test_a_score_takes_no_statement_that_is_no_plain_file(name, release):
    (release / name).rename(release.parent / name)
    for put in (os.mkfifo, lambda path: path.symlink_to(release.parent / name)):
        put(release / name)
        with seconds(20):
            facts, _ = release_beside(release / "synthetic.csv")
        assert facts is None
        (release / name).unlink()


@pytest.mark.parametrize("depth", [200, 200_000])
@pytest.mark.parametrize("name", ["privacy.json", "manifest.json", "measurements/index.json", "schema.yaml"])
def test_a_text_that_is_nested_without_end_is_refused(name, depth, release, capsys):
    deep = "[" * depth + "]" * depth
    if name == "schema.yaml":
        (release / name).write_text(f"columns: {deep}\n")
    else:
        content = (release / name).read_text().rstrip()
        (release / name).write_text(f'{content[:-1]}, "more": {deep}}}')
    if name != "manifest.json":
        rebound(release)
    for reader in READERS if name == "privacy.json" else ("load",):
        assert "nested" in said_by(capsys, reader)


def with_array(release, content, compression=zipfile.ZIP_STORED):
    """The answers with another array in the place of the first."""
    path = release / "measurements" / "answers.npz"
    with zipfile.ZipFile(path) as held:
        kept = {name: held.read(name) for name in held.namelist()}
    with zipfile.ZipFile(path, "w", compression) as made:
        for name, array in (kept | {"0.values.npy": content}).items():
            made.writestr(name, array)
    rebound(release)


def header_of(shape):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.mark.parametrize("name", ["synthetic.csv", "marginals/0001_sex.csv", "statement.html"])
def test_a_text_that_is_longer_than_a_run_writes_is_not_read_whole(name, release, capsys):
    (release / name).write_text("x" * 2**22)
    rebound(release)
    assert name.rpartition("/")[2] in said_by(capsys, "verify")


def folders_without_end(release):
    place = os.open(release, os.O_RDONLY)
    for _ in range(100):
        os.mkdir("a", dir_fd=place)
        inner = os.open("a", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)


def a_file_of_holes(release):
    with (release / "synthetic.csv").open("r+b") as file:
        file.truncate(2**43)


def a_name_that_writes_lines(release):
    (release / "a\n  ok  files        all\nsound\x1b[8m").touch()


def a_bomb(release):
    """A list of lists of lists, each of which is twice the one before."""
    named = ", ".join(f"&m{i} [*m{i - 1}, *m{i - 1}]" for i in range(1, 40))
    columns = f"{{sex: {{kind: categorical, values: [&m0 [x, x], {named}]}}}}"
    (release / "schema.yaml").write_text(f"confirmed_public: true\ncolumns: {columns}\n")
    rebound(release)


def an_array_with(content, compression=zipfile.ZIP_STORED):
    return lambda release: with_array(release, content, compression)


NO_PYTHON = b"\x93NUMPY\x01\x00" + (9001).to_bytes(2, "little") + b"(" * 9000 + b"\n"
#: What no run writes, and words of the answer.
PUT = {
    "a schema that doubles itself": (a_bomb, "an alias"),
    "an array that unfolds": (an_array_with(header_of((2**17,)) + bytes(2**20), zipfile.ZIP_DEFLATED), "packed"),
    "an array that is longer than its file": (an_array_with(header_of((2**50,)) + bytes(80)), "measurements"),
    "an array whose head is no Python": (an_array_with(NO_PYTHON), "not readable as measurements"),
    "folders without end": (folders_without_end, "deeper than 64 folders"),
    "a file of holes": (a_file_of_holes, "and has hardly any"),
    "a name that writes lines": (a_name_that_writes_lines, "is a name with unseen characters"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(("put", "words"), PUT.values(), ids=PUT)
def test_a_release_that_no_run_writes_is_opened_nowhere_and_refused_in_words(put, words, reader, release, capsys):
    put(release)
    said = said_by(capsys, reader)
    assert words in said and "\nsound" not in said and "\x1b" not in said


def test_a_version_that_clears_the_terminal_is_told_in_codes(release, capsys):
    """`verify` says which other version wrote a release, in the words of that release."""
    content = json.loads((release / "manifest.json").read_text())
    (release / "manifest.json").write_text(json.dumps(content | {"pipeline": "9\x1b[2J"}))
    said = reply(capsys, "verify", "out/release", code=2).out
    assert "\x1b" not in said and "9\\x1b[2J" in said


@pytest.mark.parametrize("terminal", [False, True])
def test_an_answer_clears_no_terminal_and_a_file_gets_the_value_as_it_is(terminal, release, capsys, monkeypatch):
    """`query` printed the values of a release of somebody else, escape sequences and all."""
    path = release / "schema.yaml"
    path.write_text(path.read_text().replace("baker", '"ba\\u001b[2Jker"', 1))
    rebound(release)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    said = reply(capsys, "query", "from=out/release", "marginal=[job]")
    assert ("ba\\x1b[2Jker" if terminal else "ba\x1b[2Jker") in said.out and ("\x1b" in said.out) is not terminal


SAYS_NOTHING = [{"events": None}, {"events": ["x"]}, {"guarantee": []}, {"reasons_not_private": 3}]
SAYS_NOTHING.append({"guarantee": {"epsilon": 10**400, "delta": 0}})
WRONG = [{"versions": 3}, {"reasons_not_private": 3}, {"reasons_not_private": ["\x1b[2J\nsound"]}]


@pytest.mark.parametrize(
    ("reader", "wrong"),
    [*((r, w) for w in SAYS_NOTHING for r in ("synth", "query", "load")), *(("verify", w) for w in WRONG)],
)
def test_no_rows_are_made_of_wrong_facts_and_verify_says_so_and_writes_no_line_of_theirs(
    reader, wrong, release, capsys
):
    path = release / "privacy.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | wrong))
    rebound(release)
    said = said_by(capsys, reader)
    assert "\nsound" not in said and "\x1b" not in said
    assert ("privacy.json is not as a run writes it" in said) if reader != "verify" else said.endswith("\nNOT sound\n")
