"""The steps of Containerfile, executed in a fresh Debian where the machine can make one, else in an empty folder.

No builder of images is asked for: RUN lines are run as they stand, COPY lines copy, ENV lines set. Both stages share
one root, in which the second one's copies lie already.
"""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STEPS = [
    line.split(maxsplit=1)
    for line in (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    if line[:1].isupper()
]
USER = 10001
PACKAGES = "python3,python3-venv,ca-certificates"


@dataclass
class Place:
    """Where the steps run.

    Attributes:
        root: a folder with a system of its own, or an empty one.
        fresh: whether it is such a system: paths are those of the file then, and the user is another one.
        env: what ENV lines set.
    """

    root: Path
    fresh: bool
    env: dict[str, str] = field(default_factory=dict)

    def inside(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def run(self, words: Sequence[str], *, user: int = 0, cwd: str = "/") -> subprocess.CompletedProcess[str]:
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/home/synthesis", **self.env}
        if self.fresh:
            pip = {k: v for k, v in os.environ.items() if k.startswith("PIP_")}
            start = ["chroot", f"--userspec={user}:{user}", str(self.root), "/usr/bin/env", "-i", f"--chdir={cwd}"]
            given = [*start, *(f"{k}={v}" for k, v in (env | pip).items()), *words]
            return subprocess.run(given, capture_output=True, text=True, check=False)
        here = [str(self.inside(w)) if w.startswith(("/opt/", "/src", "/tmp/", "/home/")) else w for w in words]
        here = [w.replace("=/tmp/", f"={self.root}/tmp/") for w in here]
        env = {k: str(self.inside(v)) if v.startswith("/") and k != "PATH" else v for k, v in env.items()}
        env = {**{k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}, **env, "PATH": os.environ["PATH"]}
        return subprocess.run(here, capture_output=True, text=True, check=False, env=env, cwd=self.inside(cwd))


def fresh_system(root: Path) -> bool:
    """A Debian without anything of this machine; False where it cannot be made here."""
    if os.geteuid() or not shutil.which("debootstrap"):
        return False
    made = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(root)]
    if subprocess.run(made, capture_output=True, check=False).returncode:
        return False
    # where names and packages are found is the machine's business
    for name in ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt"):
        if Path(name).exists():
            (root / name[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(name, root / name[1:])
    for name in (Path(p) for p in os.environ.get("TEST_CONTAINER_MOUNTS", "").split(":") if p):
        shutil.copytree(name, root / name.relative_to("/"))
    return subprocess.run(["mount", "-t", "proc", "proc", str(root / "proc")], check=False).returncode == 0


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory):
    """The place after all steps, and what ENTRYPOINT and CMD say."""
    place = Place(tmp_path_factory.mktemp("container") / "root", fresh=False)
    place.fresh = fresh_system(place.root)
    if not place.fresh:
        shutil.rmtree(place.root, ignore_errors=True)
        for name in ("src", "opt", "work", "tmp"):
            (place.root / name).mkdir(parents=True)
    print("the steps run in", "a fresh Debian" if place.fresh else "an empty folder: no debootstrap here, or no right")
    said: dict[str, list[str]] = {}
    try:
        for step, rest in STEPS:
            words = shlex.split(rest)
            if step == "ENV":
                name, _, value = rest.partition("=")
                place.env[name] = value
            elif step == "COPY" and not rest.startswith("--from"):
                *sources, target = words
                for source in sources:
                    copied(ROOT / source, place.inside(target), several=len(sources) > 1)
            elif step == "COPY" and "--chown=10001:10001" in words and place.fresh:
                assert place.run(["chown", "-R", "10001:10001", words[-1]]).returncode == 0
            elif step == "RUN" and (place.fresh or words[0] != "useradd"):
                done = place.run(words)
                assert done.returncode == 0, (rest, done.stdout[-2000:], done.stderr[-4000:])
            elif step in ("ENTRYPOINT", "CMD"):
                said[step] = json.loads(rest)
            elif step == "USER":
                assert rest == f"{USER}:{USER}"
        yield place, said
    finally:
        if place.fresh:
            subprocess.run(["umount", str(place.root / "proc")], check=False)


def copied(source: Path, target: Path, *, several: bool) -> None:
    """As COPY does: a folder's content, or a file into a folder."""
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target / source.name)


@pytest.mark.slow
def test_the_image_runs_as_nobody_without_a_shell_and_finds_its_compiled_code(built):
    place, said = built
    help_text = place.run([*said["ENTRYPOINT"], *said["CMD"]], user=USER)
    assert help_text.returncode == 0 and "usage: python -m pipeline" in help_text.stdout, help_text.stderr
    cache = place.inside("/opt/synthesis/numba")
    before = {p: p.stat().st_mtime_ns for p in cache.rglob("*.nbc")}
    assert len(before) > 10, "compiled code lies in the image"
    shells = [p for name in ("sh", "bash", "dash") if (p := place.root / "bin" / name).exists()] if place.fresh else []
    for shell in shells:
        shell.rename(shell.with_name(f"{shell.name}.away"))
    run = ["run", "data.rows=20000", "format=json", "quiet=true", "hydra.run.dir=outputs/demo"]
    done = place.run([*said["ENTRYPOINT"], *run], user=USER, cwd="/home/synthesis")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert json.loads(done.stdout)["private"]
    after = {p: p.stat().st_mtime_ns for p in cache.rglob("*.nbc")}
    assert after == before, "nothing is compiled anew"
    release = place.inside("/home/synthesis/outputs/demo/release")
    assert (release / "privacy.json").is_file() and (not place.fresh or release.stat().st_uid == USER)
    verdict = place.run([*said["ENTRYPOINT"], "verify", "outputs/demo/release"], user=USER, cwd="/home/synthesis")
    assert verdict.returncode == 0, verdict.stdout


def test_the_image_copies_all_that_the_wheel_is_made_of_and_runs_as_no_root():
    words = {word for step, rest in STEPS if step == "COPY" for word in rest.split()}
    assert {"mechanisms", "synthesis", "evaluation", "pipeline", "conf", "setup.py", "pyproject.toml"} <= words
    assert [rest for step, rest in STEPS if step == "USER"] == [f"{USER}:{USER}"]
    shells = [rest for step, rest in STEPS if step in ("ENTRYPOINT", "CMD") and not rest.startswith("[")]
    assert not shells, "the words of these lines need no shell"
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {w for w in words if (ROOT / w).exists() and not w.startswith("/")} <= kept
