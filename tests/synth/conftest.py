import pytest
from tests.synth.reading import MadeUp

from framewire.synth import Options, generating, synthesise


@pytest.fixture(scope="session")
def troubled(tmp_path_factory):
    """Traffic of which much goes wrong, made in many blocks as if it were a hundred times as much."""
    directory = tmp_path_factory.mktemp("troubled")
    faults = {"loss": 0.03, "malformed": 0.03, "tampered": 0.05, "duplicates": 0.1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generating, "_BLOCK_FLOWS", 150)
        synthesise(Options(messages=16_000, nodes=5, segment_rows=1000, seed=7, skew_ms=20, **faults), directory)
    return MadeUp(directory)


@pytest.fixture
def make(tmp_path):
    """Make traffic of some kind."""

    def made(name="made", **options):
        synthesise(Options(**options), tmp_path / name)
        return MadeUp(tmp_path / name)

    return made
