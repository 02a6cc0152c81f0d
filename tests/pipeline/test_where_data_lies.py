"""Tables of databases, behind addresses, and in other bytes than most: the same rows, the same release."""

import itertools
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import pipeline
from mechanisms.public.errors import UserError
from mechanisms.public.schema.dialect import Dialect
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables import fetched as places
from mechanisms.public.tables.fetched import FetchRoom, check_no_secret, fetched
from mechanisms.public.tables.sniffed_dialect import sniffed_dialect
from mechanisms.public.tables.write_table import write_table
from pipeline.scores.table_sources import shown_name
from pipeline.settings.config import ReleaseConfig
from pipeline.settings.specs import as_released
from tests.pipeline.conftest import TOWN, command, done_in, people, reply, write_town
from tests.public.table_worlds import coded

QUICK = ["selection=oneway", "synthesis=independent", "evaluation.enabled=false", "privacy.noise_seed=3", "seed=3"]
PLAIN_TOWN = ["data=table", "data.schema=town.yaml", *QUICK]


def database(path: Path, frame: pd.DataFrame) -> Path:
    with sqlite3.connect(path) as connection:
        frame.to_sql("town", connection, index=False)
        connection.execute("CREATE VIEW grown AS SELECT * FROM town WHERE age >= 18")
        connection.execute("CREATE VIEW wards AS SELECT job, avg(age) AS age FROM town GROUP BY job")
        connection.execute("CREATE VIEW drawn AS SELECT *, random() AS r FROM town")
    connection.close()
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """town.db and town.csv with the same rows, and a run on each with the same noise."""
    folder = write_town(tmp_path_factory.mktemp("where"))
    frame = people(600)
    database(folder / "town.db", frame)
    frame.sort_values(list(frame.columns), key=lambda c: c.astype(str)).to_csv(folder / "town.csv", index=False)
    done_in(folder, "run", *PLAIN_TOWN, "data.path=town.csv", "hydra.run.dir=file")
    return done_in(folder, "run", *PLAIN_TOWN, "data.path=sqlite:///town.db", "data.table=town", "hydra.run.dir=sql")


@pytest.fixture
def here(place, monkeypatch) -> Path:
    monkeypatch.chdir(place)
    return place


def copy(location: str, folder: Path) -> Path:
    return fetched(location, FetchRoom(folder, 1 << 28))


def test_a_table_of_a_database_gives_the_release_of_the_same_rows_in_a_file(place):
    for name in ("synthetic.csv", "schema.yaml", "measurements/answers.npz"):
        assert (place / "sql/release" / name).read_bytes() == (place / "file/release" / name).read_bytes()
    assert not list((place / "sql/internal").rglob("*.parquet")), "no row stays"


def test_every_command_reads_it_and_a_resumed_run_knows_the_rows(here, capsys):
    location = "sqlite:///town.db#town"
    assert command("schema", location, "output=drafted.yaml") == 0
    assert "sex:" in Path("drafted.yaml").read_text()
    query = "data.query=SELECT age, sex, job FROM town WHERE age BETWEEN 18 AND 59"
    said = reply(capsys, "check", "data.path=sqlite:///town.db", query, "data.schema=town.yaml").out
    assert "rows, 3 columns" in said
    scored = ["synthetic=sql/release/synthetic.csv", "metrics=[tvd]"]
    assert command("score", f"real={location}", *scored, "output=sql.json") == 0
    assert command("score", "real=town.csv", *scored, "output=file.json") == 0
    tvds = [json.loads(Path(f).read_text())["tvd"] for f in ("sql.json", "file.json")]
    assert tvds[0] == tvds[1]
    settings = {"selection": "oneway", "synthesis": "independent", "privacy.noise_seed": 3, "seed": 3, "quiet": True}
    release = pipeline.fit("sqlite:///town.db", "town.yaml", **settings, **{"data.table": "town"})
    assert release.marginal(["age"]).equals(pipeline.load("sql").marginal(["age"]))

    again = [*PLAIN_TOWN, "data.path=sqlite:///town.db", "data.table=town", "hydra.run.dir=sql", "resume=true"]
    assert command("run", *again) == 0
    before = Path("town.db").read_bytes()
    with sqlite3.connect("town.db") as connection:
        connection.execute("INSERT INTO town SELECT * FROM town LIMIT 1")
    connection.close()
    assert "data" in reply(capsys, "run", *again, code=1).err
    Path("town.db").write_bytes(before)


def test_rows_have_no_order_and_cells_are_texts(tmp_path):
    rows = [(1, 2.0, "ä", b"\xff"), (None, 0.5, None, "x"), (3, None, "1e3", 7), (4, 1e15 + 3, "", 0.1 + 0.2)]
    for name, order in (("a", rows), ("b", rows[::-1])):
        with sqlite3.connect(tmp_path / f"{name}.db") as connection:
            connection.execute("CREATE TABLE t (i INTEGER, r REAL, x TEXT, any_kind)")
            connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", order)
        connection.close()
    first, second = (copy(f"sqlite:///{tmp_path}/{name}.db#t", tmp_path / name) for name in "ab")
    assert first.read_bytes() == second.read_bytes()
    assert (first.stat().st_mode & 0o777, first.name) == (0o600, "t.parquet")
    assert shown_name(first) == "t, of a database", "no page names a file that nobody has"
    texts = [[*row.values()] for row in pq.read_table(first).to_pylist()]
    assert sorted(texts, key=str) == [
        ["1", "2", "ä", r"\xFF"],
        ["3", None, "1e3", "7"],
        ["4", "1000000000000003", "", "0.30000000000000004"],
        [None, "0.5", None, "x"],
    ]


@pytest.mark.parametrize("unseen", [b"\x00\x1f", b" ", b"\xe2\xa0\x80", b"a"])
@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le"])
def test_bytes_of_sqlite_that_show_nothing_are_an_id_and_weigh_no_more_than_its_bound(unseen, encoding, tmp_path):
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute(f"PRAGMA encoding = '{encoding}'")
        connection.execute("CREATE TABLE t (who, ward)")
        connection.executemany("INSERT INTO t VALUES (?, 'a')", [(unseen,)] * 300 + [("b",), (b"",)])
    facts = {"columns": {"ward": {"kind": "categorical", "values": ["a"], "missing": False}}}
    own = {"unit": "who", "max_records": 1, "privacy.missing_unit": "own", "data.table": "t", "quiet": True}
    few = {"selection": "oneway", "synthesis": "independent"}
    release = pipeline.fit(f"sqlite:///{tmp_path}/t.db", facts, epsilon=1e4, **own, **few)
    assert release.marginal(["ward"])["count"].round().tolist() == [3]


@pytest.mark.parametrize("cast", ["?", "CAST(? AS TEXT)"])
@pytest.mark.parametrize("ids", [(b"\x00\x80", b"\x01\x80"), (b"M\xfcller", b"M\xf6ller")])
def test_no_two_ids_of_sqlite_are_one_for_bytes_that_are_no_text(ids, cast, tmp_path):
    """Each would weigh less for the other's records, and more where those go: one person more moves twice its bound."""
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE t (who, ward)")
        connection.executemany(f"INSERT INTO t VALUES ({cast}, 'a')", [(one,) for one in (ids[0], *ids)])
    assert len({row["who"] for row in pq.read_table(copy(f"sqlite:///{tmp_path}/t.db#t", tmp_path)).to_pylist()}) == 2


REFUSED = [
    ("SELECT age FROM town ORDER BY age LIMIT 3", "LIMIT"),
    ("SELECT age FROM (SELECT * FROM town LIMIT 3)", "LIMIT"),
    ("SELECT random() AS r FROM town", "random"),
    ("SELECT date('now') AS d FROM town", "'now'"),
    ("SELECT current_date AS d FROM town", "current_date"),
    ("SELECT datetime() AS d FROM town", "datetime"),
    ("SELECT DISTINCT ON (sex) * FROM town", "DISTINCT ON"),
    ("SELECT CURRENT_TIMESTAMP(0) AS d FROM town", "current_timestamp"),
    ("SELECT * FROM town WHERE age < 'today 08:00'", "'today 08:00'"),
    ("SELECT TIMESTAMP 'now, else' AS d FROM town", "'now, else'"),
    ("SELECT unixepoch('subsec') AS d FROM town", "'subsec'"),
    ("SELECT date('subsec') AS d FROM town", "'subsec'"),
    ("SELECT strftime('%s', 'NOW ') AS d FROM town", "'NOW '"),
    ("SELECT txid_current() AS d, pg_backend_pid() AS p FROM town", "pg_backend_pid, txid_current"),
    ("SELECT pg_postmaster_start_time() AS d FROM town", "pg_postmaster_start_time"),
    ("drawn", "the view drawn: not the same rows every time: random"),
    ("SELECT r FROM drawn", "the view drawn"),
    ("SELECT age FROM town; DROP TABLE town", "another statement, or several"),
    ("SELECT 1 AS a; SELECT 2 AS a", "another statement, or several"),
    ("WITH x AS (DELETE FROM town RETURNING *) SELECT * FROM x", "it writes"),
    ("SELECT current_user AS u FROM town", "current_user"),
    ("SELECT rowid AS r FROM town", "rowid"),
    ("SELECT town.OID AS r FROM town", "oid"),
    ("SELECT datetime() AS d, datetime(age) AS e FROM town", "datetime"),
    ("SELECT age, age FROM town", "names columns twice"),
    ("SELECT absent FROM town", "no such column"),
    ("absent", "no such table"),
    ("SELECT age FROM town WHERE", "is no query that can be checked"),
]


@pytest.mark.parametrize(("wanted", "words"), REFUSED)
def test_a_query_that_may_give_other_rows_another_day_is_refused(wanted, words, place, tmp_path):
    with pytest.raises(UserError) as error:
        copy(f"sqlite:///{place}/town.db#{wanted}", tmp_path)
    assert words in str(error.value)
    assert not list(tmp_path.rglob("*.parquet"))


MIXED = "a row may be made of the rows of several"


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("town", ""),
        ("SELECT * FROM main.town", ""),
        ("SELECT t.person, lower(job) AS j, CAST(age AS INTEGER) + 1 AS n FROM town t WHERE sex IN ('f')", ""),
        ("SELECT person, replace(job, 'a', ',') AS j FROM town WHERE replace(sex, 'f', 'g') = 'g'", ""),
        ("SELECT replace((SELECT max(job) FROM town), 'a', 'b') AS j FROM town", "a subquery"),
        ("SELECT CASE WHEN age > 3 THEN 'old' END AS a FROM town WHERE job LIKE 'x%' AND age IS NOT NULL", ""),
        ("wards", "wards: no table, a view"),
        ("SELECT age FROM wards", "wards: no table, a view"),
        ("SELECT name FROM sqlite_master", "sqlite_master"),
        ("SELECT job, count(*) AS n FROM town GROUP BY job", "GROUP BY"),
        ("SELECT person, max(age) AS n FROM town GROUP BY person", "GROUP BY"),
        ("SELECT count(*) AS n FROM town", "count_star()"),
        ("SELECT max(age, 3) AS n FROM town", "max()"),
        ("SELECT DISTINCT job FROM town", "DISTINCT"),
        ("SELECT a.age FROM town a, town b", "FROM join"),
        ("SELECT a.age FROM town a JOIN town b ON a.person = a.person", "FROM join"),
        ("SELECT age FROM (SELECT * FROM town)", "FROM subquery"),
        ("WITH x AS (SELECT 1) SELECT age FROM town", "WITH"),
        ("SELECT age FROM town UNION ALL SELECT age FROM town", "UNION"),
        ("SELECT person, job FROM town EXCEPT SELECT job, person FROM town", "EXCEPT"),
        ("SELECT age FROM town WHERE age > (SELECT avg(age) FROM town)", "a subquery"),
        ("SELECT age FROM town WHERE age IN wards", "contains()"),
        ("SELECT person, lag(age) OVER (PARTITION BY person ORDER BY age) AS r FROM town", "lag() OVER"),
        ("SELECT town.count FROM town", "town.count, no column"),
        ('SELECT "elsewhere" AS p FROM town', "elsewhere, no column"),
        # what two grammars read differently is written anew, as it was checked
        ("SELECT * FROM town /* /* */ GROUP BY job -- */", "in another order"),
        (r"SELECT job, e'\', (SELECT count(*) FROM town) AS n, 1 AS [' AS z FROM town", "does not take it"),
        (r"SELECT sex '\', (SELECT count(*) FROM town) AS n, 1 AS [' AS z FROM town", "no query"),
        ("SELECT age, job['] , (SELECT count(*) FROM town) AS n, 1 AS [x'] AS z FROM town", "array extract"),
        ("SELECT job || $$', (SELECT count(*) FROM town) AS n, '$$ AS z FROM town -- it's", "does not take it"),
        ("SELECT 'h' || age % 10 AS z FROM town", "in another order"),
        ("SELECT ('h' || age) % 10 AS z, age NOT IN (1, 2) AS y, NOT age BETWEEN 1 AND 3 AS x FROM town", ""),
        ("SELECT CAST(age AS REAL) AS r, coalesce(age, 3) AS c, -age AS m FROM town -- it's", ""),
        ("SELECT name FROM sqlite_stat1", "sqlite_stat1"),
        ("SELECT age COLLATE nocase AS a FROM town", "collate"),
        ('SELECT "+"() AS a FROM town', "several: +"),
        ("SELECT * EXCLUDE (age) FROM town", "a *"),
        ("SELECT date('n' || 'ow') AS d FROM town", "a cast to date"),
        ("SELECT age + 1 FROM town", "a column without a name"),
        ("twon", "no such table"),
    ],
)
def test_a_query_that_is_not_known_to_read_one_row_of_one_table_is_refused(wanted, reason, place, tmp_path):
    def ask(promised: bool) -> Path:
        return fetched(f"sqlite:///{place}/town.db#{wanted}", FetchRoom(tmp_path, 1 << 28, promised))

    if not reason:
        assert ask(True).is_file()
        return
    with pytest.raises(UserError) as error:
        ask(True)
    assert reason in str(error.value)
    if reason == "GROUP BY":
        assert copy(f"sqlite:///{place}/town.db#{wanted}", tmp_path).is_file(), "scores promise nothing, and take any"
    if reason not in ("in another order", "does not take it", "no query", "a column without a name", "no such table"):
        assert MIXED in error.value.what and "data.rows_of_one_unit=true" in str(error.value.fix)


def test_replace_means_the_same_in_the_engine_and_in_the_database() -> None:
    cells = [None, "", "1.234,5", ",,", "aAa", "äÄ", "€"]
    sql = "SELECT " + ", ".join("replace(CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT))" for _ in range(3))
    with closing(sqlite3.connect(":memory:")) as stored, duckdb.connect() as engine:
        for one, other in itertools.product(cells, cells):
            given = [one, other, ".", one, ",", other, ",a", one or None, other]  # of '' for NULL each has its own word
            assert stored.execute(sql, given).fetchall() == engine.execute(sql, given).fetchall(), given


@pytest.mark.slow
def test_a_query_stands_in_the_statement_and_so_does_its_curator_s_word(here, capsys):
    plain = ["data.path=sqlite:///town.db", "data.query=SELECT age, sex, job FROM town WHERE age > 3"]
    joined = [plain[0], "data.query=SELECT age, sex, job FROM town JOIN (SELECT 1 AS one) ON one = 1"]
    assert MIXED in reply(capsys, "check", *joined, "data.schema=town.yaml", code=1).err
    assert MIXED in reply(capsys, "run", *PLAIN_TOWN, *joined, "hydra.run.dir=none", code=1).err
    assert not Path("none/release").exists()
    for given, word in ((plain, "checked"), ([*joined, "data.rows_of_one_unit=true"], "stated")):
        assert command("run", *PLAIN_TOWN, *given, f"hydra.run.dir={word}") == 0
        facts = json.loads(Path(word, "release/privacy.json").read_text())["public_facts"]
        assert {"fact": "query", "rows_of_one_unit": word} in facts
        page = Path(word, "release/statement.html").read_text()
        assert "the promise is about these rows" in page and ("stated by the curator" in page) == (word == "stated")
        command("verify", f"{word}/release")
        assert "NOT ok" not in capsys.readouterr().out.replace("not private", "")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["data.path=postgresql://me:hidden@db/clinic", "data.table=t"], "PGPASSWORD"),
        (["data.path=postgresql:///clinic?password=hidden", "data.table=t"], "PGPASSWORD"),
        (["data.path=postgresql://me:hidden/clinic", "data.table=t"], "the port is no number"),
        (["data.path=sqlite:///town.db", "data.query=DELETE FROM hidden"], "data.query is no SELECT"),
        (["data.path=town.db"], "a SQLite file\n  fix: sqlite:///town.db"),
        (["data.path=https://example.org/t.csv?X-Amz-Signature=hidden"], "data.path=FILE"),
        (["data.path=sqlite:///town.db"], "data.table=NAME"),
        (["data.path=sqlite:///town.db"], "fix: sqlite:///town.db#NAME, or"),
        (["data.path=town.db"], "sqlite:///town.db#NAME"),
        (["data.path=sqlite:///none.db", "data.table=t"], "no such file"),
        (["data.path=sqlite:///town.db", "data.table=t", "data.query=SELECT 1 AS a"], "one of both"),
        (["data.path=town.csv", "data.table=t"], "one of both"),
        (["data.path=mysql://db/clinic", "data.table=t"], "export the table"),
        (["data.path=postgrsql://db/clinic", "data.table=t"], "did you mean 'postgresql'"),
        (["data.path=http://example.org/t.csv"], "unencrypted"),
    ],
)
def test_an_address_that_cannot_be_asked_ends_a_run_before_it_begins(given, words, here, capsys):
    said = reply(capsys, "run", *PLAIN_TOWN, *given, "hydra.run.dir=none", code=1)
    assert words in said.err and "hidden" not in said.err + said.out
    assert not Path("none/release").exists()


def test_a_message_calls_a_table_of_a_database_by_its_name_there(here, capsys):
    units = [
        "data.units.path=sqlite:///town.db#town",
        "data.units.id=donor",
        "privacy.unit=age",
        "privacy.max_records=50",
    ]
    said = reply(capsys, "run", *PLAIN_TOWN, "data.path=town.csv", *units, "hydra.run.dir=none", code=1).err
    assert "error: data.units.id: no column 'donor' in town, of a database\n" in said


def test_an_address_with_a_secret_is_refused_wherever_it_stands():
    for text in (
        *(f"postgresql://me:{word}@h/db" for word in ("p/w", "p#w", "p?w", "p w", "p@w", "#select", "12/x")),
        *(f"https://h/t.csv?a=1&{name}=x" for name in "pw PWD passphrase code auth_code jwt bearer".split()),  # noqa: SIM905
        *(f"s3://b/t.csv?{n}=x" for n in "session sessionid X-Goog-Signature Policy credential apikey".split()),  # noqa: SIM905
        *("s3://ABC:d/e@bucket/t.csv", "https://TOKEN@h/t.csv", "data.units.path='https://TOKEN@h/t.csv'"),
        *("https://h/t.csv;token=x", "https://h/t.csv?a=1;token=x", "https://h/t.csv#access_token=x"),
        *("postgresql:///db?%70assword=x", "jdbc:postgresql://u:p@h/db", "sqlite:///f.db?key=x#t", "sqlite:///f.db;x"),
        *("s3://b/t.csv?endpoint_override=https%3A%2F%2Fu%3Ax%40h", "postgresql://me%3Ax@h/db"),
        *("postgresql://[me:x]/db", "sqlite://u:x@h/f.db", "client_encoding=utf8 user=u password=x", "Server=h;Pwd=x"),
    ):
        with pytest.raises(UserError, match="is not taken"):
            check_no_secret(text)
        with pytest.raises(UserError, match="is not taken") as error:
            pipeline.plan(None, "town.yaml", **{"statement.publisher": text})
        assert error.value.where == "statement.publisher"


def test_what_only_looks_like_a_secret_is_none():
    for text in (
        *("data.query=select 'a:b@c' from t", "postgresql://me@db:5432/x#t", "postgresql:///x?passfile=/p#t"),
        *("postgresql://db:5432/x#SELECT * FROM t WHERE mail LIKE '%@x'", "sqlite:////a:b/u@x.db#t"),
        *("postgresql:///x?target_session_attrs=any#t", "https://h/page?zipcode=1", "https://x.org: or me@x.org"),
        *('{"master": "spark://h:7077", "mail": "a@b"}', "https://h/@me/t.csv"),
    ):
        check_no_secret(text)


HIDDEN = """postgresql:/me:SECRET@h/db postgresql:SECRET@h/db postgresql://h/db?access=SECRET https://h/t.csv?access=SECRET
    https://h/t.csv?sig=SECRET https://h/t.csv?SECRET https://h/t.csv#SECRET https://SECRET@h/t.csv https://h/t.csv;SECRET
    s3://b/t.csv?anything=SECRET jdbc:postgresql://h/db?p=SECRET postgresql://h/db?host=a&options=SECRET gs:/b?SECRET
    postgresql://h:SECRET/db https://h/%3FSECRET?a=SECRET""".split()  # noqa: SIM905
HIDDEN.append("host=h password=SECRET")


@pytest.mark.parametrize(
    "address", [pytest.param(a, marks=pytest.mark.slow) if n % 7 else a for n, a in enumerate(HIDDEN)]
)
def test_no_setting_log_or_release_keeps_a_secret_of_an_address(address, town, capfd):
    table = [] if "/t.csv" in address else ["data.table=t"]
    for units in ([f"data.path={address}", *table], ["data.path=town.csv", f"data.units.path={address}"]):
        unit = ["privacy.unit=person", "privacy.max_records=3"] * (units[0] == "data.path=town.csv")
        assert command("run", *PLAIN_TOWN, *units, *unit, "hydra.run.dir=none") == 1
        assert command("check", *units, *unit, "data.schema=town.yaml") == 1
    assert command("run", "-m", *PLAIN_TOWN, f"data.path={address}", *table, "privacy.epsilon=1,2") == 1
    assert command("schema", address, "output=draft.yaml") == 1
    assert command("score", f"real={address}", "synthetic=town.csv") == 1
    with pytest.raises(UserError) as error:
        pipeline.fit(address, "town.yaml", folder="none", quiet=True, **({"data.table": "t"} if table else {}))
    said = capfd.readouterr()
    assert "SECRET" not in said.out + said.err + str(error.value)
    assert not [p for p in town.rglob("*") if p.is_file() and b"SECRET" in p.read_bytes()]


class _Table(BaseHTTPRequestHandler):
    content, to = b"age,sex,job\n1,f,baker\n", ""

    def do_GET(self) -> None:
        if "away" in self.path:
            self.send_response(302)
            self.send_header("Location", type(self).to)
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content) + (10 if "short" in self.path else 0)))
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


@pytest.fixture
def web() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Table)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_file_behind_an_address_comes_whole_or_not_at_all(web, tmp_path):
    assert copy(f"{web}/town.csv", tmp_path).read_bytes() == _Table.content
    with pytest.raises(UserError, match="the connection broke: 22 of 32 bytes"):
        copy(f"{web}/short.csv", tmp_path)
    with pytest.raises(UserError, match="cannot be fetched from 127"):
        copy("http://127.0.0.1:9/town.csv", tmp_path)
    for other in ("http://example.invalid/town.csv", "https://example.invalid/town.csv"):
        _Table.to = other
        with pytest.raises(UserError, match="the server sends elsewhere"):
            copy(f"{web}/away.csv", tmp_path)
    assert [p.name for p in tmp_path.rglob("*.csv")] == ["town.csv"]
    _Table.to = f"{web}/town.csv"
    assert copy(f"{web}/away.csv", tmp_path).read_bytes() == _Table.content
    assert {"s3", "gs", "https"} <= {*places.STORES}


@pytest.mark.slow
def test_a_table_in_its_own_bytes_and_marks_is_drafted_read_released_and_scored(folder, capsys):
    ward = people(400)[["age", "sex"]].replace({"f": "weiblich", "m": "männlich"}).assign(cost="1,5")
    Path("town.csv").write_bytes(ward.to_csv(sep=";", index=False).encode("cp1252"))
    assert command("schema", "town.csv", "output=drafted.yaml") == 0
    drafted = Path("drafted.yaml").read_text(encoding="utf-8")
    assert 'dialect: {"delimiter": ";", "encoding": "cp1252"}' in drafted and "männlich" in drafted
    assert "# how the file is written; a release is, too; where its letters look wrong (z³oty, not złoty)" in drafted
    assert command("run", *TOWN[:2], "data.schema=drafted.yaml", *QUICK, "hydra.run.dir=out") == 0
    released = Path("out/release/synthetic.csv").read_bytes()
    assert released.startswith(b"age;sex") and "männlich".encode("cp1252") in released
    command("verify", "out/release")  # a fixed seed is no sound promise; the files are what they say
    assert "ok  tables" in capsys.readouterr().out
    score = ["synthetic=out/release/synthetic.csv", "metrics=[tvd]", "output=s.json"]
    assert command("score", "real=town.csv", *score) == 0
    assert 0 < json.loads(Path("s.json").read_text())["tvd"]["1-way"]["mean"] < 0.5
    assert "männlich" in list(pipeline.load("out/release").sample(200).sex)
    assert command("synth", "from=out/release", "release.dialect=plain", "output=again") == 0
    assert Path("again/release/synthetic.csv").read_bytes().decode("utf-8").startswith("age,sex")

    undeclared = drafted.replace(drafted[drafted.index("dialect:") : drafted.index("columns:")], "")
    Path("undeclared.yaml").write_text(undeclared, encoding="utf-8")
    own = [*TOWN[:2], "data.schema=undeclared.yaml", *QUICK]
    said = reply(capsys, "run", *own, "hydra.run.dir=none", code=1).err
    assert "data.delimiter=';' data.encoding=cp1252, or in the schema dialect:" in said
    settings = ["data.delimiter=;", "data.encoding=cp1252", 'release.dialect={delimiter: "|", encoding: utf-8-sig}']
    assert command("run", *own, *settings, "hydra.run.dir=out2") == 0
    assert Path("out2/release/synthetic.csv").read_bytes().startswith(b"\xef\xbb\xbfage|sex")
    command("verify", "out2/release")
    assert "ok  tables" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"a,b\n1,2\n", Dialect()),
        ("a;b\n1,5;ü\n".encode(), Dialect(";")),
        ("a\tb\n1,5\t€\n".encode("cp1252"), Dialect("\t", "cp1252")),
        (b"a|b\n\x81|2\n", Dialect("|", "latin-1")),
        ("a;b\n1;2\n".encode("utf-16"), Dialect(";", "utf-16")),
        ("a,b\n1,2\n".encode("utf-8-sig"), Dialect(",", "utf-8-sig")),
        (b'"a;b;c",d\n1,2\n', Dialect()),
    ],
)
def test_how_a_file_is_written_is_found_for_drafts(content, found, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert sniffed_dialect(path) == found


def test_one_byte_of_one_person_changes_how_no_other_row_is_read(here, tmp_path):
    """What a run reads by is declared: with the byte the file is refused, and never read in another encoding."""
    frame = people(60).assign(note="ä")
    path = tmp_path / "t.csv"
    path.write_bytes(frame.to_csv(index=False).encode() + b"p1,1,f,baker,\xff\n")
    assert sniffed_dialect(path).encoding == "cp1252"
    assert command("check", f"data.path={path}", "data.schema=town.yaml") == 1


@pytest.mark.parametrize(
    "encoding", ["iso2022_jp", "ISO-2022-KR", "hz", "utf-7", "unicode_escape", "raw_unicode_escape", "idna", "rot13"]
)
def test_an_encoding_in_which_a_cell_changes_other_rows_is_refused(encoding):
    """In hz a tilde at the end of a line joins the next one; an escape is a line of another id."""
    with pytest.raises(UserError, match=r"one cell may change how other rows are read.*\n.*iconv") as error:
        Dialect(encoding=encoding).checked("data.")
    assert error.value.where == "data.encoding"
    for taken in ("UTF8", "cp1250", "ISO-8859-2", "latin1", "koi8_r", "mac_roman", "GBK", "big5", "sjis", "euc-jp"):
        assert Dialect(encoding=taken).checked("").encoding == taken


def test_spellings_that_a_release_never_writes_need_no_letters():
    flag = {"kind": "flag", "true": ["tak"], "false": ["nie"], "spellings": "common"}
    schema = parse_schema({"columns": {"ill": flag}, "dialect": {"encoding": "cp1250"}}, where="town")
    assert "não" in dict(schema.columns[0].spelled)
    assert as_released(ReleaseConfig(), schema).encoding == "cp1250"
    schema = parse_schema({"columns": {"ill": {**flag, "false": ["não"]}}, "dialect": {"encoding": "cp1250"}}, where="")
    with pytest.raises(UserError, match="has no letter for 'não'"):
        as_released(ReleaseConfig(), schema)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_break_in_a_name_is_refused_where_the_released_table_could_not_be_read_again(end):
    """Such names are common in spreadsheets: `fit` spent the budget, and then could not read its own table."""
    column, age = {"kind": "integer", "min": 0, "max": 9}, f"age{end}(years)"
    for fields in ({"columns": {age: column}}, {"columns": {"n": column}, "unit_id": {"name": age, "records": {1: 1}}}):
        schema = parse_schema(fields, where="town")
        for name in ("csv", "csv.gz"):
            with pytest.raises(UserError, match="line break in 'age"):
                as_released(ReleaseConfig(format=name), schema)
        as_released(ReleaseConfig(format="parquet"), schema)


def test_a_dialect_is_written_as_it_reads_and_refused_where_it_cannot_be(tmp_path):
    columns = {"ward": {"kind": "categorical", "values": ["a;b", "Łódź"]}, "n": {"kind": "integer", "min": 0, "max": 9}}
    schema = parse_schema({"columns": columns, "dialect": {"delimiter": ";", "encoding": "utf-16"}}, where="town")
    write_table(tmp_path / "t.csv", coded(schema, [[0, 1, 1], [3, 3, 3]]), schema, np.random.default_rng(0))
    text = (tmp_path / "t.csv").read_bytes().decode("utf-16")
    assert text == 'ward;n\n"a;b";3\nŁódź;3\nŁódź;3\n'
    assert parse_schema(schema.to_fields(), where="again").dialect == schema.dialect
    for given, words in (
        ({"encoding": "cp1252"}, "has no letter for 'Łódź'"),
        ("excel", "got 'excel'"),
        ({"delimiter": "."}, "got '.'"),
        ({"encoding": "base64"}, "no encoding"),
        ({"decimal": ","}, "unknown field"),
    ):
        with pytest.raises(UserError, match=words):
            as_released(ReleaseConfig(dialect=given), schema)
