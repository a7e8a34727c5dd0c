import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from framewire.cli import main

PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
SHELLS = ["bash", "zsh", "fish"]


def completions(shell, *words):
    """What the command line answers to the script of a shell."""
    told = {
        "_FRAMEWIRE_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words) - 1),
        "PATH": PATH,
    }
    done = subprocess.run(
        ["framewire"],  # noqa: S607 - as the script of the shell calls it
        env=os.environ | told,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_bash_completes_commands_and_options():
    script = """
        eval "$(framewire completion bash)"
        ask() {
            COMPREPLY=() COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
            _framewire_completion framewire
            echo "${COMPREPLY[@]}"
        }
        complete -p framewire
        ask framewire pip
        ask framewire pipeline ex
        ask framewire query --js
        ask framewire completion z
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script],  # noqa: S607 - the shell that is there
        env=os.environ | {"PATH": PATH},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    registered, *answers = done.stdout.splitlines()
    assert registered.endswith("-F _framewire_completion framewire")
    assert answers == ["pipeline", "export-traces", "--json", "zsh"]


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_are_completed_for_every_shell(shell):
    assert "pipeline" in completions(shell, "framewire", "pip")
    assert "export-traces" in completions(shell, "framewire", "pipeline", "ex")
    assert "--rendezvous" in completions(shell, "framewire", "ps", "--ren")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_one_that_the_shell_reads(shell):
    script = CliRunner().invoke(main, ["completion", shell]).stdout
    assert f"_FRAMEWIRE_COMPLETE={shell}_complete" in script
    if found := shutil.which(shell):  # machines have bash, and perhaps one of the others
        subprocess.run([found, "-n"], input=script, text=True, timeout=60, check=True)


def test_an_unknown_shell_is_a_usage_error():
    result = CliRunner().invoke(main, ["completion", "tcsh"])
    assert result.exit_code == 2
    assert "bash" in result.stderr


def test_completion_of_a_command_loads_nothing_heavy():
    script = (
        "import sys\n"
        "from click.shell_completion import BashComplete\n"
        "from framewire.cli import main\n"
        "found = BashComplete(main, {}, 'framewire', '_FRAMEWIRE_COMPLETE').get_completions([], 'p')\n"
        "print(*(each.value for each in found))\n"
        "sys.exit(' '.join({'rich', 'msgspec', 'zmq', 'framewire.wire'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["pending", "ping", "pipeline", "ps"]
    assert done.stderr.strip() == ""
