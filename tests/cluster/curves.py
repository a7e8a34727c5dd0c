"""Key files of CURVE, made when tests run."""

import shutil

from framewire.cluster.curve import new_pair
from framewire.security.curve import Curve, write_pairs


class Keys:
    """The keys of a made-up cluster: everybody has a pair, and those in ``allowed`` may connect."""

    def __init__(self, folder, *names):
        self.folder = folder
        self.allowed = folder / "allowed"
        self.allowed.mkdir(parents=True)
        write_pairs(folder, {"cluster": new_pair()})
        for name in names:
            self.make(name)
            self.allow(name)

    def make(self, name):
        write_pairs(self.folder, {name: new_pair()})

    def allow(self, name):
        shutil.copy(self.folder / f"{name}.key", self.allowed)

    def forbid(self, name):
        (self.allowed / f"{name}.key").unlink()

    def of(self, name, allowed=None):
        """What a member is told."""
        return Curve(
            key=self.folder / f"{name}.key_secret",
            cluster=self.folder / "cluster.key_secret",
            allowed=allowed or self.allowed,
        )
