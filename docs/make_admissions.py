"""A made-up register of hospital admissions for the guide: nobody's rows; python docs/make_admissions.py FILE.csv"""

import argparse

import numpy as np
import pandas as pd

PATIENTS = 9000
WARDS = ["surgery", "medicine", "cardiology", "oncology", "icu"]


def register(rng: np.random.Generator) -> pd.DataFrame:
    """A row per admission; a patient comes back more than once, and some cells are empty or wrong."""
    stays = 1 + np.minimum(rng.geometric(0.62, PATIENTS) - 1, 30)
    who = rng.permutation(np.repeat(np.arange(PATIENTS), stays))
    n = who.size
    age = np.clip(rng.normal(58, 22, PATIENTS), 0, 103).astype(int)[who]
    sex = rng.choice(["F", "M"], PATIENTS, p=[0.54, 0.46])[who]
    ward = np.where(age < 16, "paediatrics", rng.choice(WARDS, n, p=[0.3, 0.35, 0.17, 0.12, 0.06]))
    ward = np.where((sex == "F") & (age > 17) & (age < 45) & (rng.random(n) < 0.35), "maternity", ward)
    days = rng.geometric(np.where(ward == "icu", 0.1, np.where(ward == "maternity", 0.35, 0.22)), n)
    admitted = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 366 * 24 * 60, n), unit="min")
    frame = pd.DataFrame(
        {
            "patient_id": [f"P{i:06d}" for i in who],
            "admitted": admitted.strftime("%d.%m.%Y %H:%M"),
            "age": age,
            "sex": np.where(rng.random(n) < 0.02, "unknown", sex),
            "ward": ward,
            "emergency": np.where(rng.random(n) < np.where(ward == "icu", 0.8, 0.35), "yes", "no"),
            "triage": rng.choice([1, 2, 3, 4, 5], n, p=[0.04, 0.16, 0.4, 0.3, 0.1]).astype(float),
            "length_of_stay": days,
            "cost": np.round(days * rng.lognormal(6.6, 0.4, n), 2),
            "note": [f"seen by Dr {i}" for i in rng.integers(0, 5000, n)],
        }
    )
    frame.loc[rng.random(n) < 0.06, "triage"] = np.nan
    frame.loc[rng.random(n) < 0.03, "cost"] = np.nan
    frame.loc[rng.random(n) < 0.01, "patient_id"] = ""
    frame.loc[rng.random(n) < 0.0006, "age"] = 999
    return frame


if __name__ == "__main__":
    form = argparse.ArgumentParser(description=__doc__)
    form.add_argument("file", help="the CSV that is written")
    register(np.random.default_rng(7)).to_csv(form.parse_args().file, index=False)
