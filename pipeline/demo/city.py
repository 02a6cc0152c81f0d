"""The demo city: the odds of everything that happens there, as look-up tables; its names stand in its schema."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from mechanisms.public.arrays import Floats
from mechanisms.public.schema.table_schema import load_schema
from pipeline.conf_folder import SCHEMAS

#: Quarter → how many of the neighbourhoods are its own; the schema lists them quarter by quarter.
QUARTERS = {"centre": 24, "harbour": 30, "works": 36, "terraces": 76, "suburbs": 80, "hills": 32}
GROUPS = ("Medical", "Injury", "Fire", "Alarm", "Traffic", "Hazard", "Rescue", "Disorder", "Service")
CHANNELS = ("Mobile", "Landline", "Alarm line", "Care link", "App")


#: The year of all calls.
YEAR = 2023
#: No caller makes more calls.
MAX_CALLS = 20
#: West, east, south and north ends of the city, in degrees: far out at sea, so that nobody takes it for a real place.
BOX = (-12.64, -12.36, 45.90, 46.10)
BLOCKS = 32  # per neighbourhood: calls come from the corner of a block
PRIORITIES = 5
#: Longest response, in minutes.
LONGEST = 120

Codes = NDArray[np.integer]
MIDDLE = np.array([(BOX[0] + BOX[1]) / 2, (BOX[2] + BOX[3]) / 2])
KM = np.array([77.2, 111.2])  # per degree, at this latitude
#: Character of the city itself; calls have a seed of their own, so the schema fits every one of them.
CHARACTER = 20230101


def draw(odds: Codes, context: Codes | int, size: int, rng: np.random.Generator) -> Codes:
    """One outcome per row, by one look-up; `context` is a row's context, or that of all rows."""
    width = odds.shape[1]
    place = rng.integers(0, width, size, dtype=np.uint16)
    return odds.ravel()[np.multiply(context, width, dtype=np.int64) + place]


def odds(weights: Floats, *, bits: int) -> Codes:
    """For each context a row of equally likely outcomes, in proportion to weights, rounded to multiples of 2**-bits.

    Args:
        weights: contexts × outcomes.
    """
    width = 1 << bits
    share = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
    middle = (np.arange(width) + 0.5) / width
    kind = np.min_scalar_type(weights.shape[1] - 1)
    return np.stack([np.searchsorted(row, middle) for row in share]).astype(kind)


@dataclass(frozen=True, eq=False)
class City:
    """The map and the odds (see `odds`). Contexts are flattened in the order in which they are named.

    Attributes:
        neighbourhoods, types: the names of places and of types of incidents, the frequent ones of a group first.
        quarter: of each neighbourhood.
        corners: neighbourhoods × BLOCKS × (longitude, latitude) in degrees.
        kind: → kind of caller.
        calls: kind → calls of one caller, less one.
        home: kind → neighbourhood.
        away: home neighbourhood → neighbourhood of a call made elsewhere.
        group: kind, quarter → group of incident.
        incident: group, neighbourhood → type of incident.
        day: group → day of the year.
        hour: type, weekend → hour.
        priority: type → priority, less one.
        channel: kind, group → channel.
        minutes: priority, neighbourhood, hour → typical minutes until help arrives.
        spread: equally likely factors on the minutes.
        no_help: group, priority → probability that nobody is sent, or that nobody wrote down when they came.
    """

    neighbourhoods: tuple[str, ...]
    types: tuple[str, ...]
    quarter: Codes
    corners: Floats
    kind: Codes
    calls: Codes
    home: Codes
    away: Codes
    group: Codes
    incident: Codes
    day: Codes
    hour: Codes
    priority: Codes
    channel: Codes
    minutes: NDArray[np.float32]
    spread: NDArray[np.float32]
    no_help: NDArray[np.float32]


@cache
def build_city() -> City:
    """The one demo city; whatever the seed of its calls."""
    schema, rng = load_schema(SCHEMAS / "demo.yaml"), np.random.default_rng(CHARACTER)
    places, types = schema["neighbourhood"].values, schema["incident_type"]
    group = types.hierarchy.nodes_of("incident_group")
    quarter, km = town_map()
    block = rng.uniform(-0.32, 0.32, (len(km), BLOCKS, 2))
    crowd = np.array([3.0, 1.2, 0.8, 1.6, 1.0, 0.5])[quarter] * rng.lognormal(0, 0.5, len(km))
    by_day = crowd * np.array([4.0, 1.5, 1.5, 0.8, 0.5, 0.4])[quarter]
    visitors, firms = by_day * np.where(quarter == 1, 3, 1), by_day * np.where(quarter == 2, 3, 1)
    apart = np.linalg.norm(km[:, None] - km[None], axis=2)
    stations = km[rng.choice(len(km), 22, replace=False)]
    way = np.linalg.norm(km[:, None] - stations[None], axis=2).min(axis=1)
    return City(
        neighbourhoods=places,
        types=types.values,
        quarter=quarter,
        corners=np.round(MIDDLE + (km[:, None] + block) / KM, 5),
        kind=odds(np.array([[70.0, 14, 12, 4]]), bits=10),
        calls=_calls_per_caller(),
        home=odds(np.stack([crowd, visitors, firms, crowd * rng.lognormal(0, 1, len(km))]), bits=14),
        away=odds(by_day * np.exp(-apart / 2.5), bits=11),
        group=_groups(),
        incident=_incidents(quarter, group, rng),
        day=_days(),
        hour=_hours(group, rng),
        priority=_priorities(group, rng),
        channel=_channels(),
        minutes=_minutes(way),
        spread=np.exp(0.38 * ndtri((np.arange(4096) + 0.5) / 4096)).astype(np.float32),
        no_help=_no_help(),
    )


def town_map() -> tuple[Codes, Floats]:
    """The quarter of each neighbourhood and its middle in km: a sunflower, cut into quarters as a town grows."""
    count = sum(QUARTERS.values())
    turn, far = np.arange(count) * np.pi * (3 - np.sqrt(5)), 9.3 * np.sqrt((np.arange(count) + 0.5) / count)
    spots = np.stack([far * np.cos(turn), far * np.sin(turn)], axis=1)
    # Who comes first takes the spots that suit it best: near the middle, west, south-east, north, near again, the rest.
    wish = {
        "centre": far,
        "harbour": spots[:, 0] + 0.3 * far,
        "works": spots[:, 1] - spots[:, 0],
        "hills": -spots[:, 1],
        "terraces": far,
        "suburbs": far,
    }
    place = {name: sum([*QUARTERS.values()][:i]) for i, name in enumerate(QUARTERS)}
    quarter, km, free = np.zeros(count, np.uint8), np.zeros((count, 2)), np.ones(count, bool)
    for name, want in wish.items():
        size = QUARTERS[name]
        chosen = np.argsort(np.where(free, want, np.inf), kind="stable")[:size]
        free[chosen] = False
        rows = slice(place[name], place[name] + size)
        km[rows], quarter[rows] = spots[chosen], list(QUARTERS).index(name)
    return quarter, km


def _calls_per_caller() -> Codes:
    """Most callers call once or twice; firms and care homes keep calling, up to MAX_CALLS times."""
    n = np.arange(1, MAX_CALLS + 1)
    return odds(np.stack([n**-2.6, n**-3.0, n**-1.7, n**-1.0]), bits=14)


def _groups() -> Codes:
    # Medical, Injury, Fire, Alarm, Traffic, Hazard, Rescue, Disorder, Service
    kinds = np.array(
        [
            [46, 13, 4, 5, 7, 4, 4, 10, 7],
            [22, 18, 3, 1, 26, 3, 5, 16, 6],
            [10, 9, 5, 42, 5, 9, 4, 12, 4],
            [58, 22, 1, 12, 0.2, 1, 1, 0.8, 4],
        ]
    )
    quarters = np.array(
        [
            [0.9, 1.2, 0.6, 2.0, 1.1, 0.7, 1.0, 2.2, 1.0],
            [0.8, 1.0, 1.1, 1.1, 0.9, 1.5, 3.0, 1.4, 0.9],
            [0.7, 1.3, 2.2, 1.6, 1.5, 2.6, 0.8, 0.6, 0.8],
            [1.1, 1.0, 1.1, 0.7, 0.8, 0.9, 1.0, 1.2, 1.1],
            [1.2, 1.0, 0.8, 0.6, 1.0, 0.9, 0.8, 0.5, 1.1],
            [1.0, 0.9, 1.2, 0.5, 1.2, 1.6, 1.6, 0.3, 1.0],
        ]
    )
    return odds((kinds[:, None] * quarters[None]).reshape(-1, len(GROUPS)), bits=11)


def _incidents(quarter: Codes, group: Codes, rng: np.random.Generator) -> Codes:
    """Types fall off with their rank; quarters and single neighbourhoods have a mix of their own."""
    rank = np.concatenate([np.arange(n) for n in np.bincount(group)])
    in_quarter = rng.lognormal(0, 0.9, (len(QUARTERS), len(group)))
    here = (rank + 1.3) ** -1.15 * in_quarter[quarter] * rng.lognormal(0, 0.5, (len(quarter), len(group)))
    weights = np.where(group == np.arange(len(GROUPS))[:, None, None], here[None], 0.0)
    return odds(weights.reshape(-1, len(group)), bits=10)


def weekday_of_day() -> Codes:
    """0 (Monday) … 6 (Sunday) for each day of the year."""
    first = datetime.date(YEAR, 1, 1)
    days = (datetime.date(YEAR + 1, 1, 1) - first).days
    return ((np.arange(days) + first.weekday()) % 7).astype(np.uint8)


def _days() -> Codes:
    """Seasons, weekdays, and a few days that everybody remembers."""
    weekday = weekday_of_day()
    day = np.arange(len(weekday))
    peak = np.array([15, 190, 215, 10, 320, 300, 200, 195, 0])
    swing = np.array([0.22, 0.18, 0.35, 0.08, 0.15, 0.25, 0.40, 0.25, 0.02])
    at_weekend = np.array([0.98, 1.15, 1.05, 0.65, 0.75, 0.90, 1.20, 1.70, 0.80])
    weights = 1 + swing[:, None] * np.cos(2 * np.pi * (day - peak[:, None]) / len(day))
    weights *= np.where(weekday >= 5, at_weekend[:, None], 1.0) * np.where(weekday == 4, 1.06, 1.0)
    fire, traffic, hazard, disorder = (GROUPS.index(g) for g in ("Fire", "Traffic", "Hazard", "Disorder"))
    weights[np.ix_([fire, disorder], [0, len(day) - 1])] *= 3  # fireworks
    weights[np.ix_([hazard], [47, 48, 291, 292])] *= 7  # storms
    weights[np.ix_([traffic], [20, 21, 339])] *= 2.5  # black ice
    return odds(weights, bits=15)


def _hours(group: Codes, rng: np.random.Generator) -> Codes:
    """Each group has its hours, each type moves them a little; nights are longer at the weekend."""
    peaks = np.array([(10, 19), (14, 18), (18, 20), (9, 14), (8, 17), (9, 16), (13, 17), (23, 1), (10, 15)])
    calm = np.array([0.45, 0.25, 0.35, 0.20, 0.12, 0.30, 0.30, 0.12, 0.30])
    hour = np.arange(24)
    shift = rng.normal(0, 1.6, (len(group), 2))
    weights = np.empty((len(group), 2, 24))
    for weekend in (0, 1):
        when = peaks[group] + shift + 1.5 * weekend
        near = np.cos(2 * np.pi * (hour - when[:, :, None]) / 24)
        weights[:, weekend] = calm[group][:, None] * (1 + 0.4 * weekend) + np.exp(5 * (near - 1)).sum(axis=1)
    return odds(weights.reshape(-1, 24), bits=10)


def _priorities(group: Codes, rng: np.random.Generator) -> Codes:
    """Priority 1 is the most urgent; a type has one usual priority, and one beside it."""
    usual = np.array([1.2, 1.8, 0.6, 2.6, 1.3, 1.9, 1.6, 2.6, 3.4])[group]
    usual = np.clip(usual + rng.normal(0, 0.8, len(group)), 0, PRIORITIES - 1)
    apart = np.abs(np.arange(PRIORITIES) - usual[:, None])
    return odds(np.exp(-((apart / 0.55) ** 2)) + 0.004, bits=10)


def _channels() -> Codes:
    # Mobile, Landline, Alarm line, Care link, App
    kinds = np.array([[60, 26, 1, 4, 9], [88, 2, 0.5, 0.2, 9], [30, 40, 25, 0.5, 4.5], [6, 38, 12, 44, 0.2]])
    groups = np.ones((len(GROUPS), 5))
    groups[GROUPS.index("Alarm")] = [0.25, 0.4, 14, 2, 0.2]
    groups[GROUPS.index("Traffic")] = [2.5, 0.1, 0.02, 0.02, 2]
    groups[GROUPS.index("Disorder")] = [1.3, 0.8, 0.3, 0.2, 2.5]
    return odds((kinds[:, None] * groups[None]).reshape(-1, 5), bits=10)


def _minutes(way: Floats) -> NDArray[np.float32]:
    """Minutes to get ready, by priority, and for the way (km), by hour."""
    ready = np.array([3.2, 4.5, 7.0, 13.0, 24.0])
    slow = np.ones(24)
    slow[[7, 8, 9]] = slow[[16, 17, 18]] = 1.6
    slow[:5] = 0.8
    drive = np.array([1.5, 1.7, 2.3, 2.8, 3.2])[:, None, None] * way[None, :, None] * slow[None, None]
    return (ready[:, None, None] + drive).ravel().astype(np.float32)


def _no_help() -> NDArray[np.float32]:
    group = np.array([0.05, 0.05, 0.03, 0.30, 0.08, 0.10, 0.06, 0.22, 0.55])
    urgent = np.array([0.2, 0.5, 1.0, 1.5, 1.7])
    return np.asarray(0.02 + group[:, None] * urgent, dtype=np.float32).ravel()
