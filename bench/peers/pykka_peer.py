"""Pykka: actors in one process, each a thread."""

import pykka
from contract import main


class Echo(pykka.ThreadingActor):
    def on_receive(self, message):
        return message


class Asking:
    def __init__(self):
        self.echo = Echo.start()

    def ask(self, body):
        return self.echo.ask(body)

    def close(self):
        pykka.ActorRegistry.stop_all()


if __name__ == "__main__":
    main(lambda _: None, None, Asking)
