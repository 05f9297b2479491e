# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for the JSON tag service of a registry's web pages, with Quay's path and answer.

Run `python -m bench.article.tags REPOSITORY TAG DIGEST`; prints its URL and serves until it is ended.
"""

from __future__ import annotations

import http.server
import json
import sys
import urllib.parse


def answer(repository: str, tag: str, digest: str, target: str) -> dict | None:
    """The body for a request's target, or None for one that is not served."""
    parts = urllib.parse.urlsplit(target)
    if parts.path != f"/api/v1/repository/{repository}/tag/":
        return None
    wanted = urllib.parse.parse_qs(parts.query).get("specificTag", [tag])
    found = [{"name": tag, "manifest_digest": digest, "is_manifest_list": False}] if tag in wanted else []
    return {"tags": found, "page": 1, "has_additional": False}


def serve(repository: str, tag: str, digest: str) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            body = answer(repository, tag, digest, self.path)
            content = json.dumps(body if body is not None else {"error": "not found"}).encode()
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing: the bench's terminal is for its own progress."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/api/v1/repository/{repository}/tag/", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    serve(*sys.argv[1:4])
