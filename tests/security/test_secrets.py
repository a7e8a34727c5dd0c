"""Keys are in no log, no error, no report, no capture and no output, however much is said."""

import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest
from tests.cluster.clustering import make_node, served, uri_of
from tests.cluster.curves import Keys
from tests.node.running import eventually, run
from tests.secret_watch import Watch

import framewire as fw
from framewire.errors import ConfigError

ROOT = Path(__file__).parents[2]


@fw.message("secret.ask")
class Ask(msgspec.Struct):
    pass


@fw.message("secret.told")
class Told(msgspec.Struct):
    pass


def test_nothing_that_a_signed_and_encrypted_cluster_says_has_a_key_in_it(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    files = Keys(tmp_path / "keys", "server", "one", "two")
    files.make("stranger")
    secrets = [os.urandom(32) for _ in range(3)]
    watch = Watch()
    for name in ("cluster", "server", "one", "two", "stranger"):
        pair = files.of("one") if name == "cluster" else files.of(name)
        watch.learn((pair.read().cluster if name == "cluster" else pair.read().own).secret, name)
    for secret in secrets:
        watch.learn(secret, "the domain")
    rings = [fw.KeyRing([fw.DomainKey("d", secret)], {"d": ["secret.*"]}) for secret in secrets]
    said = []

    async def main(server):
        options = {"keyring": rings[0], "stop_timeout": 0.1}
        async with (
            make_node(server, curve=files.of("one"), capture=tmp_path / "captures", **options) as one,
            make_node(server, curve=files.of("two"), **options) as two,
            make_node(peers=[server.uri], curve=files.of("stranger"), keyring=rings[1]) as stranger,
        ):

            @two.handler(Ask)
            async def ask(_: Ask) -> Told:
                return Told()

            await eventually(lambda: list(one._router.table.all(fw.MessageId(b"secret.ask"))))
            await one.hub.ask(Ask(), Told, trace=True)
            one.use_keys(rings[2])
            with pytest.raises(fw.BadSignature) as caught:
                await one.hub.ask(Ask(), Told)
            for node in (one, two, stranger):
                said.extend(map(str, (node, vars(node), node.stats(), list(node.dead_letters), node._core)))
                said.extend(map(repr, (node._transport, vars(node._transport), node._core.keyring)))
            said.extend((str(caught.value), repr(caught.value), str(vars(caught.value)), uri_of(one)))
        files_written = [path for path in (tmp_path / "captures").rglob("*") if path.is_file()]
        said.extend(path.read_bytes().decode("latin-1") for path in files_written)

    run(served(main, curve=files.of("server")))
    said.append(caplog.text)
    assert len(said) > 20
    assert watch.found_in("\n".join(said)) == set()


@pytest.mark.parametrize(
    "wrong", ["[d]\nkey = 'hex:{}zz'", "[d]\nkey = '{}'", "d = '{}'", "[d]\nkey = 'hex:{}'\nx=1"]
)
def test_an_error_about_a_key_file_does_not_show_what_stands_where_the_key_is(tmp_path, wrong):
    secret = os.urandom(32).hex()
    path = tmp_path / "keys.toml"
    path.touch(0o600)
    path.write_text(wrong.format(secret))
    with pytest.raises(ConfigError) as caught:
        fw.KeyRing.from_file(path)
    assert secret not in str(caught.value)


@pytest.mark.parametrize(
    ("shown", "outcome"),
    [("print(key.key.hex())", 1), ("logging.error(key.key)", 1), ("print(key, fw.KeyRing([key]))", 0)],
    ids=["output", "log", "neither"],
)
def test_a_test_that_writes_a_key_fails(tmp_path, shown, outcome):
    file = tmp_path / "test_it.py"
    file.write_text(
        textwrap.dedent(f"""
            import logging, os
            import framewire as fw

            def test_it():
                key = fw.DomainKey("payments", os.urandom(32).hex().encode())
                {shown}
        """)
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.secret_watch",
        "-p",
        "no:cacheprovider",
        str(file),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == outcome, done.stdout
    assert ("shows a key: that of domain 'payments'" in done.stdout) == bool(outcome)
