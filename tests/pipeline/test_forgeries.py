"""No small change of a release's JSON files is called sound, but of words that promise nothing."""

import json
import re
import shutil
from functools import cache
from pathlib import Path

import pytest

from mechanisms.public.errors import UserError
from pipeline.statement.verify import verify
from tests.pipeline.conftest import TOWN, done_once, rebound
from tests.pipeline.forgeries import forgeries
from tests.pipeline.test_contradictions import forged

FAST = [*TOWN, "evaluation.enabled=false", "synthesis=independent"]
RELEASES = {
    "pairs": ["selection=pairs", "privacy.unit=person", "privacy.max_records=4", "statement.publisher=Town"],
    "tries": ["accept=[{metric: l1, marginals: 1, at_most: 10000}]", "accept_tries=3"],
    "mwem": ["selection=mwem", "selection.k=[2]"],
    "advanced": ["selection=adagrid", "privacy.accountant=advanced", "mechanism=gaussian", "privacy.delta=1e-6"],
}
FILES = {"privacy": "privacy.json", "index": "measurements/index.json", "manifest": "manifest.json"}

#: What may change and be called sound: words of people, and facts of which the release tells nothing else.
PROMISES_NOTHING = (
    r"privacy (renamed|emptied) versions\.(autodp|duckdb|numba|numpy|scipy)",  # libraries: facts without a claim
    r"privacy (renamed|filled) published\.\w+",  # words of the publisher, left as they are given
    r"privacy emptied published\.\w+",
    r"privacy deleted outside\.\d+",  # a run with data.max_unplaced=1 says nothing there
    r"privacy turned events\.\d+\.answered",  # of a choice or of scores: charged and lost, or charged and used
    r"privacy (doubled|halved) number events\.\d+\.(noisy|accept\.at_most)",  # an answer, and what it was held against
    r"privacy doubled number events\.\d+\.accept\.marginals",  # three columns have as many pairs
    r"privacy deleted events\.5",  # second scores of `tries`: of several tries all of the budget counts, charged or not
    r"index (doubled number|halved number|deleted) distances\.below",  # for bounds on errors, as the noisy values are
    r"index deleted (domain\.\d+\.ordered|histogram|distances)",  # read as what stood there, or as none
)


@pytest.fixture(scope="module")
def release_of(tmp_path_factory):
    """The release of a name, made when it is first asked for."""

    @cache
    def make(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        done_once(folder, "run", *FAST, *RELEASES[name], "hydra.run.dir=out")
        return folder / "out" / "release"

    return make


def called_sound(release: Path, work: Path, every: int) -> list[str]:
    """Each `every`-th forgery of a release that `verify` calls sound; all papers and digests are made anew."""
    contents = {k: json.loads((release / name).read_text(encoding="utf-8")) for k, name in FILES.items()}
    listed = [(k, *forgery) for k, content in contents.items() for forgery in forgeries(content)]
    passed = []
    for which, what, place, new in listed[::every]:
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(release, work)
        now = {**contents, which: new}
        try:
            if which == "manifest":
                (work / "manifest.json").write_text(json.dumps(new), encoding="utf-8")
            else:
                _forged(release, work, now["privacy"], now["index"])
            if verify(work).sound:
                passed.append(f"{which} {what} {'.'.join(map(str, place))}")
        except UserError:  # no release at all
            continue
    assert len(listed) > 600
    return passed


def _forged(release: Path, work: Path, said, index) -> None:
    try:
        forged(work, said, index)
    except Exception:  # papers that nobody can write: those that were there, bound anew
        shutil.rmtree(work)
        shutil.copytree(release, work)
        (work / "privacy.json").write_text(json.dumps(said), encoding="utf-8")
        (work / "measurements" / "index.json").write_text(json.dumps(index), encoding="utf-8")
        rebound(work)


def unexpected(passed: list[str]) -> list[str]:
    return [p for p in passed if not any(re.fullmatch(allowed, p) for allowed in PROMISES_NOTHING)]


def test_a_sample_of_small_forgeries_of_every_file_is_refused(release_of, tmp_path):
    assert unexpected(called_sound(release_of("pairs"), tmp_path / "work", every=47)) == []
    assert unexpected(called_sound(release_of("mwem"), tmp_path / "work", every=53)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
def test_every_small_forgery_is_refused_but_of_words_that_promise_nothing(release_of, tmp_path, name):
    assert verify(release_of(name)).sound
    passed = called_sound(release_of(name), tmp_path / "work", every=1)
    assert passed, "words of the publisher may change"
    assert unexpected(passed) == []
