# Copyright: (c) 2026, kubesteward authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A certificate authority for one run of the testbed, and what it signs."""

from __future__ import annotations

import datetime
import ipaddress
import typing as t
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_DAYS = 365


@dataclass(frozen=True)
class Authority:
    """Private key and certificate that sign the others."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def create(cls, now: datetime.datetime) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("kubesteward-testbed", ())
        builder = _builder(name, name, key, now)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        return cls(key, builder.add_extension(usage, critical=True).sign(key, hashes.SHA256()))

    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        now: datetime.datetime,
        common_name: str,
        organizations: t.Sequence[str] = (),
        names: t.Sequence[str] = (),
    ) -> tuple[bytes, bytes]:
        """PEM of a certificate and of its key; `names` are host names and addresses of a server."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(common_name, organizations), self.certificate.subject, key, now)
        # Python 3.13 verifies strictly and refuses certificates that do not name their issuer's key
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = builder.add_extension(issuer_key, critical=False)
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if names:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
            alternative = x509.SubjectAlternativeName([_alternative(name) for name in names])
            builder = builder.add_extension(alternative, critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM), private_pem(key)


def service_account_key() -> bytes:
    """PEM of the RSA key that signs ServiceAccount tokens."""
    return private_pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that only its owner may read, from its first byte on."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
    )


def _name(common_name: str, organizations: t.Sequence[str]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, value) for value in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def private_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
