"""``python -m framewire``: the command line."""

from framewire.cli import main

main(prog_name="framewire")
