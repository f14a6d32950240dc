"""The certificate of a run: with its key, by which the pods of the run know each other."""

from datetime import UTC, datetime, timedelta

from dlperf_study.core.user_commands import require_module

#: From how long before now on it counts, for clocks of nodes that are late, and until how long after now: a run may
#: wait in a queue.
BEFORE, AFTER = timedelta(days=30), timedelta(days=365)


def run_certificate() -> str:
    """Return a new private key and a certificate that it signed itself, in PEM; whoever has both is of the run."""
    require_module("cryptography")
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a run of dlperf-study")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BEFORE)
        .not_valid_after(now + AFTER)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, SHA256())
    )
    private_key = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return (private_key + certificate.public_bytes(Encoding.PEM)).decode()
