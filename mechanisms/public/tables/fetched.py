"""Tables that lie in a database or behind an address: fetched once, whole or not at all, as a file like any other."""

from __future__ import annotations

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from urllib.parse import unquote, urlsplit

from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.files import FROM_DATABASE, whole_file
from mechanisms.public.members import need_extra

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
#: Names of an address's parameters that hold secrets; a `passfile` only says where one lies.
SECRET = re.compile(
    r"pass(?!file$)|token|secret|credential|key|auth|sig|jwt|bearer|policy|^session|session(id)?$|(^|[-_.])(pw|pwd|code)$",
    re.IGNORECASE,
)
#: A password, whatever stands in it (with a space in it, it follows no port); a user that may be a token.
PASSWORD = re.compile(r"[^\s@]*:\S*@|[^\s/?#@]*:(?!\s|\d*([\"',/\s]|$))[^\n\"']*@")
LONE_USER = re.compile(r"[^\s/?#@]+@")
BRACKETS = re.compile(r"[^/]*\[[^\]]*[^0-9a-fA-F:.\]]")  # no address of a machine stands in them
#: The word of PostgreSQL, of ODBC and of others for a password that follows.
PAIR = re.compile(r"\b(password|passwd|pwd)\s*=", re.IGNORECASE)
PARAMETER = re.compile(r"[?&;#]([^\s?&;#=]+)=")
#: Parameters of an address that hold no secret, by the places that know them: no other one is taken.
LIBPQ = {
    *("host", "hostaddr", "port", "dbname", "user", "service", "passfile", "connect_timeout", "target_session_attrs"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "channel_binding", "gssencmode", "application_name"),
}
OPEN_PARAMETERS = {"postgresql": LIBPQ, "postgres": LIBPQ, "s3": {"region", "scheme", "endpoint_override"}}
#: PostgreSQL's other way to write an address.
KEYWORDS = re.compile(rf"\s*({'|'.join(sorted(LIBPQ | {'password', 'sslpassword'}))})\s*=")
SELECT = re.compile(r"\s*(select|with|values|from)\b", re.IGNORECASE)
LOCAL = ("localhost", "127.0.0.1", "::1")
SHOWN = "the settings of a run are kept, and the list of processes shows them; "
AS_DATABASES = SHOWN + "PGPASSWORD, ~/.pgpass or a service file (postgresql:///?service=NAME) hold PostgreSQL's"
AS_FILES = SHOWN + "fetch the file yourself, and name it as data.path=FILE"
#: So many bytes are fetched at a time.
CHUNK = 1 << 22


@dataclass(frozen=True)
class Store:
    """A kind of place where tables lie.

    Attributes:
        fetch: `module:name` of (address, new file, `FetchRoom`) → None.
        database: whether a table or a query must be named.
        library: the optional library that it needs; empty for none.
    """

    fetch: str
    database: bool = False
    library: str = ""


@dataclass(frozen=True)
class FetchRoom:
    """A folder of mode 0700, and the memory that fetching may use there.

    Attributes:
        promised: as of `checked_query`.
    """

    folder: Path
    memory_limit_bytes: int
    promised: bool = False


_HERE, _DATABASES = __name__, "mechanisms.public.tables.databases"
_POSTGRES = Store(f"{_DATABASES}:fetch_postgresql", database=True, library="adbc_driver_postgresql")
_OBJECTS = Store(f"{_HERE}:fetch_object")
#: Where tables may lie, by the scheme of their address.
STORES = {
    "sqlite": Store(f"{_DATABASES}:fetch_sqlite", database=True),
    "postgresql": _POSTGRES,
    "postgres": _POSTGRES,
    "https": Store(f"{_HERE}:fetch_web"),
    "http": Store(f"{_HERE}:fetch_web"),
    "s3": _OBJECTS,
    "gs": _OBJECTS,
}


@dataclass(frozen=True)
class Address:
    """Where a table lies that is no file here, as `URL` or, of a database, `URL#TABLE` or `URL#SELECT …`."""

    scheme: str
    url: str
    inner: str = ""

    @property
    def name(self) -> str:
        """The name of the fetched file: of the table, where it has a plain one."""
        path = self.inner if STORES[self.scheme].database else urlsplit(self.url).path.rsplit("/", 1)[-1]
        plain = path if re.fullmatch(r"[\w.-]*\w[\w.-]*", path) else "query"
        return f"{plain}.parquet" if STORES[self.scheme].database else plain


def is_address(location: str | Path) -> bool:
    """Whether it names no file of this machine, or is meant to."""
    schemes = "|".join(STORES)
    return re.match(rf"[A-Za-z][A-Za-z0-9+.-]+:/|({schemes}|jdbc):|{KEYWORDS.pattern}", str(location)) is not None


def at_database(location: str) -> bool:
    """Whether it names a place of which a table or a query must be named."""
    store = STORES.get(location.partition("://")[0].lower())
    return store is not None and store.database


def check_no_secret(text: str, where: str = "data.path") -> None:
    """Addresses in a text, of a setting or an argument, hold no password, and no signature.

    Raises:
        UserError: one does; the message does not repeat it.
    """
    text = unquote(text)
    if PAIR.search(text) and not re.search(r"\bselect\b", text, re.IGNORECASE):
        raise UserError("an address with a password in it is not taken", where=where, fix=AS_DATABASES)
    for scheme_match in SCHEME.finditer(text):
        scheme, rest = scheme_match[1].lower(), text[scheme_match.end() :]
        url, _, behind = rest.partition("#")
        url = url if SELECT.match(behind) and " " in behind else rest  # a query may hold all of these marks
        file = scheme in STORES and not STORES[scheme].database
        named = any(SECRET.search(unquote(key)) for key in PARAMETER.findall(url.partition(" ")[0]))
        path = scheme == "sqlite" and url.startswith("/")
        secret = re.search("[?;]", url) if path else PASSWORD.match(url) or (file and LONE_USER.match(url))
        secret = secret or BRACKETS.match(url)
        if secret or named:
            problem = "an address with a password, a token or a signature in it is not taken"
            raise UserError(problem, where=where, fix=AS_FILES if file else AS_DATABASES)


def parse_address(location: str, where: str) -> Address:
    """A checked address; nothing is opened.

    Raises:
        UserError: an unknown scheme; a password; a database without a table; a driver that is not installed.
    """
    match = SCHEME.match(location)
    if match is None:  # a message would repeat what may be a password
        fix = f"SCHEME://…, of {', '.join(STORES)}: postgresql://HOST/DATABASE, sqlite:///FILE; {AS_DATABASES}"
        raise UserError("an address that is not of the form that is read", where=where, fix=fix)
    check_no_secret(location, where)
    scheme = match[1].lower()
    if scheme not in STORES:
        schemes = f"{', '.join(f'{s}://' for s in STORES)}; of what else there is, export the table as Parquet"
        raise UserError(f"{scheme}:// is not read", where=where, fix=did_you_mean(scheme, STORES) or schemes)
    _check_open(scheme, location, where)
    hosts = re.sub(r"\[[^\]]*\]", "", re.split("[/?#]", location[match.end() :])[0].rpartition("@")[2]).split(",")
    if not all(re.fullmatch(r"[^:]*(:\d*)?", host) for host in hosts):  # a driver's message would repeat it
        raise UserError("the port is no number", where=where, fix=f"{scheme}://HOST:PORT/…; {AS_DATABASES}")
    place = STORES[scheme]
    url, _, inner = location.partition("#")
    if place.database and not inner.strip():
        fix = f"{url}#NAME, or '{url}#SELECT …'; beside data.path also data.table=NAME"
        raise UserError("which table of the database?", where=where, fix=fix)
    if scheme == "http" and urlsplit(url).hostname not in LOCAL:
        raise UserError("rows would travel unencrypted", where=where, fix="https://, or fetch the file yourself")
    if place.library:
        need_extra(place.library, where)
    return Address(scheme, url if place.database else location, inner.strip() if place.database else "")


def _check_open(scheme: str, location: str, where: str) -> None:
    """No part of an address may hold a secret, whatever it is called: only known parameters are taken.

    Raises:
        UserError: names the place, and not what stands there.
    """
    url, _, fragment = location.partition("#")
    file, parameters = not STORES[scheme].database, OPEN_PARAMETERS.get(scheme, set())
    given = [part.partition("=")[0] for part in re.split("[?&;]", unquote(url))[1:]]
    if (scheme != "sqlite" and not {*given} <= parameters) or (file and fragment):
        taken = (
            f"of what stands behind a ? only {', '.join(sorted(parameters))}"
            if parameters
            else "nothing behind a ?, ; or #"
        )
        problem = f"an address may hold a secret anywhere: {taken} is taken of {scheme}://"
        raise UserError(problem, where=where, fix=AS_FILES if file else AS_DATABASES)


def fetched(location: str | Path, room: FetchRoom, *, where: str = "data.path") -> Path:
    """The file of a table: where it lies, or a copy of what an address holds, for the owner alone.

    A copy that is there already is taken: it is whole, and whoever shares the folder reads the same rows.

    Raises:
        UserError: an address as of `parse_address`; nobody answers there; the connection breaks, and nothing is kept.
    """
    if not is_address(location):
        return Path(location).expanduser()
    from mechanisms.public.tables.scan import private_folder  # slow to load

    address = parse_address(str(location), where)
    asked = f"{location} {room.promised}".encode()  # a copy that nobody checked is no checked one
    of = FROM_DATABASE if STORES[address.scheme].database else ""
    folder = room.folder / "fetched" / f"{of}{hashlib.blake2b(asked, digest_size=8).hexdigest()}"
    private_folder(folder)
    path = folder / address.name
    if not path.exists():
        with whole_file(path, mode=0o600) as part:
            resolve_name(STORES[address.scheme].fetch)(address, part, room)
    return path


def fetch_web(address: Address, path: Path, _room: FetchRoom) -> None:
    """A file by https, whole: as many bytes as the server said."""
    from http.client import HTTPException
    from urllib.request import HTTPRedirectHandler, build_opener

    class Followed(HTTPRedirectHandler):
        """Redirects by the same scheme; without encryption to this machine alone."""

        def redirect_request(self, *given: Any) -> Any:
            to = urlsplit(given[-1])
            if to.scheme != address.scheme or (to.scheme == "http" and to.hostname not in LOCAL):
                raise UserError("the server sends elsewhere", where=address.url, fix="the address that it sends to")
            return super().redirect_request(*given)

    host = urlsplit(address.url).hostname
    try:
        with build_opener(Followed).open(address.url, timeout=60) as answer, path.open("wb") as file:
            shutil.copyfileobj(answer, file, CHUNK)
            size, promised = file.tell(), answer.headers.get("Content-Length")
    except (OSError, HTTPException) as error:
        fix = "check the address, and whether it can be reached from here"
        why = getattr(error, "reason", None) or type(error).__name__
        why = getattr(why, "strerror", None) or why
        raise UserError(f"cannot be fetched from {host}: {why}", where=address.url, fix=fix) from error
    if promised is not None and size != int(promised):
        problem = f"the connection broke: {size:,} of {int(promised):,} bytes came"
        raise UserError(problem, where=address.url, fix="try again; nothing was spent")


def fetch_object(address: Address, path: Path, _room: FetchRoom) -> None:
    """An object of S3 or Google's storage, by Arrow's own clients, which find credentials as their vendors say."""
    from pyarrow import ArrowException
    from pyarrow.fs import FileSystem

    try:
        store, key = FileSystem.from_uri(address.url)
        with store.open_input_stream(key) as stream, path.open("wb") as file:
            shutil.copyfileobj(stream, file, CHUNK)
    except (OSError, ArrowException, ValueError) as error:
        fix = "check the address and the credentials (AWS_PROFILE, GOOGLE_APPLICATION_CREDENTIALS, …)"
        raise UserError("cannot be fetched from there", where=address.url, fix=fix) from error
