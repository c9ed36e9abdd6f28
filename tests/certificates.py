"""A certificate for 127.0.0.1, and for a name if one is given, that signs itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

ADDRESS = "127.0.0.1"


def make_certificate(
    directory: Path, *names: str, days_old: float = 1, days_left: float = 100.5
) -> tuple[Path, Path]:
    """The files of its key and of itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, ADDRESS)])
    now = datetime.now(UTC)
    known_as = [x509.IPAddress(IPv4Address(ADDRESS)), *map(x509.DNSName, names)]
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=days_old))
        .not_valid_after(now + timedelta(days=days_left))
        .add_extension(x509.SubjectAlternativeName(known_as), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    key_file, certificate_file = directory / "key.pem", directory / "certificate.pem"
    key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    certificate_file.write_bytes(certificate.public_bytes(Encoding.PEM))
    return key_file, certificate_file
