# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What `make setup` decides: which Python, whether anything is to do, and where kubernetes.core comes from."""

from __future__ import annotations

import http.server
import importlib.util
import shutil
import socket
import sys
import threading
import zipfile
from pathlib import Path

import pytest


@pytest.fixture
def setup(pytestconfig):
    spec = importlib.util.spec_from_file_location("hack_setup", pytestconfig.rootpath / "hack/setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("version", "supported"), [((3, 10), False), ((3, 11), True), ((3, 13), True), ((3, 14), False)]
)
def test_supported_pythons(setup, monkeypatch, version, supported):
    monkeypatch.setattr(setup.sys, "version_info", (*version, 0))
    if supported:
        setup.check_python()
        return
    with pytest.raises(SystemExit, match=rf"is Python 3\.{version[1]}; 3\.11 to 3\.13 are supported.*PYTHON="):
        setup.check_python()


def test_changed_requirements_or_another_place_ask_for_a_new_environment(setup, monkeypatch, tmp_path):
    for name in setup.INPUTS:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(setup.ROOT / name, tmp_path / name)
    here = setup.wanted()
    assert setup.wanted() == here
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    there = setup.wanted()
    assert there != here
    for name in setup.INPUTS:
        with (tmp_path / name).open("a") as file:
            file.write("# changed\n")
        assert setup.wanted() != there, name
        there = setup.wanted()


def test_galaxy_that_answers_is_used(setup, monkeypatch):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments):
            """Quiet."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("ANSIBLE_GALAXY_SERVER", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    try:
        assert setup.galaxy_answers() is True
    finally:
        server.shutdown()
        server.server_close()


def test_galaxy_that_refuses_or_keeps_silent_is_not(setup, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setenv("ANSIBLE_GALAXY_SERVER", f"http://127.0.0.1:{port}/")
        monkeypatch.setattr(setup, "GALAXY_ANSWER_SECONDS", 1)
        assert setup.galaxy_answers() is False
    monkeypatch.setattr(setup, "GALAXY_ANSWER_SECONDS", 5)
    assert setup.galaxy_answers() is False


def test_only_kubernetes_core_is_taken_out_of_the_community_package(setup, monkeypatch, tmp_path):
    def download(command: list[str], _seconds: int, _remedy: str) -> None:
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "ansible-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr("ansible_collections/kubernetes/core/MANIFEST.json", "{}")
            wheel.writestr("ansible_collections/community/docker/MANIFEST.json", "{}")

    monkeypatch.setattr(setup, "run", download)
    monkeypatch.setattr(setup, "STAMP", tmp_path / "setup.stamp")
    monkeypatch.setattr(setup, "COLLECTIONS", tmp_path / "collections")
    setup.unpack_from_community_package()
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert files == {"collections/ansible_collections/kubernetes/core/MANIFEST.json"}


def test_failing_command_stops_with_the_remedy(setup):
    with pytest.raises(SystemExit, match=r"exit 1 of: .*\ndo this instead"):
        setup.run([sys.executable, "-c", "raise SystemExit(1)"], 20, "do this instead")
    with pytest.raises(SystemExit, match=r"no end after 1 s: .*\ndo this instead"):
        setup.run([sys.executable, "-c", "import time; time.sleep(30)"], 1, "do this instead")
