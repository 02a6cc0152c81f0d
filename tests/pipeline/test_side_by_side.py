"""Commands that begin in one folder at the same moment: one of them works there, and the others take nothing away."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from mechanisms.public.errors import UserError
from pipeline import folder_lock
from pipeline.folders import claimed
from pipeline.sweeps.sweep import _opened


def _run(root: Path):
    return claimed(root, resume=False)


@pytest.mark.parametrize("begun", [_run, _opened])
def test_a_command_that_is_refused_takes_nothing_away_from_the_one_at_work(begun, tmp_path, monkeypatch):
    """The second one looks into the folder, the first one begins, and only then the second one asks for the lock."""
    with ExitStack() as first:
        opened = folder_lock._opened

        def late(path: Path, *args: int):
            if path.parent not in begins:
                begins.append(path.parent)
                first.enter_context(begun(tmp_path / "out"))
                (tmp_path / "out" / "internal" / "manifest.json").write_text("{}")
                held.update(p.name for p in path.parent.iterdir())
            return opened(path, *args)

        begins: list[Path] = []
        held: set[str] = set()
        monkeypatch.setattr(folder_lock, "_opened", late)
        for _ in range(2):  # the lock is still there for the third one
            with pytest.raises(UserError, match="at work"), begun(tmp_path / "out"):
                pass
            assert {p.name for p in (tmp_path / "out" / "internal").iterdir()} == held
    assert {"lock", "manifest.json"} <= held


@pytest.mark.parametrize("begun", [_run, _opened])
def test_the_lock_of_a_command_that_ended_by_a_mistake_is_nobody_s_lock(begun, tmp_path, monkeypatch):
    """It takes its lock away with the rest: who opened that file before and locks it after holds nothing."""
    opened = folder_lock._opened

    def early(path: Path, *args: int):
        lock = opened(path, *args)
        path.unlink()
        return lock

    monkeypatch.setattr(folder_lock, "_opened", early)
    with pytest.raises(UserError, match="at work"), begun(tmp_path / "out"):
        pass
    monkeypatch.setattr(folder_lock, "_opened", opened)
    with begun(tmp_path / "out"):
        pass


@pytest.mark.parametrize("begun", [_run, _opened])
def test_a_mistake_leaves_nothing_of_a_command_in_a_new_folder(begun, tmp_path):
    with pytest.raises(UserError, match="mine"), begun(tmp_path / "a" / "out"):
        raise UserError("mine", where="x", fix="y")
    assert list(tmp_path.iterdir()) == []
