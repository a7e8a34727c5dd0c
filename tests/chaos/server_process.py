"""A rendezvous server that tells how many messages it has dropped: ``server_process.py URI``.

Each line on its input is answered with the number, as JSON; when the input ends, so does the server.
"""

import sys
import threading

from tests.chaos.member_process import say

from framewire.cluster import Rendezvous


def main(uri):
    server = Rendezvous(uri)
    thread = threading.Thread(target=server.run)
    thread.start()
    say(uri=server.uri)
    for _ in sys.stdin:
        say(dropped=server.dropped)
    server.stop()
    thread.join()


if __name__ == "__main__":
    main(sys.argv[1])
