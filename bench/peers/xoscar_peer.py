"""xoscar: the actors under Xorbits."""

import asyncio

import xoscar as xo
from contract import AsyncClient, loop_factory, main, until_ended


class Echo(xo.Actor):
    def __init__(self):
        self.notes = 0

    async def answer(self, body):
        return body

    async def note(self, _):
        self.notes += 1

    async def count(self):
        return self.notes


def serve(ready):
    async def run():
        pool = await xo.create_actor_pool("127.0.0.1", n_process=0)
        async with pool:
            await xo.create_actor(Echo, address=pool.external_address, uid="echo")
            ready(pool.external_address)
            await until_ended()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(run())


class Asking(AsyncClient):
    async def open(self, address):
        self.echo = await xo.actor_ref(address=address, uid="echo")

    async def one(self, body):
        return await self.echo.answer(body)

    async def note(self, body):
        await self.echo.note.tell(body)

    async def counted(self):
        return await self.echo.count()

    async def shut(self):
        pass


if __name__ == "__main__":
    main(serve, Asking)
