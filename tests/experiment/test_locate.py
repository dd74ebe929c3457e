"""The line of a key, against documents of every form."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plinth.experiment.locate import find, locate

DOCUMENT = '''\
# comment
a = 1
b.c = 2

[t]
x = """
[not.a.table]
y = 3
"""
list = [
  1,
  2,
]
inline = { p = 1, q = { r = 2 } }

[[rows]]
k = 1
[[rows]]
k = 2
[t.sub]
z = 1
'''


def test_each_form():
    expected = {
        ("a",): 2,
        ("b", "c"): 3,
        ("t",): 5,
        ("t", "x"): 6,
        ("t", "list"): 10,
        ("t", "list", 1): 10,
        ("t", "inline", "q", "r"): 14,
        ("rows", 0, "k"): 17,
        ("rows", 1, "k"): 19,
        ("t", "sub", "z"): 21,
    }
    assert {path: locate(DOCUMENT, path) for path in expected} == expected


def test_a_missing_key_is_at_its_table_and_a_missing_table_at_the_top():
    assert locate(DOCUMENT, ("t", "sub", "nope")) == 20
    assert locate(DOCUMENT, ("nope", "x")) == 1
    assert find(DOCUMENT, ("nope",)) is None


STRINGS = "\n".join(
    [
        """'a]#."' = 1""",
        'b = """',
        r'"quoted" \""" [',
        '"""""',
        "c = '''",
        "# ['''''",
        r"""d = '\' # [ " """,
        "[[rows]]",
        "[[rows.inner]]",
        "[[rows.inner]]",
        "[rows.inner.last]",
        "e = [ # ]",
        '  { f = "]" },',
        "]",
        "g = 1",
    ]
)


def test_quotes_brackets_and_comments_end_nothing_within_strings():
    expected = {
        ('a]#."',): 1,
        ("b",): 2,
        ("c",): 5,
        ("d",): 7,
        ("rows", 0, "inner", 0): 9,
        ("rows", 0, "inner", 1): 10,
        ("rows", 0, "inner", 1, "last"): 11,
        ("rows", 0, "inner", 1, "last", "e", 0, "f"): 12,
        ("rows", 0, "inner", 1, "last", "g"): 15,
    }
    assert {path: find(STRINGS, path) for path in expected} == expected


@pytest.mark.parametrize(
    "text", ["".join(f"k{n} = {n}\n" for n in range(10_000)), "k9999 = [\n" + "1,\n" * 10_000 + "]\n"]
)
def test_every_line_is_parsed_once_however_many_keys_are_looked_up(monkeypatch, text):
    parsed = []
    loads = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda part: parsed.append(len(part)) or loads(part))
    assert locate(text, ("k9999",)) == text[: text.index("k9999")].count("\n") + 1
    assert locate(text, ("k9999", "missing")) == locate(text, ("k9999",))
    assert sum(parsed) == len(text)


keys = st.from_regex(r"[a-z]{1,5}", fullmatch=True)
values = st.one_of(st.integers(), st.booleans(), st.text("ab\n#[]=", max_size=6))


@given(st.dictionaries(keys, st.dictionaries(keys, values, min_size=1, max_size=4), min_size=1, max_size=4))
def test_any_generated_document_is_located_by_line(tables):
    lines, expected = [], {}
    for table, entries in tables.items():
        lines.append(f"[{table}]")
        for key, value in entries.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if isinstance(value, str):
                text = f'"""\n{value}"""'
            lines.append(f"{key} = {text}")
            expected[(table, key)] = "\n".join(lines[:-1]).count("\n") + 2
    text = "\n".join(lines) + "\n"
    assert tomllib.loads(text).keys() == tables.keys()
    assert {path: locate(text, path) for path in expected} == expected
