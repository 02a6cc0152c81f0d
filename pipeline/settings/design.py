"""What follows from specs and a schema before any row is read; the same once nothing of the schema is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from evaluation.metrics import ScoreSpec
from mechanisms.accounting.autodp_check import check_with_autodp
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.plugin_costs import check_costs
from mechanisms.public.discovery.discovered_columns import possible
from mechanisms.public.discovery.discovery_questions import VALUES
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.schema.table_schema import Schema, column_fields, parse_schema
from mechanisms.public.tables.format_trial import released_format
from mechanisms.selection.selections import method_of
from pipeline.folders import RunFolder, not_in_release
from pipeline.plugins.offers import offered_by
from pipeline.settings import build
from pipeline.settings.config import Config
from pipeline.settings.inputs import check_inputs
from pipeline.settings.memory import check_disk, check_memory
from pipeline.settings.methods import usable_synthesizer
from pipeline.settings.scoring import scores_of_run
from pipeline.settings.specs import Specs, as_released, build_specs, two_tables
from pipeline.statement.signing import Signer, WhoPublishes, build_publication, load_signer
from pipeline.statement.statement import Start, start_in


@dataclass(frozen=True, eq=False)
class Design:
    """What a run measures, checked before anything is charged for it.

    Attributes:
        places: columns of longitude and latitude.
        left_out: as of `Run`.
        gave_way: what had to give way to what was discovered, a sentence each.
    """

    specs: Specs
    schema: Schema
    plan: Plan
    scoring: ScoreSpec | None
    places: tuple[str, str] | None
    left_out: tuple[str, ...]
    gave_way: tuple[str, ...] = ()


def whole_design(config: Config) -> Design:
    """The design that the settings alone make; whatever the schema leaves open is planned too.

    Raises:
        UserError: any mistake of the settings or the schema.
    """
    specs = build_specs(config)
    return design_of(specs, build.build_schema(specs))


def design_of(specs: Specs, schema: Schema, discovery: Plan | None = None) -> Design:
    """The plan and all that is looked up in the schema.

    Args:
        discovery: as of `build_plan`.
    Raises:
        UserError: any mistake of the settings or the schema.
    """
    config, workload = specs.config, build.build_workload(specs, schema)
    plan = build.build_plan(specs, workload, schema, discovery)
    check_costs(plan.accountant, plan.composed, plan.loss)
    check_with_autodp(plan.accountant, plan.composed, plan.loss)
    if plan.discovery is not None and specs.discovers_bound:  # what C may become is refused here, not after its charge
        design_of(specs.with_bound(config.privacy.max_records_cap), schema, plan.discovery)
    if plan.discovery is not None and discovery is None:
        _check_least(specs, schema, plan.discovery)
    scored = scores_of_run(config, schema)
    check_memory(specs, schema, plan)
    return Design(specs, schema, plan, *scored, tuple(build.left_out_texts(specs, schema, workload)))


def _check_least(specs: Specs, schema: Schema, discovery: Plan) -> None:
    """Refuse, before anything is charged, what is impossible where no value at all is found in any open column.

    With more values there is always a way (`concrete`): columns of which values are found then have one or more.

    Raises:
        UserError: the settings ask for nothing but such columns, or cannot be met without them.
    """
    names = [c.name for c in schema.to_discover if c.discover is not None and c.discover.values]
    rest = [c for c in schema.columns if c.name not in names and not c.constant]
    if not names or not rest:
        return
    nothing = {"kind": "constant", "value": "", "discovered": [VALUES]}
    least = with_columns(schema, dict.fromkeys(names, nothing))
    try:
        design_of(specs.without_columns(names), least, discovery)
    except UserError as fault:
        problem = f"{fault.what} (where no value of {', '.join(names)} is found, which noise decides)"
        raise UserError(problem, where=fault.where, fix=fault.fix) from fault


def concrete(specs: Specs, schema: Schema, discovery: Plan, max_records: int | None = None) -> Design:
    """The design for the schema as discovered, whatever that was, since it is paid for.

    A column of which no value was found leaves the marginals that name it. Where the marginals that are asked for would
    be too large, fewer of the values that were found are listed, half as many each time; the others are *other*.
    Of columns whose bounds were found, bins become fewer likewise.

    Args:
        max_records: C, where it was discovered.

    Guarantee: all is public by now, or follows from noisy answers.
    """
    empty = [c.name for c in schema.columns if c.constant and "values" in c.discovered]
    specs, gave_way = specs.with_bound(max_records).without_columns(empty), []
    if empty:
        gave_way.append(f"no value of {', '.join(empty)} was found beyond the noise: marginals are measured without")
    large = [c for c in schema.columns if c.discovered in (("values",), ("bounds",)) and not c.constant]
    fewer = max((c.value_codes for c in large), default=0)
    while True:
        listed = {
            c.name: possible(c, own, [{"values": list(c.values[:fewer])} if c.values else {"bins": {"count": fewer}}])
            for c, own in ((c, column_fields(c)) for c in large)
            if c.value_codes > fewer
        }
        try:
            discovered = with_columns(schema, listed)
            if max_records is not None:
                discovered = replace(discovered, rules=discovered.rules.counting(max_records, discovered=True))
            design = design_of(specs, build.with_fine(specs, discovered), discovery)
            break
        except UserError:
            if fewer <= 1:
                raise
            fewer //= 2
    if listed:
        gave_way.append(
            f"only the first {fewer:,} values of {', '.join(listed)} are listed, or so many bins made: "
            "more make marginals too large"
        )
    return replace(design, gave_way=tuple(gave_way))


def with_columns(schema: Schema, declarations: Mapping[str, Json]) -> Schema:
    """The schema with these declarations in the place of its own, read anew."""
    content = schema.to_fields()
    for name, declaration in declarations.items():
        content["columns"][name] = dict(declaration)
    return parse_schema(content, where=f"{schema.name}, as discovered") if declarations else schema


def ready(specs: Specs, schema: Schema, plan: Plan, root: Path) -> tuple[Start | None, WhoPublishes, Signer | None]:
    """What the settings ask for beside the plan, looked up and checked; as `State` has it.

    Args:
        root: the run's folder, which need not exist.
    Raises:
        UserError: an impossible setting, a library or a key that is not there, or rows that the disk cannot hold.
    """
    config = specs.config
    check_inputs(config)  # before a log holds an address
    for setting, place in _private_places(specs.engine):  # a killed run leaves its copies there
        not_in_release(Path(place.removeprefix("file:")), setting, of=root)
    released_format(config.release.format)
    as_released(config.release, schema)
    two_tables(config.release, schema)
    usable_synthesizer(config.synthesis, specs.synthesizer)
    check_disk(specs, schema, root)
    start = start_in(config.synthesis, discovering=plan.discovery is not None)
    return start, build_publication(config.statement), load_signer(config.statement.key)


#: Settings of Spark that name where it spills rows, and logs what it does with them.
SPILLED = ("spark.local.dir", "spark.eventLog.dir")


def _private_places(engine: object) -> list[tuple[str, str]]:
    """Settings of an engine and the folders of private rows that they name."""
    scratch, given = getattr(engine, "scratch", None), getattr(engine, "settings", None)
    own = [str(given[n]) for n in SPILLED if n in given] if isinstance(given, Mapping) else []
    spilled = [("engine.settings", place) for places in own for place in places.split(",")]
    return spilled if scratch is None else [("engine.scratch", str(scratch)), *spilled]


#: What may differ between a run and its continuation, whatever is there; a ledger's limit has a command of its own.
FREE = ("resume", "limits", "plan", "engine", "console", "format", "quiet")


def bound_settings(config: Config) -> JsonDict:
    """The settings that a run is known by, and that a continuation shares but for `post_processing`.

    A plugin's engine is one of them: a release names it, also where another one went on.
    """
    free = {*FREE} - ({"engine"} if ("engine", config.engine.kind) in offered_by else set())
    settings = {name: value for name, value in asdict(config).items() if name not in free}
    del settings["budget"]["limit"]
    return settings


def post_processing(config: Config, plan: Plan, folder: RunFolder) -> Callable[[str], bool]:
    """Whether a fact of a run's manifest, by its name, may be another one when the run goes on.

    Fixed stays whatever enters a charge or reads rows: who is set aside for scores, a public start (which is compared
    with the private table), the synthesizer's settings where its model is fitted between the rounds of a selection, and
    all of the synthesis where `accept` compares its rows with the private ones. Once there is a release, its rows were
    looked at: another one from the same answers would be a choice by scores, also where it is gone by now. Its papers
    stay as they are while it is there.
    """
    between = method_of(plan.method).graphical

    def may_change(name: str) -> bool:
        """Whether a setting enters no charge and reads no row."""
        group, _, setting = name.removeprefix("settings.").partition(".")
        if group == "evaluation":
            return setting != "holdout"
        if group == "statement":
            return not folder.release.exists()
        if folder.released or group not in ("release", "synthesis"):
            return False
        if group == "release" or config.accept:
            return group == "release"
        return setting in ("rows", "seed") if between else setting != "options.public"

    return may_change
