"""A name server that answers nobody: ``silent_name_server.py ADDRESS``. It writes a line for each question."""

import socket
import sys


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as questions:
        questions.bind((address, 53))
        say("silent")
        while True:
            questions.recv(4096)
            say("asked")


if __name__ == "__main__":
    main(sys.argv[1])
