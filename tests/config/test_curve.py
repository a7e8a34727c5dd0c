"""The keys of CURVE in a configuration."""

import pytest
from click.testing import CliRunner

import framewire as fw
from framewire.cli import main
from framewire.config import as_told, load

TOLD = "key=a.key_secret,cluster=c.key_secret,allowed=keys"
CURVE = fw.Curve(key="a.key_secret", cluster="c.key_secret", allowed="keys")


def test_a_table_and_a_variable_say_the_same(tmp_path):
    file = tmp_path / "framewire.toml"
    file.write_text('[cluster.curve]\nkey = "a.key_secret"\ncluster = "c.key_secret"\nallowed = "keys"\n')
    assert load(file=file, environ={})["cluster.curve"] == CURVE
    told = load(environ={"FRAMEWIRE_CLUSTER_CURVE": TOLD, "FRAMEWIRE_RENDEZVOUS_CURVE": TOLD})
    assert told["cluster.curve"] == told["rendezvous.curve"] == CURVE
    assert told.node_options() == {"curve": CURVE}
    assert as_told(CURVE) == TOLD


@pytest.mark.parametrize("told", ["key=a", "a", "key=a,cluster=b,allowed=", "key=a,cluster=b,allowed=c,more=d"])
def test_what_is_missing_or_too_much_is_told_with_what_is_accepted(told):
    with pytest.raises(fw.ConfigError, match=r"cluster.curve: .* must be a table with key, cluster and allowed"):
        load(environ={"FRAMEWIRE_CLUSTER_CURVE": told})


def test_show_writes_it_for_people_and_for_programs():
    for more in ((), ("--json",)):
        result = CliRunner().invoke(
            main, ["config", "show", "--told", *more], env={"FRAMEWIRE_CLUSTER_CURVE": TOLD}
        )
        assert result.exit_code == 0
        assert TOLD in result.output
