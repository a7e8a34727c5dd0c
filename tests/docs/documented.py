"""Commands as pages show them, held against the real command line without being run."""

import re
import shlex
from itertools import takewhile

import click
from click.types import FuncParamType

from framewire.cli import main

SHELLS = {"", "sh", "bash", "shell", "console"}
_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`(framewire [^`\n]+)`")
_OPERATORS = {"&&", "||", "|", ";", "&", "(", ")"}
_REDIRECTIONS = {">", ">>", "<", "<<<", ">&"}


def every_command(command=main, path=("framewire",)):
    """Every command with the words that call it."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from every_command(command.get_command(context, name), (*path, name))


def shown_in(page):
    """The lines of a page's blocks of shell that call framewire, continued ones as one."""
    for language, block in _FENCE.findall(page):
        if language.partition(" ")[0] in SHELLS:
            for line in block.replace("\\\n", " ").splitlines():
                if re.match(r"(\$ )?([A-Z_]+=\S* )*framewire ", line):
                    yield line.removeprefix("$ ")


def mentioned_in(page):
    """Commands in the midst of sentences, which may leave something out."""
    yield from _INLINE.findall(_FENCE.sub("", page))


def understood(line):
    """Assert that the command line takes every call of framewire in a line of shell."""
    nested = re.findall(r"\$\((framewire [^)]*)\)", line)
    calls = [call for each in nested or [line] for call in _calls(each)]
    assert calls, line
    for words in calls:
        _takes(main, [word for word in words if word != "--debug"])  # which can be anywhere


def known(mention):
    """Assert that a command which is mentioned exists, and that it has the options that are mentioned with it."""
    words = mention.replace("…", " ").replace("[", " ").replace("]", " ").split()[1:]
    command = main
    while words and isinstance(command, click.Group) and re.fullmatch(r"[a-z-]+", words[0]):
        if words[0].startswith("-"):
            break
        name = words.pop(0)
        found = command.get_command(click.Context(command), name)
        assert found is not None, f"{mention}: there is no command {name}"
        command = found
    options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {
        "--debug",
        "--help",
    }
    for word in words:
        if re.match(r"--[a-z]", word):
            assert word.partition("=")[0] in options, f"{mention}: {command.name} has no {word}"


def _calls(line):
    reader = shlex.shlex(line, posix=True, punctuation_chars=True)
    reader.whitespace_split = True
    words, call, skip = [*reader, ";"], [], False
    for word in words:
        if skip or word in _REDIRECTIONS:
            skip = not skip
        elif word in _OPERATORS:
            settings = len([*takewhile(lambda each: re.fullmatch(r"[A-Z_]+=.*", each), call)])
            if call[settings : settings + 1] == ["framewire"]:
                yield call[settings + 1 :]
            call = []
        else:
            call.append(word)


def _takes(command, words):
    # With its settings: click keeps the option for help as it is first asked for.
    context = click.Context(command, info_name=command.name, **command.context_settings)
    given, rest, _ = command.make_parser(context).parse_args([*words])
    for parameter in command.params:
        value = given.get(parameter.name)
        if isinstance(value, str):
            _fits(parameter, value, context)
        if parameter.required and not isinstance(command, click.Group) and "--help" not in words:
            assert isinstance(value, str | list | tuple), f"{words}: {parameter.name} is missing"
    if isinstance(command, click.Group) and rest:
        found = command.get_command(context, rest[0])
        assert found is not None, f"there is no command {rest[0]}"
        _takes(found, rest[1:])
    else:
        assert not rest, f"{words}: nobody takes {rest}"


def _fits(parameter, value, context):
    """Whether a value is one that the parameter takes; files need not be there, for nothing is run."""
    if isinstance(parameter.type, click.Choice | click.IntRange | click.FloatRange | FuncParamType):
        parameter.type.convert(value, parameter, context)
