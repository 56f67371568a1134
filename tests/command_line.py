"""What the tests of the command line share."""

import io
import os
import re
import subprocess
import sysconfig

import pytest

from quartic import cli

QUARTIC = os.path.join(sysconfig.get_path("scripts"), "quartic")


def outcome(capsys, *argv):
    """A command in this process: exit code, standard output, standard error."""
    code = cli.main([str(argument) for argument in argv])
    return code, *capsys.readouterr()


def assert_refused(outcome, *said):
    """One clear line on standard error, exit code 2, nothing on standard output."""
    code, out, err = outcome
    assert (code, out) == (2, "")
    assert re.fullmatch(r"quartic: error: .+\n", err), err
    for part in said:
        assert part in err


class BadStream(io.StringIO):
    """A stream that cannot be written to, for one reason or another."""

    def __init__(self, reason):
        super().__init__()
        self.reason = reason

    def write(self, text):
        raise self.reason


def start(*argv, **streams):
    """The installed program."""
    return subprocess.Popen([QUARTIC, *map(str, argv)], stdin=subprocess.DEVNULL, **streams)


class Terminal:
    """A pseudo-terminal for the standard error of a program."""

    def __init__(self):
        pty = pytest.importorskip("pty")
        self.master, self.slave = pty.openpty()
        self.text = ""

    def read(self, until=None):
        """Read up to a pattern, or all there is; the program must have been started and hold its own end."""
        if self.slave is not None:
            os.close(self.slave)
            self.slave = None
        while until is None or not re.search(until, self.text):
            try:
                data = os.read(self.master, 4096)
            except OSError:  # Linux's way to say that the other end is closed
                data = b""
            if not data:
                assert until is None, f"{until!r} never appeared: {self.text!r}"
                break
            self.text += data.decode()
        return self.text

    def close(self):
        for end in (self.master, self.slave):
            if end is not None:
                os.close(end)


def shown(text):
    """What a terminal that got ``text`` shows in its last line."""
    line = []
    for part in text.replace("\r\n", "\n").rsplit("\n", 1)[-1].split("\r"):
        line[: len(part)] = part
    return "".join(line).rstrip()
