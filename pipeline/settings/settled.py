"""Once nothing is open: settings and a schema that fit each other whatever was discovered, since it is paid for."""

from __future__ import annotations

from mechanisms.accounting.plan import Plan
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema, column_fields
from pipeline.settings import build
from pipeline.settings.config import Config
from pipeline.settings.discovering_settings import with_bound, with_columns, without_columns
from pipeline.settings.prepared import Prepared, prepared


def settled(
    config: Config, schema: Schema, discovery: Plan, max_records: int | None = None
) -> tuple[Config, Prepared, list[str]]:
    """The settings and the plan for the schema as discovered, and what had to give way, a sentence each.

    A column of which no value was found leaves the marginals that name it. Where the marginals that are asked for would
    be too large, fewer of the values that were found are listed, half as many each time; the others are *other*.

    Args:
        max_records: C, where it was discovered.

    Guarantee: all is public by now, or follows from noisy answers.
    """
    config = config if max_records is None else with_bound(config, max_records)
    empty = [c.name for c in schema.columns if c.constant and "values" in c.discovered]
    config, said = without_columns(config, empty), []
    if empty:
        said.append(f"no value of {', '.join(empty)} was found beyond the noise: marginals are measured without")
    found = {c.name: c for c in schema.columns if "values" in c.discovered and not c.constant}
    most = max((len(c.values) for c in found.values()), default=0)
    fewer = most
    while True:
        listed = {
            n: column_fields(c) | {"values": list(c.values[:fewer])} for n, c in found.items() if len(c.values) > fewer
        }
        try:
            made = prepared(config, build.with_fine(config, with_columns(schema, listed)), discovery)
            break
        except UserError:
            if fewer <= 1:
                raise
            fewer //= 2
    if listed:
        said.append(f"only the first {fewer:,} values of {', '.join(listed)} are listed: more make marginals too large")
    return config, made, said
