"""What Spark would take for more rows on more cores, from the processor time of two sizes that were measured.

    python -m tests.bench.predict --rows 1e6 5e6 --cpu 60 90 --cells 191746

The model: a session costs the same processor time whatever it reads; each row costs the same on every core, and all
cores are busy; each task that counts (one per slice of rows, and 4,096 at most) sends the counts of all cells, 8 bytes
each, to the tasks that sum them, one per block of cells, which sum as fast as this machine does. Left away: how long a
cluster takes to start executors and to hand out tasks, slow file systems, disks and networks of the shuffle,
stragglers, and units (which have a shuffle of their own).
"""

import argparse
import time

import numpy as np

from mechanisms.sensitive.engines.slices import SLICE_ROWS
from mechanisms.sensitive.engines.spark_counts import BLOCK, TASKS, blocks_of, sum_blocks

ROWS = (10**9, 10**10, 10**11)
CORES = (16, 64, 256, 1024)


def sum_bytes_per_second(repeats: int = 400) -> float:
    """How many bytes of dense counts one task sums in a second of processor time, measured here."""
    (block,) = blocks_of(np.arange(1, BLOCK + 1))
    began = time.process_time()
    list(sum_blocks([block] * repeats))
    return repeats * 8 * BLOCK / (time.process_time() - began)


def predicted(rows: int, cores: int, *, fixed: float, per_row: float, cells: int, summing: float) -> tuple[float, int]:
    """Seconds, and bytes that travel, of one encoding and one request for all pairs.

    Args:
        fixed: seconds before the first row.
        per_row: seconds of processor time.
        cells: of the request.
        summing: bytes per second and task.
    """
    travel = 8 * cells * min(-(-rows // SLICE_ROWS), TASKS)
    tasks = min(-(-cells // BLOCK), cores)
    return fixed + rows * per_row / cores + travel / tasks / summing, travel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, nargs=2, required=True, help="rows of the two measurements")
    parser.add_argument("--cpu", type=float, nargs=2, required=True, help="their seconds of processor time")
    parser.add_argument("--cells", type=int, required=True, help="cells of the request")
    given = parser.parse_args()
    per_row = (given.cpu[1] - given.cpu[0]) / (given.rows[1] - given.rows[0])
    fixed, summing = given.cpu[0] - given.rows[0] * per_row, sum_bytes_per_second()
    print(f"fixed {fixed:.0f} s, {per_row * 1e6:.2f} µs a row, sums {summing / 1e6:,.0f} MB/s a task")
    print("| rows | shuffle | " + " | ".join(f"{c:,} cores" for c in CORES) + " |")
    print("|---" * (2 + len(CORES)) + "|")
    for rows in ROWS:
        each = [predicted(rows, c, fixed=fixed, per_row=per_row, cells=given.cells, summing=summing) for c in CORES]
        times = " | ".join(f"{s:,.0f} s" if s < 600 else f"{s / 60:,.0f} min" for s, _ in each)
        print(f"| {rows:.0e} | {each[0][1] / 1e9:,.2g} GB | {times} |")


if __name__ == "__main__":
    main()
