"""The shop without any network: how departments work together is tested in one process, in milliseconds."""
# ruff: noqa: ANN001, ANN003, ANN201, ANN202, S101 - tests are read, not called

import asyncio
import secrets

import pytest
from shop.messages import Charge, Count, Counted, Order, Pack, Place, Present, RollCall, Shipped
from shop.notification import Notification
from shop.orders import Orders
from shop.payment import Payment
from shop.shipping import Shipping
from shop.stock import Stock

import framewire as fw
from framewire.testing import Cluster, ManualClock

TEA = Order(1, "Ada", "tea", 2)


def keys():
    return fw.KeyRing([fw.DomainKey("payment", secrets.token_bytes(32))], {"payment": ["payment.*"]})


async def opened(cluster, ring, **payment):
    """Four nodes as in shop/nodes.py, and a customer, who has no key."""
    places = [(Orders(),), (Stock(),), (Payment(**payment),), (Shipping(lifting=0.0), Notification())]
    for actors, ring_of_node in zip(places, (ring, None, ring, None), strict=True):
        node = await cluster.join(keyring=ring_of_node)
        for actor in actors:
            await node.host(actor)
    customer = await cluster.join()
    await cluster.settled()
    return customer, {type(actor).__name__: actor for actors in places for actor in actors}


def with_a_shop(scenario, **payment):
    async def main():
        async with Cluster(0, timeout=5) as cluster:
            await scenario(cluster, *await opened(cluster, keys(), **payment))

    asyncio.run(main())


def test_an_order_goes_through_the_whole_shop_and_the_customer_hears_from_the_last_department():
    async def scenario(_, customer, departments):
        shipped = await customer.hub.ask(Place(TEA), Shipped)
        assert shipped == Shipped(1, "FW-000001")
        assert departments["Stock"].left["tea"] == 100_000 - 2

    with_a_shop(scenario, declined=0)


def test_whoever_gets_a_parcel_is_told_by_mail_and_by_phone():
    async def scenario(cluster, customer, departments):
        await customer.hub.ask(Place(TEA), Shipped)
        await cluster.settled()
        assert departments["Notification"].sent == {"mail": 1, "phone": 1}

    with_a_shop(scenario, declined=0)


def test_whoever_did_not_wait_gets_a_letter_too():
    async def scenario(cluster, customer, departments):
        await customer.hub.tell(Place(TEA))
        await cluster.settled()
        assert departments["Notification"].sent == {"mail": 1, "phone": 1, "letter": 1}

    with_a_shop(scenario, declined=0)


def test_a_customer_whose_bank_says_no_is_told_so_and_gets_nothing():
    async def scenario(cluster, customer, departments):
        with pytest.raises(fw.RemoteError, match=r"order 1: the bank does not pay 8\.40") as caught:
            await customer.hub.ask(Place(TEA), Shipped)
        assert caught.value.type_name == "shop.payment.Declined"
        await cluster.settled()
        assert departments["Shipping"].handled == 0

    with_a_shop(scenario, declined=1)


def test_the_same_seed_refuses_the_same_orders():
    async def refused(seed):
        async with fw.Node() as node:
            await node.host(Payment(seed, declined=0.5))
            orders = [Charge(Order(number, "Ada", "tea"), 420) for number in range(100)]
            answers = await asyncio.gather(*(node.hub.ask(each, Pack) for each in orders), return_exceptions=True)
            return [number for number, answer in enumerate(answers) if isinstance(answer, fw.RemoteError)]

    first, again, other = (asyncio.run(refused(seed)) for seed in (1, 1, 2))
    assert first == again != other
    assert 0 < len(first) < 100


def test_what_is_not_there_cannot_be_ordered():
    async def scenario(_, customer, departments):
        with pytest.raises(fw.RemoteError, match="not enough coffee") as caught:
            await customer.hub.ask(Place(Order(1, "Ada", "coffee")), Shipped)
        assert caught.value.type_name == "shop.stock.OutOfStock"
        assert departments["Payment"].handled == 0

    with_a_shop(scenario, declined=0)


def test_a_piano_takes_its_time_and_tea_does_not_wait_for_it():
    async def main():
        clock = ManualClock()
        async with fw.Node(clock=clock) as node:
            await node.host(Shipping(lifting=0.05))
            piano = node.hub.start(Pack(Order(1, "Ada", "piano")), Shipped)
            assert (await node.hub.ask(Pack(TEA), Shipped)).number == 1
            assert not piano.done
            assert (await piano).parcel == "FW-000001"

    asyncio.run(main())


def test_every_department_answers_when_the_roll_is_called():
    async def scenario(_, customer, departments):
        await customer.hub.ask(Place(TEA), Shipped)
        present = await customer.hub.gather(RollCall(), Present, stop_after=5)
        assert {each.department for each in present} == {name.lower() for name in departments}
        assert {each.handled for each in present if each.department == "stock"} == {1}

    with_a_shop(scenario, declined=0)


def test_nobody_without_the_key_can_have_a_customer_charged():
    async def scenario(_, customer, departments):
        with pytest.raises(fw.BadSignature, match="payment"):
            await customer.hub.ask(Charge(TEA, 1), Pack, timeout=1)
        assert departments["Payment"].handled == 0

    with_a_shop(scenario, declined=0)


def test_whoever_asks_a_stock_that_is_gone_is_told_so():
    async def scenario(cluster, customer, _):
        assert await customer.hub.ask(Count("tea"), Counted) == Counted("tea", 100_000)
        await cluster.kill(1)
        with pytest.raises((fw.NoRoute, fw.Unreachable)):
            await customer.hub.ask(Count("tea"), Counted, timeout=1)

    with_a_shop(scenario)
