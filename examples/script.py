"""The same without asyncio: for scripts, notebooks and thread pools."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import framewire as fw


@fw.message("math.square")
@dataclass
class Square:
    number: int


@fw.message("math.result")
@dataclass
class Result:
    number: int


class Calculator(fw.Actor):
    @fw.handles(Square)
    async def square(self, square: Square) -> Result:
        if square.number > 1000:
            raise OverflowError("that is too much for me")
        return Result(square.number**2)


def main() -> None:
    with fw.Client() as client, ThreadPoolExecutor(8) as pool:
        client.host(Calculator())
        numbers = pool.map(lambda n: client.ask(Square(n), Result, timeout=5).number, range(10))
        print("squares:", *numbers)
        try:
            client.ask(Square(5000), Result, timeout=5)
        except fw.RemoteError as error:
            print(f"{error.type_name} in {error.actor}: {error.detail}")


if __name__ == "__main__":
    main()
