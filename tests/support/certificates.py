"""Certificates that nobody vouches for, for servers that nobody should trust."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def certificate_for(folder: Path, name: str) -> Path:
    """A file with a self-signed certificate for this name, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file = folder / "server.pem"
    file.write_bytes(
        certificate.public_bytes(pem)
        + key.private_bytes(pem, private, serialization.NoEncryption())
    )
    return file


def vouched_for(folder: Path, *, ends: dt.timedelta) -> tuple[Path, Path]:
    """An authority's certificate, and a file with certificate and key of `localhost` and
    127.0.0.1 that it vouches for and that ends then, from now: one that has run out is past."""
    now = dt.datetime.now(dt.UTC)
    authority, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Test authority")])
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])

    def of(
        who: x509.Name, key: ec.EllipticCurvePrivateKey, number: int
    ) -> x509.CertificateBuilder:
        built = x509.CertificateBuilder().subject_name(who).issuer_name(issuer)
        built = built.public_key(key.public_key()).serial_number(number)
        return built.not_valid_before(now - dt.timedelta(days=900))

    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    uses = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip
    key_id = x509.SubjectKeyIdentifier.from_public_key(authority.public_key())
    root = (
        of(issuer, authority, 1)
        .not_valid_after(now + dt.timedelta(days=900))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(uses, critical=True)
        .add_extension(key_id, critical=False)
        .sign(authority, hashes.SHA256())
    )
    served = (
        of(subject, own, 2)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(key_id), critical=False
        )
        .sign(authority, hashes.SHA256())
    )
    pem, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    trusted, file = folder / "authority.pem", folder / "served.pem"
    trusted.write_bytes(root.public_bytes(pem))
    file.write_bytes(
        served.public_bytes(pem) + own.private_bytes(pem, private, serialization.NoEncryption())
    )
    return trusted, file
