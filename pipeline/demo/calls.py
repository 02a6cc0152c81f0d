"""Calls of the demo city, a chunk at a time: each chunk has callers and a random stream of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.demo.city import BLOCKS, LONGEST, PRIORITIES, City, Codes, weekday_of_day
from pipeline.demo.names import CHANNELS, GROUPS, NEIGHBOURHOODS, QUARTERS

#: Rows made at once.
CHUNK = 1 << 18
#: Odd, so that numbering callers in steps of it is one-to-one: ids in no order, and never the same twice.
STEP, IDS = 0x5851F42D4D, 1 << 40
NEIGHBOURLY = 0.72  # share of calls made at home
WEEKEND = 5  # the first of weekday's codes


@dataclass(frozen=True, eq=False)
class Calls:
    """One chunk of calls: arrays of one length.

    Attributes:
        caller_id: whole numbers.
        day: of the year, from 0.
        second: of the day.
        weekday, hour, neighbourhood, group, incident, channel: codes.
        block: neighbourhood · BLOCKS + corner.
        priority: 1 (most urgent) … 5.
        minutes: until help arrived, in tenths.
        no_minutes, no_place, no_channel: True where nobody wrote it down.
    """

    caller_id: NDArray[np.int64]
    day: Codes
    second: Codes
    weekday: Codes
    hour: Codes
    neighbourhood: Codes
    block: Codes
    group: Codes
    incident: Codes
    priority: Codes
    minutes: Codes
    channel: Codes
    no_minutes: NDArray[np.bool_]
    no_place: NDArray[np.bool_]
    no_channel: NDArray[np.bool_]


def chunks_of_calls(city: City, *, rows: int, seed: int) -> Iterator[Calls]:
    """All calls, chunk by chunk; no caller appears in two chunks."""
    for number, start in enumerate(range(0, rows, CHUNK)):
        rng = np.random.default_rng([seed, number])
        yield make_calls(city, size=min(CHUNK, rows - start), first_caller=start, rng=rng)


def make_calls(city: City, *, size: int, first_caller: int, rng: np.random.Generator) -> Calls:
    """One chunk of calls, in no order.

    Args:
        first_caller: number of the first caller; the chunk uses at most `size` numbers from there.
    """
    # A caller makes at least one call, so as many callers as rows are enough; the last one may lose a few calls.
    kinds = city.kind.draw(0, size, rng)
    calls = city.calls.draw(kinds, size, rng).astype(np.int64) + 1
    used = int(np.searchsorted(np.cumsum(calls), size)) + 1
    caller = np.repeat(np.arange(used, dtype=np.uint32), calls[:used])[:size]
    rng.shuffle(caller)
    homes = city.home.draw(kinds[:used], used, rng)
    kind, home = kinds[caller], homes[caller]

    elsewhere = city.away.draw(home, size, rng)
    neighbourhood = np.where(_happens(NEIGHBOURLY, size, rng), home, elsewhere)
    group = city.group.draw(kind * np.uint8(len(QUARTERS)) + city.quarter[neighbourhood], size, rng)
    place = group * np.uint16(len(NEIGHBOURHOODS)) + neighbourhood
    incident = city.incident.draw(place, size, rng)
    day = city.day.draw(group, size, rng)
    weekday = weekday_of_day()[day]
    hour = city.hour.draw(incident * np.uint16(2) + (weekday >= WEEKEND), size, rng)
    second = hour * np.int32(3600) + rng.integers(0, 3600, size, dtype=np.uint16)
    urgency = city.priority.draw(incident, size, rng)
    channel = city.channel.draw(kind * np.uint8(len(GROUPS)) + group, size, rng)
    route = (urgency * np.int32(len(NEIGHBOURHOODS)) + neighbourhood) * np.int32(24) + hour
    minutes = city.minutes[route] * city.spread[rng.integers(0, len(city.spread), size, dtype=np.uint16)]
    mobile = np.where(np.arange(len(CHANNELS)) == CHANNELS.index("Mobile"), 0.06, 0.01)
    return Calls(
        caller_id=(first_caller + caller.astype(np.int64)) * STEP % IDS,
        day=day,
        second=second,
        weekday=weekday,
        hour=hour,
        neighbourhood=neighbourhood,
        block=neighbourhood * np.uint16(BLOCKS) + rng.integers(0, BLOCKS, size, dtype=np.uint8),
        group=group,
        incident=incident,
        priority=urgency + np.uint8(1),
        minutes=np.rint(np.clip(minutes, 0.5, LONGEST) * 10).astype(np.int16),
        channel=channel,
        no_minutes=_happens(city.no_help[group * np.uint8(PRIORITIES) + urgency], size, rng),
        no_place=_happens(mobile.astype(np.float32)[channel], size, rng),
        no_channel=_happens(0.02, size, rng),
    )


def _happens(probability: float | NDArray[np.float32], size: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    return rng.random(size, dtype=np.float32) < probability
