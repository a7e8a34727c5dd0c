"""SIGHUP has ``framewire node`` read its keys anew, in one process and in several."""

import os
import signal

import pytest
from tests.operation.programs import client, program
from tests.operation.shop import Order, Ordered

import framewire as fw

OLD, NEW = os.urandom(32), os.urandom(32)


def keyfile(directory, *secrets, text=None):
    first, *others = [f'"hex:{secret.hex()}"' for secret in secrets] or [""]
    path = directory / "keys.toml"
    path.touch(0o600)
    path.write_text(text or f'[shop]\nkey = {first}\naccept = [{", ".join(others)}]\nidentities = ["shop.*"]\n')


def ring(*secrets):
    return fw.KeyRing([fw.DomainKey("shop", secret) for secret in secrets], {"shop": ["shop.*"]})


@pytest.mark.parametrize("workers", [0, 2])
def test_a_changed_key_file_is_used_on_sighup(shop, server, workers):
    keyfile(shop, OLD)
    options = ["--app=shop:app", f"--set=node.workers={workers}", "--set=security.keys=keys.toml"]
    with program(shop, "node", *options, f"--rendezvous={server.uri}") as running:
        with client(server, keyring=ring(OLD)) as hub:
            assert hub.ask(Order("tea"), Ordered).article == "tea"
        running.says("is ready", times=max(1, workers))
        keyfile(shop, NEW)
        running.send(signal.SIGHUP)
        running.says("the keys were read anew; domains: shop", times=max(1, workers))
        with client(server, keyring=ring(NEW)) as hub:
            assert hub.ask(Order("cup"), Ordered).article == "cup"
        assert running.stop() == 0


def test_a_key_file_that_is_wrong_changes_nothing_and_is_told(shop, server):
    keyfile(shop, OLD)
    options = ["--app=shop:app", "--set=security.keys=keys.toml"]
    with program(shop, "node", *options, f"--rendezvous={server.uri}") as running:
        running.says("is ready")
        keyfile(shop, text="[shop]\nkey = 'nothing'\n")
        running.send(signal.SIGHUP)
        running.says("the keys stay as they are")
        with client(server, keyring=ring(OLD)) as hub:
            assert hub.ask(Order("tea"), Ordered).article == "tea"
        assert running.stop() == 0
