"""Who may look: tokens, names of this machine, and pages elsewhere."""

import asyncio

import pytest

from framewire.dashboard.guard import Guard, is_local

TOKEN = "correct-horse-battery-staple"


async def inner(scope, _, send):
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"secret"})


def ask(guard, path="/cluster", query="", kind="http", **headers):
    """Status, headers and body that a request is answered with; the kind of the event, for websockets."""
    told = {"host": "127.0.0.1:8420"} | {name.replace("_", "-"): value for name, value in headers.items()}
    scope = {
        "type": kind,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in told.items()],
    }
    events = []

    async def send(event):
        events.append(event)

    async def receive():
        return {"type": "http.request"}

    asyncio.run(guard(scope, receive, send))
    if kind == "websocket":
        return events[0]["type"]
    found = {name.decode(): value.decode() for name, value in events[0]["headers"]}
    return events[0]["status"], found, b"".join(event.get("body", b"") for event in events)


def cookie_of(guard):
    return ask(guard, query=f"token={TOKEN}")[1]["set-cookie"].partition(";")[0]


def test_without_a_token_nothing_is_answered_and_it_is_told_where_to_find_one():
    guard = Guard(inner, token=TOKEN, local=False)
    status, _, body = ask(guard, host="example.org")
    assert status == 401
    assert b"?token=" in body
    assert b"secret" not in body
    assert ask(guard, "/_nicegui_ws/socket.io/", kind="websocket") == "websocket.close"
    assert ask(guard, "/export/losses.csv")[0] == 401


def test_the_token_becomes_a_cookie_and_leaves_the_address():
    guard = Guard(inner, token=TOKEN, local=False)
    status, headers, body = ask(guard, "/flows", f"message=a%26b&token={TOKEN}")
    assert (status, headers["location"], body) == (303, "/flows?message=a%26b", b"")
    assert "HttpOnly; SameSite=Strict" in headers["set-cookie"]
    assert TOKEN not in headers["set-cookie"]
    cookie = headers["set-cookie"].partition(";")[0]
    assert ask(guard, "/flows", cookie=cookie)[0] == 200
    assert ask(guard, "/ws", kind="websocket", cookie=cookie) == "websocket.accept"
    assert ask(guard, "/flows", f"token={TOKEN}", cookie=cookie)[1]["location"] == "/flows"


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example"])
def test_a_token_in_an_address_leads_nowhere_else(path):
    headers = ask(Guard(inner, token=TOKEN, local=False), path, f"token={TOKEN}")[1]
    assert headers["location"].startswith("/")
    assert not headers["location"].startswith(("//", "/\\"))


@pytest.mark.parametrize("told", ["", "x", TOKEN + "x", TOKEN[:-1], "ä", "%00"])
def test_a_wrong_token_is_refused(told):
    guard = Guard(inner, token=TOKEN, local=False)
    assert ask(guard, query=f"token={told}")[0] == 401
    assert ask(guard, authorization=f"Bearer {told}")[0] == 401
    assert ask(guard, cookie=f"framewire-dashboard={told}")[0] == 401


def test_programs_may_send_the_token_as_a_bearer():
    assert ask(Guard(inner, token=TOKEN, local=False), authorization=f"Bearer {TOKEN}")[0] == 200


def test_a_name_that_somebody_else_made_lead_here_is_refused():
    guard = Guard(inner, token=None, local=True)
    assert ask(guard, host="localhost:8420")[0] == 200
    assert ask(guard, host="[::1]:8420")[0] == 200
    status, _, body = ask(guard, host="rebound.example:8420")
    assert status == 403
    assert b"--host" in body


def test_a_page_elsewhere_cannot_connect():
    guard = Guard(inner, token=None, local=True)
    assert ask(guard, kind="websocket", origin="http://127.0.0.1:8420") == "websocket.accept"
    assert ask(guard, kind="websocket", origin="https://evil.example") == "websocket.close"
    assert ask(guard, kind="websocket", origin="null") == "websocket.close"


def test_every_answer_forbids_what_the_pages_do_not_need():
    headers = ask(Guard(inner, token=None, local=True))[1]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "connect-src 'self'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - told apart, not listened on
        ("10.0.0.1", False),
        ("box", False),
    ],
)
def test_only_addresses_of_the_loopback_are_local(host, local):
    assert is_local(host) is local
