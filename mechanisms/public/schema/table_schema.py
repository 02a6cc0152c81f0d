"""Schema: the public facts about a table, from YAML, JSON, or a plain domain file; written back as YAML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError, require_columns, together
from mechanisms.public.rules.calendar_parts import named_parts, part_columns
from mechanisms.public.rules.computed import check_mapped, length_columns, with_fine_lengths
from mechanisms.public.rules.engineering import Engineering, build_engineering
from mechanisms.public.rules.structural_zeros import Zeros
from mechanisms.public.rules.table_rules import RULES, Rules, of_codes, parse_rules
from mechanisms.public.rules.transforms import FINE
from mechanisms.public.schema.code_labels import written_bins, written_bound
from mechanisms.public.schema.column import ORDERED_KINDS, Column
from mechanisms.public.schema.column_parse import parse_column
from mechanisms.public.schema.dialect import PLAIN, Dialect, parse_dialect
from mechanisms.public.schema.discover_fields import (
    FieldDict,
    as_text,
    check_fields,
    check_rules,
    discover_fields,
    text_list,
    texts_in,
    true_or_false,
)
from mechanisms.public.schema.fine_cells import finest, plain_edges
from mechanisms.public.schema.hierarchy_fields import relation_fields
from mechanisms.public.schema.places import place_fields
from mechanisms.public.schema.schema_text import (
    alone,
    check_alone,
    check_source,
    dump_yaml,
    lies_in_release,
    names_the_table,
    schema_content,
)
from mechanisms.public.schema.spellings import (
    constant_fields,
    flag_fields,
    parse_gaps,
    reading_fields,
    spelling_fields,
    with_gaps,
    zip_fields,
)

TOP = ("name", "source", "confirmed_public", "dialect", "gaps", "columns", "leave_out", *RULES)


@dataclass(frozen=True)
class Schema:
    """Public facts about a table; holds no row.

    Attributes:
        name: of the table.
        columns: in the order in which the table is released.
        leave_out: known columns of the table that are ignored.
        source: where the public facts come from.
        confirmed_public: whether a person has written in the file that all of this is public knowledge.
        rules: what follows from what, what cannot be, and who synthetic rows belong to.
        dialect: how the table's CSV file is written, and that of a release.
    """

    name: str
    columns: tuple[Column, ...]
    leave_out: tuple[str, ...] = ()
    source: str = ""
    confirmed_public: bool = False
    rules: Rules = field(default_factory=Rules)
    dialect: Dialect = PLAIN

    @cached_property
    def domain(self) -> Domain:
        """Names and sizes of the codes of the table's columns."""
        return Domain(tuple(c.attribute for c in self.columns))

    @property
    def held(self) -> tuple[Column, ...]:
        """The columns that the table has: all but parts of dates and times, and lengths between them."""
        return tuple(c for c in self.columns if not c.cell_of)

    @property
    def with_lengths(self) -> tuple[Column, ...]:
        """The columns that the table has, and the lengths between its times."""
        return tuple(c for c in self.columns if c.between or not c.cell_of)

    @cached_property
    def engineering(self) -> Engineering:
        """The steps between the table's columns and what is measured."""
        alone = [c.name for c in self.columns if c.one_way_only] + [m.target for m in self.rules.mapped]
        engineering = build_engineering(self.domain, self.rules.steps, self.rules.of_records, alone)
        check_mapped(self.rules.mapped, self.domain, engineering.measured)
        return engineering

    @cached_property
    def measured(self) -> Domain:
        """Names and sizes of what is measured: `synthesized`, and the fine columns behind it."""
        return Domain((*self.synthesized.attributes, *self.fine.values()))

    @property
    def synthesized(self) -> Domain:
        """Names and sizes of what is synthesized: `domain`, where the schema declares no step."""
        return self.engineering.measured

    @cached_property
    def finest(self) -> Schema:
        """The columns with their fine cells in the place of their bins, without rules."""
        return Schema(self.name, tuple(finest(c) for c in self.columns), self.leave_out)

    @cached_property
    def fine(self) -> Mapping[str, Attribute]:
        """Column → the attribute of its fine cells, which is measured alone; only columns that have any."""
        pairs = zip(self.columns, self.finest.columns, strict=True)
        return {c.name: replace(f.attribute, name=c.name + FINE) for c, f in pairs if f is not c}

    @property
    def shaped(self) -> tuple[str, ...]:
        """Columns that noise is cleared from: with fine cells, or with bins as fine as they would be."""
        asked = [c.name for c in self.columns if c.fine and plain_edges(c) is not None]
        return tuple(n for n in asked if n in self.fine or as_a_column(self, n))

    @property
    def zeros(self) -> tuple[Zeros, ...]:
        """Structural zeros over `synthesized`: cliques, each with a truth value per cell (flat, C order)."""
        return self.engineering.zeros

    @property
    def to_discover(self) -> tuple[Column, ...]:
        """Columns of which a run finds something out with noise; until then they are as a plan assumes them."""
        return tuple(c for c in self.columns if c.discover is not None)

    def __getitem__(self, name: str) -> Column:
        return self.columns[self.domain.index(name)]

    def to_fields(self) -> FieldDict:
        """The schema as a mapping that `parse_schema` reads back."""
        top: FieldDict = {"name": self.name, "source": self.source, "confirmed_public": self.confirmed_public}
        top |= {"dialect": self.dialect.fields} if self.dialect.fields else {}
        top["columns"] = {c.name: column_fields(c) for c in self.held}
        if self.leave_out:
            top["leave_out"] = list(self.leave_out)
        return top | with_fine_lengths(dict(self.rules.declared), self.columns)

    def to_yaml(self) -> str:
        """The schema as YAML that `load_schema` reads back; this text is released."""
        return dump_yaml(self.to_fields())


def load_schema(path: Path) -> Schema:
    """A schema from a file: YAML, JSON, or a plain domain JSON (column → size, all categorical).

    With `base: FILE` it starts from the schema in another file: its own fields count, and of each column those that it
    names anew. Both files must set confirmed_public: the base does not know what is added to it.
    One that lies in a release opens no other file, whichever command reads it.

    Raises:
        UserError: the file is absent, not readable, or says something that cannot be; names file, column and field.
    """
    path = Path(path)
    if lies_in_release(path):
        with alone():
            return _loaded(path)
    return _loaded(path)


def _loaded(path: Path) -> Schema:
    content = schema_content(path)
    if content.get("base") is not None and isinstance(content.get("columns", {}), Mapping):
        content = _on_base(content, path)
    try:
        return parse_schema(content, where=str(path), folder=path.parent)
    except (OverflowError, RecursionError) as error:
        raise UserError(
            f"a number or a nesting beyond reason: {error}", where=str(path), fix="mend the file"
        ) from error


def _on_base(content: Mapping[Any, Any], path: Path) -> Mapping[Any, Any]:
    """The fields of a schema and of the one that it starts from."""
    check_alone(field="base", where=str(path))
    file = path.parent / as_text(content["base"], "base", str(path))
    base = schema_content(file)
    if not isinstance(base.get("columns"), Mapping) or base.get("base") is not None or file.parent != path.parent:
        fix = "a schema in the same folder, with columns and no base of its own"
        raise UserError(f"base: got {content['base']!r}", where=str(path), fix=fix)
    columns = dict(base["columns"])
    for name, fields in (content.get("columns") or {}).items():
        column = columns.get(name)
        columns[name] = column | fields if isinstance(column, dict) and isinstance(fields, dict) else fields
    confirmed = content.get("confirmed_public", False)
    confirmed = base.get("confirmed_public", False) if confirmed is True else confirmed
    source = as_text(base.get("source") or "", "source", str(file))
    hidden = ("base", "source") if names_the_table(source) else ("base",)  # a draft stays one, whoever builds on it
    own = {k: v for k, v in content.items() if k not in hidden}
    return {**base, **own, "columns": columns, "confirmed_public": confirmed}


def parse_schema(mapping: Mapping[Any, Any], *, where: str, folder: Path = Path()) -> Schema:
    """A checked schema from parsed YAML or JSON.

    Args:
        mapping: with `columns`; or column → size; or column → {"kind", "values" | "min", "max", "optional"}.
        where: the file, for messages.
        folder: where the files that it names lie; the schema holds their content.

    Raises:
        UserError: names column and field; a confirmed schema that names the table itself as its source.
    """
    if not isinstance(mapping.get("columns"), Mapping):
        return _parse_domain(mapping, where, folder)
    check_fields(mapping, TOP, "", where)
    confirmed = true_or_false(mapping.get("confirmed_public", False), "confirmed_public", where)
    left = mapping.get("leave_out") or []
    leave_out = text_list(left, "leave_out", where) if left else ()
    source = as_text(mapping.get("source") or "", "source", where)
    check_source(source, confirmed=confirmed, where=where)
    name = as_text(mapping.get("name", Path(where).stem), "name", where)
    dialect = parse_dialect(mapping.get("dialect") or {}, f"{where}: dialect")
    return _with_columns(
        Schema(name, (), leave_out, source, confirmed, dialect=dialect), mapping["columns"], mapping, where, folder
    )


def _parse_domain(mapping: Mapping[Any, Any], where: str, folder: Path) -> Schema:
    """Domain JSON: sizes of codes, or kinds with their values or bounds; confirmed only where it says so."""
    columns: dict[str, object] = {}
    confirmed = mapping.get("confirmed_public") is True
    for name, fact in mapping.items():
        if name == "confirmed_public" and isinstance(fact, bool):
            continue
        if isinstance(fact, int) and not isinstance(fact, bool):
            columns[str(name)] = {"kind": "categorical", "size": fact}
        elif isinstance(fact, Mapping) and "kind" in fact:
            rest = {k: v for k, v in fact.items() if k != "optional"}
            columns[str(name)] = rest | {"missing": bool(fact.get("optional", False))}
        else:
            fix = "columns: {name: {kind: …}}; or a domain file: {column: size}"
            raise UserError(f"field {str(name)!r} is neither a size nor a column", where=where, fix=fix)
    name = Path(where).name.split(".")[0]
    return _with_columns(Schema(name, (), confirmed_public=confirmed), columns, {}, where, folder)


def _with_columns(
    schema: Schema, columns: Mapping[Any, Any], rules: Mapping[Any, Any], where: str, folder: Path
) -> Schema:
    """A schema that has no columns yet, with those that are declared, and the rules."""
    if not columns:
        raise UserError("no columns", where=where, fix="columns: {age: {kind: integer, min: 0, max: 120}}")
    parsed, gaps, faults = [], parse_gaps(rules.get("gaps"), where), list[UserError]()
    for key, fields in columns.items():
        label = as_text(key, "columns", where)
        place = f"{where}: column {label!r}"
        try:
            if not isinstance(fields, Mapping):
                raise UserError(f"got {fields!r}", where=place, fix="{kind: categorical, values: [a, b]}")
            parsed.append(parse_column(label, with_gaps(fields, gaps), where=place, folder=folder))
        except UserError as error:
            faults.append(error)
    if faults:
        raise together(faults)
    both = sorted({c.name for c in parsed} & set(schema.leave_out))
    if both:
        fix = "remove it from leave_out, or from columns"
        raise UserError("both kept and left out", where=f"{where}: column {both[0]!r}", fix=fix)
    parsed += [*part_columns(rules.get("calendar"), parsed, where), *length_columns(rules.get("derive"), parsed, where)]
    closed = {k: v for k, v in of_codes(rules).items() if k != "unit"}
    check_rules(closed, [c.name for c in parsed if c.discover], where)
    try:
        parsed_rules = parse_rules(rules, parsed, where=where, folder=folder)
        schema = replace(schema, columns=tuple(parsed), rules=parsed_rules)
        assert schema.engineering  # built here, so that its errors name the file
    except UserError as error:
        if (error.where or "").startswith(where):
            raise
        raise UserError(error.what, where=f"{where}: {error.where}", fix=error.fix) from error
    return schema


def column_fields(column: Column) -> FieldDict:
    """The declaration of a column, with every default that is not obvious written out."""
    discovered = {"discovered": list(column.discovered)} if column.discovered else {}
    if column.constant:
        return constant_fields(column) | discovered
    fields: FieldDict = {"kind": column.kind}
    if column.codes is not None:
        fields["size"] = column.codes
    elif column.kind == "categorical":
        fields["values"] = [int(v) for v in column.values] if column.whole else list(column.values)
        fields |= spelling_fields(column)
    elif column.kind == "flag":
        fields |= flag_fields(column)
    if column.ordinal:
        fields["ordinal"] = True
    if column.width is not None:
        fields |= zip_fields(column)
    elif column.kind in ORDERED_KINDS:
        fields |= {"min": written_bound(column, column.low), "max": written_bound(column, column.high)}
        fields |= {} if column.bins is None else {"bins": written_bins(column)}
        fields |= {} if column.fine is None else {"fine": column.fine}
    fields |= {} if column.decimals is None else {"decimals": column.decimals}
    fields |= {} if column.fixed is None else {"fixed": column.fixed}
    fields |= {} if column.multiple_of is None else {"multiple_of": column.multiple_of}
    fields |= reading_fields(column)
    fields |= {} if column.other is None else {"other": column.other}
    fields["missing"] = list(column.missing_texts) if column.missing_texts else column.missing
    if column.gridded or column.outside != "clip":
        fields["outside"] = column.outside
    if column.joint_bins is not None:
        name, value = column.joint_bins
        fields["joint_bins"] = {name: list(value) if isinstance(value, tuple) else value}
    fields |= {"one_way_only": True} if column.one_way_only else {}
    fields |= {"unmeasured": True} if column.unmeasured else {}
    if column.discover is not None:
        return discover_fields(fields, column.discover)
    return fields | relation_fields(column) | place_fields(column.places) | discovered


def as_a_column(schema: Schema, name: str) -> bool:
    """Whether a measured attribute is a column of the table as it stands, untouched by rules of the schema."""
    return name in schema.domain and name in schema.measured and schema.domain[name] == schema.measured[name]


def part_of(schema: Schema, names: Sequence[str], *, where: str) -> Schema:
    """The schema of some of the columns, in the schema's order; a rule is kept where all columns that it names are.

    Args:
        where: which setting names them, for messages.
    Raises:
        UserError: a column that the schema does not have.
    """
    require_columns(names, schema.domain.names, where=where)
    fields = schema.to_fields()
    gone = set(schema.domain.names) - set(names)
    sources = {step.target: [n for n in step.reads if not schema[n].between] for step in schema.rules.computed}
    rules: FieldDict = {}
    for rule, content in schema.rules.declared.items():
        if rule == "unit_id":
            rules[rule] = None if gone & set(texts_in(content)) else content
        elif rule == "unit":
            rules[rule] = {k: [n for n in v if n not in gone] if isinstance(v, list) else v for k, v in content.items()}
        elif rule == "calendar":
            left = {n: _left(n, e, gone) for n, e in content.items() if n not in gone}
            rules[rule] = {n: e for n, e in left.items() if e}
        elif isinstance(content, Mapping):
            rules[rule] = {n: e for n, e in content.items() if not gone & {n, *_columns_of(e), *sources.get(n, ())}}
        else:
            rules[rule] = [e for e in content if not gone & set(_columns_of(e))]
    columns = {n: column for n, column in fields["columns"].items() if n not in gone}
    plain = {k: v for k, v in fields.items() if k not in (*rules, "leave_out")}
    own = {"name": f"{schema.name}_part", "columns": columns}
    return parse_schema(plain | own | {k: v for k, v in rules.items() if v}, where=where)


def _left(time: str, own: Any, gone: set[str]) -> Any:
    """What is left of a rule about parts of a time: all or nothing of columns, each part for itself of none."""
    if isinstance(own, Mapping):
        return None if gone & {*own.values()} else own
    return [part for part, name in named_parts(time, own).items() if name not in gone]


def _columns_of(entry: Any) -> Iterable[str]:
    """The columns that one entry of a rule names, beside the one that it stands under."""
    if not isinstance(entry, Mapping):
        return texts_in(entry)
    if entry.keys() & {"from", "columns", "expression"}:
        return texts_in([entry.get("from", ()), entry.get("columns", ())])
    return [str(name) for name in entry]
