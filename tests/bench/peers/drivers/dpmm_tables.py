"""MST and AIM of dpmm on codes: its own preprocessing, which would cost extra, is off."""

from __future__ import annotations

import pandas as pd
from dpmm.pipelines.aim import AIMPipeline
from dpmm.pipelines.mst import MSTPipeline
from exchange import Request, request, said, write_codes


def main(asked: Request) -> None:
    sizes = asked.domain
    frame = pd.read_csv(asked.files["real"])[list(sizes)]
    kind = MSTPipeline if asked.method == "mst" else AIMPipeline
    maker = kind(epsilon=asked.epsilon, delta=asked.delta, disable_processing=True, n_jobs=1)
    maker.fit(frame, domain=sizes)
    made = maker.generate(n_records=len(frame))
    write_codes(asked.files["output"], {n: made[n].to_numpy() for n in sizes})
    said("dpmm", "numpy", "pandas", note="makes as many rows as the real table has: it is given their exact number")


if __name__ == "__main__":
    main(request())
