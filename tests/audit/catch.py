"""The audit against known faults: which check catches each mutant, and that each was really on."""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path

from tests.audit import choosing, protocol
from tests.audit.beside import check_beside
from tests.audit.hooks import Broken
from tests.audit.losses import check_losses
from tests.audit.mutants import MUTANTS, Mutant
from tests.audit.on_spark import check_spark
from tests.audit.rates import check_rates, rates
from tests.audit.replay import replay
from tests.audit.sampling import check_law, check_streams, check_tails, laws
from tests.audit.tight import audits
from tests.audit.totals import recomputed

for _file in sorted(Path(__file__).parent.glob("mutants_*.py")):
    import_module(f"tests.audit.{_file.stem}")  # registers its mutants
Words = Collection[str]


def _sampling() -> None:
    for kind in laws():
        check_law(kind, 100_000)
        check_tails(kind, 1_000_000)
    check_streams()


#: What a run does when it is cut off, cheated on or asked for too much; how one of several tries is chosen; by part.
PARTS: dict[str, dict[str, Callable[[Path], object]]] = {
    "protocol": {
        "aside": lambda folder: protocol.check_aside(),
        "bound": protocol.check_bound,
        "ledger": protocol.check_ledger,
        "statements": protocol.check_statements,
        "refusals": protocol.check_refusals,
        "swapped": protocol.check_swapped_answers,
        "cut": protocol.check_cut_off,
    },
    "choosing": {
        "pick": lambda folder: choosing.check_pick(),
        "stops": lambda folder: choosing.check_stops(20_000),
        "bounds": lambda folder: [bound.check() for bound in choosing.selection_bounds()],
        "tries": lambda folder: choosing.check_random_tries(200),
        "booked": choosing.check_booked,
        "hidden": choosing.check_hidden,
    },
}


def _parts(of: str, folder: Path, words: Words) -> None:
    for name in words or PARTS[of]:
        PARTS[of][name](folder)


#: The checks that mutants are shown, in the order in which they are tried, on all cases or on those with these words.
CHECKS: dict[str, Callable[[Path, Words], object]] = {
    "sampling": lambda folder, words: _sampling(),
    "tight": lambda folder, words: [audit().check() for audit in audits(cells=40_000, draws=8_000, runs=0)],
    "protocol": partial(_parts, "protocol"),
    "choosing": partial(_parts, "choosing"),
    "totals": lambda folder, words: recomputed(folder, 96, seed=5),
    "replay": lambda folder, words: replay(folder, most=60 if words else 192, seed=1 if words else 2, words=words),
    "beside": check_beside,
    "losses": lambda folder, words: check_losses(folder, 12, words=words),
    "rates": lambda folder, words: check_rates(rates(folder, 40 if words else 24, words=words)),
    "spark": lambda folder, words: check_spark(folder),
}


class Survived(AssertionError):
    """A fault that no check caught, or that was never on: a hole in the audit."""


def caught(mutant: Mutant, folder: Path) -> tuple[str, str]:
    """The check that caught the mutant, and what it said.

    Raises:
        Survived: none did.
    """
    likely, *words = mutant.likely.split()
    tries: list[tuple[str, Words]] = [(likely, words), *((name, ()) for name in CHECKS if words or name != likely)]
    for name, some in tries:
        with mutant.on() as switches:
            try:
                CHECKS[name](folder, some)
            except Broken as error:
                found = str(error)
            except (RuntimeError, ValueError, ArithmeticError) as error:  # the code's own checks stopped it
                found = f"{type(error).__name__}: {error}"
            else:
                continue
            if not any(s.calls for s in switches):
                raise Survived(f"{mutant.name}: stopped by {found}, but the fault was not reached")
            return name, found
    raise Survived(f"{mutant.name}: no check caught it")


def all_caught(folder: Path, part: tuple[int, int] = (0, 1)) -> Iterator[tuple[Mutant, str, str]]:
    """Each mutant with the check that caught it, and what it said; see `caught`."""
    for mutant in list(MUTANTS.values())[part[0] :: part[1]]:
        yield (mutant, *caught(mutant, folder))
