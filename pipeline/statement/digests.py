"""The manifest of a release: the digest of every file, so that one that was edited, lost or added is noticed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from mechanisms.public.errors import UserError, first_few
from mechanisms.public.files import Json, write_whole
from mechanisms.public.plain_files import check_plain, open_plain, read_mapping

MANIFEST, SIGNATURE = "manifest.json", "signature.json"
FORMAT = "release-manifest/1"


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
        text = json.dumps({"format": FORMAT, **content}, indent=1, ensure_ascii=False) + "\n"
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
        if content.pop("format") != FORMAT:
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
