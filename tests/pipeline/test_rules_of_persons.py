"""A hospital whose rules name constants: no man in the maternity ward, nobody admitted before birth, in any table."""

import numpy as np
import pandas as pd

from tests.pipeline.conftest import command

DATE = """{kind: date, min: 1930-01-01, max: 2021-12-31, missing: false,
    bins: {edges: [1930-01-01, 1960-01-01, 1990-01-01, 2020-01-01, 2020-07-01, 2021-01-01, 2021-07-01, 2021-12-31]}}"""
SCHEMA = f"""name: stays
source: invented for a test
confirmed_public: true
columns:
  sex: {{kind: categorical, values: [f, m], missing: false}}
  born: {DATE}
  admitted: {DATE}
  ward: {{kind: categorical, values: [surgery, maternity, urology], missing: false}}
unit: {{column: patient, constant: [sex, born], order: admitted, records: {{max: 4}}}}
ordered: [[born, admitted]]
impossible: [{{sex: m, ward: maternity}}, {{sex: f, ward: urology}}]
"""


def stays(persons: int = 300) -> pd.DataFrame:
    """Half of the persons were born in the years of the table; five rows break a rule."""
    rng, last = np.random.default_rng(7), pd.Timestamp("2021-12-31")
    most = np.where(rng.random(persons) < 0.5, 730, 30_000)
    sex, born = rng.choice(["f", "m"], persons), last - pd.to_timedelta(rng.integers(0, most), unit="D")
    who = np.repeat(np.arange(persons), rng.integers(1, 5, persons))
    start = np.maximum(born[who], pd.Timestamp("2020-01-01"))
    day = start + (last - start) * rng.random(who.size)
    ward = np.where(rng.random(who.size) < 0.3, np.where(sex[who] == "f", "maternity", "urology"), "surgery")
    ward[np.flatnonzero(sex[who] == "f")[:5]] = "urology"
    days = {name: d.strftime("%Y-%m-%d") for name, d in (("born", born[who]), ("admitted", day))}
    return pd.DataFrame({"patient": who, "sex": sex[who], **days, "ward": ward})


def check_rows(frame: pd.DataFrame, rows: int) -> None:
    """What holds of every table, whatever the noise is."""
    assert len(frame) >= rows
    assert not ((frame.sex + frame.ward).isin(["mmaternity", "furology"]) | (frame.born > frame.admitted)).any()
    each = frame.groupby("patient")
    assert (each[["sex", "born"]].nunique() == 1).all(axis=None)
    assert each.admitted.apply(lambda d: d.is_monotonic_increasing).all() and each.size().max() <= 4


def test_every_row_of_every_table_keeps_to_the_rules(folder, capsys):
    stays().to_csv("stays.csv", index=False)
    (folder / "stays.yaml").write_text(SCHEMA)
    own, again = ["data.path=stays.csv", "data.schema=stays.yaml"], ["synth", "from=out/release"]
    again.append("synthesis=independent")
    further = ("selection=pairs", "synthesis=independent", "evaluation.enabled=false", "hydra.run.dir=out")
    assert command("run", "data=table", *own, *further, "privacy.epsilon=2", "privacy.delta=1e-6") == 0
    frame = pd.read_csv("out/release/synthetic.csv")
    check_rows(frame, 600)
    assert (frame.born >= "2020").mean() > 0.2 and {"maternity", "urology"} <= {*frame.ward}
    assert command(*again, "release.tables=two", "output=two") == 0
    persons, records = (pd.read_csv(f"two/release/{name}.csv") for name in ("synthetic_persons", "synthetic"))
    check_rows(records.merge(persons, on="patient", validate="many_to_one"), 600)
    for number, where in enumerate(("born: [2020-01-01, 2020-12-31]", "ward: urology")):
        assert command(*again, f"where={{{where}}}", f"output=w{number}") == 0
        check_rows(pd.read_csv(f"w{number}/release/synthetic.csv"), 20)
    capsys.readouterr()
    assert command("verify", "from=out/release") == 0 and command("check", *own) == 0
    said = capsys.readouterr().out
    assert "sound" in said and "impossible: sex × ward: 0.7 % of the rows break it (by their bins)" in said
