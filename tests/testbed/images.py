# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Images for tests: what they do when they run, and how they get into a registry and out of it."""

from __future__ import annotations

import concurrent.futures
import functools
import json
import platform as machine
import struct
import subprocess
import tempfile
import typing as t
from pathlib import Path

from testbed.errors import TestbedError
from testbed.layout import Layout, attestation, digest_of, image, index, layer, write
from testbed.packages import need

if t.TYPE_CHECKING:
    import requests

SKOPEO_TIMEOUT = 60
HTTP_TIMEOUT = 10
PT_INTERP = 3
NOBODY = "65534:65534"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
TOOLS = ("sh", "sleep", "cat", "ls", "nc", "env", "id", "ps", "kill", "echo", "true", "false")


def host_platform() -> str:
    """`linux/amd64` or `linux/arm64`: what this machine's node runs."""
    return f"linux/{ARCHITECTURES.get(machine.machine(), machine.machine())}"


def web_image(version_text: str, **options: t.Any) -> Layout:
    """A web server on 8080, a static busybox of 2 MB, that answers `version_text`; options of `command_image`."""
    page = {"www/index.html": f"{version_text}\n".encode()}
    return command_image(["httpd", "-f", "-p", "8080", "-h", "/www"], files=page, **options)


def http_get_command(address: str, port: int = 8080) -> list[str]:
    """What to `kubectl exec` in a Pod of these images to GET `/` from an IP address within 3 s.

    Debian's static busybox cannot resolve names (its wget crashes), so it is nc; answers nothing where nobody does.
    """
    return ["/bin/sh", "-c", f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 {address} {port}"]


def exiting_image(text: str = "", code: int = 1, **options: t.Any) -> Layout:
    """A process that prints `text` and ends at once with `code`: a crash loop."""
    return command_image(["sh", "-c", 'echo "$0"; exit "$1"', text, str(code)], **options)


def dying_image(text: str = "", seconds: float = 1, code: int = 1, **options: t.Any) -> Layout:
    """A process that prints `text`, lives for some seconds and ends with `code`: without a probe it looks ready."""
    return command_image(["sh", "-c", 'echo "$0"; sleep "$1"; exit "$2"', text, str(seconds), str(code)], **options)


def command_image(
    command: t.Sequence[str],
    *,
    files: t.Mapping[str, bytes | str] | None = None,
    labels: t.Mapping[str, str] | None = None,
    annotations: t.Mapping[str, str] | None = None,
    platform: str | None = None,
    docker: bool = False,
    user: str = NOBODY,
    stop_signal: str = "SIGKILL",
) -> Layout:
    """busybox with a command of it, and files of their own.

    `platform` is `os/arch[/variant]`, this machine's by default; `docker` gives a Docker schema 2 manifest. With a
    `stop_signal` of SIGTERM a Pod serves on until its grace period is over, as one that drains its connections.
    """
    # process 1 ignores signals it has no handler for: without this each Pod would take 30 s to end
    config = {"Entrypoint": ["/bin/busybox"], "Cmd": list(command), "User": user, "StopSignal": stop_signal}
    config["Env"] = ["PATH=/bin"]
    layers = [_busybox_layer(), *([layer(files)] if files else [])]
    return image(layers, config, platform or host_platform(), labels=labels, annotations=annotations, docker=docker)


def index_image(
    images: t.Sequence[Layout], *, attestations: bool = False, annotations: t.Mapping[str, str] | None = None
) -> Layout:
    """An OCI index of images of several platforms, on request with an attestation (unknown/unknown) for each."""
    extra = [attestation(child) for child in images] if attestations else []
    return index([*images, *extra], annotations)


def docker_list(images: t.Sequence[Layout]) -> Layout:
    """A Docker schema 2 manifest list; the images must have been made with `docker=True`."""
    if not all(child.docker for child in images):
        raise ValueError("a Docker manifest list takes images made with docker=True only")
    return index(images)


def tiny_image(text: str, **options: t.Any) -> Layout:
    """An image of some hundred bytes that cannot run, for tests of many lookups."""
    return image([layer({"text": text.encode()})], {}, options.pop("platform", host_platform()), **options)


def push(layout: Layout, name: str, registry: str | None = None) -> str:
    """Push to `repository:tag` by skopeo, bytes unchanged, and return the top-level digest."""
    with tempfile.TemporaryDirectory(prefix="testbed-image-") as folder:
        source = write(layout, Path(folder) / "image")
        _skopeo(
            "copy", "--all", "--preserve-digests", "--dest-tls-verify=false", source, f"docker://{_at(name, registry)}"
        )
    return layout.digest


def inspect(name: str, registry: str | None = None) -> str:
    """Top-level digest of `repository:tag`, computed from the raw manifest that skopeo reads: an independent oracle."""
    return digest_of(_skopeo("inspect", "--raw", "--tls-verify=false", f"docker://{_at(name, registry)}"))


def delete(name: str, registry: str | None = None) -> None:
    """Delete what `repository:tag` names; every tag of that digest goes with it."""
    _skopeo("delete", "--tls-verify=false", f"docker://{_at(name, registry)}")


def delete_layer(layout: Layout, name: str, registry: str | None = None) -> None:
    """Take the last layer of a pushed image out of `repository[:tag]`: its manifest is there, a pull of it fails."""
    import requests

    digest = json.loads(layout.content)["layers"][-1]["digest"]
    url = f"http://{_at('', registry)}v2/{name.partition(':')[0]}/blobs/{digest}"
    with requests.Session() as session:
        session.trust_env = False
        session.delete(url, timeout=HTTP_TIMEOUT).raise_for_status()


def push_many(items: t.Iterable[tuple[Layout, str]], registry: str | None = None, workers: int = 4) -> list[str]:
    """Push many small images over plain HTTP, some in parallel; digests in the order of the items."""
    import requests

    pairs = list(items)
    base = f"http://{_at('', registry)}v2"
    with requests.Session() as session, concurrent.futures.ThreadPoolExecutor(workers) as pool:
        session.trust_env = False
        return list(pool.map(lambda pair: _push_http(session, base, *pair), pairs))


@functools.cache
def _busybox_layer() -> bytes:
    path = need("busybox")
    content = path.read_bytes()
    if needs_loader(content):
        raise TestbedError(f"{path} is not static: install the package busybox-static.")
    return layer({"bin/busybox": content, **{f"bin/{tool}": "busybox" for tool in TOOLS}})


def needs_loader(program: bytes) -> bool:
    """Whether a 64-bit ELF program is dynamic, i.e. has a PT_INTERP header: it would not start in an empty image."""
    start, size, count = struct.unpack_from("<Q", program, 32)[0], *struct.unpack_from("<HH", program, 54)
    return any(struct.unpack_from("<I", program, start + number * size)[0] == PT_INTERP for number in range(count))


def _push_http(session: requests.Session, base: str, layout: Layout, name: str) -> str:
    repository, _colon, tag = name.rpartition(":")
    for digest, content in layout.all_blobs().items():
        upload = session.post(f"{base}/{repository}/blobs/uploads/", timeout=HTTP_TIMEOUT)
        upload.raise_for_status()
        location = upload.headers["Location"]
        done = session.put(
            f"{location}{'&' if '?' in location else '?'}digest={digest}",
            data=content,
            headers={"Content-Type": "application/octet-stream"},
            timeout=HTTP_TIMEOUT,
        )
        done.raise_for_status()
    for manifest in layout.manifests():
        reference = tag if manifest is layout else manifest.digest
        session.put(
            f"{base}/{repository}/manifests/{reference}",
            data=manifest.content,
            headers={"Content-Type": manifest.media_type},
            timeout=HTTP_TIMEOUT,
        ).raise_for_status()
    return layout.digest


def _at(name: str, registry: str | None) -> str:
    if registry is None:
        from testbed.connection import connect

        registry = connect().registry
    return f"{registry}/{name}"


def _skopeo(*arguments: str) -> bytes:
    done = subprocess.run([str(need("skopeo")), *arguments], capture_output=True, timeout=SKOPEO_TIMEOUT, check=False)
    if done.returncode:
        raise TestbedError(f"skopeo {' '.join(arguments)} failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout
