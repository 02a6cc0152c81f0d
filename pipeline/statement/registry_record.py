"""deployment.yaml: the draft of a record for the OpenDP and NIST registry of differential privacy deployments."""

from __future__ import annotations

import re
from collections import Counter

import yaml

from mechanisms.public.json_values import Json
from mechanisms.public.release import said_not_ours
from pipeline.statement.condition_words import only_rows_with
from pipeline.statement.words import all_words, text_of


def registry_record(statement: Json, *, given: Json | None = None) -> str:
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
    text = text_of(
        "deployment.yaml.j2",
        said=statement,
        words=all_words(statement),
        charges=Counter(e["mechanism"] for e in statement["events"]),
        others=said_not_ours(statement.get("not_ours")),
        part=only_rows_with(given),
        slug=re.sub(r"[^a-z0-9]+", "-", f"synthetic {statement['table']}".lower()).strip("-"),
        left=left,
    )
    record = yaml.dump(yaml.safe_load(text), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)
    return "\n".join(head) + "\n" + str(record)


class _Dumper(yaml.SafeDumper):
    """Several lines stand as a block, so that a reader sees them as they are."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    def ignore_aliases(self, data: object) -> bool:
        return True


_Dumper.add_representer(str, _Dumper.represent_text)
