"""No test may write a key: every key that is made while tests run is looked for in all that they write and log.

A plugin of pytest. Keys of fewer than eight bytes are not looked for: they would be found in ordinary words.
"""

import base64
import functools

import pytest

from framewire.security import DomainKey
from framewire.security.curve import KeyPair

LEAST = 8


class Watch:
    """The keys that were made so far, in every form in which they could be written."""

    def __init__(self):
        self.forms = {}

    def learn(self, secret, whose):
        if len(secret) < LEAST:
            return
        texts = {secret.hex(), base64.b64encode(secret).decode(), repr(secret)[2:-1]}
        if secret.isascii() and secret.decode().isprintable():
            texts.add(secret.decode())
        for text in texts:
            self.forms[text] = whose

    def found_in(self, text):
        return {whose for form, whose in self.forms.items() if form in text} if text else set()


def watched(made, watch, secret, whose):
    """The same constructor, but what it makes is looked for from then on."""

    @functools.wraps(made)
    def init(self, *arguments, **named):
        made(self, *arguments, **named)
        watch.learn(getattr(self, secret), whose(self))

    return init


def pytest_configure(config):
    watch = config.stash[WATCH] = Watch()
    originals = [(kind, kind.__init__) for kind in (DomainKey, KeyPair)]
    DomainKey.__init__ = watched(DomainKey.__init__, watch, "key", lambda key: f"domain {key.domain!r}")
    KeyPair.__init__ = watched(KeyPair.__init__, watch, "secret", lambda pair: f"public key {pair.public!r}")

    def restore():
        for kind, init in originals:
            kind.__init__ = init

    config.add_cleanup(restore)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.when == "teardown":
        watch = item.config.stash[WATCH]
        for name, text in report.sections:
            found = watch.found_in(text)
            if found:
                report.outcome = "failed"
                report.longrepr = f"{name} shows a key: that of {', '.join(sorted(found))}"
    return report


WATCH = pytest.StashKey()
