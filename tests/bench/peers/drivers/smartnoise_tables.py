"""MST and AIM of SmartNoise Synthesizers; all columns categorical, nothing spent on preprocessing."""

from __future__ import annotations

import pandas as pd
from exchange import Request, request, said, write_codes
from snsynth import Synthesizer


def main(asked: Request) -> None:
    sizes = asked.domain
    frame = pd.read_csv(asked.files["real"])[list(sizes)]
    maker = Synthesizer.create(asked.method, epsilon=asked.epsilon, delta=asked.delta)
    made = maker.fit_sample(frame, preprocessor_eps=0.0, categorical_columns=list(sizes))
    write_codes(asked.files["output"], {n: made[n].to_numpy() for n in sizes})
    note = "it reads the categories from the data at no cost; it uses mbi 1.1.0, whose sampler loses dependences"
    said("smartnoise-synth", "mbi", "pandas", "torch", note=note)


if __name__ == "__main__":
    main(request())
