# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The comparison of look-ups refuses runs that did not do their work."""

from __future__ import annotations

import os
import stat

import pytest

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import (
    content,
    manifest,
    serving,
    sha256,
)
from bench import registry
from bench.errors import BenchError

BODY = manifest()
PRINTED = """Running 3s test @ http://127.0.0.1:5000
  1 threads and 8 connections
  3223 requests in 3.06s, 2.34MB read
{more}Requests/sec:   1054.70
Transfer/sec:      0.92KB
"""


def ours(host, tmp_path, count=3, requests=3):
    pushed = [(f"{host}/app:t{number}", sha256(BODY)) for number in range(count)]
    return registry.Ours(pushed, requests, [], dict(os.environ), tmp_path / "arguments.json")


def test_our_rate_and_start_up_come_from_a_real_process(tmp_path):
    with serving(content(tags={f"t{number}": BODY for number in range(3)})) as server:
        measured = ours(server.host, tmp_path)
        assert measured.run() > 0
        assert measured.startup > 0
        assert registry.Startup(measured).run() == measured.startup
        with pytest.raises(BenchError, match="3 requests instead of 2"):
            ours(server.host, tmp_path, requests=2).run()


def test_a_digest_that_is_missing_or_wrong_ends_the_bench(tmp_path):
    with serving(content(tags={"t0": BODY})) as server, pytest.raises(BenchError, match="wrong first"):
        ours(server.host, tmp_path).run()
    with pytest.raises(BenchError, match="1 digests for 2"):
        registry.check(["d"], [("a", "d"), ("b", "d")], "tool")


def test_a_program_runs_for_each_reference_and_must_print_its_digest(tmp_path):
    program = tmp_path / "tool"
    pushed = [(f"{number}", sha256(b"%d" % number)) for number in range(20)]
    digests = "\n".join(f"x://{image}) printf {digest}; echo;;" for image, digest in pushed)
    measured = registry.PerImage(pushed, [str(program), "digest"], dict(os.environ), "x://")
    for script, wrong in (
        (f'case "$2" in {digests} esac', None),
        (f"echo {sha256(b'other')}", "tool gave 20 digests for 20 references; wrong first"),
        ("echo", "tool gave 0 digests for 20 references"),
        ("exit 3", "ended with"),
    ):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        if wrong is None:
            assert measured.run() > 0
            continue
        with pytest.raises(BenchError, match=wrong):
            measured.run()


def test_the_rate_of_wrk_counts_only_without_errors():
    assert registry.rate(PRINTED.format(more="")) == 1054.7
    for more in ("  Non-2xx or 3xx responses: 5\n", "  Socket errors: connect 0, read 3, write 0, timeout 0\n"):
        with pytest.raises(BenchError, match="did not get the manifests"):
            registry.rate(PRINTED.format(more=more))
    with pytest.raises(BenchError):
        registry.rate("Requests/sec:      0.00")


def test_the_script_of_wrk_asks_for_every_manifest():
    path = registry._path("127.0.0.1:5000/team/app:1.2")
    assert path == "/v2/team/app/manifests/1.2"
    assert f'"{path}"' in registry.lua([path])
