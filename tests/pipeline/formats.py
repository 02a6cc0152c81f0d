"""The JSON Schema of each released file, and what a release departs from."""

import json
from functools import cache
from pathlib import Path

import yaml
from jsonschema import Draft202012Validator

from mechanisms.public.schema.table_schema import load_schema
from pipeline.statement import papers

FORMATS = Path(papers.__file__).parent / "formats"
#: Schema → the file of a release that it is of; the signature is there with a key alone.
FILES = {"privacy": "privacy.json", "manifest": "manifest.json", "signature": "signature.json"}
FILES |= {"measurements": "measurements/index.json", "schema": "schema.yaml"}
FILES |= {"croissant": "croissant.json", "deployment": "deployment.yaml"}


@cache
def validator(name: str) -> Draft202012Validator:
    content = yaml.safe_load((FORMATS / f"{name}.schema.yaml").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(content)
    return Draft202012Validator(content)


def content_of(path: Path):
    """A JSON or YAML file; of a schema its fields, whose texts may look like numbers to other readers."""
    if path.name == "schema.yaml":
        return json.loads(json.dumps(load_schema(path).to_fields()))
    return (yaml.safe_load if path.suffix == ".yaml" else json.loads)(path.read_text(encoding="utf-8"))


def problems(name: str, content) -> list[str]:
    return [f"{name}{error.json_path[1:]}: {error.message[:200]}" for error in validator(name).iter_errors(content)]


def departures(release: Path) -> list[str]:
    """Where the files of a release depart from their schemas."""
    there = {name: release / file for name, file in FILES.items() if (release / file).exists()}
    return [problem for name, path in there.items() for problem in problems(name, content_of(path))]
