"""Deployment files: `deploy/prepare` makes what the others ask for, and nothing runs with more rights than it needs."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.installation import DEPLOY, ROOT, prepare

HARDENED = [
    "NoNewPrivileges=yes",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "PrivateTmp=yes",
    "PrivateDevices=yes",
    "CapabilityBoundingSet=",
    "RestrictNamespaces=yes",
    "SystemCallFilter=@system-service",
    "UMask=0077",
    "User=cloakwork",
    "StateDirectory=cloakwork",
    "StateDirectoryMode=0700",
    "Restart=on-failure",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    done = prepare(folder, "192.0.2.7", "hall", "s1", "s2")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return folder


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    return found


def files(folder: Path) -> dict[Path, bytes]:
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_prepared_files_are_closed_to_other_users(made: Path) -> None:
    assert len(files(made)) > 10
    for path in (made / "installation").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert stat.S_IMODE((made / ".env").stat().st_mode) == 0o600


def test_passwords_are_long_and_each_another(made: Path) -> None:
    words = [path.read_text(encoding="utf-8").strip() for path in (made / "installation").rglob("*.password")]
    assert len(words) == len(set(words)) == 4
    assert min(len(word) for word in words) == 43
    hashes = (made / "installation" / "broker" / "mosquitto.passwords").read_text(encoding="utf-8")
    assert not any(word in hashes for word in words)


def test_preparing_again_adds_and_changes_nothing_that_is_there(made: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    shutil.copytree(made, again)
    before = files(again)
    assert prepare(again, "192.0.2.7", "hall", "s1", "s2").returncode == 0
    assert files(again) == before
    assert prepare(again, "192.0.2.7", "yard", "s1").returncode == 0
    after = files(again)
    grown = {Path("installation/broker") / name for name in ("mosquitto.acl", "mosquitto.passwords")}
    assert {path for path in before if before[path] != after[path]} == {*grown, Path(".env")}
    assert all(after[path].startswith(before[path]) for path in grown)
    assert after.keys() - before.keys() == {Path("installation/devices/yard.s1.password")}
    assert b"CLOAKWORK_SITES=hall.toml yard.toml\n" in after[Path(".env")]


def test_the_certificate_is_for_its_host_and_signed_by_the_authority(made: Path) -> None:
    folder = made / "installation" / "secrets"
    for name in (["-verify_ip", "192.0.2.7"], ["-verify_hostname", "localhost"], ["-verify_hostname", "broker"]):
        strictly = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", *name, "-CAfile", "ca.pem"]
        for certificate in ("server.pem", "../broker/server.pem"):
            subprocess.run([*strictly, certificate], cwd=folder, check=True, capture_output=True)


def test_the_authority_signs_for_no_other_name(made: Path, tmp_path: Path) -> None:
    folder = made / "installation" / "secrets"
    signed = ["openssl", "req", "-x509", "-CA", str(folder / "ca.pem"), "-CAkey", str(folder / "ca.key"), "-nodes"]
    signed += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout", "own.key", "-out", "own.pem"]
    for name, fails in (
        ("DNS:localhost", False),
        ("IP:192.0.2.7", False),
        ("DNS:bank.example", True),
        ("IP:192.0.2.8", True),
    ):
        names = ["-subj", "/CN=x", "-addext", f"subjectAltName={name}", "-addext", "basicConstraints=critical,CA:FALSE"]
        subprocess.run([*signed, *names], cwd=tmp_path, check=True, capture_output=True)
        verify = ["openssl", "verify", "-CAfile", str(folder / "ca.pem"), "own.pem"]
        verified = subprocess.run(verify, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ("permitted subtree violation" in verified.stderr) is fails, name
        assert (verified.returncode != 0) is fails
    text = ["openssl", "x509", "-in", "ca.pem", "-noout", "-text"]
    told = subprocess.run(text, cwd=folder, check=True, capture_output=True, text=True).stdout
    assert "CA:TRUE, pathlen:0" in told
    assert "TLS Web Server Authentication" in told
    assert "Name Constraints: \n" in told, "were it critical, small boards would refuse it"


def test_prepare_does_not_follow_links(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives anything away")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").touch()
    installation = tmp_path / "installation"
    (installation / "sites").mkdir(parents=True)
    (installation / "sites" / "folder").symlink_to(outside)
    (installation / "sites" / "file").symlink_to(outside / "file")
    (installation / "data" / "broker").mkdir(parents=True)
    (installation / "data" / "broker" / "mosquitto.db").touch()
    assert prepare(tmp_path, "192.0.2.7", "hall", "s1").returncode == 0
    owned = [path.lstat().st_uid for path in (outside, outside / "file", installation / "data/broker/mosquitto.db")]
    assert owned == [0, 0, 0]
    assert {path.lstat().st_uid for path in (installation, *installation.glob("*"), *installation.glob("data/*"))} == {
        10001
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ("host", "ha/ll", "s1"),
        ("host", "hall", "s1+s2"),
        ("host",),
        ("host", "hall", "s1", "--collector", "hall.s1"),
        ("host", "hall", "s1", "--collector", "database"),
    ],
)
def test_names_that_would_be_rules_are_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = prepare(tmp_path, *arguments)
    assert done.returncode == 2
    assert not list(tmp_path.iterdir())


def test_the_unit_is_hardened() -> None:
    lines = (DEPLOY / "cloakwork-collector.service").read_text(encoding="utf-8").splitlines()
    assert not [line for line in HARDENED if line not in lines]
    assert "EnvironmentFile=/etc/cloakwork/collector.env" in lines


def test_no_container_has_more_rights_than_it_needs(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["user"] == "${CLOAKWORK_USER:-10001:10001}", name
        assert not service.get("privileged")
        assert "healthcheck" in service, name
    assert "ports" not in compose["services"]["database"]
    assert compose["networks"]["inside"] == {"internal": True}
    assert "/healthz" in str(compose["services"]["collector"]["healthcheck"])


def test_no_password_stands_in_the_composition(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            assert "PASSWORD" not in name or name.endswith("_FILE"), name
            assert not re.search(r"://[^@/]*:[^@/]*@", value), name


def test_compose_uses_files_that_prepare_creates(compose: dict[str, Any], made: Path) -> None:
    for secret in compose["secrets"].values():
        assert (made / secret["file"]).is_file(), secret
    for service in compose["services"].values():
        assert set(service.get("secrets", [])) <= set(compose["secrets"])
        for volume in service.get("volumes", []):
            assert (made / volume["source"]).is_dir(), volume
            assert volume["bind"] == {"create_host_path": False}
    wanted = set(re.findall(r"/etc/mosquitto/(\S+)", (DEPLOY / "mosquitto.conf").read_text(encoding="utf-8")))
    assert wanted <= {path.name for path in (made / "installation" / "broker").iterdir()}
