"""The examples of modules run, and loops compile anywhere."""

import doctest
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mechanisms.public import coded_table, domain
from mechanisms.public.queries import query_matrices as queries


@pytest.mark.parametrize("module", [domain, coded_table, queries], ids=lambda m: m.__name__)
def test_the_examples_of_a_module_run(module):
    outcome = doctest.testmod(module)
    assert outcome.attempted > 1 and outcome.failed == 0


ROOT = Path(__file__).parents[2]


def test_loops_compile_where_no_cache_can_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    code = "from evaluation.mgd.aemc import Axis, aemc; print(aemc([9, 0], [0, 9], Axis.path(2, 2, 1.0), 0).value)"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(blocked / "cache")}
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == 1.0
