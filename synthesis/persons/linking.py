"""stub for the founder's trial; replaced"""

from dataclasses import dataclass
import numpy as np


@dataclass
class Linked:
    members: object
    starts: object
    time_of: object
    constants: object


def linked_persons(table, times, unit, columns, answers, *, seed, move_times=True, progress=None):
    n = table.rows
    starts = np.append(np.arange(0, n, 3), n)
    return Linked(np.arange(n), starts, np.arange(n), np.zeros((len(unit.constant), starts.size - 1), np.int32))
