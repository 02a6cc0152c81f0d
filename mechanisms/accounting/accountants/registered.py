"""The accountants by name, and which of them are privacy filters."""

from __future__ import annotations

from mechanisms.accounting.accountants.accountant import Accountant, Squares
from mechanisms.accounting.accountants.advanced import Advanced
from mechanisms.accounting.accountants.basic import Basic
from mechanisms.accounting.accountants.gdp import Gdp
from mechanisms.accounting.accountants.zcdp import Zcdp
from mechanisms.public.errors import UserError, one_of
from mechanisms.public.noise_kinds import NOISE_KINDS, NoiseKind

#: Those whose filters are proved.
OWN_ACCOUNTANTS = (Basic, Advanced, Zcdp, Gdp)
#: The accountants by name: ours, and those of plugins; a contract test runs over all of them.
ACCOUNTANTS: dict[str, type[Accountant]] = {a.kind: a for a in OWN_ACCOUNTANTS}


def accountant_class(kind: str) -> type[Accountant]:
    """The accountants of that name, for what they have in common before any δ is known.

    Raises:
        UserError: unknown name.
    """
    return ACCOUNTANTS[one_of(kind, ACCOUNTANTS, "privacy.accountant")]


def _filters(squares: bool) -> list[type[Accountant]]:
    return [a for a in OWN_ACCOUNTANTS if a.is_filter and not (squares and not issubclass(a, Squares))]


def serves_as_filter(kind: str, noise: NoiseKind, *, squares: bool = False) -> bool:
    """Whether the accountant of that name is a privacy filter for such noise; see `check_filter`."""
    return any(a.kind == kind and a.natural_noise == noise for a in _filters(squares))


def check_filter(kind: str, noise: NoiseKind, *, squares: bool = False) -> None:
    """Refuse events of sizes that depend on earlier answers where the accountant is no privacy filter for them.

    Filters: zCDP (Feldman & Zrnic 2021) and GDP (Smith & Thakurta 2022) for Gaussian noise, basic composition of pure
    noise (Rogers et al. 2016), each beside choices by the exponential mechanism. What a plugin's accountant says of
    itself is not taken here: what such rounds promise is computed for ours alone (`restatements.worst_case`).

    Args:
        squares: whether only accountants serve whose costs are squares of strengths.
    Raises:
        UserError: the accountant, or this noise under it, is no filter.
    """
    if serves_as_filter(kind, noise, squares=squares):
        return
    serving, ways = _filters(squares), []
    for law in NOISE_KINDS.values():
        if names := [a.kind for a in serving if a.natural_noise == law.name]:
            ways.append(f"privacy.accountant={' or '.join(names)} and mechanism={law.name}")
    problem = "rounds whose number depends on the answers have no sound accounting here"
    raise UserError(problem, where="privacy.accountant", fix="; or ".join(ways))
