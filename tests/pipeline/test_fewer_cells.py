"""A column of too many cells has one way out, and plan, a run's last lines and query name the same."""

import pytest

from mechanisms.public.schema.table_schema import parse_schema
from pipeline.inference.fewer_cells import said_cells
from tests.pipeline.conftest import command, people

SAID = "noise drowns 'home', 10,001 cells: prefix: 3 makes a tenth of them, or a larger privacy.epsilon"
TABLE = ["data=table", "data.path=town.csv", "data.schema=town.yaml"]


def test_plan_run_and_bounds_tell_one_story_of_a_column_of_ten_thousand_cells(town, capsys):
    table = people(600)
    table["home"] = [f"{i * 7919 % 100_000:05}" for i in range(600)]
    table.to_csv("town.csv", index=False)
    schema = (
        (town / "town.yaml").read_text().replace("leave_out", "  home: {kind: zip, digits: 5, prefix: 4}\nleave_out")
    )
    (town / "town.yaml").write_text(schema)
    assert command("plan", *TABLE, "plan.rows=600") == 0
    assert SAID in capsys.readouterr().out
    fast = ["synthesis=independent", "evaluation.enabled=false", "hydra.run.dir=out"]
    assert command("run", *TABLE, *fast) == 0
    assert SAID in " ".join(capsys.readouterr().out.split())
    assert command("query", "from=out/release", "bounds=true") == 0
    shown = capsys.readouterr()
    assert SAID in " ".join((shown.out + shown.err).split())


@pytest.mark.parametrize(
    ("fields", "helps"),
    [
        ({"kind": "zip", "digits": 5, "prefix": 2}, "prefix: 1 makes a tenth"),
        ({"kind": "integer", "min": 0, "max": 499}, "coarser bins make fewer"),
        ({"kind": "categorical", "size": 300}, "a shorter list of values makes fewer"),
        ({"kind": "categorical", "size": 3}, None),
    ],
)
def test_what_helps_is_a_setting_of_the_columns_kind(fields, helps):
    said = said_cells(parse_schema({"columns": {"x": fields}}, where="t"), ["x", "no column of it"])
    assert said == [] if helps is None else helps in said[0]
