"""Each key's line is found, however the TOML is laid out."""

import string
import tomllib

import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from accelhw.model.tomllines import key_lines

LAYOUT = '''\
# a comment with [brackets] and "quotes
title = """
[[card]] in a string
name = 1 """
"quoted key".'dot.ted' = 'it''s'
[[card]]  # [[comment]]
name = "a\\"]"
list = [1,
  # between
  [2, 3], "]",
  {x = 1, y.z = 2},
]
[card.sub]
deep = 1979-05-27T07:32:00Z
[[card]]
name = "b"
[[card.port]]
oe = 1
'''.replace("'it''s'", "'its'")


def test_layouts_of_all_kinds():
    lines = key_lines(LAYOUT)
    assert lines["title",] == 2
    assert lines["quoted key", "dot.ted"] == 5
    assert lines["card",] == 6
    assert lines["card", 0] == 6
    assert lines["card", 0, "name"] == 7
    assert lines["card", 0, "list"] == 8
    assert lines["card", 0, "list", 1] == 10
    assert lines["card", 0, "list", 1, 1] == 10
    assert lines["card", 0, "list", 3, "y", "z"] == 11
    assert lines["card", 0, "sub", "deep"] == 14
    assert lines["card", 1] == 15
    assert lines["card", 1, "name"] == 16
    assert lines["card", 1, "port", 0, "oe"] == 18


texts = st.text(alphabet=string.printable + "é€", max_size=12)
leaves = st.one_of(texts, st.integers(-9, 9), st.booleans(), st.floats(allow_nan=False))
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def paths(value, path=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from paths(inner, (*path, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield (*path, number)
            yield from paths(inner, (*path, number))


@given(st.dictionaries(texts, values, max_size=4))
def test_every_key_of_any_document_has_a_line(document):
    text = tomlkit.dumps(document)
    lines = key_lines(text)
    count = text.count("\n") + 1
    assert all(1 <= lines[path] <= count for path in paths(tomllib.loads(text)))


def test_a_long_text_is_counted_once():
    counted = 0

    class Text(str):
        def __add__(self, more):
            return Text(str(self) + more)

        def count(self, what, start, end):
            nonlocal counted
            counted += end - start
            return super().count(what, start, end)

    text = '[[card]]\nname = "card"\n' * 100
    assert key_lines(Text(text))["card", 99, "name"] == 200
    assert counted <= len(text)
