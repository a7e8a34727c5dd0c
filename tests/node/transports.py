"""A transport that leads nowhere and writes down what its node asks of it."""


class Recording:
    uri = "memory://here"

    def __init__(self):
        self.diary = []

    async def start(self, _):
        self.diary.append("started")

    async def stop(self):
        self.diary.append("stopped")

    def send(self, peer, frames):
        self.diary.append(("sent", peer, frames))

    def announce(self, registrations):
        """Nobody is there to hear it."""

    async def settle(self):
        """Nobody is there to hear it."""

    def withdraw(self, registrations, grace=None):
        """Nobody is there to hear it."""

    def discover(self, message, receiver):
        """Nobody is there to answer."""
