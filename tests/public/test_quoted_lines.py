"""Texts with line ends in them, wherever a large CSV file has them: no value makes a well-formed file unreadable."""

import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.tables.scan import open_table

#: Where readers that share a file begin: each at so many bytes.
SHARE = 8_000_000
ROW = b"ann,x\n"


@pytest.mark.parametrize("place", [SHARE, 4 * SHARE])
@pytest.mark.parametrize("text", [b'"\nbob,y\nbob,a"', b'"\nbob,y\n"', b'"\n"",""\n"",a"'])
def test_lines_of_a_quoted_text_are_no_rows_and_stop_nothing(place, text, tmp_path) -> None:
    record = b"eve," + text + b"\n"
    before = (place - 12) // len(ROW)
    (tmp_path / "t.csv").write_bytes(b"id,note\n" + ROW * before + record + ROW * 50_000)
    source = open_table(tmp_path / "t.csv", workdir=tmp_path, memory_limit_bytes=1 << 30, threads=2)
    with source.connect() as engine:
        named = "count(*), count(*) FILTER (c0 = 'eve'), count(*) FILTER (c0 = 'bob')"
        counts = engine.execute(f"SELECT {named} FROM {source.relation}").fetchall()[0]
    assert counts == (before + 50_001, 1, 0)


@pytest.mark.parametrize("last", ['3,"SECRET', '3, "SECRET\n4,5\n', '3,"SECRET""\n4,5\n', '3,"a\n""b\n'])
def test_a_quote_that_is_not_closed_drops_no_rows_in_silence(last, tmp_path) -> None:
    (tmp_path / "t.csv").write_text("id,note\n1,2\n" + last)
    with pytest.raises(UserError, match="a quote is not closed") as error:
        open_table(tmp_path / "t.csv", workdir=tmp_path, memory_limit_bytes=1 << 30, threads=2)
    assert "SECRET" not in str(error.value)


@pytest.mark.parametrize("last", ['3,x"y\n', '3,"a"" b"\n', '3, "a\nb" \n4,5\n', '3,""\n', '"",""'])
def test_quotes_that_are_closed_or_within_a_text_are_no_fault(last, tmp_path) -> None:
    (tmp_path / "t.csv").write_text("id,note\n1,2\n" + last)
    source = open_table(tmp_path / "t.csv", workdir=tmp_path, memory_limit_bytes=1 << 30, threads=2)
    with source.connect() as engine:
        assert engine.execute(f"SELECT count(*) FROM {source.relation}").fetchall()[0][0] >= 2
