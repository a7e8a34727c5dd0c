"""What a process is told, by whom, and what is said where that is wrong."""

import dataclasses
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import framewire as fw
from framewire.capture import CaptureSettings
from framewire.cluster.settings import ClusterSettings
from framewire.config import FILE, OPTIONS, Flag, as_told, load, reference
from framewire.config.options import BY_KEY, TABLES
from framewire.node.core import Settings

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"
SETTINGS = {"node": Settings, "cluster": ClusterSettings, "capture": CaptureSettings}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A directory of its own, and a function that writes the file there."""
    monkeypatch.chdir(tmp_path)
    return (tmp_path / FILE).write_text


def problems(**told):
    with pytest.raises(fw.ConfigError) as wrong:
        load(**{"environ": {}, **told})
    return wrong.value.problems


@pytest.mark.usefixtures("here")
def test_without_anything_all_is_default():
    found = load(environ={})
    assert found.file is None
    assert all(origin == "default" for _, _, origin in found)
    assert found["cluster.heartbeat"] == ClusterSettings().heartbeat
    assert found.node_options() == {}
    assert found.keyring() is None
    assert found.capture() is None


def test_a_flag_beats_a_variable_beats_the_file_beats_the_default(here):
    here("[node]\ntimeout = 1\nmailbox = 2\nthreads = 3\n")
    environ = {"FRAMEWIRE_NODE_TIMEOUT": "4", "FRAMEWIRE_NODE_MAILBOX": "5"}
    found = load(environ=environ, flags=[Flag("node.timeout", "--timeout", "6")])
    assert [(found[key], found.origin(key)) for key in ("node.timeout", "node.mailbox", "node.threads")] == [
        (6, "--timeout"),
        (5, "$FRAMEWIRE_NODE_MAILBOX"),
        (3, "framewire.toml"),
    ]
    assert found.origin("node.hold") == "default"


def test_the_file_may_be_named_by_a_flag_or_a_variable(here, tmp_path):
    here("[node]\ntimeout = 1\n")
    for name, number in (("a.toml", 2), ("b.toml", 3)):
        (tmp_path / name).write_text(f"[node]\ntimeout = {number}\n")
    assert load(environ={"FRAMEWIRE_CONFIG": "a.toml"})["node.timeout"] == 2
    assert load(file="b.toml", environ={"FRAMEWIRE_CONFIG": "a.toml"})["node.timeout"] == 3
    assert problems(file="none.toml") == ("none.toml: cannot be read: No such file or directory",)


def test_everything_that_is_wrong_is_told_at_once_with_key_value_accepted_and_origin(here):
    here('[node]\ntimeout = -1\noverflow = "never"\n[cluster]\nbind = "nowhere"\nmisses = true\n[log]\nlevel = 3\n')
    found = problems(
        environ={"FRAMEWIRE_CAPTURE_SAMPLE": "2", "FRAMEWIRE_NODE_WORKERS": "many"},
        flags=[Flag("cluster.heartbeat", "--set", "0")],
    )
    assert found == (
        "node.timeout: -1; must be a positive number of seconds (framewire.toml)",
        "node.overflow: 'never'; must be wait, reject or drop_oldest (framewire.toml)",
        f"cluster.bind: 'nowhere'; must be {BY_KEY['cluster.bind'].kind.accepted} (framewire.toml)",
        "cluster.misses: True; must be a whole number, at least 1 (framewire.toml)",
        "log.level: 3; must be debug, info, warning or error (framewire.toml)",
        "capture.sample: 2; must be a share from 0 to 1 ($FRAMEWIRE_CAPTURE_SAMPLE)",
        "node.workers: 'many'; must be a whole number from 0 to 1024 ($FRAMEWIRE_NODE_WORKERS)",
        "cluster.heartbeat: 0; must be a positive number of seconds (--set)",
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[cluster]\nmises = 3\n", "cluster.mises: no such option; did you mean cluster.misses?"),
        ("[clutser]\nmisses = 3\n", "clutser: no such table; did you mean [cluster]?"),
        ("[node]\nsample = 1\n", "node.sample: no such option; there is capture.sample"),
        ("misses = 3\n", "misses: belongs into a table; there is cluster.misses"),
        ("[xyz]\n", "xyz: no such table; there are node, cluster, security"),
        ("[log]\nqqqq = 1\n", "log.qqqq: no such option; there are level, format"),
        ("cluster = 3\n", "cluster: must be a table, [cluster]"),
        ("[node\n", "framewire.toml: is not TOML: "),
    ],
)
def test_an_unknown_key_is_an_error_that_names_the_nearest(here, text, problem):
    here(text)
    (found,) = problems()
    assert found.startswith(problem)


@pytest.mark.usefixtures("here")
def test_an_unknown_variable_is_an_error_that_names_the_nearest():
    assert problems(environ={"FRAMEWIRE_CLUSTR_BIND": "x"}) == (
        "FRAMEWIRE_CLUSTR_BIND: no such variable; did you mean FRAMEWIRE_CLUSTER_BIND? (environment)",
    )
    assert "config show" in problems(environ={"FRAMEWIRE_QQQ": "x"})[0]
    assert problems(flags=[Flag("node.workerz", "--set", "1")])[0].endswith("did you mean node.workers? (--set)")


@pytest.mark.usefixtures("here")
def test_variables_that_are_no_options_or_are_empty_are_left_alone():
    environ = {"FRAMEWIRE_PURE": "1", "FRAMEWIRE_NODE_TIMEOUT": "", "PATH": "x", "FRAMEWIRE_CONFIG": ""}
    assert not load(environ=environ).is_told("node.timeout")


def test_lists_pairs_and_tables_are_read_from_files_and_from_variables(here):
    here('[cluster]\nrendezvous = ["tcp://a:1", ["tcp://b:2", "tcp://b:9"]]\nversions = { "1.a" = 3 }\n')
    servers = ("tcp://a:1", ("tcp://b:2", "tcp://b:9"))
    assert load(environ={}).node_options() == {"rendezvous": servers, "versions": {b"1.a": 3}}
    variables = {
        "FRAMEWIRE_CLUSTER_RENDEZVOUS": "tcp://a:1, tcp://b:2|tcp://b:9",
        "FRAMEWIRE_CLUSTER_VERSIONS": "1.a=3",
        "FRAMEWIRE_CLUSTER_PEERS": "tcp://c:3",
        "FRAMEWIRE_NODE_STALL_AFTER": "never",
        "FRAMEWIRE_NODE_SPANS": "Yes",
        "FRAMEWIRE_CAPTURE_BODIES": "64",
    }
    found = load(environ=variables)
    told = {"rendezvous": servers, "versions": {b"1.a": 3}, "peers": ("tcp://c:3",), "stall_after": None}
    assert found.node_options() == told
    assert found["node.spans"] is True
    assert found["capture.bodies"] == 64


def test_v1_nodes_are_read_from_files_and_from_variables(here):
    told = {"tcp://a:1": ["orders.place", "orders.cancel 2.0"], "tcp://b:2": ["orders.place"]}
    listed = '"tcp://a:1" = ["orders.place", "orders.cancel 2.0"]\n"tcp://b:2" = ["orders.place"]\n'
    here(f"[cluster.v1_nodes]\n{listed}")
    assert load(environ={}).node_options() == {"v1_nodes": told}
    text = "tcp://a:1=orders.place|orders.cancel 2.0,tcp://b:2=orders.place"
    found = load(environ={"FRAMEWIRE_CLUSTER_V1_NODES": text})
    assert found.node_options() == {"v1_nodes": told}
    assert as_told(told) == text
    here('[cluster.v1_nodes]\n"tcp://a:1" = ["orders.place beta"]\n')
    assert "cluster.v1_nodes: tcp://a:1: version: b'beta' is neither N nor N.0" in problems()[0]
    here('[cluster.v1_nodes]\n"tcp://a:1" = "orders.place"\n')
    assert "a table of addresses" in problems()[0]


def test_what_a_node_is_told_it_takes(here):
    here('[node]\nidentity = "me"\ntimeout = 5\nworkers = 0\n[cluster]\nheartbeat = 0.5\n')
    node = fw.Node(signals=False, **load(environ={}).node_options())
    assert node.identity == b"me"
    assert node._core.settings.timeout == 5
    assert node._transport._settings.heartbeat == 0.5


def test_one_port_for_many_workers_is_an_error(here):
    here('[node]\nworkers = 2\n[cluster]\nbind = "tcp://127.0.0.1:7500"\nhealth = "tcp://127.0.0.1:7600-7700"\n')
    (found,) = problems()
    assert found.startswith("cluster.bind: 'tcp://127.0.0.1:7500' is one place, and there are 2 workers")
    here('[node]\nworkers = 1\n[cluster]\nbind = "tcp://127.0.0.1:7500"\n')
    assert load(environ={})["node.workers"] == 1


def test_what_only_the_settings_themselves_find_wrong_is_told_as_well(here, monkeypatch):
    monkeypatch.setattr(
        "framewire.cluster.settings._RULES", (("misses", "an odd number", lambda value: value % 2),)
    )
    here("[cluster]\nmisses = 4\n")
    assert problems() == ("cluster.misses: 4; must be an odd number",)


def test_capture_is_made_with_its_options(here, tmp_path):
    here(f'[capture]\npath = "{tmp_path}/captures"\nsample = 0.5\nkeep_bytes = "never"\ndirections = ["dead"]\n')
    recorder = load(environ={}).capture()
    assert recorder.settings == CaptureSettings(sample=0.5, directions=("dead",))


# --- keys


def key_file(path, text):
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def test_keys_come_from_the_file_or_from_a_variable_and_the_nearer_wins(here, tmp_path):
    secret = os.urandom(32).hex()
    here(
        f'[security]\nkeys = "{key_file(tmp_path / "a.toml", f"""[a]{chr(10)}key = "hex:{secret}"{chr(10)}""")}"\n'
    )
    other = key_file(tmp_path / "b.toml", f'[b]\nkey = "hex:{secret}"\n')
    in_environment = {"FRAMEWIRE_KEYS": f'[c]\nkey = "hex:{secret}"\n'}
    assert load(environ={}).keyring().domains == {"a"}
    assert load(environ={"FRAMEWIRE_SECURITY_KEYS": other}).keyring().domains == {"b"}
    assert load(environ=in_environment).keyring().domains == {"c"}
    assert load(environ=in_environment, flags=[Flag("security.keys", "--keys", other)]).keyring().domains == {"b"}


@pytest.mark.parametrize(
    "text",
    ['[security]\nkeys = "hex:{0}"\n', '[security]\nkey = "hex:{0}"\n', 'key = "hex:{0}"\n', '[k]\na="{0}"\n'],
)
def test_a_key_in_the_wrong_place_is_not_shown(here, text):
    secret = os.urandom(32).hex()
    here(text.format(secret))
    (found,) = problems()
    assert secret not in found


# --- the table is the truth


@pytest.mark.parametrize("table", SETTINGS)
def test_every_setting_is_an_option(table):
    names = {field.name for field in dataclasses.fields(SETTINGS[table])}
    assert names <= {option.name for option in OPTIONS if option.table == table}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_a_default_survives_being_written_out(option):
    written = as_told(option.default)
    if written:
        assert option.kind.good(option.kind.read(written))
        assert option.kind.made(option.kind.read(written)) == option.default


_PROBES = [-1, 0, 1, 2, 4, 5, 31, 32, 1023, 1024, 65535, 65536, 10**6, 0.5, 1.5, float("inf"), float("nan")]
_WORDS = [
    "wait",
    "reject",
    "drop_oldest",
    "keep",
    "drop",
    "sent",
    "a*",
    "a*b",
    "tcp://a:1",
    "tcp://*:1",
    "tcp://a:*",
    "",
]


@given(
    st.sampled_from([option for option in OPTIONS if option.table in SETTINGS]),
    st.sampled_from(_PROBES) | st.sampled_from(_WORDS) | st.lists(st.sampled_from(_WORDS), max_size=2),
)
def test_the_table_and_the_settings_accept_the_same(option, value):
    settings = SETTINGS[option.table]
    if option.name not in {field.name for field in dataclasses.fields(settings)}:
        return
    accepted = option.kind.good(value)
    if not accepted and option.name in _WIDER:
        return
    try:
        settings(**{option.name: option.kind.made(value) if accepted else value})
    except fw.ConfigError:
        assert not accepted
    else:
        assert accepted


_WIDER = ("identities", "directions", "rendezvous", "peers", "spool")
"""What settings take from Python code in more ways than a file can write."""


def test_no_two_options_have_one_variable():
    assert len({option.variable for option in OPTIONS}) == len(OPTIONS) == len(BY_KEY)


def test_every_option_and_table_says_what_it_means():
    assert all(option.meaning.endswith(".") for option in OPTIONS)
    assert all(table.meaning for table in TABLES)


def test_the_reference_page_is_what_the_table_says():
    written = re.search(r"<!-- options -->\n(.*)<!-- /options -->", PAGE.read_text(), re.DOTALL)
    assert written[1] == reference(), "write it anew: framewire config reference"
