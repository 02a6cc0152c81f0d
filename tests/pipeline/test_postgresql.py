"""A real PostgreSQL server on a socket of its own: a role that only reads, a table that grows, a server that stops."""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.tables import databases
from mechanisms.public.tables.fetched import FetchRoom, fetched
from mechanisms.public.tables.scan import Source, open_table
from mechanisms.sensitive.contribution import PrivacyUnit, unit_id
from tests.pipeline.conftest import command, people, write_town

BINARIES = [*sorted(Path("/usr/lib/postgresql").glob("*/bin")), *map(Path, os.environ["PATH"].split(":"))]
HOME = next((p for p in BINARIES if (p / "initdb").is_file() and (p / "postgres").is_file()), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(HOME is None, reason="no PostgreSQL server here: apt-get install postgresql"),
    pytest.mark.skipif(find_spec("adbc_driver_postgresql") is None, reason="pip install '.[postgresql]'"),
]
PASSWORD = "not-to-be-seen"
RUN = ["data=table", "data.schema=town.yaml", "selection=oneway", "synthesis=independent", "evaluation.enabled=false"]
SETUP = """
CREATE TABLE town (person text, age int, sex text, job text, note text);
COPY town FROM STDIN (FORMAT csv, HEADER);
ROWS\\.
CREATE TABLE large AS SELECT i, repeat('x', 200) AS filling FROM generate_series(1, 300000) AS i;
CREATE TYPE mood AS ENUM ('well', 'ill');
CREATE TABLE kinds (n numeric(12, 2), m mood, f boolean, d date, t timestamptz, u uuid, j jsonb, c char(4), s money,
    i interval, a float8[]);
INSERT INTO kinds VALUES (12.50, 'ill', true, '2020-01-02', '2020-01-02 03:04:05+02', 'UUID', '{"a": 1}', 'ab', '12.5',
    '1 day', '{0}');
INSERT INTO kinds (n) VALUES (NULL), ('NaN');
CREATE VIEW drawn AS SELECT *, random() AS r FROM town;
CREATE TABLE hidden (a int);
CREATE ROLE reader LOGIN PASSWORD 'PASSWORD';
CREATE FUNCTION secretly() RETURNS float8 STABLE LANGUAGE sql AS 'SELECT random()';
CREATE FUNCTION added(a int, b int) RETURNS int LANGUAGE sql AS 'SELECT a + (100 * random())::int';
CREATE FUNCTION counted(a int, b int) RETURNS int STABLE LANGUAGE sql AS 'SELECT count(*)::int FROM town';
CREATE OPERATOR %% (FUNCTION = added, LEFTARG = int, RIGHTARG = int);
CREATE OPERATOR <-> (FUNCTION = counted, LEFTARG = int, RIGHTARG = int);
CREATE MATERIALIZED VIEW wards AS SELECT job, avg(age) AS age FROM town GROUP BY job;
GRANT SELECT ON town, large, kinds, drawn, wards TO reader;
"""
UUID = "00000000-0000-0000-0000-000000000001"


class Server:
    """A server of Debian's package, as a user that is not root."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.socket = folder, folder / "s"
        self.socket.mkdir()
        user = pwd.getpwnam("postgres") if os.getuid() == 0 else None
        self.as_user: list[str] = []
        if user is not None:
            self.as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
            for path in (folder, self.socket):
                os.chown(path, user.pw_uid, user.pw_gid)
        self.call("initdb", "-D", str(folder / "data"), "-U", "owner", "--no-sync", "-E", "UTF8", "-A", "trust")
        (folder / "data" / "pg_hba.conf").write_text("local all owner trust\nlocal all all scram-sha-256\n")
        self.start()

    def call(self, name: str, *arguments: str, given: str | None = None) -> str:
        assert HOME is not None
        program = HOME / name if (HOME / name).exists() else Path(shutil.which(name) or name)
        line = [*self.as_user, str(program), *arguments]
        done = subprocess.run(line, input=given, capture_output=True, text=True, cwd=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self) -> None:
        own = f"-k {self.socket} -c listen_addresses= -c fsync=off"
        # its log would keep the pipe of a captured output open
        log = ["-l", str(self.folder / "log")]
        subprocess.run(
            [*self.as_user, str(HOME / "pg_ctl"), "-D", str(self.folder / "data"), "-w", "-o", own, *log, "start"],  # type: ignore[operator]
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
        )

    def stop(self) -> None:
        self.call("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")

    def sql(self, text: str) -> str:
        flags = ["-q", "-t", "-v", "ON_ERROR_STOP=1", "-h", str(self.socket), "-U", "owner"]
        return self.call("psql", *flags, "postgres", given=text)

    @property
    def address(self) -> str:
        return f"postgresql:///postgres?host={self.socket}&user=reader"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as folder:  # a socket's path is short
        made = Server(Path(folder))
        setup = SETUP.replace("ROWS", people(600).to_csv(index=False)).replace("'UUID'", f"'{UUID}'")
        made.sql(setup.replace("'PASSWORD'", f"'{PASSWORD}'"))
        yield made
        made.stop()


@pytest.fixture
def town(tmp_path, server, monkeypatch) -> Path:
    """The town's folder; the reader's password lies in a file that the driver finds by itself."""
    monkeypatch.chdir(write_town(tmp_path))
    secret = tmp_path / "pgpass"
    secret.write_text(f"*:*:*:reader:{PASSWORD}\n")
    secret.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(secret))
    return tmp_path


def copy(server: Server, wanted: str, folder: Path, *, promised: bool = False) -> Path:
    return fetched(f"{server.address}#{wanted}", FetchRoom(folder, 1 << 29, promised))


def test_a_role_that_may_only_read_is_enough_and_its_password_is_nowhere(server, town, capfd):
    where = [f"data.path={server.address}", "data.table=town"]
    assert command("schema", f"{server.address}#town", "output=drafted.yaml") == 0
    assert command("check", *where, "data.schema=town.yaml") == 0
    same = ["privacy.noise_seed=3", "seed=3"]
    assert command("run", *RUN, *where, *same, "hydra.run.dir=sql") == 0
    rows = people(600)
    rows.sort_values(list(rows.columns), key=lambda c: c.astype(str)).to_csv("town.csv", index=False)
    assert command("run", *RUN, "data.path=town.csv", *same, "hydra.run.dir=file") == 0
    for name in ("synthetic.csv", "measurements/answers.npz"):
        assert Path("sql/release", name).read_bytes() == Path("file/release", name).read_bytes()
    assert command("score", f"real={server.address}#town", "synthetic=sql/release/synthetic.csv", "metrics=[tvd]") == 0
    assert command("run", *RUN, *where, *same, "hydra.run.dir=sql", "resume=true") == 0
    said = capfd.readouterr()
    assert PASSWORD not in said.out + said.err
    for path in (p for p in town.rglob("*") if p.is_file() and p.name != "pgpass"):
        assert PASSWORD.encode() not in path.read_bytes(), path


def test_kinds_are_read_as_a_csv_file_would_hold_them(server, town):
    for name, value in {"IntervalStyle": "iso_8601", "bytea_output": "escape", "extra_float_digits": "-9"}.items():
        server.sql(f"ALTER ROLE reader SET {name} = '{value}'")  # no text depends on whose role it is
    rows = pq.read_table(copy(server, "kinds", town)).to_pylist()
    time_in_utc = "2020-01-02 01:04:05+00"
    texts = ["12.50", "ill", "true", "2020-01-02", time_in_utc, UUID, '{"a": 1}', "ab", "$12.50"]
    assert [*texts, "1 day", "{0}"] in [[*row.values()] for row in rows]
    table = open_table(copy(server, "kinds", town), workdir=town, memory_limit_bytes=1 << 28, threads=1)
    ids = [name for name in table.names if is_an_id(table, name)]
    assert not any(map(table.typed, range(len(table.names)))), "formats and signs of a schema are those of texts"
    assert ids == ["n", "m", "f", "d", "t", "u", "c", "s"]  # equal JSON, intervals and arrays may have several texts
    assert sorted(str(row["n"]) for row in rows) == ["12.50", "NaN", "None"]


def is_an_id(table: Source, name: str) -> bool:
    try:
        unit_id(table, PrivacyUnit(name))
    except UserError as error:
        assert "may be written in several ways" in error.what
        return False
    return True


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("hidden", "may not read"),
        ("absent", "no such table"),
        ("drawn", "the view drawn: not the same rows every time: random"),
        ("SELECT clock_timestamp() AS t FROM town", "clock_timestamp"),
        ("SELECT now() AS t FROM town", "now"),
        ("SELECT ctid::text AS t FROM town", "ctid"),
        ("SELECT xmin::text AS t FROM town t", "xmin"),
        ("SELECT current_user AS t FROM town", "current_user"),
        ("SELECT current_setting('TimeZone') AS t FROM town", "current_setting"),
        ("SELECT table_to_xml('town', true, true, '') AS t", "table_to_xml"),
        ("SELECT age %% 3 AS t FROM town", "the operator %%"),
        ("SELECT CURRENT_TIMESTAMP(0) AS t FROM town", "current_timestamp"),
        ("SELECT * FROM kinds WHERE d < 'today 08:00'::timestamp", "'today 08:00'"),
        ("SELECT DISTINCT ON (sex) * FROM town", "DISTINCT ON"),
        ("SELECT * FROM town TABLESAMPLE SYSTEM (10)", "a sample"),
        ("SELECT job::int AS j FROM town", "fails on one of its rows"),
        ("SELECT absent FROM town", "a column that is not there"),
        ("WITH x AS (DELETE FROM town RETURNING *) SELECT * FROM x", "it writes"),
    ],
)
def test_what_cannot_be_read_is_refused_without_a_row(server, town, wanted, words):
    with pytest.raises(UserError) as error:
        copy(server, wanted, town / "work")
    assert words in str(error.value)
    assert not any(job in str(error.value) for job in ("baker", "smith", "clerk"))


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ("SELECT person, secretly() AS t FROM town", "secretly()"),
        ("SELECT person, age <-> 3 AS t FROM town", "<->()"),
        ("SELECT age, generate_series(1, 3) AS t FROM town", "generate_series()"),
        ("wards", "wards: no table, a view"),
        ("SELECT relname FROM pg_class", "pg_class"),
        ("SELECT t.count FROM town t", "t.count, no column"),
        ("SELECT string_agg(job, ',') AS t FROM town", "string_agg()"),
        ("SELECT person, min(age) AS t FROM town GROUP BY person", "GROUP BY"),
        ("SELECT person, ('n' || 'ow')::date AS t FROM town", "a cast to date"),
        ("SELECT upper(job) AS t, age % 3 AS r FROM town WHERE job LIKE '%r' OR age = 3", ""),
        ("town", ""),
    ],
)
def test_a_row_is_of_one_row(server, town, wanted, words):
    if words:
        with pytest.raises(UserError) as error:
            copy(server, wanted, town / "work", promised=True)
        assert words in str(error.value) and "data.rows_of_one_unit=true" in str(error.value)
    else:
        assert copy(server, wanted, town / "work", promised=True).is_file()


def slowly(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """The driver's batches, with something that happens after the first of them."""
    whole = databases._Postgres.texts

    def texts(self, query, names):  # type: ignore[no-untyped-def]
        for place, batch in enumerate(whole(self, query, names)):
            if place == 1:
                act()
            yield batch

    monkeypatch.setattr(databases._Postgres, "texts", texts)


def test_a_table_that_grows_meanwhile_is_read_as_of_one_moment(server, town, monkeypatch):
    grown: list[str] = []
    nine = "INSERT INTO large SELECT i, 'new' FROM generate_series(1, 9) i"
    slowly(monkeypatch, lambda: grown.append(server.sql(nine)))
    wanted = "SELECT i, filling FROM large WHERE filling <> 'never'"
    assert pq.read_metadata(copy(server, wanted, town)).num_rows == 300_000
    assert grown and int(server.sql("SELECT count(*) FROM large")) == 300_009
    server.sql("DELETE FROM large WHERE filling = 'new'")


def test_a_connection_that_breaks_in_the_middle_spends_nothing(server, town, capsys, monkeypatch):
    slowly(monkeypatch, server.stop)
    schema = "columns: {i: {kind: integer, min: 0, max: 999999, bins: {count: 4}}, filling: {kind: constant, value: x}}"
    Path("large.yaml").write_text(schema)
    where = [f"data.path={server.address}", "data.table=large", "data.schema=large.yaml"]
    try:
        assert command("run", *RUN[:1], *RUN[2:], *where, "hydra.run.dir=broken") == 1
    finally:
        server.start()
    said = capsys.readouterr().err
    assert "broke" in said and "nothing was spent" in said
    assert not Path("broken/release").exists() and not list(Path("broken").rglob("*.parquet"))
    assert not list(Path("broken").rglob("ledger*")), "nothing was charged"


def test_the_list_of_processes_shows_no_password(server, town):
    where = [f"data.path={server.address}", "data.table=town", "data.schema=town.yaml"]
    with subprocess.Popen([sys.executable, "-m", "pipeline", "check", *where], stdout=subprocess.DEVNULL) as process:
        seen = ""
        while "town" not in seen and process.poll() is None:  # until the program has taken the place of its parent
            seen = Path(f"/proc/{process.pid}/cmdline").read_text()
        assert process.wait() == 0
    assert "town" in seen and PASSWORD not in seen
