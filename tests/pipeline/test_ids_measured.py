"""The column that names the persons is no column like any other, whatever it is called."""

import json

import pytest

from tests.pipeline.conftest import command

READER = "  reader: {kind: zip, digits: 5, prefix: 3, missing: false}\n"
TABLE = ["data.path=library.csv", "data.schema=library.yaml"]
FAST = ["data=table", *TABLE, "selection=oneway", "synthesis=independent", "evaluation.enabled=false"]
SAID = "names the unit of privacy, and the schema has its ids measured and released like any other values"


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library whose readers, in a column that no program knows, borrow three times each; 00777 moved in alone."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{(i % 400) * 37 % 9000:05},{i % 90},{'00777' if i == 5 else f'0{i % 7}123'}" for i in range(1200)]
    (tmp_path / "library.csv").write_text("\n".join(["reader,age,postcode", *lines, ""]))
    (tmp_path / "library.yaml").write_text(
        "source: the form\nconfirmed_public: true\ncolumns:\n"
        f"{READER}  age: {{kind: integer, min: 0, max: 99, missing: false}}\nleave_out: [postcode]\n"
    )
    return tmp_path


def test_a_draft_asks_whether_values_of_few_rows_each_are_persons(library):
    assert command("schema", "library.csv", "output=draft.yaml") == 0
    text = (library / "draft.yaml").read_text()
    reader = text[: text.index("  reader:")].splitlines()[-1]
    assert "3.0 rows each: does it name persons? then draft with privacy.unit=reader" in reader
    assert text.count("does it name persons?") == 1
    assert command("schema", "library.csv", "output=other.yaml", "privacy.unit=reader") == 0
    assert "does it name persons?" not in (library / "other.yaml").read_text()


def test_whole_numbers_that_are_all_as_long_as_each_other_may_be_persons_and_amounts_are_not(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    lines = [f"{50000 + i % 400 * 7},{i % 400 * 7}" for i in range(1200)]
    (tmp_path / "t.csv").write_text("\n".join(["patron,paid", *lines, ""]))
    assert command("schema", "t.csv", "output=t.yaml") == 0
    draft = (tmp_path / "t.yaml").read_text()
    assert draft.count("does it name persons?") == 1 and "privacy.unit=patron" in draft
    capsys.readouterr()
    assert command("check", "data.path=t.csv", "data.schema=t.yaml") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "'patron' may be an id, with about" in said and "'paid' may be an id" not in said


def test_ids_of_the_unit_among_the_columns_are_said_by_check_plan_and_a_run_before_it_spends(library, capsys):
    unit = ["privacy.unit=reader", "privacy.max_records=3"]
    assert command("check", *TABLE, *unit) == 0
    said = capsys.readouterr().out
    assert "\nreader  zip         warning" in said and f"→ it {SAID}; leave_out: [reader]" in said
    assert command("plan", *FAST, *unit) == 0
    assert f"the column 'reader' {SAID}; instead, leave_out: [reader]" in capsys.readouterr().out
    assert command("run", *FAST, *unit, "hydra.run.dir=out") == 0
    log = capsys.readouterr().err.splitlines()
    (line,) = [place for place, text in enumerate(log) if SAID in text]
    assert log[line].strip() == f"the column 'reader' {SAID}; instead, leave_out: [reader]", "one line in a file"
    assert line < next(place for place, text in enumerate(log) if text.startswith("measure"))


def test_where_a_row_is_the_unit_check_names_the_columns_that_may_be_persons(library, capsys):
    assert command("check", *TABLE, "format=json") == 0
    (hint,) = [h for h in json.loads(capsys.readouterr().out)["hints"] if "an id" in h]
    assert hint.startswith("'reader' may be an id, with about ") and "privacy.unit=reader" in hint


def test_a_listed_postcode_that_one_row_alone_holds_is_a_warning_and_no_ok(library, capsys):
    codes = [f"0{k}123" for k in range(7)]
    listed = f"  postcode: {{kind: categorical, values: {json.dumps([*codes, '00777'])}, missing: false}}\n"
    schema = (library / "library.yaml").read_text().replace(READER, "").replace("[postcode]", "[reader]")
    (library / "library.yaml").write_text(schema.replace("leave_out", f"{listed}leave_out"))
    assert command("check", *TABLE) == 0
    said = capsys.readouterr().out
    assert "\npostcode  categorical warning" in said and "→ 1 of the listed texts are held by one row alone" in said
    assert "\nage       integer     ok" in said


def test_a_hint_about_postal_codes_keeps_their_leading_zeros_and_takes_any_way_to_write_them(library, capsys):
    (library / "library.csv").write_text("".join(["home\n", *("0123\n" for _ in range(200)), *("0999\n",) * 9]))
    for missing, said in (("true", True), ('["0999"]', False), ('["999"]', False)):
        column = f"home: {{kind: zip, digits: 4, prefix: 2, missing: {missing}}}"
        (library / "library.yaml").write_text(f"columns: {{{column}}}\n")
        assert command("check", *TABLE, "format=json") == 0
        hints = json.loads(capsys.readouterr().out)["columns"]["home"]["hints"]
        assert hints == (['0999 (9 times): a gap? missing: ["0999"]'] if said else [])


def test_a_list_that_a_run_discovers_is_not_said_to_place_nothing(library, capsys):
    column = "  postcode: {kind: categorical, values: discover, other: elsewhere}\n"
    schema = (library / "library.yaml").read_text().replace(READER, "").replace("[postcode]", "[reader]")
    (library / "library.yaml").write_text(schema.replace("leave_out", f"{column}leave_out"))
    assert command("check", *TABLE) == 0
    said = capsys.readouterr().out
    assert "\npostcode  categorical ok\n    → values: a run discovers them with noise" in said and "% other" not in said
    assert command("run", *FAST, "privacy.delta=1e-6", "hydra.run.dir=out") == 0
    log = (library / "out/internal/run.log").read_text()
    assert "postcode: its values are discovered" in log and "postcode: 1200 outside" not in log


def test_a_left_out_column_of_texts_that_may_name_persons_is_asked_about(tmp_path, monkeypatch, capsys):
    """One visitor's remark stands in forty rows, and no column is called an id: rows are counted, and it is listed."""
    monkeypatch.chdir(tmp_path)
    lines = [f"V-{i * 7 % 800:04},{('', 'ok', 'late')[i % 3]}" for i in range(2400)] + ["V-0077,Kaya: epilepsy"] * 40
    (tmp_path / "t.csv").write_text("\n".join(["Visitor,Remark", *lines, ""]))
    assert command("schema", "t.csv", "output=t.yaml") == 0
    draft = (tmp_path / "t.yaml").read_text()
    assert "Kaya" in draft and "no column is called a person's id" in draft
    (visitor,) = [line for line in draft.splitlines() if line.startswith('  - "Visitor"')]
    assert "3.1 rows each: does it name persons? then draft with privacy.unit=Visitor" in visitor
    assert "where a list is wanted, and privacy.unit names the person" in visitor
    capsys.readouterr()
    assert command("check", "data.path=t.csv", "data.schema=t.yaml", "format=json") == 0
    (hint,) = [h for h in json.loads(capsys.readouterr().out)["hints"] if "name persons" in h]
    assert "'Visitor': does one of them name persons?" in hint and "privacy.unit=COLUMN" in hint
    called = (tmp_path / "t.csv").read_text().replace("Visitor,", "Patient No.,")
    (tmp_path / "u.csv").write_text(called)
    (tmp_path / "u.yaml").write_text(draft.replace("Visitor", "Patient No."))
    assert command("check", "data.path=u.csv", "data.schema=u.yaml", "format=json") == 0
    hints = str(json.loads(capsys.readouterr().out)["hints"])
    assert "'Patient No.' looks like an id" in hints and "name persons" not in hints
    assert command("check", "data.path=t.csv", "data.schema=t.yaml", "privacy.unit=Visitor", "format=json") == 0
    assert "name persons" not in capsys.readouterr().out


def test_times_and_days_in_digits_are_not_advised_as_units(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    days = [f"{1 + i % 28:02}{1 + i % 12:02}{2001 + i % 17}" for i in range(2400)]
    lines = [f"{1_700_000_000 + 997 * i},{day}" for i, day in enumerate(days)]
    (tmp_path / "t.csv").write_text("\n".join(["stamp,day", *lines, ""]))
    digits = "{kind: zip, digits: 8, prefix: 3, missing: false}"
    whole = "{kind: integer, min: 1700000000, max: 1710000000, bins: {count: 9}, missing: false}"
    (tmp_path / "t.yaml").write_text(f"columns: {{stamp: {whole}, day: {digits}}}\n")
    assert command("check", "data.path=t.csv", "data.schema=t.yaml", "format=json") == 0
    looked = json.loads(capsys.readouterr().out)
    assert not [h for h in looked["hints"] if "privacy.unit" in h], looked["hints"]
    assert 'format: "%d%m%Y"' in looked["columns"]["day"]["hints"][0]


def test_ids_that_a_run_would_discover_are_warned_of_where_a_row_is_the_unit(library, capsys):
    """Of a reader with many loans the id would stand in the release, which says that it is private."""
    column = "  reader: {kind: categorical, values: discover, other: elsewhere}\n"
    schema = (library / "library.yaml").read_text().replace(READER, column)
    (library / "library.yaml").write_text(schema)
    assert command("check", *TABLE, "format=json") == 0
    reader = json.loads(capsys.readouterr().out)["columns"]["reader"]
    assert reader["status"] == "warning" and "released as it is: leave_out, or privacy.unit" in reader["hints"][0]
    assert command("run", *FAST, "privacy.delta=1e-6", "console=always", "hydra.run.dir=out") == 0
    assert "a value of many rows, which may be one person's" in " ".join(capsys.readouterr().err.split())
