"""Whether the packages that Python finds are this program's own: `pipeline`, `evaluation`, … are common words.

The console command runs this file by its path, before anything is imported; it needs the standard library alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

#: Modules of the standard library that Windows lacks; `mechanisms.public.posix` says the same of what is imported.
POSIX = ("fcntl", "resource")
OURS = ("mechanisms", "synthesis", "evaluation", "pipeline")
#: Stands in the `__init__.py` of each of the four.
MARKER = '__distribution__ = "dp-synthesis-pipeline"'


def stranger(names: Sequence[str], home: Path) -> str | None:
    """A message about the first package that is not ours or does not lie in `home`, or a system without locks of files.

    Nothing is imported: the code of a stranger does not run.
    """
    if lacking := [name for name in POSIX if find_spec(name) is None]:
        fix = "WSL (Windows Subsystem for Linux): wsl --install, then pip install dp-synthesis-pipeline in it"
        return f"error: this system has no {lacking[0]}; the pipeline runs on Linux and macOS\n  fix: {fix}"
    for name in names:
        spec = find_spec(name)
        file = None if spec is None or spec.origin is None else Path(spec.origin)
        marked = file is not None and file.is_file() and MARKER in file.read_text(encoding="utf-8", errors="replace")
        if marked and file is not None and file.resolve().parent.parent == home:
            continue
        if spec is None:
            problem = f"there is no package {name!r} beside {home / 'pipeline'}"
        elif marked and file is not None:
            problem = f"Python finds the package {name!r} in {file.parent}, not the one in {home}"
        else:
            problem = (
                f"the package {name!r} that Python finds{f' in {file.parent}' if file else ''} is another program's"
            )
        fix = "install dp-synthesis-pipeline in an environment of its own; take other folders off PYTHONPATH"
        return f"error: {problem}\n  fix: {fix}"
    return None
