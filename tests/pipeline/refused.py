"""Commands that cannot do what they are asked for, each with words of the answer; what they find in their folder."""

import gzip
from pathlib import Path

from tests.pipeline.conftest import PAIRS, SCHEMA, TOWN, people
from tests.pipeline.test_discovery_runs import OPEN
from tests.pipeline.test_discovery_runs import SETTINGS as OPEN_UNIT

RUN = ["run", *TOWN, "hydra.run.dir=out"]
PLAN = ["plan", *TOWN]
REHEARSE = ["rehearse", "data.schema=town.yaml", "hydra.run.dir=out"]
LIMIT = "budget.limit={epsilon: 3, delta: 1e-6}"
UNIT = ["privacy.unit=person", "privacy.max_records=6"]
DISCOVERED = [*RUN, "privacy.unit=person", "privacy.max_records=discover", "privacy.max_records_cap=20"]
ACCEPT = [*RUN, "selection.marginals=[[age,sex],[job]]", "synthesis=independent", "privacy.epsilon=2"]
L1 = "{metric: l1, marginals: 1"
SWEEP = ["run", "-m", *TOWN, "synthesis=independent", "hydra.sweep.dir=sweep"]
MAP = ["run", "experiment=mgd_table1", "smoke=true", "data.rows=100", "hydra.run.dir=out"]
FIRE = ["run", "experiment=nist2018_fire", *TOWN, "smoke=true", "synthesis=independent", "hydra.run.dir=out"]
ALL = ["run", "experiment=all", "hydra.run.dir=out"]
VARIANTS = "++experiment.variants="
QUERY, SYNTH = ["query", "from=R/release"], ["synth", "from=R/release", "output=part"]
SCORE = ["score", "real=town.csv", "output=never.json"]
MADE = [*SCORE, "synthetic=R/release/synthetic.csv", "schema=town.yaml"]
#: Two more columns, of which one is mapped.
MORE = SCHEMA.replace("count: 10}", "count: 10}, joint_bins: {count: 5}").partition("leave_out")[0]
MORE += "  trade: {kind: categorical, values: [food, metal]}\n"
MORE += "  street: {kind: categorical, size: 9, one_way_only: true}\nleave_out: [note]\nmapped: "
MAPPED = {name: f"{{trade: {{from: {name}}}}}" for name in ("shop", "age", "job")}
MAPPED |= {"to": "{trade: {to: job}}", "both": "{trade: {from: job}, job: {from: sex}}"}
SCHEMAS = {
    "open": OPEN,
    "sizes": SCHEMA + "unit_id: {name: person, records: measured}\n",
    "fine": SCHEMA.replace("bins: {count: 10}, ", ""),
    "three": SCHEMA.replace("[f, m]", "[f, m, x]"),
    "zeros": SCHEMA + "impossible: [{sex: f, job: baker}]\n",
    **{name: f"{MORE}{rule}\n" for name, rule in MAPPED.items()},
}


def write_files(folder: Path) -> None:
    """Schemas, and public tables that cannot serve."""
    for name, text in SCHEMAS.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    people(50).drop(columns="job").to_csv(folder / "other.csv", index=False)
    people(50).assign(age="grown").to_csv(folder / "strange.csv", index=False)
    people(50).head(0).to_csv(folder / "empty.csv", index=False)
    people(50).rename(columns={"person": "record"}).to_csv(folder / "record.csv", index=False)
    (folder / "cut.csv.gz").write_bytes(gzip.compress(people(5000).to_csv(index=False).encode())[:-400])


def of(command: list[str], *mistakes: tuple[str | list[str], str]) -> list[tuple[list[str], str]]:
    """The command with each of these mistakes, which is one setting or several, and words of its answer."""
    return [([*command, *([given] if isinstance(given, str) else given)], word) for given, word in mistakes]


#: A command with a mistake, and words of the answer.
REFUSED = [
    *of(  # nothing is taken and ignored
        [],
        ([*PLAN, "selection=pairs", "selection.floor=50"], "selection.merge=4.5 with it"),
        ([*RUN, "evaluation.k=[99]"], "evaluation.k: got [99]"),
        ([*RUN, "evaluation.references=5"], "evaluation.references: got 5"),
        ([*RUN, "data.units=u.csv"], "data.units: several settings, and no value of its own"),
        ([*RUN, "hydra.launcher=foo"], "hydra/launcher=foo"),
        ([*SWEEP, "hydra.launcher=foo", "privacy.epsilon=1,2"], "hydra/launcher=foo"),
        ([*SWEEP, "privacy.epsilon=1,2", "hydra.run.dir=x"], "hydra.sweep.dir=x"),
        ([*SWEEP[:-1], "privacy.epsilon=1,2", "hydra.sweep.dir=town.csv"], "hydra.sweep.dir: town.csv is a file"),
        ([*REHEARSE, "data.rows=0"], "plan.rows=20000"),
        ([*REHEARSE, "data.path="], "data.path: a rehearsal opens no table"),
        ([*REHEARSE, "resume=true"], "resume: a rehearsal begins anew"),
        ([*REHEARSE, "data.units.path=u.csv"], "data.units.path: a rehearsal opens no table"),
        ([*REHEARSE, "data.roles={time: nobody}"], "data.roles.time: no column 'nobody'"),
        ([*REHEARSE, "evaluation.metrics=nonsense"], "evaluation.metrics: got 'nonsense'"),
        ([*PLAN, "release.format='a b'"], "release.format: got 'a b'"),
        ([*PLAN, "release.tables=two"], "release.tables: the schema declares no constants of persons"),
        ([*MADE, "holdout="], "holdout: no table given"),
        ([*SWEEP, "=5"], "key=value"),
        *(([*PLAN, f"{group}=null"], f"{group}: no {group} called None") for group in ("engine", "selection")),
        *(([*PLAN, f"selection={n}"], f"selection: no selection called {n}") for n in ("[]", "['auto', 'mst']")),
    ),
    *of(
        RUN,
        ("privacy.epsilo=1", "did you mean 'privacy.epsilon'"),
        ("epsilon=1", "did you mean 'privacy.epsilon'"),
        ("delta=1e-6", "did you mean 'privacy.delta' or 'evaluation.delta'?"),
        (["privacy.delta=0", "mechanism=gaussian"], "privacy.delta"),
        ("privacy.delta=0", "privacy.delta"),
        ("privacy.accountant=gpd", "did you mean 'gdp'"),
        ("privacy.unit=person", "privacy.max_records"),
        (["privacy.unit=persn", "privacy.max_records=2"], "person"),
        ("privacy.max_records=3", "privacy.max_records"),
        ("selection.marginals=[[age,agee]]", "did you mean 'age'"),
        ("selection.max_cells=1", "selection.max_cells"),
        ("synthesis=gumm", "gum"),
        ("mechanism=gauss", "gaussian"),
        ("data=adlt", "adult"),
        ("data.path=nowhere.csv", "nowhere.csv"),
        ("data.path=cut.csv.gz", "cut.csv.gz"),
        ("data.schema=nowhere.yaml", "data.schema"),
        ("data.schema=nofile.yaml", "a path, or one of acs.yaml"),  # .yaml makes no name like fire15.yaml
        ("data.schema=demos.yaml", "did you mean 'demo'?"),
        ("release.format=xlsx", "release.format"),
        ("limits.memory_gb=0.0001", "limits.memory_gb"),
        ("nonsense", "key=value"),
        ("selection.marginals=[age,sex]", "a list of lists"),
        ("selection.marginals=[[age,sex]", "close every bracket"),
        ("selection.k=[3,9]", "1 to 3"),
        ("selection.kind=best", "selection.kind"),
        ("hydra.run.dir=/proc/foo", "another folder"),
        ("accept={metric: l1, marginals: 2}", "'accept=[{metric: l1"),
        ("accept=l1", "not of the form that this setting has"),
        (["budget.ledger=a.json", "budget.limit=3"], "not of the form that this setting has"),
        ("privacy.unit_id_rules=trim", "'privacy.unit_id_rules=[unicode,trim]'"),
        ("qqqq=1", "python -m pipeline run --help"),
        (["data.schema=zeros.yaml", f"synthesis.rows={10**15}"], "of disk"),
        (["data.schema=zeros.yaml", "synthesis=gum", "synthesis.rows=1000000000"], "limits.memory_gb"),
        *((f"statement.date={day}", "statement.date") for day in ("1.3.2027", "2027-02-30")),
        ('statement.publisher="a\nb"', "statement.publisher"),
        (f"statement.contact={'x' * 161}", "statement.contact"),
        (["data.schema=sizes.yaml", "privacy.unit=record"], "one record is the unit"),
        (["data.schema=sizes.yaml", *UNIT, "privacy.max_records=20000"], "at most 10,000"),
        ("evaluation.groups=[sax]", "evaluation.groups: no column 'sax'"),
        (["data.schema=fine.yaml", "evaluation.groups=[age]"], "groups of at most 50"),
        ("evaluation.pairs=[[sex,agee]]", "did you mean 'age'"),
        ("evaluation.pairs=[[sex,sex]]", "with itself"),
        *((f"evaluation.pairs={pairs}", "[[age,income]]") for pairs in ("[sex,age]", "[[sex,age,job]]")),
        ("data.path=null", "data.path"),
        ("resume=true", "nothing to resume"),
        ("engine.master=local[2]", "master belongs to engine=spark"),
        ("data.path=record.csv", "'record' is a column of the table"),
        (["synthesis=pgm", "synthesis.max_cells=1"], "synthesis.max_cells"),
        *(([f"selection={name}", "selection.max_cells=3"], "selection.max_cells") for name in ("mst", "priview")),
        ("selection=mts", "mst"),
        *((["selection=privbasis", f"selection.{name}=9"], f"selection.{name}") for name in ("items", "pairs")),
        (["data.schema=three.yaml", "selection=privbasis"], "binary"),
    ),
    *of(
        [*RUN, "data.schema=zeros.yaml", "synthesis=independent", "limits.memory_gb=1"],
        (f"synthesis.rows={10**12}", "synthesis.rows"),
        ("synthesis.rows=20000000", "limits.memory_gb"),
    ),
    *of(
        [*RUN, "selection=aim"],
        ("privacy.accountant=basic", "privacy.accountant"),
        ("mechanism=laplace", "privacy.accountant"),
        ("selection.rounds=1", "selection.rounds"),
    ),
    *of(
        [*RUN, "selection=adagrid"],
        ("selection.targets=[jobs]", "'job'"),
        (["selection.targets=[job]", "selection.closure=[[age,sex]]"], "selection.targets"),
        (["privacy.epsilon=1e-14", "synthesis=pgm"], "privacy.epsilon"),
    ),
    *of(
        [*RUN, "selection=indif"],
        ("selection.max_cells=3", "selection.max_cells"),
        ("privacy.accountant=advanced", "privacy.accountant"),
        ("privacy.epsilon=1e-14", "privacy.epsilon"),
        ("privacy.epsilon=9e-6", "a number of at least 1e-05"),
        ("privacy.delta=0.9999", "a number from 1e-30 to 0.9"),
    ),
    *of(
        [*RUN, "selection=public"],
        ([], "selection.public"),
        *((f"selection.public={name}.csv", "selection.public") for name in ("nowhere", "other")),
        ("selection.public=strange.csv", "'age'"),
        ("selection.public=empty.csv", "no rows"),
        (["selection.public=town.csv", "selection.max_cells=3"], "selection.max_cells"),
    ),
    *of(
        [*RUN, "synthesis=gum"],
        ("synthesis.public=nowhere.csv", "error: synthesis.public: "),
        ("synthesis.public=other.csv", "'job'"),
        ("synthesis.public=strange.csv", "have no place in the schema"),
        ("synthesis.public=empty.csv", "no rows"),
    ),
    *of(
        [*RUN, "privacy.unit=person", "privacy.max_records=1000000", "privacy.epsilon=1e-5"],
        *((f"selection={name}", "exceeds the supported maximum") for name in ("oneway", "adagrid")),
    ),
    *of(
        [*RUN, "synthesis=independent"],
        ("budget.ledger=people.json", "no limit yet"),
        (["budget.ledger=people.json", "budget.limit={epsilon: -1, delta: 1e-6}"], "budget.limit.epsilon"),
        (["budget.ledger=people.json", "budget.limit={epsilon: 3}"], "budget.limit"),
        (["budget.ledger=people.json", "budget.limit={epsilon: three, delta: 0}"], "budget.limit"),
        (["budget.ledger=people.json", LIMIT, "budget.accountant=advanced"], "privacy filter"),
        (["budget.ledger=town.csv", LIMIT], "damaged"),
        (["budget.ledger=.", LIMIT], "cannot be read"),
        *(([f"budget.ledger=out/{place}people.json", LIMIT], "folder of the run") for place in ("", "release/")),
        (["budget.ledger=R/release/people.json", LIMIT], "release folder"),
        (["budget.ledger=town.csv/people.json", LIMIT], "cannot"),
    ),
    *of(
        ACCEPT,
        ("accept=[{metric: tvd, marginals: 2}]", "error: accept[0].metric: "),
        ("accept=[{marginals: 2}]", "error: accept[0].metric: "),
        ("accept=[{metric: l1}]", "error: accept[0].marginals: "),
        *((f"accept=[{{metric: l1, marginals: {k}}}]", "error: accept[0].marginals: ") for k in (4, 0)),
        *((f"accept=[{L1}, at_most: {most}}}]", "error: accept[0].at_most: ") for most in (-1, "many")),
        ("accept=[{metric: l1, marginals: 2, of: median}]", "error: accept[0].of: "),
        ("accept=[{metric: l1, marginals: 2, share: 2}]", "error: accept[0].share: "),
        ("accept=[{metric: l1, marginals: 2, atmost: 3}]", "error: accept[0]: "),
        ("accept=[3]", "error: accept: "),
        (f"accept=[{L1}, share: 0.6}},{L1}, share: 0.5}}]", "error: accept_share: "),
        ([f"accept=[{L1}, at_most: 5}}]", "accept_tries=1000", "privacy.delta=1e-28"], "error: privacy.delta: "),
        ([f"accept=[{L1}}},{L1}}}]", "accept_tries=3"], "error: accept: "),
        (["experiment=mgd_table1", "accept=[{metric: l1, marginals: 1}]"], "error: accept: "),
    ),
    *of(
        DISCOVERED,
        ("privacy.clip=none", "clip=none takes C for a public fact"),
        ("privacy.unit=record", "there is nothing to discover"),
        (["privacy.max_records_cap=20000", "data.schema=sizes.yaml"], "at most 10,000 with unit_id"),
        ("privacy.accountant=advanced", "privacy.accountant=gdp or zcdp or basic"),
        (["accept=[{metric: l1, marginals: 1, at_most: 9}]", "accept_tries=2"], "several tries"),
    ),
    *of(
        [*PLAN, *PAIRS, *OPEN_UNIT, "data.schema=open.yaml"],
        (["accept=[{metric: l1, marginals: 1, at_most: 9}]", "accept_tries=2"], "several tries"),
        (["privacy.delta=0", "privacy.accountant=basic", "mechanism=laplace"], "values: discover needs a part of δ"),
        ("privacy.accountant=advanced", "privacy.accountant=gdp or zcdp or basic"),
    ),
    *of(
        PLAN,
        *((f"evaluation.{of}=[nowhere]", f"error: evaluation.{of}: ") for of in ("metrics", "groups", "order")),
        ("+privcy.epsilon=0.1", "no such setting"),
        ("+epsilon=0.1", "no such setting"),
        ("privacy.delta=1e-320", "privacy.delta"),
        ("selection.weights=[{marginal: [age], weight: 1e308}, {marginal: [sex], weight: 1e308}]", "weights"),
        (["data.schema=job.yaml", "selection.marginals=[[street,age]]"], "keeps 'street' out of joint marginals"),
        ("data.schema=shop.yaml", "no column 'shop'"),
        ("data.schema=to.yaml", "mapped 'trade': got"),
        ("data.schema=both.yaml", "'job' is mapped itself"),
        ("data.schema=age.yaml", "column 'age' is measured in another form"),
        (["data.schema=job.yaml", "selection=adagrid", "selection.targets=[]"], "need a whole marginal"),
    ),
    *of(
        SWEEP,
        ("privacy.epsilon=1,-1", "no job with privacy.epsilon=-1 can run"),
        (["privacy.epsilon=1", "synthesis=gum,foo"], "no job with synthesis=foo can run"),
        (["privacy.epsilon=1,2", "mechanism=gaussian,gauss"], "no mechanism called 'gauss'"),
        ("synthesis.rows=9,1000000000000", "need more than"),
        ("privacy.epsilon=-1,0", "none of the jobs can run"),
        *((f"selection=auto,{value}", f"no selection called {value}") for value in ("3", "[]")),
        ("privacy.epsilon=a,b", "privacy.epsilon"),
        (["privacy.unit=record,person", "privacy.max_records=1", "budget.ledger=l.json", LIMIT], "share no ledger"),
        (["privacy.epsilon=1,2", "privacy.epsilonn=3"], "did you mean 'privacy.epsilon'?"),
        (["synthesis=maxent,gum", "synthesis.public=x.csv"], "a public start is for synthesis=gum alone"),
        (["synthesis=gum,maxent", "synthesis.public=x.csv"], "fix: ++synthesis.public=VALUE"),
    ),
    *of(
        MAP,
        ("experiment=mgd_tabel1", "did you mean 'mgd_table1'"),
        ("experiment=mgd_tabel1", "dpsyn_figure2: Figure 2 of the DPSyn paper"),
        ("experiment.querys=3", "did you mean 'experiment.queries'"),
        ("experiment.dpsyn=lots", "a list of ε"),
        (["experiment.dpsyn=[]", "experiment.laplace=[]", "experiment.samples=[]"], "no rows"),
        ("privacy.epsilon=3", "an experiment has its own"),
        ("experiment.columns=[received,neighborhood,priority]", "did you mean 'neighbourhood'"),
        ("experiment.columns=[channel,neighbourhood,priority]", "not ordered"),
        (["data=adult", "data.path=town.csv"], "which columns are time, place and category"),
        ("data=fire_calls", "data.path"),
    ),
    *of(
        FIRE,
        ("evaluation.holdout=0.2", "evaluation.holdout"),
        (f"{VARIANTS}[{{epsilon: 1}}]", "both are set"),
        ("++experiment.samples=[0.5]", "samples have nothing to stand beside"),
        (["experiment.epsilons=[]", f"{VARIANTS}[{{epsilon: 0}}]"], "experiment.variants"),
        (["experiment.epsilons=[]", f"{VARIANTS}[{{epsilon: 1, max_record: 2}}]"], "did you mean 'max_records'"),
        (["experiment.epsilons=[]", f"{VARIANTS}[{{epsilon: 1}}, {{epsilon: 1}}]"], "each once"),
        ("experiment.epsilons=[]", "experiment.epsilons"),
        ("experiment.metrics=[densty]", "did you mean 'density'"),
        ("++experiment.rounds={one: [densty]}", "did you mean 'density'"),
    ),
    *of(
        ALL,
        ("experiment.only=[dpsyn_figure3]", "did you mean 'dpsyn_figure2'"),
        ("experiment.files.adlut=x.csv", "did you mean 'experiment.files.adult'"),
        ("experiment.files.adult=absent.csv", "no file 'absent.csv'"),
        ("data.path=town.csv", "not one table for all experiments"),
    ),
    *of(
        QUERY,
        ([], "nothing asked"),
        (["marginal=[age]", "formatt=json"], "did you mean 'format'"),
        ("marginal=[]", "marginal"),
        (["marginal=[age]", "format=xml"], "csv, json"),
        (["marginal=[age]", "solution=most"], "maxent, least_norm"),
        (["solution=maxent", "where={age: [20, 30]}"], "belongs"),
        ("other=job", "correlation or odds_ratio"),
        ("where=x", "where"),
        ("where={sex: neither}", "neither"),
        ("bounds=maybe", "bounds"),
        (["estimate=mean", "column=age", "unmeasured=x"], "unmeasured"),
        (["marginal=[age]", "where={age: [1, 2]}"], "one question at a time"),
        ("marginal=[agee]", "did you mean 'age'?"),
        ("where={job: [bakker]}", "did you mean 'baker'?"),
        ("where={age: [40, 20]}", "low first"),
        ("marginal=[age,sex,job]", "no measured marginal tells age × sex × job"),
        ("marginal=age", "marginal=[age,sex]"),
        (["bounds=true", "where={age: [1, 2]}"], "one question at a time"),
        (["bounds=true", "marginal=[agee]"], "did you mean 'age'?"),
        ("by=[sex]", "it belongs to an estimate"),
        ("estimate=mean", "of which column?"),
        (["estimate=mean", "column=job"], "holds texts, not numbers"),
        (["estimate=mean", "column=aeg"], "did you mean 'age'?"),
        (["estimate=mode", "column=age"], "estimate"),
        (["estimate=proportion", "column=job"], "value=VALUE"),
        (["estimate=proportion", "column=job", "value=bakker"], "did you mean 'baker'?"),
        (["estimate=quantile", "column=age", "quantile=2"], "between 0 and 1"),
        (["estimate=quantile", "column=age"], "quantile=0.9; or estimate=median"),
        (["estimate=median", "column=age", "quantile=0.5"], "a median has none"),
        (["estimate=mean", "column=age", "by=[age]"], "named twice"),
        (["estimate=equal_means", "column=age"], "by=[COLUMN]"),
        (["estimate=mean", "column=age", "bounds=true"], "one question at a time"),
        (["estimate=mean", "column=age", "within_bin=best"], "within_bin"),
    ),
    *of(
        SYNTH,
        ("where={sx: f}", "did you mean 'sex'"),
        ("where={sex: x}", "has no value 'x'"),
        ("where={age: [200, 300]}", "has no value there"),
        ("synthesis.rowz=3", "did you mean 'synthesis.rows'"),
        (["rows=3", "synthesis.rows=4"], "rows and synthesis.rows differ"),
        ("where=[sex]", "where"),
        (["synthesis.rows=3000000000", "limits.memory_gb=1"], "3,000,000,000 synthetic rows are predicted to need"),
        ("accept=[{metric: l1, marginals: 1}]", "error: accept: "),
    ),
    *of(
        SCORE,
        ("synthetic=[town.csv,gone.csv]", "gone.csv"),
        ("synthetic=[]", "no table given"),
        ("synthetic={a: 1}", "several: "),
        ("synthetic=[town.csv,3]", "got 3"),
    ),
    *of(
        MADE,
        ("evaluation.preset=thrids", "did you mean 'thirds'"),
        ("evaluation.targets=absent.yaml", "cannot read 'absent.yaml'"),
        ("evaluation.targets=[{attributes:[age],weights:{age:0.4}}]", "sum to 0.4"),
        ("detail=slice", "did you mean 'slices'"),
    ),
    *of(
        [],
        ("runn", "did you mean 'run'"),
        ("report", "no run given"),
        (["report", "absent"], "no such folder"),
        (["schema", "town.csv", "-o", "x.yaml"], "no flag '-o'"),
        (["schema", "town.csv", "qqqq=1"], "python -m pipeline schema --help"),
        (["run", "--help", "selection=ami"], "did you mean 'aim'"),
        (["run", "smoke=true", "data.rows=100", "hydra.run.dir=out"], "experiment=mgd_table1"),
    ),
]
