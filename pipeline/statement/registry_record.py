"""deployment.yaml: the draft of a record for the OpenDP and NIST registry of differential privacy deployments.

Its fields are those of the registry's template (opendp/deployments-registry-data on GitHub, September 2026).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import yaml

from mechanisms.public.release import said_not_ours
from pipeline.statement.hazards import shown_original

NEIGHBOURS = {
    "add_remove": "Two tables are neighbours if one has all records of one unit more than the other.",
    "replace": "Two tables are neighbours if the records of one unit are replaced by others of the same unit.",
}
MECHANISMS = {"gaussian": "Gaussian noise", "laplace": "Laplace noise", "exponential": "exponential mechanism"}


def registry_record(statement: Mapping[str, Any]) -> str:
    """The record as YAML; what only people know is listed on top and stands as a text to replace.

    Args:
        statement: the content of privacy.json, version 2. One that is not private gets no privacy loss in its record.
    """
    published = statement["published"]
    left = [name for name in ("publisher", "publisher_type", "date", "intended_use", "region") if not published[name]]
    head = ["# A draft for the registry of differential privacy deployments, made from privacy.json."]
    if left:
        head.append(f"# Fill in by hand, or by settings: {', '.join(f'statement.{name}' for name in left)}")
    if not statement["private"]:
        head.append("# NOT PRIVATE: this release makes no promise; do not register it.")
    deployment: dict[str, Any] = {"basic": _basic(statement)}
    if statement["private"]:
        deployment |= {
            "dp_variant": _variant(statement),
            "privacy_loss": _loss(statement),
            "deployment_model": _model(),
        }
        deployment["implementation"] = _implementation(statement)
    tier = 3 if statement["private"] and not left else 1
    authors = [published["publisher"] or "to be filled in"]
    deployment["administrative"] = {"status": "Draft", "registry_authors": authors, "tier": tier}
    slug = re.sub(r"[^a-z0-9]+", "-", f"synthetic {statement['table']}".lower()).strip("-")
    record = {"url_slug": slug, "deployment": deployment}
    text = yaml.dump(record, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)
    return "\n".join(head) + "\n" + str(text)


def _basic(statement: Mapping[str, Any]) -> dict[str, Any]:
    published = statement["published"]
    kind = "Differentially private synthetic" if statement["private"] else "Synthetic, NOT private"
    return {
        "name": f"Synthetic {statement['table']}",
        "data_curators": [
            {
                "data_curator_name": published["publisher"] or "to be filled in",
                "data_curator_type": published["publisher_type"] or "Government",
            }
        ],
        "description": f"{kind} table of {statement['table']}, with the noisy marginals that it was made from.",
        "intended_use": published["intended_use"] or "to be filled in",
        "data_product_type": "Synthetic data",
        "data_product_region": published["region"] or "to be filled in",
        "publication_date": published["date"] or "1900-01-01",
    }


def _variant(statement: Mapping[str, Any]) -> dict[str, Any]:
    if statement["guarantee"]["delta"] == 0:
        name = "Pure DP"
    else:
        name = "Zero-concentrated DP" if "rho" in statement["original"] else "Approximate DP"
    return {
        "variant_name": name,
        "data_domain": f"Tables with the columns and values that the public schema of {statement['table']} declares.",
        "unprotected_quantities": _lines(["Taken as public:", *(f"- {fact}" for fact in statement["public_facts"])]),
    }


def _loss(statement: Mapping[str, Any]) -> dict[str, Any]:
    promise = statement["guarantee"]
    parameters: dict[str, float] = {"epsilon": promise["epsilon"]}
    if promise["delta"] > 0:
        parameters["delta"] = promise["delta"]
    if "rho" in statement["original"]:
        parameters["rho"] = statement["original"]["rho"]
    others = ", ".join(f"ε = {e:.4g} at δ = {d}" for d, e in statement["epsilon_at"].items() if e is not None)
    groups = ", ".join(
        f"{g['units']} units: ε = {g['epsilon']:.4g}, δ = {g['delta']:.3g}"
        for g in statement["group_privacy"]
        if g["epsilon"] is not None
    )
    details = [shown_original(statement), f"The same by the accountant at other δ: {others}.", f"Groups: {groups}."]
    bound = f"At most C = {statement['max_records']} records of a unit count: {statement['clip']}."
    return {
        "privacy_unit": statement["unit"],
        "privacy_unit_details": _lines([NEIGHBOURS[statement["neighbouring"]], bound, f"{statement['missing_unit']}."]),
        "privacy_parameters": parameters,
        "privacy_parameters_details": _lines([d for d in details if d]),
    }


def _model() -> dict[str, Any]:
    return {
        "model_name": "Central",
        "model_name_details": "The curator holds the rows and runs the pipeline; only the release leaves.",
        "actors": "The curator, who is trusted with the rows, and everybody who reads the release.",
        "release_type": "One release",
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    }


def _implementation(statement: Mapping[str, Any]) -> dict[str, Any]:
    counted = Counter(MECHANISMS.get(e["mechanism"], e["mechanism"]) for e in statement["events"])
    charges = "; ".join(f"{name}: {number} charges" for name, number in counted.items())
    before = [f"Rows set aside before counting: {statement['holdout']}.", "Bounds, bins and categories are declared."]
    outside = statement["outside"] or ["nothing beyond what the documentation lists for every run"]
    mechanisms = [
        f"{charges}.",
        f"Noise from {statement['noise_source']}, on a lattice.",
        f"Software: dp-synthesis-pipeline {statement['versions'].get('pipeline', '')}.",
        "Running time and memory are not protected against.",
        *(f"Not covered by the audit of this software: {part}." for part in said_not_ours(statement.get("not_ours"))),
    ]
    return {
        "preprocessing_and_hyperparameter_tuning": _lines(before),
        "mechanisms": _lines(mechanisms),
        "composition": f"{statement['accountant']}: {statement['conversion']}",
        "post_processing": "Noisy answers are made consistent and rows are made from them; no row is looked at again.",
        "justification": _lines(["Outside of the promise:", *(f"- {fact}" for fact in outside)]),
    }


def _lines(parts: list[str]) -> str:
    return "\n".join(part.strip() for part in parts) + ("\n" if len(parts) > 1 else "")


class _Dumper(yaml.SafeDumper):
    """Several lines stand as a block, so that a reader sees them as they are."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(str, _Dumper.represent_text)
