import json
import os

import pytest
from click.testing import CliRunner

from framewire.cli import main


@pytest.fixture
def config(tmp_path, monkeypatch):
    """``framewire config`` in a directory of its own, with this file and these variables."""

    def run(*arguments, file=None, **variables):
        monkeypatch.chdir(tmp_path)
        if file is not None:
            (tmp_path / "framewire.toml").write_text(file)
        environ = {name: None for name in os.environ if name.startswith("FRAMEWIRE_")} | variables
        return CliRunner().invoke(main, ["config", *arguments], env=environ)

    return run


def test_check_says_that_all_is_right(config):
    result = config("check", file="[cluster]\nmisses = 5\n", FRAMEWIRE_NODE_TIMEOUT="3")
    assert (result.exit_code, result.output) == (0, "All is right: framewire.toml, 2 options told.\n")


def test_check_tells_all_that_is_wrong_in_one_paragraph(config):
    result = config("check", "--set", "node.workers=x", file="[cluster]\nmises = 5\n")
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: configuration:\n"
        "  - cluster.mises: no such option; did you mean cluster.misses? (framewire.toml)\n"
        "  - node.workers: 'x'; must be a whole number from 0 to 1024 (--set)\n"
    )


def test_check_reads_the_keys_and_never_shows_them(config, tmp_path):
    secret = os.urandom(32).hex()
    keys = tmp_path / "keys.toml"
    keys.write_text(f'[pay]\nkey = "hex:{secret}"\n')
    keys.chmod(0o644)
    result = config("check", file=f'[security]\nkeys = "{keys}"\n')
    assert result.exit_code == 2
    assert "chmod 600" in result.stderr
    keys.chmod(0o600)
    result = config("check")
    assert "keys of 1 domain" in result.output
    for command in (["show"], ["show", "--json"], ["check"]):
        shown = config(*command, FRAMEWIRE_KEYS=f'[pay]\nkey = "hex:{secret}"\n')
        assert shown.exit_code == 0
        assert secret not in shown.output
    wrong = config("check", FRAMEWIRE_KEYS=f'[pay]\nkey = "hex:{secret}x"\n')
    assert wrong.exit_code == 2
    assert secret not in wrong.stderr


def test_show_says_where_each_value_comes_from(config):
    result = config(
        "show", "--json", "--set", "node.hold=7", file="[cluster]\nmisses = 5\n", FRAMEWIRE_NODE_TIMEOUT="3"
    )
    found = json.loads(result.output)
    assert found["cluster.misses"] == {"value": 5, "from": "framewire.toml"}
    assert found["node.timeout"] == {"value": 3, "from": "$FRAMEWIRE_NODE_TIMEOUT"}
    assert found["node.hold"] == {"value": 7, "from": "--set"}
    assert found["node.mailbox"] == {"value": 1000, "from": "default"}


def test_show_told_leaves_the_defaults_out(config):
    result = config("show", "--told", file='[cluster]\nrendezvous = ["tcp://a:1", ["tcp://b:2", "tcp://b:9"]]\n')
    lines = [line.split() for line in result.output.splitlines()]
    assert lines == [
        ["option", "value", "from"],
        ["cluster.rendezvous", "tcp://a:1,tcp://b:2|tcp://b:9", "framewire.toml"],
    ]


def test_a_flag_without_a_value_is_a_usage_error(config):
    result = config("check", "--set", "node.workers")
    assert result.exit_code == 2
    assert "write it as KEY=VALUE" in result.stderr


@pytest.mark.parametrize("command", [[], ["check"], ["show"], ["reference"]])
def test_help_has_an_example(config, command):
    assert "Example: framewire config" in config(*command, "--help").output


def test_check_finds_keys_that_are_too_short(config):
    text = f'[pay]\nkey = "hex:{os.urandom(16).hex()}"\n'
    result = config("check", FRAMEWIRE_KEYS=text)
    assert result.exit_code == 2
    assert "$FRAMEWIRE_KEYS pay.key: key: that of domain 'pay' has 16 bytes" in result.stderr
    assert config("check", FRAMEWIRE_KEYS=f"{text}insecure_short_keys = true\n").exit_code == 0


@pytest.mark.parametrize("table", ["cluster", "rendezvous"])
def test_check_finds_wrong_modes_of_all_files_with_keys_at_once(config, tmp_path, table):
    made = CliRunner().invoke(main, ["keys", "new", "cluster", "me", "--directory", str(tmp_path)])
    assert made.exit_code == 0
    allowed, keys = tmp_path / "allowed", tmp_path / "keys.toml"
    allowed.mkdir()
    keys.write_text(f'[pay]\nkey = "hex:{os.urandom(32).hex()}"\n')
    public = allowed / "me.key"
    public.write_text((tmp_path / "me.key").read_text())
    files = {
        public: (0o644, 0o666, f"{table}.curve.allowed: anybody can let themselves in: {public} has mode 0666"),
        keys: (0o600, 0o640, f"{keys} others can get at these keys (mode 0640)"),
        tmp_path / "me.key_secret": (0o600, 0o604, f"{table}.curve.key: {tmp_path / 'me.key_secret'} others can"),
        tmp_path / "cluster.key_secret": (
            0o600,
            0o660,
            f"{table}.curve.cluster: {tmp_path / 'cluster.key_secret'} ",
        ),
        allowed: (0o755, 0o777, f"{table}.curve.allowed: anybody can let themselves in: {allowed} has mode 0777"),
    }
    text = (
        f'[security]\nkeys = "{keys}"\n[{table}.curve]\nkey = "{tmp_path}/me.key_secret"\n'
        f'cluster = "{tmp_path}/cluster.key_secret"\nallowed = "{allowed}"\n'
    )
    for path, (right, _, _) in files.items():
        path.chmod(right)
    assert config("check", file=text).exit_code == 0
    for path, (right, wrong, said) in files.items():
        path.chmod(wrong)
        result = config("check")
        assert result.exit_code == 2
        assert said in result.stderr
        assert result.stderr.count("\n  - ") == 1
        path.chmod(right)
    for path, (_, wrong, _) in files.items():
        path.chmod(wrong)
    assert config("check").stderr.count("\n  - ") == len(files) - 1, (
        "in a directory that is wrong, files do not count"
    )


def test_check_finds_that_a_closed_node_has_no_keys(config):
    result = config("check", file="[cluster]\nopen = false\n")
    assert result.exit_code == 2
    assert (
        "cluster.open: false, but there are neither domain keys (security.keys) nor cluster.curve" in result.stderr
    )
