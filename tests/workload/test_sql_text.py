"""SQL files as statements: where they end, what variables become, and what cannot be run."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plinth.model.errors import UsageError
from plinth.workload.sql_text import statements_of

VARIABLES = {"rows": "1000", "scale": "1", "name": "O'Neill", "table": 'a"b'}


def texts(source):
    return [statement.text for statement in statements_of("x.sql", source, VARIABLES)]


SPLITS = [
    ("SELECT 1; SELECT 2", ["SELECT 1", "SELECT 2"]),
    (";;\n ; -- nothing\n/* nor /* here */ ; */", []),
    ("SELECT ';', E'\\';', \";\", $$;$$, $a$;$$;$a$;", ["SELECT ';', E'\\';', \";\", $$;$$, $a$;$$;$a$"]),
    ("SELECT 'it''s;' ; -- ; '\nSELECT /* ; ' */ 2;", ["SELECT 'it''s;'", "SELECT /* ; ' */ 2"]),
    ("CREATE RULE r AS ON UPDATE TO t DO (DELETE FROM u; SELECT 1);", ["CREATE RULE r AS ON UPDATE TO t DO (DELETE FROM u; SELECT 1)"]),
    (
        "create or replace function f() returns int begin atomic select case when true then 1 end; select 2; end; select 3",
        ["create or replace function f() returns int begin atomic select case when true then 1 end; select 2; end", "select 3"],
    ),
    ("BEGIN; SELECT 1; END; SELECT 2;", ["BEGIN", "SELECT 1", "END", "SELECT 2"]),
    ("SELECT a$b$c, 1;SELECT 2", ["SELECT a$b$c, 1", "SELECT 2"]),
    ("SELECT :rows, ':rows', $$:rows$$, 1::int, x := 2, :'name', :\"table\"", ["SELECT 1000, ':rows', $$:rows$$, 1::int, x := 2, 'O''Neill', \"a\"\"b\""]),
    ("SELECT a[1:n], a[1:rows], ARRAY[:rows, (:rows)]", ["SELECT a[1:n], a[1:rows], ARRAY[1000, (1000)]"]),
    ("\\restrict abc\nSELECT 1;\n\\unrestrict abc\n", ["SELECT 1"]),
    ("\ufeffSELECT 1;\r\nSELECT 2;\r\n", ["SELECT 1", "SELECT 2"]),
    ("SELECT 'ä;ö', \"ü\"; SELECT 2", ["SELECT 'ä;ö', \"ü\"", "SELECT 2"]),
]  # fmt: skip


@pytest.mark.parametrize(("source", "expected"), SPLITS)
def test_statements_end_where_psql_ends_them(source, expected):
    assert texts(source) == expected


def test_lines_are_those_of_the_first_character():
    source = "-- one\n\nSELECT 1;\n\n  /* two\n */ SELECT\n 2; SELECT 3;"
    assert [statement.line for statement in statements_of("x.sql", source, {})] == [3, 6, 7]


def test_rows_of_copy_follow_it():
    source = "COPY t (a) FROM stdin;\n1;\tx\n\\N\n\\.\nSELECT 1;\nCOPY t FROM stdin WITH (FORMAT csv);\n\\.\n"
    copy, select, empty = statements_of("x.sql", source, {})
    assert (copy.text, copy.rows) == ("COPY t (a) FROM stdin", "1;\tx\n\\N\n")
    assert (select.text, select.line, select.rows) == ("SELECT 1", 5, None)
    assert empty.rows == ""


WRONG = [
    ("SELECT 1;\n\\copy t FROM 'x'\n", 2, "a backslash begins no SQL: \\copy t FROM 'x'", "not psql's own commands"),
    ("SELECT 1,\n 'it''s", 2, "a quotation begins here and does not end: '", None),
    ("SELECT 1;\n/* /* */", 2, "a comment begins here and does not end", None),
    ("DO $x$ BEGIN\nEND $$;", 1, "a quotation begins here and does not end: $x$", None),
    ("\n\nSELECT :row;", 3, ":row is no variable; there are: rows, scale", "dataset.variables"),
    ("SELECT 1;\nCOPY t TO stdout;", 2, "the output of COPY ... TO stdout would not be read", None),
    ("COPY t FROM stdin;\n1\n", 1, "have no end", "a backslash and a dot"),
]


@pytest.mark.parametrize(("source", "line", "message", "hint"), WRONG)
def test_what_cannot_be_run_is_refused_with_its_line(source, line, message, hint):
    with pytest.raises(UsageError) as caught:
        texts(source)
    assert caught.value.where == f"x.sql:{line}"
    assert message in caught.value.message
    assert (hint or "") in (caught.value.hint or "")


@given(st.lists(st.sampled_from(["SELECT 1", "';'", "$$;$$", '";"', "-- ;\n", "/* ; */", "(", ")", " ", "\n"])))
def test_nothing_is_lost_and_semicolons_within_end_nothing(parts):
    """All pieces but comments outside of statements are found again, in order."""
    source = " ".join(parts)
    found = texts(source)
    bare = "".join(source.replace("-- ;\n", "").replace("/* ; */", "").split())
    together = "".join("".join(found).replace("-- ;\n", "").replace("-- ;", "").replace("/* ; */", "").split())
    assert together == bare
