# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server that takes metrics as ansible-operator does: it cannot be installed as a package.

One metric per request; what a metric is at first it stays; a counter never falls; adding zero registers it. Where the
operator would end with "concurrent map writes" the fake one notes that two requests overlapped.
"""

from __future__ import annotations

import http.server
import json
import threading
import time


class FakeOperator(http.server.ThreadingHTTPServer):
    """Serves on a free port of 127.0.0.1 until it is closed."""

    daemon_threads = True

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seconds = seconds
        self.values: dict[str, float] = {}
        self.kinds: dict[str, str] = {}
        self.posts: list[dict] = []
        self.overlaps = 0
        self._inside = threading.Semaphore(1)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/metrics"

    def close(self) -> None:
        self.shutdown()
        self.server_close()

    def handle_metric(self, metric: dict) -> str:
        """Why it is refused, or an empty text."""
        if not self._inside.acquire(blocking=False):
            self.overlaps += 1
            return "overlap"
        try:
            time.sleep(self.seconds)
            self.posts.append(metric)
            return self._handle(metric)
        finally:
            self._inside.release()

    def _handle(self, metric: dict) -> str:
        kinds = [kind for kind in ("counter", "gauge", "summary", "histogram") if kind in metric]
        if len(kinds) != 1:
            return "a request should contain at least one metric" if not kinds else "only one metric at a time"
        name, kind = metric["name"], kinds[0]
        if self.kinds.setdefault(name, kind) != kind:
            return f"cannot change metric type of {name}, which is a {self.kinds[name]}"
        self.values.setdefault(name, 0.0)
        change = metric[kind]
        if change.get("increment"):
            self.values[name] += 1
        elif change.get("add", 0.0) < 0:
            return "counter metrics cannot decrease in value"
        else:
            self.values[name] += change.get("add", 0.0)
        return ""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeOperator

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        problem = self.server.handle_metric(body)
        self.send_response(400 if problem else 200)
        self.send_header("Content-Length", str(len(problem)))
        self.end_headers()
        self.wfile.write(problem.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
