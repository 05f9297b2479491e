# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A token server as docker-registry trusts one: JSON Web Tokens signed with a certificate of its own CA."""

from __future__ import annotations

import base64
import json
import pathlib
import time
import typing as t
import uuid

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from ansible_collections.kubesteward.core.tests.unit.plugins.module_utils.registry.fakeserver import Asked, Reply


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class TokenServer:
    """Answers `/token`: pulls and pushes for the user, nothing for anybody else."""

    def __init__(self, username: str, password: str) -> None:
        self.service, self.issuer = "test registry", "test issuer"
        self.asked: list[Asked] = []
        self._accepted = "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
        self._ca = trustme.CA()
        leaf = self._ca.issue_cert("token.example")
        self._key = t.cast(
            ec.EllipticCurvePrivateKey, serialization.load_pem_private_key(leaf.private_key_pem.bytes(), password=None)
        )
        certificate = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
        self._chain = [base64.b64encode(certificate.public_bytes(serialization.Encoding.DER)).decode()]

    def write_root(self, path: pathlib.Path) -> None:
        self._ca.cert_pem.write_to_path(path)

    def __call__(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        if asked.authorization not in (None, self._accepted):
            return Reply(401)
        granted = [self._grant(scope, asked.authorization is not None) for scope in asked.query.get("scope", [])]
        body = json.dumps({"token": self._sign([item for item in granted if item["actions"]]), "expires_in": 300})
        return Reply(200, {"Content-Type": "application/json"}, body.encode())

    def _grant(self, scope: str, known: bool) -> dict[str, t.Any]:
        kind, name, actions = scope.split(":")
        allowed = set(actions.split(",")) & ({"pull", "push"} if known else set())
        return {"type": kind, "name": name, "actions": sorted(allowed)}

    def _sign(self, access: list[dict[str, t.Any]]) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "sub": "", "aud": self.service, "iat": now, "nbf": now - 5, "exp": now + 300}
        header = {"typ": "JWT", "alg": "ES256", "x5c": self._chain}
        parts = (header, {**claims, "jti": uuid.uuid4().hex, "access": access})
        signed = ".".join(_b64(json.dumps(part).encode()) for part in parts)
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{signed}.{_b64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"
