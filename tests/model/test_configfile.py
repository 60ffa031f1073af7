"""A configuration is read whole, or every mistake is named with its line and a remedy."""

from pathlib import Path

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from accelhw.model.config import Config, FibreEnd, TransportKind
from accelhw.model.configfile import CARD_KEYS, DAEMON_KEYS, HARDWARE_KEYS, load, render
from accelhw.model.fibretable import FIBRE_KEYS
from accelhw.model.ids import PortId

EXAMPLES = Path(__file__).parents[2] / "examples"

CARDS = """\
[[card]]
name = "card0"
profile = "oio"
[[card]]
name = "card1"
profile = "oio"
"""  # A fibre after it starts at line 7.


def mistakes(text):
    found = load(text)
    assert isinstance(found, list), found
    return [f"{m.line}: {m}" for m in found]


def config(text) -> Config:
    found = load(text)
    assert isinstance(found, Config), render(found, "test")
    return found


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda p: p.name)
def test_every_example_is_good(path):
    assert config(path.read_text()).cards


def test_the_smallest_rack():
    pair = config((EXAMPLES / "pair.toml").read_text())
    assert [card.name for card in pair.cards] == ["card0", "card1"]
    assert pair.cards[0].hbm_bytes == 96 << 30
    (fibre,) = pair.fibres
    assert (fibre.name, fibre.transport, fibre.mtu) == ("fibre0", TransportKind.VETH, 65535)
    assert fibre.a == FibreEnd(PortId("card0", 0))
    assert fibre.b == FibreEnd(PortId("card1", 0))
    assert fibre.lane_map is None
    assert fibre.length_m == 10.0


def test_everything_said_is_kept():
    # An inline table here, to see that both spellings are read; it must stand before any header.
    text = (
        'fibre = [{a = "card0/oe3", b = "card1/oe2", transport = "tap", mtu = 1600, length_m = 5,'
        " attenuation_db_per_km = 0.4, connectors = 3, connector_loss_db = 0.5, extra_loss_db = 1,"
        ' interface_a = "left", interface_b = "right", netns_a = "n1", netns_b = "n1",'
        f" lane_map = {list(reversed(range(16)))}, inverted_lanes = [0, 15]}}]\n"
    )
    fibre = config(text + CARDS).fibres[0]
    assert fibre.a == FibreEnd(PortId("card0", 3), "left", "n1")
    assert fibre.b == FibreEnd(PortId("card1", 2), "right", "n1")
    assert fibre.lane_map == tuple(reversed(range(16)))
    assert fibre.inverted_lanes == {0, 15}
    assert fibre.loss_db == pytest.approx(0.002 + 1.5 + 1.0)
    assert fibre.mtu == 1600


def test_hardware_and_daemon_settings():
    read = config(
        CARDS
        + "[hardware]\nworkers = 1\nhbm_budget_gib = 0.5\nseed = 0\n"
        + '[daemon]\nsocket = "/s"\nstate_dir = "/d"\nmetrics = "[::1]:9437"\n'
    )
    assert (read.hardware.workers, read.hardware.seed) == (1, 0)
    assert read.hardware.hbm_budget_bytes == 512 << 20
    assert (read.daemon.socket, read.daemon.state_dir) == ("/s", "/d")
    assert read.daemon.metrics == "[::1]:9437"


@pytest.mark.parametrize(
    ("transport", "outward", "mtu"),
    [
        ("veth", False, 65535),
        ("memory", False, 65535),
        ("tap", False, 9000),
        ("tap", True, 1500),
        ("netdev", False, 0),
    ],
)
def test_the_default_mtu_fits_what_the_frames_meet(transport, outward, mtu):
    far = "" if outward else 'b = "card1/oe0"\n'
    names = 'interface_a = "x"\ninterface_b = "y"\n' if transport == "netdev" else ""
    text = f'{CARDS}[[fibre]]\na = "card0/oe0"\n{far}{names}transport = "{transport}"\n'
    assert config(text).fibres[0].mtu == mtu


PAIR_ENDS = 'a = "card0/oe0"\nb = "card1/oe0"\n'

# What is written after CARDS (from line 7 on), and all that is said about it.
WRONG = {
    "unknown table": ("[fiber]\n", ["7: fiber: no such table; did you mean 'fibre'?"]),
    "unknown key": (
        f"[[fibre]]\n{PAIR_ENDS}lenght_m = 3\n",
        ["10: fibre.lenght_m: no such key; did you mean 'length_m'?"],
    ),
    "far-off key": (
        "[hardware]\nxyz = 3\n",
        ["8: hardware.xyz: no such key; known are workers, hbm_budget_gib, seed"],
    ),
    "single brackets": (
        f"[fibre]\n{PAIR_ENDS}",
        ["7: fibre: not a list of tables; use [[fibre]], in two brackets, for each"],
    ),
    "double brackets": (
        "[[hardware]]\nseed = 3\n",
        ["7: hardware: not a table; use [hardware], in one bracket, once"],
    ),
    "duplicate card": (
        '[[card]]\nprofile = "oio"\nname = "card1"\n',
        ["9: card.name: a second card named 'card1'; give each a name of its own"],
    ),
    "bad card name": (
        '[[card]]\nname = "Card 1"\nprofile = "oio"\n',
        [
            "8: card.name: 'Card 1' is not a card name;"
            " use 1 to 31 of a-z, 0-9 and -, a letter first"
        ],
    ),
    "missing name and profile": (
        "[[card]]\n",
        [
            '7: card.name: missing; add name = "card2"',
            '7: card.profile: missing; add profile = "oio"',
        ],
    ),
    "unknown profile": (
        '[[card]]\nname = "card2"\nprofile = "dr4"\n',
        ["9: card.profile: 'dr4' is no profile; did you mean 'dr8'?"],
    ),
    "profile of another type": (
        '[[card]]\nname = "card2"\nprofile = 8\n',
        ['9: card.profile: 8 is no text; use profile = "oio"'],
    ),
    "HBM too large": (
        '[[card]]\nname = "card2"\nprofile = "oio"\nhbm_gib = 4096\n',
        ["10: card.hbm_gib: 4096 is too large; use 0.0009765625 to 1024"],
    ),
    "HBM of half a page": (
        '[[card]]\nname = "card2"\nprofile = "oio"\nhbm_gib = 1.0001\n',
        ["10: card.hbm_gib: 1.0001 GiB is no whole number of MiB; use e.g. 0.5 or 16"],
    ),
    "HBM true": (
        '[[card]]\nname = "card2"\nprofile = "dr8"\nhbm_gib = true\n',
        ["10: card.hbm_gib: true is no number; use hbm_gib = 80"],
    ),
    "fibre to no card": (
        '[[fibre]]\na = "card0/oe0"\nb = "crad1/oe0"\n',
        ["9: fibre.b: 'crad1/oe0': there is no card 'crad1'; did you mean 'card1/oe0'?"],
    ),
    "fibre to no engine": (
        '[[fibre]]\na = "card0/oe4"\nb = "card1/oe0"\n',
        [
            "8: fibre.a: 'card0/oe4': card0 is of profile oio and has oe0 to oe3;"
            " use 'card0/oe0' to 'oe3'"
        ],
    ),
    "fibre to a card": (
        '[[fibre]]\na = "card0"\nb = "card1/oe0"\n',
        ["8: fibre.a: 'card0' is no port; try 'card0/oe0'"],
    ),
    "fibre to itself": (
        '[[fibre]]\na = "card0/oe0"\nb = "card0/oe0"\n',
        ["9: fibre.b: the fibre ends where it begins, in 'card0/oe0'; plug b into another port"],
    ),
    "fibre without ends": ("[[fibre]]\n", ['7: fibre.a: missing; add a = "card0/oe0"']),
    "two fibres in a port": (
        f'[[fibre]]\n{PAIR_ENDS}[[fibre]]\na = "card1/oe1"\nb = "card0/oe0"\n',
        ["12: fibre.b: 'card0/oe0' holds fibre0.a (line 8) already; free is 'card0/oe1'"],
    ),
    "duplicate fibre": (
        f'[[fibre]]\nname = "f"\n{PAIR_ENDS}'
        '[[fibre]]\nname = "f"\na = "card0/oe1"\nb = "card1/oe1"\n',
        ["12: fibre.name: a second fibre named 'f', after line 7; name it otherwise"],
    ),
    "a name that a default takes": (
        f'[[fibre]]\nname = "fibre1"\n{PAIR_ENDS}[[fibre]]\na = "card0/oe1"\nb = "card1/oe1"\n',
        ["12: fibre.a: a second fibre named 'fibre1', after line 7; name it otherwise"],
    ),
    "unknown transport": (
        f'[[fibre]]\n{PAIR_ENDS}transport = "vhet"\n',
        ["10: fibre.transport: 'vhet' is no transport; did you mean 'veth'?"],
    ),
    "MTU too small": (
        f"[[fibre]]\n{PAIR_ENDS}mtu = 1400\n",
        ["10: fibre.mtu: 1400 is too small; use 1500 to 65535"],
    ),
    "MTU too large for a TAP": (
        f'[[fibre]]\n{PAIR_ENDS}transport = "tap"\nmtu = 65535\n',
        ["11: fibre.mtu: 65535 is too large; use 1500 to 65521"],
    ),
    "MTU in words": (
        f'[[fibre]]\n{PAIR_ENDS}mtu = "jumbo"\n',
        ["10: fibre.mtu: 'jumbo' is no whole number; use mtu = 65535"],
    ),
    "veth with one end": (
        '[[fibre]]\na = "card0/oe0"\n',
        [
            "8: fibre.a: b is missing, and transport veth needs both ends;"
            " add b, or use transport tap or netdev for a fibre to the outside"
        ],
    ),
    "netdev without interfaces": (
        f'[[fibre]]\n{PAIR_ENDS}transport = "netdev"\n',
        [
            "10: fibre.transport: netdev needs the name of an interface that exists;"
            ' add interface_a = "eth1"',
            "10: fibre.transport: netdev needs an interface for b, too;"
            ' add interface_b = "eth2", or leave b out when it is on another host',
        ],
    ),
    "memory with an interface": (
        f'[[fibre]]\n{PAIR_ENDS}transport = "memory"\ninterface_a = "x"\n',
        ["11: fibre.interface_a: transport memory has no interface; leave it out"],
    ),
    "which end": (
        f'[[fibre]]\n{PAIR_ENDS}interface = "x"\n',
        ["10: fibre.interface: it does not say which end; use interface_a and interface_b"],
    ),
    "namespace of no end": (
        '[[fibre]]\na = "card0/oe0"\ntransport = "tap"\nnetns_b = "x"\n',
        ["10: fibre.netns_b: the fibre has no end b here; add b, or leave it out"],
    ),
    "a tap fibre torn apart": (
        f'[[fibre]]\n{PAIR_ENDS}transport = "tap"\nnetns_b = "rack2"\n',
        [
            "11: fibre.netns_b: a bridge joins both ends of a tap fibre, so they cannot be apart;"
            " use one namespace for both, or transport veth"
        ],
    ),
    "interface name too long": (
        f'[[fibre]]\n{PAIR_ENDS}interface_a = "a-very-long-name"\n',
        [
            "10: fibre.interface_a: 'a-very-long-name' cannot be an interface;"
            " use 1 to 15 characters, none of them a blank, '/', ':' or '%'"
        ],
    ),
    "one interface for two ends": (
        f'[[fibre]]\n{PAIR_ENDS}interface_a = "x"\ninterface_b = "x"\n',
        [
            "11: fibre.interface_b: 'x' carries fibre0.a (line 10) already;"
            " use one interface for one end"
        ],
    ),
    "lane twice": (
        f"[[fibre]]\n{PAIR_ENDS}lane_map = [0, 1,\n  2, 1]\n",
        ["11: fibre.lane_map: lane 1 stands here twice; name each of the 16 lanes 0 to 15 once"],
    ),
    "lanes missing": (
        f"[[fibre]]\n{PAIR_ENDS}lane_map = [0, 1]\n",
        ["10: fibre.lane_map: 2 of 16 lanes; name each of the 16 lanes 0 to 15 once"],
    ),
    "lane beyond": (
        f"[[fibre]]\n{PAIR_ENDS}inverted_lanes = [16]\n",
        ["10: fibre.inverted_lanes: 16 is no lane of card0; use 0 to 15"],
    ),
    "lane in words": (
        f'[[fibre]]\n{PAIR_ENDS}inverted_lanes = [\n1,\n"all"]\n',
        ["12: fibre.inverted_lanes: 'all' is no lane; use whole numbers from 0"],
    ),
    "negative losses": (
        f"[[fibre]]\n{PAIR_ENDS}extra_loss_db = -1\nlength_m = -5.5\nconnectors = -1\n",
        [
            "10: fibre.extra_loss_db: -1 is too small; use 0 to 100",
            "11: fibre.length_m: -5.5 is too small; use 0 to 100000",
            "12: fibre.connectors: -1 is too small; use 0 to 64",
        ],
    ),
    "not a number": (
        f"[[fibre]]\n{PAIR_ENDS}length_m = nan\n",
        ["10: fibre.length_m: nan is no number; use 0 to 100000"],
    ),
    "lanes that do not fit": (
        '[[card]]\nname = "card2"\nprofile = "dr8"\n[[fibre]]\na = "card0/oe0"\nb = "card2/oe0"\n',
        [
            "12: fibre.b: card2 (dr8: 8 x 106.25 Gb/s PAM4, KP4) and card0"
            " (oio: 16 x 32 Gb/s NRZ, no FEC) do not understand each other;"
            " join cards of one profile"
        ],
    ),
    "no worker": (
        "[hardware]\nworkers = 0\n",
        ["8: hardware.workers: 0 is too small; use 1 to 64"],
    ),
    "metrics nowhere": (
        '[daemon]\nmetrics = "9437"\n',
        [
            "8: daemon.metrics: '9437' is no HOST:PORT;"
            ' use "127.0.0.1:9437", "[::1]:9437" or "off"'
        ],
    ),
    "an unreadable socket path": (
        f'[daemon]\nsocket = "/{"x" * 107}"\n',
        ["8: daemon.socket: 108 bytes; use 1 to 107 bytes"],
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_named_with_line_key_and_remedy(case):
    text, expected = WRONG[case]
    assert mistakes(CARDS + text) == expected


def test_all_mistakes_are_told_at_once_in_order_of_lines():
    found = mistakes(
        '[[card]]\nname = "card0"\nprofile = "olo"\n'
        '[[fibre]]\na = "card0/oe9"\nb = "card1/oe0"\nmtu = 3\n[hardware]\nsed = 4\n'
    )
    assert [line.split(":")[0] for line in found] == ["3", "6", "7", "9"]  # a: the profile's fault


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[card]]\nname = card0\n", "2: syntax: not TOML: "),
        ("[hardware]\nseed = 1\nseed = 2\n", "3: syntax: this key stands here twice; keep one"),
        ('[daemon]\nsocket = "/x\n', "2: syntax: a text is not closed"),
        ("[daemon]\nsocket = [1,\n2\n", "3: syntax: not TOML: "),
    ],
)
def test_what_is_no_toml_is_told_with_its_line(text, expected):
    (only,) = mistakes(text)
    assert only.startswith(expected)


def test_an_empty_file_is_told_what_to_add():
    assert mistakes("") == ["1: card: there is none; add [[card]] with a name and a profile"]


def test_too_many_cards():
    text = "".join(f'[[card]]\nname = "c{n}"\nprofile = "single"\n' for n in range(129))
    assert mistakes(text) == ["1: card: 129 cards; at most 128 fit into one chassis"]


keys = st.sampled_from(sorted({*CARD_KEYS, *FIBRE_KEYS, *HARDWARE_KEYS, *DAEMON_KEYS, "x"}))
leaves = st.one_of(
    st.sampled_from(["card0", "card1", "card0/oe0", "card1/oe3", "oio", "dr8", "tap", "netdev"]),
    st.text(max_size=8),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.booleans(),
    st.lists(st.integers(-2, 17), max_size=17),
    st.just({}),
)
tables = st.dictionaries(keys, leaves, max_size=6)
documents = st.fixed_dictionaries(
    {},
    optional={
        "card": st.lists(tables, max_size=3) | leaves,
        "fibre": st.lists(tables, max_size=3) | leaves,
        "hardware": tables | leaves,
        "daemon": tables | leaves,
        "": leaves,
    },
)


@given(documents)
def test_any_document_is_read_or_its_mistakes_have_lines_and_remedies(document):
    text = tomlkit.dumps(document)
    found = load(text)
    if isinstance(found, list):
        assert found
        lines = text.count("\n") + 1
        assert all(1 <= m.line <= lines and m.key and m.problem and m.remedy for m in found)
        assert [m.line for m in found] == sorted(m.line for m in found)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    assert load(text)


def test_mistakes_are_shown_as_compilers_do():
    found = load(CARDS + "[fiber]\n")
    assert isinstance(found, list)
    assert render(found, "pair.toml") == (
        "pair.toml:7: fiber: no such table; did you mean 'fibre'?"
    )
