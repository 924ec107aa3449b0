"""Certificates that nobody vouches for, for servers that nobody should trust."""

from __future__ import annotations

import datetime as dt
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
