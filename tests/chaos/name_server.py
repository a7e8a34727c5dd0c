"""A name server that answers or does not, as it is told: ``name_server.py ADDRESS``.

Each line on its input, ``answer`` or ``silent``, is answered with how many questions there were, and how many of
them were not answered, as JSON; when the input ends, so does the server. Every name below ``DOMAIN`` is 127.0.0.1.
"""

import selectors
import socket
import struct
import sys

from tests.chaos.member_process import say

DOMAIN = "chaos.test"
_A, _NO_SUCH_NAME = 1, 3


def answer(question):
    """The answer to a question, or nothing where that is none."""
    if len(question) < 17:
        return b""
    at, labels = 12, []
    while question[at : at + 1] not in (b"", b"\0"):
        length = question[at]
        labels.append(question[at + 1 : at + 1 + length].decode("ascii", "replace").lower())
        at += 1 + length
    asked, kind = question[12 : at + 5], struct.unpack("!H", question[at + 1 : at + 3].rjust(2, b"\0"))[0]
    known = ".".join(labels).endswith(f".{DOMAIN}")
    found = known and kind == _A
    head = question[:2] + struct.pack("!HHHHH", 0x8180 | (0 if known else _NO_SUCH_NAME), 1, int(found), 0, 0)
    address = struct.pack("!HHHIH", 0xC00C, _A, 1, 0, 4) + socket.inet_aton("127.0.0.1")
    return head + asked + (address if found else b"")


def main(address):
    counts = {"asked": 0, "unanswered": 0}
    silent = False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as questions, selectors.DefaultSelector() as ready:
        questions.bind((address, 53))
        ready.register(questions, selectors.EVENT_READ)
        ready.register(sys.stdin, selectors.EVENT_READ)
        say(**counts)
        while True:
            for key, _ in ready.select():
                if key.fileobj is questions:
                    question, asker = questions.recvfrom(4096)
                    counts["asked"] += 1
                    counts["unanswered"] += silent
                    if not silent:
                        questions.sendto(answer(question), asker)
                    continue
                line = sys.stdin.readline()
                if not line:
                    return
                silent = line.strip() == "silent"
                say(**counts)


if __name__ == "__main__":
    main(sys.argv[1])
