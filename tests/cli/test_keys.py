"""``framewire keys``: files that only their owner can read, and that a node can use."""

import stat

import pytest
from click.testing import CliRunner

import framewire as fw
from framewire.cli import main


@pytest.fixture
def keys(tmp_path, monkeypatch):
    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        return CliRunner().invoke(main, ["keys", *arguments])

    return run


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_new_makes_a_pair_for_each_name_that_a_node_can_use(keys, tmp_path):
    assert keys("new", "cluster", "one").exit_code == 0
    (tmp_path / "allowed").mkdir()
    read = fw.Curve(
        key=tmp_path / "one.key_secret", cluster=tmp_path / "cluster.key_secret", allowed=tmp_path / "allowed"
    ).read()
    assert len(read.own.public) == len(read.cluster.secret) == 40
    assert read.own != read.cluster


def test_new_keeps_secrets_to_their_owner_and_shows_none(keys, tmp_path):
    result = keys("new", "one")
    assert (mode(tmp_path / "one.key_secret"), mode(tmp_path / "one.key") & 0o600) == (0o600, 0o600)
    secret = (tmp_path / "one.key_secret").read_text().partition("secret-key = ")[2].strip().strip('"')
    assert len(secret) == 40
    assert secret not in result.output
    assert secret not in (tmp_path / "one.key").read_text()


def test_new_writes_into_the_directory_that_is_named(keys, tmp_path):
    (tmp_path / "there").mkdir()
    assert keys("new", "one", "--directory", "there").exit_code == 0
    assert {path.name for path in (tmp_path / "there").iterdir()} == {"one.key", "one.key_secret"}


def test_new_writes_nothing_over_and_nothing_at_all_where_one_is_there(keys, tmp_path):
    keys("new", "one")
    before = (tmp_path / "one.key_secret").read_text()
    result = keys("new", "two", "one")
    assert result.exit_code == 2
    assert "one.key_secret is there already, and nothing was written" in result.stderr
    assert (tmp_path / "one.key_secret").read_text() == before
    assert not (tmp_path / "two.key").exists()


@pytest.mark.parametrize(
    ("names", "told"),
    [(["../x"], "'../x': a name has letters"), (["one", "one"], "given twice"), (["-"], "'-': a name has letters")],
)
def test_new_refuses_names_that_are_no_names_of_files(keys, tmp_path, names, told):
    result = keys("new", *names)
    assert result.exit_code == 2
    assert told in result.stderr
    assert not list(tmp_path.iterdir())


def test_new_says_why_it_cannot_write(keys):
    result = keys("new", "one", "--directory", "nowhere")
    assert result.exit_code == 2
    assert "nowhere/one.key_secret cannot be written: No such file or directory" in result.stderr
