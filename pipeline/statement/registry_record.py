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
from pipeline.statement.condition_words import only_rows_with
from pipeline.statement.words import about, sentence, words_of

MECHANISMS = {"gaussian": "Gaussian noise", "laplace": "Laplace noise", "exponential": "exponential mechanism"}


def registry_record(statement: Mapping[str, Any], *, given: Mapping[str, Any] | None = None) -> str:
    """The record as YAML; what only people know is listed on top and stands as a text to replace.

    Args:
        statement: the content of privacy.json. One that is not private gets no privacy loss in its record.
        given: what its rows were asked to satisfy (see `Manifest`), or None.
    """
    published = statement["published"]
    left = [name for name in ("publisher", "publisher_type", "date", "intended_use", "region") if not published[name]]
    head = ["# A draft for the registry of differential privacy deployments, made from privacy.json."]
    if left:
        head.append(f"# Fill in by hand, or by settings: {', '.join(f'statement.{name}' for name in left)}")
    if not statement["private"]:
        head.append("# NOT PRIVATE: this release makes no promise; do not register it.")
    deployment: dict[str, Any] = {"basic": _basic(statement, given)}
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


def _basic(statement: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
    published = statement["published"]
    kind = "Differentially private synthetic" if statement["private"] else "Synthetic, NOT private"
    table = f"{statement['table']}{only_rows_with(given)}"
    return {
        "name": f"Synthetic {table}",
        "data_curators": [
            {
                "data_curator_name": published["publisher"] or "to be filled in",
                "data_curator_type": published["publisher_type"] or "to be filled in",
            }
        ],
        "description": f"{kind} table of {table}, with the noisy marginals that were measured.",
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
        "data_domain": f"Tables with the columns that the public schema of {statement['table']} declares. "
        f"{about('declared_bounds', statement)}",
        "unprotected_quantities": _lines(["Taken as public:", *_listed(words_of(statement)["public_facts"])]),
    }


def _loss(statement: Mapping[str, Any]) -> dict[str, Any]:
    promise, words = statement["guarantee"], words_of(statement)
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
    others = f"The same by the accountant at other δ: {others}." if others else ""
    details = [sentence("original", statement), others, f"Groups: {groups}."]
    details += [f"Warning: {warning}." for warning in words["warnings"]]
    bound = f"At most C = {statement['unit']['max_records']} records of a unit count: {words['clip']}."
    said = [words["unit_ids"], words["missing_unit"]]
    tables = sentence("neighbours", statement["neighbouring"])
    if statement["unit"]["column"] is not None:
        said.append(about("max_records_from", statement))
    return {
        "privacy_unit": words["unit"],
        "privacy_unit_details": _lines([tables, bound, *(f"{s}." for s in said if s)]),
        "privacy_parameters": parameters,
        "privacy_parameters_details": _lines([d for d in details if d]),
    }


def _model() -> dict[str, Any]:
    return {
        "model_name": "Central",
        "model_name_details": "The curator holds the rows and runs the pipeline, on machines that it trusts; only the "
        "release leaves.",
        "actors": "The curator, who is trusted with the rows as its machines are, and everybody who reads the release.",
        "release_type": "One release",
        "data_source_type": "Static",
        "access_type": "Non-interactive",
    }


def _implementation(statement: Mapping[str, Any]) -> dict[str, Any]:
    words = words_of(statement)
    counted = Counter(MECHANISMS.get(e["mechanism"], e["mechanism"]) for e in statement["events"])
    charges = "; ".join(f"{name}: {number} charge{'s' * (number != 1)}" for name, number in counted.items())
    before = [f"Rows set aside before counting: {words['holdout']}.", about("declared_bounds", statement)]
    if chosen := statement["selection"]:
        released = sentence("released", chosen)
        before.append(f"Released: one of several tries ({released}); ε and δ are those of all tries.")
    outside = [*words["outside"], about("never_covered", statement)]
    mechanisms = [
        f"{charges}.",
        f"Noise from {words['noise_source']}, on a lattice.",
        f"Software: dp-synthesis-pipeline {statement['versions'].get('pipeline', '')}.",
        "Running time and memory are not protected against.",
        *(f"Not covered by the audit of this software: {part}." for part in said_not_ours(statement.get("not_ours"))),
    ]
    return {
        "preprocessing_and_hyperparameter_tuning": _lines(before),
        "mechanisms": _lines(mechanisms),
        "composition": f"{statement['accountant']}: {words['conversion']}",
        "post_processing": about("how_rows_were_made", statement),
        "justification": _lines(["Outside of the promise:", *_listed(outside)]),
    }


def _listed(sentences: list[str]) -> list[str]:
    return [f"- {one}" for one in sentences]


def _lines(parts: list[str]) -> str:
    return "\n".join(part.strip() for part in parts) + ("\n" if len(parts) > 1 else "")


class _Dumper(yaml.SafeDumper):
    """Several lines stand as a block, so that a reader sees them as they are."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(str, _Dumper.represent_text)
