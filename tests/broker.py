"""A real MQTT broker (mosquitto) on a free port, for tests: plain, or with TLS, passwords and access rules."""

import datetime
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.parts import needs, program
from tests.ports import free_port
from tests.waiting import PATIENCE

READER = "collector"


class Broker:
    """A broker with its folder. Retained messages and sessions outlive a stop and a kill.

    With `users` (name to password) only these can connect: each may read and write `cloakwork/v1/<site>/<name>/#` only,
    and the user `collector` may read `cloakwork/#`.
    """

    host = "localhost"

    def __init__(
        self,
        folder: Path,
        *,
        tls: bool = False,
        users: Mapping[str, str] | None = None,
        site: str = "flat",
        quiet: bool = False,
    ):
        needs("mosquitto")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.users = dict(users or {})
        self.port = free_port()
        self.ca = folder / "ca.pem" if tls else None
        self._process: subprocess.Popen[bytes] | None = None
        lines = [f"listener {self.port} 127.0.0.1", "persistence true", f"persistence_location {folder}/"]
        lines.append(f"log_dest file {self.log}")
        # a quiet broker has the settings of the deployed one: room for many readings, saved twice a minute
        many = ["log_type error", "autosave_interval 30", "max_queued_messages 2000000", "max_inflight_messages 1000"]
        many += ["set_tcp_nodelay true"]
        lines += many if quiet else ["log_type all", "autosave_interval 1", "autosave_on_changes true"]
        if os.geteuid() == 0:
            lines.append("user root")  # the default user has no access to the test's folder
        if tls:
            make_certificates(folder)
            lines += [f"cafile {self.ca}", f"certfile {folder / 'server.pem'}", f"keyfile {folder / 'server.key'}"]
        lines.append(f"allow_anonymous {'false' if self.users else 'true'}")
        if self.users:
            lines += [f"password_file {self._write_passwords()}", f"acl_file {self._write_rules(site)}"]
        self._settings = folder / "mosquitto.conf"
        self._settings.write_text("\n".join(lines) + "\n", encoding="utf-8")

    @property
    def log(self) -> Path:
        return self.folder / "mosquitto.log"

    def start(self) -> None:
        """Start it; returns when it listens."""
        name = program("mosquitto")
        assert name is not None
        assert self._process is None, "it runs already"
        with (self.folder / "stderr").open("ab") as errors:
            self._process = subprocess.Popen([name, "-c", str(self._settings)], stdout=errors, stderr=errors)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self._process.poll() is None:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            time.sleep(0.01)
        self.kill()
        output = [file.read_text(encoding="utf-8") for file in (self.folder / "stderr", self.log) if file.exists()]
        raise RuntimeError("the broker did not start:\n" + "\n".join(output))

    def stop(self) -> None:
        """Ask it to end: it saves its messages and sessions."""
        self._end(kill=False)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(kill=True)

    def pause(self) -> None:
        """Freeze it, with its connections open, until it is killed."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def _end(self, *, kill: bool) -> None:
        if self._process is not None:
            if kill:
                self._process.kill()
            else:
                self._process.terminate()
            self._process.wait(timeout=PATIENCE)
            self._process = None

    def _write_passwords(self) -> Path:
        path = self.folder / "passwords"
        path.write_text("".join(f"{name}:{word}\n" for name, word in self.users.items()), encoding="utf-8")
        path.chmod(0o600)
        tool = program("mosquitto_passwd")
        assert tool is not None
        subprocess.run([tool, "-U", str(path)], check=True, capture_output=True)
        return path

    def _write_rules(self, site: str) -> Path:
        path = self.folder / "rules"
        rules = f"user {READER}\ntopic read cloakwork/#\n\npattern readwrite cloakwork/v1/{site}/%u/#\n"
        path.write_text(rules, encoding="utf-8")
        path.chmod(0o600)
        return path


@contextmanager
def running_broker(
    folder: Path,
    *,
    tls: bool = False,
    users: Mapping[str, str] | None = None,
    site: str = "flat",
    quiet: bool = False,
) -> Iterator[Broker]:
    """Run a broker until the block ends; a `quiet` one writes no log and has room for many readings."""
    broker = Broker(folder, tls=tls, users=users, site=site, quiet=quiet)
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


def make_certificates(folder: Path) -> None:
    """Write ca.pem, and server.pem with server.key, which the authority has signed for localhost."""
    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = _name("Cloakwork test authority")
    own = _certificate(root, authority.public_key(), root, authority, authority=True)
    names = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))])
    signed = _certificate(_name("localhost"), server.public_key(), root, authority, names=names)
    (folder / "ca.pem").write_bytes(own.public_bytes(serialization.Encoding.PEM))
    (folder / "server.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key = server.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "server.key").write_bytes(key)
    (folder / "server.key").chmod(0o600)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _certificate(
    subject: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer: x509.Name,
    signer: ec.EllipticCurvePrivateKey,
    *,
    authority: bool = False,
    names: x509.SubjectAlternativeName | None = None,
) -> x509.Certificate:
    """Make a certificate with every extension that a strict client requires."""
    now = datetime.datetime.now(datetime.UTC)
    usage = dict.fromkeys(("content_commitment", "key_encipherment", "data_encipherment", "key_agreement"), False)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(
            x509.KeyUsage(
                digital_signature=not authority,
                key_cert_sign=authority,
                crl_sign=authority,
                encipher_only=False,
                decipher_only=False,
                **usage,
            ),
            critical=True,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    if names is not None:
        made = made.add_extension(names, critical=False)
        purposes = [x509.oid.ExtendedKeyUsageOID.SERVER_AUTH]
        made = made.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    return made.sign(signer, hashes.SHA256())
