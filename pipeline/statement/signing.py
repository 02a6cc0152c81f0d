"""The manifest of a release, with the digest of each file; and who publishes it, and signs the manifest (Ed25519).

All of that are facts from the settings alone, so that equal seeds make equal bytes.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mechanisms.public.errors import UserError, first_few
from mechanisms.public.files import Json, write_whole
from mechanisms.public.plain_files import check_plain, open_plain, read_mapping, read_text
from pipeline.settings.config import StatementConfig

MANIFEST, SIGNATURE = "manifest.json", "signature.json"
MANIFEST_FORMAT = "release-manifest/1"


@dataclass(frozen=True)
class Manifest:
    """What binds a release.

    Attributes:
        pipeline: the version that wrote the files.
        rows_asked: how many synthetic rows were asked for; None: as many as the noisy total says.
        given: of a table of rows that satisfy a condition: what was asked (`where`), how its rows were made (`rows`),
            and of how many independent ones they tell as much (`effective_rows`); None: rows of the whole.
        signer: the fingerprint of the key that signs the manifest, known before anything is signed; None: unsigned.
        files: path in the release → SHA-256 in hexadecimal digits, for every file but the manifest and its signature.
    """

    pipeline: str
    rows_asked: int | None
    signer: str | None
    files: Mapping[str, str]
    given: Json | None = None

    def write(self, folder: Path) -> bytes:
        """Write manifest.json; returns its bytes, which are what a signature signs."""
        content = {k: v for k, v in asdict(self).items() if k != "given" or v is not None}
        text = json.dumps({"format": MANIFEST_FORMAT, **content}, indent=1, ensure_ascii=False) + "\n"
        write_whole(folder / MANIFEST, text)
        return text.encode()


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal digits."""
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_digests(folder: Path) -> dict[str, str]:
    """Each file's path in the folder → its SHA-256, in order of the paths.

    Raises:
        UserError: a link or a device lies there: a release holds plain files and folders.
    """
    check_plain(folder)
    files = [p for p in folder.rglob("*") if p.is_file()]
    return dict(sorted((p.relative_to(folder).as_posix(), file_digest(p)) for p in files))


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a release; None where there is none.

    Raises:
        UserError: it is damaged.
    """
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        content = read_mapping(path)
        if content.pop("format") != MANIFEST_FORMAT:
            raise ValueError("another format")
        manifest = Manifest(**content)
        if not all(isinstance(k, str) and isinstance(v, str) for k, v in manifest.files.items()):
            raise ValueError("digests are texts")
        if manifest.given is not None and not isinstance(manifest.given["where"], Mapping):
            raise ValueError("no condition")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        fix = "take the release folder as it was published, whole"
        raise UserError(f"the manifest is damaged ({error})", where=str(path), fix=fix) from error
    return manifest


def differences(manifest: Manifest, folder: Path) -> dict[str, str]:
    """Each file that is not as the manifest lists it → edited, missing or foreign."""
    there = {k: v for k, v in file_digests(folder).items() if k not in {MANIFEST, SIGNATURE}}
    if manifest.signer is None and (folder / SIGNATURE).exists():
        there[SIGNATURE] = "foreign"
    if manifest.signer is not None and not (folder / SIGNATURE).exists():
        return {SIGNATURE: "missing"}
    result = {}
    for name in sorted(manifest.files.keys() | there.keys()):
        if name not in there:
            result[name] = "missing"
        elif name not in manifest.files:
            result[name] = "foreign"
        elif manifest.files[name] != there[name]:
            result[name] = "edited"
    return result


def check_files(manifest: Manifest, folder: Path) -> None:
    """Every file is as it was published, and nothing else lies there.

    Raises:
        UserError: a file was edited, is missing, or is foreign; names each.
    """
    changed = differences(manifest, folder)
    if changed:
        shown = first_few((f"{name} ({how})" for name, how in changed.items()), 6)
        fix = "take the release as it was published, whole, and put nothing into its folder"
        raise UserError(f"not as it was published: {shown}", where=str(folder), fix=fix)


FORMAT = "release-signature/1"
EXTRA = "pip install cryptography (the extra `sign` of this package)"
MAKE = "make one: openssl genpkey -algorithm ed25519 -out key.pem"


@dataclass(frozen=True)
class Signer:
    """A private key, ready to sign.

    Attributes:
        fingerprint: SHA-256 of the public key (DER, SubjectPublicKeyInfo), in hexadecimal digits.
        public_key: as PEM.
        sign: bytes → signature.
    """

    fingerprint: str
    public_key: str = field(repr=False)
    sign: Callable[[bytes], bytes] = field(repr=False)


def load_signer(path: str | None) -> Signer | None:
    """The key in a file; None where no file is given.

    Raises:
        UserError: the library is missing; no such file; not an Ed25519 private key in PEM; an encrypted key.
    """
    if path is None:
        return None
    parts = _library("statement.key", "leave statement.key out: the release is then not signed")
    key = _key(path, "private", parts, where="statement.key", fix=MAKE, password=None)
    public, serialization = key.public_key(), parts[0]
    encoding, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    pem = str(public.public_bytes(encoding, form).decode())
    return Signer(_fingerprint(public, serialization), pem, key.sign)


def write_signature(folder: Path, signer: Signer, content: bytes) -> None:
    """Sign the manifest's bytes and put the signature beside it, with the public key."""
    record = {
        "format": FORMAT,
        "algorithm": "Ed25519",
        "signs": MANIFEST,
        "public_key": signer.public_key,
        "signature": signer.sign(content).hex(),
    }
    write_whole(folder / SIGNATURE, json.dumps(record, indent=1) + "\n")


def check_signature(folder: Path, manifest: Manifest, pinned: str | None = None) -> str:
    """The manifest was signed by the key that it names; returns the key's fingerprint.

    Args:
        pinned: the file of the public key (PEM) that must be the signer's; None: any.
    Raises:
        UserError: no signature, a false one, another signer, or the library is missing.
    """
    if manifest.signer is None:
        fix = "ask the publisher for a signed release, or leave key= out"
        raise UserError("the release is not signed", where=str(folder), fix=fix)
    serialization, ed25519, invalid = _library("signature", "the digests alone are checked without it")
    fix = "take the release as it was published, whole; a changed one cannot be signed again without the key"
    try:
        record = read_mapping(folder / SIGNATURE)
        public = serialization.load_pem_public_key(record["public_key"].encode())
        signature = bytes.fromhex(record["signature"])
        if record["format"] != FORMAT or not isinstance(public, ed25519.Ed25519PublicKey):
            raise ValueError("another format")
        public.verify(signature, read_text(folder / MANIFEST).encode())
    except (OSError, ValueError, TypeError, LookupError, AttributeError, invalid) as error:
        raise UserError("the signature is false or damaged", where=str(folder / SIGNATURE), fix=fix) from error
    print_of = _fingerprint(public, serialization)
    if print_of != manifest.signer:
        raise UserError("signed by another key than the manifest names", where=str(folder / SIGNATURE), fix=fix)
    if pinned is not None and _fingerprint(public_key(pinned), serialization) != print_of:
        fix = "the public key of the publisher whom you trust; if this is it, the release is a forgery"
        raise UserError(f"signed by another key than {pinned}: {print_of}", where="key", fix=fix)
    return print_of


def public_key(path: str) -> Any:
    """The Ed25519 key in a PEM file; UserError where it cannot be read, holds another, or the library is missing."""
    fix = "the publisher's public key as PEM: openssl pkey -in key.pem -pubout -out public.pem"
    return _key(path, "public", _library("key", "leave key= out"), where="key", fix=fix)


def _key(path: str, kind: str, parts: tuple[Any, Any, Any], *, where: str, fix: str, **options: Any) -> Any:
    """The private or public Ed25519 key in a PEM file, by the parts of the library; UserError where there is none."""
    serialization, ed25519, _ = parts
    try:
        key = getattr(serialization, f"load_pem_{kind}_key")(Path(path).expanduser().read_bytes(), **options)
    except OSError as error:
        raise UserError(f"cannot read {path} ({error.strerror})", where=where, fix=fix) from error
    except TypeError as error:
        fix = "a key without a password: openssl pkey -in key.pem -out plain.pem"
        raise UserError(f"{path} is encrypted", where=where, fix=fix) from error
    except Exception as error:  # the library's own kinds differ by version
        raise UserError(f"{path} holds no {kind} key in PEM", where=where, fix=fix) from error
    if not isinstance(key, getattr(ed25519, f"Ed25519{kind.capitalize()}Key")):
        raise UserError(f"{path} holds a key of another kind than Ed25519", where=where, fix=fix)
    return key


def _library(where: str, without: str) -> tuple[Any, Any, type[Exception]]:
    """The parts of `cryptography` that are used."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        fix = f"{EXTRA}; or {without}"
        raise UserError("signatures need the library `cryptography`", where=where, fix=fix) from error
    return serialization, ed25519, InvalidSignature


def _fingerprint(public: Any, serialization: Any) -> str:
    encoding, form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return hashlib.sha256(public.public_bytes(encoding, form)).hexdigest()


#: A statement is one page: its texts are short.
LONGEST = 160


#: What only people know about a release, in the order of privacy.json; the comments stand in conf/config.yaml.
FIELDS = ("publisher", "date", "contact", "confirmed_by", "intended_use", "publisher_type", "region", "license")
#: Each of FIELDS; None where it is left to fill in.
WhoPublishes = dict[str, str | None]


def build_publication(settings: StatementConfig) -> WhoPublishes:
    """The settings, checked.

    Raises:
        UserError: a text too long for one page, or with control characters; a date that is none.
    """
    facts = {name: _text(name, getattr(settings, name)) for name in FIELDS}
    date = facts["date"]
    if date is not None and not _is_date(date):
        raise UserError(f"got {date!r}", where="statement.date", fix="a day as YYYY-MM-DD: statement.date=2027-03-01")
    return facts


def _text(name: str, value: str | None) -> str | None:
    text = None if value is None else str(value).strip()
    if text and (len(text) > LONGEST or re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", text)):
        raise UserError(
            "not one short line", where=f"statement.{name}", fix=f"at most {LONGEST} characters on one line"
        )
    return text or None


def _is_date(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None
