# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress for people on stderr; stdout carries only lines that a shell can eval."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import typing as t

PATIENCE = 120
_GREEN, _RED, _DIM, _END = "\033[32m", "\033[31m", "\033[2m", "\033[0m"


def paint(text: str, colour: str) -> str:
    """The text in a colour where stderr is a terminal."""
    return f"{colour}{text}{_END}" if sys.stderr.isatty() else text


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def fail(text: str) -> None:
    say(paint("error: ", _RED) + text)


@contextlib.contextmanager
def step(title: str, minutes: int = 0) -> t.Iterator[None]:
    """One line when the step ends, with its seconds; on a terminal also while it runs.

    Of one that takes about so many minutes it is said before, and now and then that it still runs.
    """
    begin = time.monotonic()
    if minutes:
        say(f"          {title}: about {minutes} min on two cores")
    elif sys.stderr.isatty():
        print(f"{_DIM}   ...    {title}{_END}", end="\r", file=sys.stderr, flush=True)
    try:
        with _told(title, begin) if minutes else contextlib.nullcontext():
            yield
    except BaseException:
        say(f"{paint('failed', _RED):>8}  {title} after {time.monotonic() - begin:.1f} s")
        raise
    say(f"{paint(f'{time.monotonic() - begin:6.1f} s', _GREEN)}  {title}")


@contextlib.contextmanager
def _told(title: str, begin: float) -> t.Iterator[None]:
    """A line every two minutes."""
    ended = threading.Event()

    def tell() -> None:
        while not ended.wait(PATIENCE):
            say(paint(f"          still at it after {(time.monotonic() - begin) / 60:.0f} min: {title}", _DIM))

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()


def table(rows: t.Sequence[t.Sequence[str]]) -> str:
    """Columns padded to their widest cell; the first row is the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
