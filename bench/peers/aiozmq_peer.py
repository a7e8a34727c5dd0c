"""aiozmq.rpc: calls over ZeroMQ on asyncio."""

import asyncio

import aiozmq.rpc
from contract import AsyncClient, main, until_ended


class Echo(aiozmq.rpc.AttrHandler):
    notes = 0

    @aiozmq.rpc.method
    async def answer(self, body):
        return body

    @aiozmq.rpc.method
    def note(self, _):
        Echo.notes += 1

    @aiozmq.rpc.method
    def count(self):
        return Echo.notes


def serve(ready):
    async def run():
        echo = Echo()
        asks = await aiozmq.rpc.serve_rpc(echo, bind="tcp://127.0.0.1:*")
        notes = await aiozmq.rpc.serve_pipeline(echo, bind="tcp://127.0.0.1:*")
        ready(" ".join(next(iter(each.transport.bindings())) for each in (asks, notes)))
        await until_ended()

    asyncio.run(run())


class Asking(AsyncClient):
    async def open(self, address):
        asks, notes = address.split()
        self.calls = await aiozmq.rpc.connect_rpc(connect=asks)
        self.pipe = await aiozmq.rpc.connect_pipeline(connect=notes)

    async def one(self, body):
        return await self.calls.call.answer(body)

    async def note(self, body):
        await self.pipe.notify.note(body)

    async def counted(self):
        return await self.calls.call.count()

    async def shut(self):
        self.calls.close()
        self.pipe.close()


if __name__ == "__main__":
    main(serve, Asking)
