"""Texts with line ends in them, wherever a large CSV file has them: no value makes a well-formed file unreadable."""

import pytest

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
