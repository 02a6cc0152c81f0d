"""A made-up register of patients who come back, for the guide: nobody's rows; python docs/make_patients.py FILE.csv"""

import argparse

import numpy as np
import pandas as pd

PATIENTS = 2500
WARDS = ["surgery", "medicine", "cardiology", "oncology", "icu"]


def register(rng: np.random.Generator) -> pd.DataFrame:
    """A row per admission, by date; a patient mostly comes back to the same ward, and some cells are empty or wrong."""
    stays = np.minimum(rng.geometric(0.45, PATIENTS), 15)
    sex = rng.choice(["F", "M"], PATIENTS, p=[0.54, 0.46])
    born = np.clip(rng.normal(1962, 20, PATIENTS), 1921, 2023).astype(int)
    district = rng.choice([f"D{i:02}" for i in range(1, 13)], PATIENTS)
    own = rng.choice(WARDS, PATIENTS, p=[0.3, 0.35, 0.17, 0.12, 0.06])
    who = np.repeat(np.arange(PATIENTS), stays)
    n = who.size
    starts = np.cumsum(stays) - stays
    day, gaps = rng.integers(0, 1000, PATIENTS), rng.geometric(0.012, n)
    gaps[rng.random(n) < 0.04] = 0  # moved to another ward on the same day
    passed = np.cumsum(gaps)
    admitted = np.minimum(day[who] + passed - passed[starts][who], 4 * 365)
    frame = pd.DataFrame(
        {
            "patient_id": [f"P{i:06d}" for i in who],
            "sex": sex[who],
            "born": [f"{year // 10 * 10}s" for year in born[who]],
            "district": district[who],
            "admitted": (pd.Timestamp("2020-01-01") + pd.to_timedelta(admitted, unit="D")).strftime("%Y-%m-%d"),
            "ward": np.where(rng.random(n) < 0.7, own[who], rng.choice(WARDS, n)),
            "emergency": np.where(rng.random(n) < 0.35, "yes", "no"),
            "length_of_stay": np.minimum(rng.geometric(0.2, n), 90),
        }
    )
    frame.loc[rng.random(n) < 0.004, "sex"] = "F"
    frame.loc[rng.random(n) < 0.01, "patient_id"] = ""
    return frame.sort_values("admitted", kind="stable")


if __name__ == "__main__":
    form = argparse.ArgumentParser(description=__doc__)
    form.add_argument("file", help="the CSV that is written")
    register(np.random.default_rng(7)).to_csv(form.parse_args().file, index=False)
