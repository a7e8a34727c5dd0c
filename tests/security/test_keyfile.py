import base64
import os

import pytest

from framewire.errors import ConfigError
from framewire.security import BadSignature, DomainKey, KeyRing
from framewire.wire import Message

KEY, FORMER = os.urandom(32), os.urandom(32)


@pytest.fixture
def key_file(tmp_path):
    def write(text, mode=0o600):
        path = tmp_path / "keys.toml"
        path.write_text(text)
        path.chmod(mode)
        return path

    return write


def problems(load, *arguments):
    with pytest.raises(ConfigError) as caught:
        load(*arguments)
    return list(caught.value.problems)


def test_a_file_describes_domains_keys_and_identities(key_file):
    ring = KeyRing.from_file(
        key_file(f"""
        [payments]
        key = "hex:{KEY.hex()}"
        accept = [
            "base64:{base64.b64encode(FORMER).decode()}",
            {{ key = "hex:{FORMER.hex()}", algorithm = "md5" }},
        ]
        identities = ["pay.*"]

        [telemetry]
        unsigned = true
        identities = ["metrics.*"]
        """)
    )
    message = Message(b"pay.order")
    same = {"identities": {"payments": ["pay.*"]}}
    assert ring.sign(message) == KeyRing([DomainKey("payments", KEY)], **same).sign(message)
    for former in (DomainKey("payments", FORMER), DomainKey("payments", FORMER, "md5")):
        ring.verify(KeyRing([former], **same).sign(message))
    with pytest.raises(BadSignature):
        ring.verify(KeyRing([DomainKey("payments", FORMER, "sha1")], **same).sign(message))
    assert ring.sign(Message(b"metrics.cpu")).domain == "telemetry"
    assert ring.sign(Message(b"metrics.cpu")).signature == b""


def test_a_key_can_come_from_the_environment(key_file, monkeypatch):
    monkeypatch.setenv("PAYMENTS_KEY", f"hex:{KEY.hex()}")
    ring = KeyRing.from_file(key_file('[payments]\nkey = { env = "PAYMENTS_KEY" }\nidentities = ["pay.*"]'))
    ring.verify(KeyRing([DomainKey("payments", KEY)], {"payments": ["pay.*"]}).sign(Message(b"pay.order")))


def test_the_whole_ring_can_come_from_the_environment():
    text = f'[payments]\nkey = "hex:{KEY.hex()}"\nidentities = ["pay.*"]'
    ring = KeyRing.from_env(environ={"FRAMEWIRE_KEYS": text})
    assert ring.domains == {"payments"}
    assert problems(lambda: KeyRing.from_env(environ={})) == [
        "there are no domains; write a table for each, like [payments]"
    ]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o601])
def test_a_file_that_others_can_touch_is_refused(key_file, mode):
    path = key_file(f'[payments]\nkey = "hex:{KEY.hex()}"', mode)
    assert problems(KeyRing.from_file, path) == [f"others can get at these keys (mode {mode:04o}); run: chmod 600"]


def test_a_file_of_another_user_is_refused(key_file, monkeypatch):
    path = key_file(f'[payments]\nkey = "hex:{KEY.hex()}"')
    os.chown(path, 12345, -1) if os.geteuid() == 0 else monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert problems(KeyRing.from_file, path) == ["belongs to another user; its keys cannot be trusted"]


def test_a_missing_file_is_told_plainly(tmp_path):
    assert problems(KeyRing.from_file, tmp_path / "none.toml") == ["cannot be read: No such file or directory"]


@pytest.mark.parametrize("content", [b"[payments", b"\xff\xfe"])
def test_what_is_not_toml_is_told_plainly(tmp_path, content):
    path = tmp_path / "keys.toml"
    path.write_bytes(content)
    path.chmod(0o600)
    (problem,) = problems(KeyRing.from_file, path)
    assert problem.startswith("is not")


def test_every_problem_is_told_at_once_and_no_key_is_shown(key_file):
    text = """
    loose = 1
    [a]
    key = "hex:feed-secret"
    colour = "red"
    [b]
    identities = "pay.*"
    [c]
    key = { env = "FRAMEWIRE_NO_SUCH_VARIABLE" }
    accept = "hex:00"
    algorithm = "rot13"
    [d]
    key = "hex:00"
    algorithm = "rot13"
    unsigned = "yes"
    [e]
    key = { key = "hex:00", env = "X" }
    [f]
    key = "hunter2"
    accept = ["base64:", 7]
    """
    told = problems(KeyRing.from_file, key_file(text))
    starts = [problem.split(":")[0] for problem in told]
    expected = ["loose", "a.colour", "a.key", "b.key", "b.identities", "c.key", "c.accept", "d.key"]
    assert starts == [*expected, "d.unsigned", "e.key", "f.key", "f.accept[0]", "f.accept[1]"]
    assert not any(secret in str(told) for secret in ("feed", "hunter2"))


def test_an_identity_in_two_domains_is_told_with_the_file(key_file):
    text = "".join(f'[{name}]\nunsigned = true\nidentities = ["pay.*"]\n' for name in "ab")
    assert problems(KeyRing.from_file, key_file(text)) == ["identities: 'pay.*' is in 'a' and in 'b'"]


def test_the_error_reads_as_a_list(key_file):
    with pytest.raises(ConfigError) as caught:
        KeyRing.from_file(key_file("[a]\n[b]"))
    first, *rest = str(caught.value).splitlines()
    assert first.endswith("keys.toml:")
    assert rest == [f"  - {d}.key: missing; give a key, or say unsigned = true" for d in "ab"]


@pytest.mark.parametrize("where", ["key", "accept"])
def test_a_short_key_is_refused_unless_its_domain_says_that_it_is_insecure(key_file, where):
    short = os.urandom(31)
    keys = {"key": KEY.hex(), "accept": KEY.hex()} | {where: short.hex()}
    text = f'[payments]\nkey = "hex:{keys["key"]}"\naccept = ["hex:{keys["accept"]}"]\nidentities = ["pay.*"]\n'
    (problem,) = problems(KeyRing.from_file, key_file(text))
    assert problem.startswith(f"payments.{where}")
    assert "has 31 bytes" in problem
    assert "insecure_short_keys = true" in problem
    assert short.hex() not in problem
    assert problems(KeyRing.from_file, key_file(f"{text}insecure_short_keys = false\n")) == [problem]
    ring = KeyRing.from_file(key_file(f"{text}insecure_short_keys = true\n"))
    old = DomainKey("payments", short, insecure_short_keys=True)
    ring.verify(KeyRing([old], {"payments": ["pay.*"]}).sign(Message(b"pay.order")))


def test_that_keys_are_short_is_said_for_one_domain_alone(key_file):
    text = f'[a]\nkey = "hex:00"\ninsecure_short_keys = true\n[b]\nkey = "hex:00"\n[c]\nkey = "hex:{KEY.hex()}"\n'
    (problem,) = problems(KeyRing.from_file, key_file(text))
    assert problem.startswith("b.key: ")
    assert problems(KeyRing.from_file, key_file('[a]\nkey = "hex:00"\ninsecure_short_keys = "yes"\n'))[0] == (
        "a.insecure_short_keys: must be true or false"
    )


def test_a_file_that_anybody_could_replace_is_refused(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    path = folder / "keys.toml"
    path.write_text(f'[payments]\nkey = "hex:{KEY.hex()}"\n')
    path.chmod(0o600)
    folder.chmod(0o777)
    (problem,) = problems(KeyRing.from_file, path)
    assert problem == f"anybody can replace it: {folder} has mode 0777; run: chmod o-w {folder}"
    for mode in (0o1777, 0o755):
        folder.chmod(mode)
        assert KeyRing.from_file(path).domains == {"payments"}
