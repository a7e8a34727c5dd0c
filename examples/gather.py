"""Ask everyone at once, and take the best of the answers that come in time."""

import msgspec

import framewire as fw


@fw.message("shop.price_wanted")
class PriceWanted(msgspec.Struct):
    article: str


@fw.message("shop.offer")
class Offer(msgspec.Struct):
    seller: str
    cents: int


class Seller(fw.Actor):
    def __init__(self, name: str, cents: int) -> None:
        self.name = name
        self.cents = cents

    @fw.handles(PriceWanted)
    async def offer(self, wanted: PriceWanted) -> Offer:
        if not self.cents:
            raise LookupError(f"{self.name} has no {wanted.article}")
        return Offer(self.name, self.cents)


async def main() -> None:
    async with fw.Node() as node:
        for name, cents in [("Ann", 420), ("Bob", 399), ("Cy", 0), ("Dee", 455)]:
            await node.host(Seller(name, cents))
        offers = await node.hub.gather(PriceWanted("tea"), Offer, timeout=2, stop_after=4)
        best = min(offers, key=lambda offer: offer.cents)
        print(f"{len(offers)} offers; the best is {best.seller}'s: {best.cents / 100:.2f}")
        print(f"{len(offers.errors)} could not say: {offers.errors[0].detail}")


if __name__ == "__main__":
    fw.run(main())
