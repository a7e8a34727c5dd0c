"""What a node can be given to run."""

import pytest
from tests.node.messages import Answer, Question
from tests.node.running import run
from tests.operation.programs import write

import framewire as fw
from framewire.operation.apps import AppError, host, load_app, load_module, message_types


class Echo(fw.Actor):
    @fw.handles(Question)
    async def asked(self, question):
        return Answer(question.text)


def gives_nothing(node):
    node.handler(Question)(lambda question: Answer(question.text))


async def gives_later(node):
    assert node.running
    return Echo()


@pytest.mark.parametrize(
    "app",
    [
        Echo,
        Echo(),
        gives_nothing,
        gives_later,
        lambda _: Echo,
        lambda _: [Echo],
        lambda _: (each for each in [Echo()]),
    ],
)
def test_an_app_is_an_actor_a_class_or_a_function_of_the_node(app):
    async def main():
        async with fw.Node(signals=False) as node:
            await host(node, app)
            assert await node.hub.ask(Question("tea"), Answer) == Answer("tea")

    run(main())


def test_an_app_that_returns_something_else_is_refused():
    async def main():
        async with fw.Node(signals=False) as node:
            with pytest.raises(AppError, match="returned 'actor', which is no actor"):
                await host(node, lambda _: ["actor"])

    run(main())


def test_a_module_that_lacks_another_says_which(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    write(tmp_path, "lacking_module.py", "import nothing_like_it")
    with pytest.raises(AppError, match=r"lacking_module cannot be imported: .* No module named 'nothing_like_it'"):
        load_app("lacking_module:app")
    with pytest.raises(AppError, match=r"there is no module 'lacking_module\.inner'|cannot be imported"):
        load_app("lacking_module.inner:app")
    with pytest.raises(AppError, match="there is no module 'nothing_like_it'"):
        load_app("nothing_like_it.orders:app")


@pytest.mark.parametrize("name", ["module", ":app", "module:", ""])
def test_a_name_without_a_module_or_an_app_is_a_usage_error(name):
    with pytest.raises(fw.UsageError, match="must be module:name"):
        load_app(name)


def test_the_messages_of_a_module_are_found():
    found = {declared.python_type for declared in message_types(load_module("tests.node.messages"))}
    assert {Question, Answer} <= found
