"""A hospital's table as it comes out of several programs over the years: nobody's rows, everybody's mistakes."""

from pathlib import Path

import numpy as np
import pandas as pd

WARDS = ["surgery", "medicine", "cardiology", "oncology", "icu", "maternity", "paediatrics"]
CODES = dict(zip(WARDS, ["W01", "W02", "W03", "W04", "W05", "W06", "W07"], strict=True))
YES = ["yes", "Yes", "YES", "y", "Y", "1", "true", "TRUE", " yes"]
NO = ["no", "No", "NO", "n", "N", "0", "false", "FALSE"]
INSURANCE = ["public", "private", "self-pay", "other"]


def _written(days: np.ndarray, german: np.ndarray) -> np.ndarray:
    moments = pd.Series(pd.Timestamp("2022-01-01") + pd.to_timedelta(days, unit="D"))
    return np.where(german, moments.dt.strftime("%d/%m/%Y"), moments.dt.strftime("%Y-%m-%d"))


def _money(amounts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    forms = rng.choice(4, len(amounts), p=[0.5, 0.25, 0.2, 0.05])
    texts = [(f"{a:.2f}", f"${a:,.2f}", f"€{a:,.2f}", "")[k] for a, k in zip(amounts, forms, strict=True)]
    return np.array(texts, object)


def messy_hospital(rows: int, seed: int = 3) -> pd.DataFrame:
    """22 columns: dates in two forms, money with signs, −999 and NA for gaps, 17 spellings of yes and no."""
    rng = np.random.default_rng(seed)
    patient = rng.integers(0, max(int(rows * 0.6), 1), rows)
    own = np.random.default_rng(seed + 1)
    birth = own.integers(-36_500, -200, int(patient.max()) + 1)[patient]
    sex = own.choice(["F", "M"], int(patient.max()) + 1)[patient]
    ward = rng.choice(WARDS, rows, p=[0.25, 0.3, 0.15, 0.1, 0.05, 0.1, 0.05])
    admitted, stay = rng.integers(0, 1000, rows), rng.geometric(np.where(ward == "icu", 0.1, 0.22), rows)
    german = rng.random(rows) < 0.3
    emergency = rng.random(rows) < np.where(ward == "icu", 0.8, 0.35)
    charges = stay * rng.lognormal(6.6, 0.5, rows)
    zips = np.array([f"{z:05d}" for z in own.integers(1000, 2800, 900)])
    table = pd.DataFrame(
        {
            "patient_id": [f"P{i:06d}" for i in patient],
            "admission_date": _written(admitted, german),
            "discharge_date": _written(admitted + stay, german),
            "birth_date": _written(birth, rng.random(rows) < 0.3),
            "age": (admitted - birth) // 365,
            "sex": sex,
            "zip": rng.choice(zips, rows),
            "city": rng.choice(["Łódź", "Zürich", "São Paulo", "O'Fallon", "St. \"J\""], rows),
            "ward": ward,
            "ward_code": [CODES[w] for w in ward],
            "diagnosis_code": [f"{c}{k:02d}.{d}" for c, k, d in zip(rng.choice(list("ABCEIJKM"), rows),
                               np.minimum(rng.geometric(0.12, rows), 60), rng.integers(0, 4, rows), strict=True)],
            "emergency": np.where(emergency, rng.choice(YES, rows), rng.choice(NO, rows)),
            "triage": rng.choice([1, 2, 3, 4, 5], rows),
            "length_of_stay": stay,
            "total_charges": _money(charges, rng),
            "paid": [f"{a:.2f}".replace(".", ",") for a in charges * rng.random(rows)],
            "lab_crp": np.round(rng.lognormal(1, 1, rows), 1),
            "insurance": rng.choice(INSURANCE, rows, p=[0.7, 0.2, 0.05, 0.05]),
            "fax": "",
            "hospital": "General Hospital",
            "email": [f"user{i}@example.org" for i in rng.integers(0, 10**9, rows)],
            "note": [f"seen by Dr {i}" for i in rng.integers(0, 10**6, rows)],
        }
    ).astype(object)  # fmt: skip
    shares = {"age": 0.01, "length_of_stay": 0.004, "lab_crp": 0.1, "sex": 0.02, "insurance": 0.01, "triage": 0.06}
    shares |= {"zip": 0.01, "discharge_date": 0.01, "patient_id": 0.005}
    gaps = {"triage": "NA", "discharge_date": "n/a", "patient_id": ""}
    for name, share in shares.items():
        table.loc[rng.random(rows) < share, name] = gaps.get(name, "-999")
    return table


def write_messy_hospital(path: Path, rows: int, seed: int = 3) -> Path:
    messy_hospital(rows, seed).to_csv(path, index=False)
    return path
