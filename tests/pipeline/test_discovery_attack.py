"""A membership attack that succeeds against a schema drafted from the rows learns nothing from a discovered one."""

import numpy as np
import pytest

from mechanisms.public.schema.table_schema import load_schema
from tests.pipeline.conftest import PAIRS, TOWN, command, people
from tests.pipeline.test_discovery_runs import OPEN

#: Games on either side: the standard error of an AUC of 0.5 is about 0.08.
GAMES = 24
PRIVACY = ["privacy.epsilon=1", "privacy.delta=1e-6", "evaluation.enabled=false"]


def auc(with_target, without):
    """How often a score is larger where the target is in; ties count half."""
    one, two = np.array(with_target)[:, None], np.array(without)[None, :]
    return float((one > two).mean() + (one == two).mean() / 2)


def score(path):
    """What an attacker reads off a released schema who knows the target: a rare job, and an age beyond all others."""
    schema = load_schema(path)
    job = schema["job"]
    return 1000.0 * ("king of the town" in job.values) + schema["age"].high


def table(seed, *, target):
    rows = people(600, seed)
    rows["age"] = rows["age"].clip(0, 80)
    if target:
        rows.loc[0, ["person", "job", "age"]] = ["the king", "king of the town", 104]
    rows.to_csv("town.csv", index=False)


@pytest.mark.slow
def test_an_outlier_shows_in_a_drafted_schema_and_not_in_a_discovered_one(town):
    (town / "town.yaml").write_text(OPEN, encoding="utf-8")
    drafted, discovered = ([], []), ([], [])
    for game in range(GAMES):
        for target in (0, 1):
            table(game, target=bool(target))
            assert command("schema", "town.csv", f"output=draft-{game}-{target}.yaml") == 0
            drafted[target].append(score(town / f"draft-{game}-{target}.yaml"))
            root = town / f"out-{game}-{target}"
            assert command("run", *TOWN, *PAIRS, *PRIVACY, f"hydra.run.dir={root}") == 0
            discovered[target].append(score(root / "release" / "schema.yaml"))
    assert auc(drafted[1], drafted[0]) > 0.95
    assert abs(auc(discovered[1], discovered[0]) - 0.5) < 0.25
