"""`python -m ferrite` is the command `ferrite`: info, convert, train, run, export and others; see its --help."""

import sys

from ._ferrite import _command


def main():
    return _command(["ferrite", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
