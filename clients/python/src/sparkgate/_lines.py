"""The lines of a followed log, and the position from which the log continues after a broken connection.

The gateway is asked for the time of each line. A log that broke is read again from shortly before the last line, and what
was read before is skipped: every whole line is returned once. What the node or the archive no longer has can't be returned;
such a gap is detected. The rules are those of `sparkgate logs --follow`.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone

#: stdout and stderr of a container may be out of order by this much.
_DISORDER_NANOSECONDS = 10**9
_TIME = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d) ")


def _nanoseconds(line: bytes) -> tuple[int | None, int]:
    """Returns the time at the beginning of a line, if there is one, and its length with the blank after it."""
    found = _TIME.match(line)
    if not found:
        return None, 0
    base, fraction, zone = (group.decode() if group else "" for group in found.groups())
    try:
        at = datetime.fromisoformat(base + ("+00:00" if zone == "Z" else zone))
    except ValueError:
        return None, 0
    return int(at.timestamp()) * 10**9 + int(fraction.ljust(9, "0")), found.end()


class Lines:
    """Selects the new lines of a log whose lines begin with timestamps."""

    def __init__(self, *, with_times: bool) -> None:
        self._with_times = with_times
        #: The latest time of a line, the number of lines with it, and of lines after the last of those.
        self._latest: int | None = None
        self._of_that_time = 0
        self._after = 0
        #: What a new stream repeats, until it has been skipped.
        self._repeats = False
        self._seen_of_that_time = 0
        self._left: int | None = None
        self._rest = b""
        self.has_gap = False

    @property
    def latest(self) -> datetime | None:
        """The latest time of a line."""
        return None if self._latest is None else datetime.fromtimestamp(self._latest // 10**9, timezone.utc)

    def resume(self) -> str | None:
        """Starts a new stream of the same log. Returns the `since` to read it from; `None` to read it as the first time."""
        self._rest = b""
        self._seen_of_that_time = 0
        # Without timestamps, lines are counted.
        self._left = self._after if self._latest is None else None
        self._repeats = self._left != 0
        if self._latest is None:
            return None
        seconds, nanoseconds = divmod(self._latest - _DISORDER_NANOSECONDS, 10**9)
        return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%dT%H:%M:%S}.{nanoseconds:09}Z"

    def take(self, chunk: bytes) -> list[bytes]:
        """Returns the new lines that end in a piece of the stream, without their line ends."""
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        return self._new(whole)

    def finish(self) -> list[bytes]:
        """Returns what is left at the end of the log: a last line without a line end."""
        rest, self._rest = self._rest, b""
        return self._new([rest]) if rest else []

    def _new(self, lines: list[bytes]) -> list[bytes]:
        new = []
        for line in lines:
            time, length = _nanoseconds(line)
            if self._is_new(time):
                new.append(line if self._with_times else line[length:])
        return new

    def _is_new(self, time: int | None) -> bool:
        if self._repeats:
            if self._left is not None:
                self._left -= 1
            elif time is not None and self._latest is not None and time > self._latest:
                self.has_gap, self._repeats = True, False
                self._advance(time)
                return True
            elif time == self._latest:
                self._seen_of_that_time += 1
                if self._seen_of_that_time == self._of_that_time:
                    self._left = self._after
            if self._left == 0:
                self._repeats = False
            return False
        self._advance(time)
        return True

    def _advance(self, time: int | None) -> None:
        if time is not None and (self._latest is None or time > self._latest):
            self._latest, self._of_that_time, self._after = time, 1, 0
        elif time is not None and time == self._latest and self._after == 0:
            self._of_that_time += 1
        else:
            self._after += 1
