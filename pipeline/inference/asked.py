"""`query`: which of its questions the settings ask, and the answer with what to say beside it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd

from mechanisms.public.errors import UserError, one_of, shown
from mechanisms.public.files import write_whole
from pipeline.folders import ANSWER, check_output
from pipeline.inference.estimate_questions import KINDS, EstimateQuestion
from pipeline.inference.person_level import LEVELS
from pipeline.inference.relations import distances
from pipeline.inference.release_bounds import bounds, estimate
from pipeline.release_folder import read_release
from pipeline.release_query import query
from pipeline.settings.config import QueryConfig
from pipeline.settings.inputs import check_ending
from pipeline.statement.words import noted

#: Settings that belong to an estimate alone.
OF_ESTIMATES = ("column", "other", "by", "value", "quantile", "within_bin", "sampling", "unmeasured")


def asked(release: Path, config: QueryConfig) -> pd.DataFrame:
    """The answer to what the settings ask; `attrs["notes"]` are lines for people.

    Raises:
        UserError: several questions at a time, or none; what the question itself refuses.
    """
    given = {n: getattr(config, n) for n in OF_ESTIMATES if getattr(config, n) != getattr(QueryConfig(), n)}
    if config.estimate is None and given:
        fix = f"estimate={', '.join(KINDS[:-1])} or {KINDS[-1]}"
        raise UserError("it belongs to an estimate", where=next(iter(given)), fix=fix)
    if config.solution is not None and not config.marginal:
        raise UserError("it belongs to a marginal", where="solution", fix="marginal=[a,b,c] solution=maxent")
    if (config.distances or config.bounds) and config.level != LEVELS[0]:
        question = "distances" if config.distances else "bounds"
        raise UserError(f"{question} are of records", where="level", fix="level=records")
    if config.distances:
        if config.bounds or config.marginal or config.where or config.estimate is not None:
            raise UserError("one question at a time", where="query", fix="distances=true alone")
        schema, statement, measurements = read_release(release)
        return noted(_with_sources(distances(schema, measurements)), statement)
    if config.estimate is not None and (config.bounds or config.marginal or config.where):
        fix = "one of estimate=…, marginal=[…], where={…} and bounds=true"
        raise UserError("one question at a time", where="query", fix=fix)
    if config.estimate is not None:
        own = EstimateQuestion(config.estimate, **given, level=config.level)
        return _with_sources(estimate(*read_release(release), own))
    if config.bounds:
        if config.where:
            raise UserError("one question at a time", where="query", fix="bounds=true, with marginal=[a,b] or alone")
        return bounds(release, marginal=config.marginal)
    marginal, where, solution = config.marginal, config.where, config.solution
    answered = query(release, marginal=marginal, where=where, solution=solution, level=config.level)
    return _with_cut(_with_sources(answered))


def as_text(answer: pd.DataFrame, form: str) -> str:
    """The answer as CSV, or as JSON with its notes and the measured marginals that it comes from.

    Raises:
        UserError: another form.
    """
    if one_of(form, ("csv", "json"), "format") == "csv":
        return answer.to_csv(index=False, lineterminator="\n")
    rows = json.loads(answer.to_json(orient="records"))
    facts = {"format": "answer/1", "answer": rows}
    facts |= {"notes": answer.attrs["notes"], "sources": answer.attrs.get("sources", [])}
    return json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _with_sources(answer: pd.DataFrame) -> pd.DataFrame:
    """The notes begin with the measured marginals that the answer comes from."""
    sources = answer.attrs["sources"]
    plural, more = "s" * (len(sources) != 1), " …" if len(sources) > 6 else ""
    line = f"from {len(sources)} measured marginal{plural}: {'; '.join(sources[:6])}{more}"
    answer.attrs["notes"] = [*([line] if sources else []), *answer.attrs.get("notes", ())]
    return answer


def _with_cut(answer: pd.DataFrame) -> pd.DataFrame:
    """The notes of a range end with the bins, or fine cells, that it cuts."""
    if cut := answer.get("cut", [""])[0]:
        effect = "their records count in part; the interval holds whatever lies inside"
        number, cell = cut.count("; ") + 1, answer.attrs.get("cells", "bin")
        answer.attrs["notes"].append(f"the range cuts {number} {cell}{'s' * (number > 1)} ({cut}): {effect}")
    return answer


def answer(release: Path, config: QueryConfig) -> int:
    """Print the answer or write it; what it holds is said on standard error.

    Raises:
        UserError: what the question refuses; a name of the output that ends in another format than it would hold.
    """
    if config.output:
        check_ending(config.output, "output", config.format)
    answers = asked(release, config)
    text = as_text(answers, config.format)
    if config.output:
        start = text[: text.index("\n") + 1] if config.format == "csv" else ANSWER
        check_output(Path(config.output), "output", own=[start])  # the same answer, again
        write_whole(Path(config.output), text)
        print(f"{len(answers):,} answers, at no privacy cost: {config.output}")
    else:
        print(shown(text, but="\n") if sys.stdout.isatty() else text, end="")  # a release of somebody else names values
    for line in answers.attrs["notes"]:
        print(shown(line), file=sys.stderr)
    return 0
