"""Whom SSH trusts and who may log in, against a real server."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from parts.sshd import Sshd, make_key

from moeagent.memory.errors import HostError, RemoteError
from moeagent.tools.hosts.known_hosts import KnownHosts, Trust, parse_known_hosts
from moeagent.tools.hosts.protocol import Command
from moeagent.tools.hosts.ssh import SshHost

pytestmark = pytest.mark.part("sshd")
HELLO = Command(("echo", "hello"))


def hello(sshd: Sshd, **changes: object) -> None:
    """Log in and run a command."""
    host = SshHost(sshd.spec, sshd.settings(**changes))
    try:
        assert host.run(HELLO, timeout_s=30).text == "hello\n"
    finally:
        host.close()


@pytest.fixture
def known_hosts(sshd: Sshd, tmp_path: Path) -> Path:
    file = tmp_path / "known_hosts"
    sshd.trust(file)
    return file


def test_unknown_key_is_refused_with_its_fingerprint(sshd: Sshd, tmp_path: Path) -> None:
    shown = subprocess.run(
        ["ssh-keygen", "-lf", str(sshd.folder / "host_key.pub")], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    with pytest.raises(HostError, match="not known") as refused:
        hello(sshd, known_hosts=(tmp_path / "none",))
    assert shown in str(refused.value)
    assert "--accept-new" in str(refused.value)
    assert not (tmp_path / "none").exists()


def test_accept_new_writes_the_key_down_once(sshd: Sshd, tmp_path: Path) -> None:
    file = tmp_path / "ssh" / "known_hosts"
    hello(sshd, known_hosts=(file,), accept_new=True)
    hello(sshd, known_hosts=(file,))
    assert len(file.read_text().splitlines()) == 1
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("accept_new", [False, True])
def test_changed_key_is_refused_loudly(sshd: Sshd, tmp_path: Path, accept_new: bool) -> None:
    file = tmp_path / "known_hosts"
    other = make_key(tmp_path / "other").with_suffix(".pub").read_text()
    file.write_text(f"# comment\n[127.0.0.1]:{sshd.port} {other}")
    with pytest.raises(HostError, match="HAS CHANGED") as refused:
        hello(sshd, known_hosts=(file,), accept_new=accept_new)
    assert f"{file}:2" in str(refused.value)
    assert f"ssh-keygen -f {file} -R '[127.0.0.1]:{sshd.port}'" in str(refused.value)


def test_revoked_key_is_refused(sshd: Sshd, known_hosts: Path) -> None:
    key = (sshd.folder / "host_key.pub").read_text()
    known_hosts.write_text(known_hosts.read_text() + f"@revoked * {key}")
    with pytest.raises(HostError, match="@revoked"):
        hello(sshd, known_hosts=(known_hosts,))


def test_only_the_certificate_authority_is_known(sshd: Sshd, tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"@cert-authority * {make_key(tmp_path / 'ca').with_suffix('.pub').read_text()}")
    with pytest.raises(HostError, match="certificate authority cannot be used"):
        hello(sshd, known_hosts=(file,))


def test_hashed_names_and_second_key_of_a_type(sshd: Sshd, known_hosts: Path, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other").with_suffix(".pub").read_text()
    known_hosts.write_text(f"[127.0.0.1]:{sshd.port} {other}" + known_hosts.read_text())
    subprocess.run(["ssh-keygen", "-H", "-f", str(known_hosts)], check=True, capture_output=True)
    assert "127.0.0.1" not in known_hosts.read_text()
    hello(sshd, known_hosts=(known_hosts,))


def test_another_key_type_on_file_is_asked_for_first(tmp_path: Path) -> None:
    make_key(tmp_path / "rsa", "rsa")
    server = Sshd(tmp_path / "sshd", extra=f"HostKey {tmp_path}/rsa").start()
    try:
        file = tmp_path / "known_hosts"
        file.write_text(f"[127.0.0.1]:{server.port} {(tmp_path / 'rsa.pub').read_text()}")
        hello(server, known_hosts=(file,))
    finally:
        server.stop()


def test_host_key_alias(sshd: Sshd, tmp_path: Path) -> None:
    file, config = tmp_path / "known_hosts", tmp_path / "config"
    file.write_text(f"gpu-one {(sshd.folder / 'host_key.pub').read_text()}")
    config.write_text("HostKeyAlias gpu-one\n")
    hello(sshd, known_hosts=(file,), config_file=config)


def test_key_refused(sshd: Sshd, tmp_path: Path) -> None:
    with pytest.raises(
        HostError, match=r"refused the log-in as \w+\. Tried: .*stranger \(refused\)\. Check the user"
    ):
        hello(sshd, key_files=(make_key(tmp_path / "stranger"),))


def test_a_server_that_hangs_up_during_the_log_in(tmp_path: Path) -> None:
    """As one does that is killed just then: worth another try, unlike a refusal."""
    server = Sshd(tmp_path / "sshd", extra="MaxAuthTries 1").start()
    try:
        keys = (make_key(tmp_path / "stranger"), server.user_key)
        with pytest.raises(RemoteError, match=r"ended the log-in\. Tried: .*stranger.*set IdentitiesOnly"):
            hello(server, key_files=keys)
        hello(server)
    finally:
        server.stop()


def test_no_key_at_all(sshd: Sshd) -> None:
    with pytest.raises(HostError, match="no key was found"):
        hello(sshd, key_files=())


def test_unusable_key_files_are_named_with_the_reason(sshd: Sshd, tmp_path: Path) -> None:
    locked = make_key(tmp_path / "locked", passphrase="open sesame")
    (tmp_path / "junk").write_text("junk")
    with pytest.raises(
        HostError, match=r"locked \(needs a passphrase: run ssh-add\); .*junk \(not a private key"
    ):
        hello(sshd, key_files=(locked, tmp_path / "junk"))


@pytest.mark.parametrize("key_type", ["rsa", "ecdsa"])
def test_other_key_types(sshd: Sshd, tmp_path: Path, key_type: str) -> None:
    key = make_key(tmp_path / key_type, key_type)
    with (sshd.folder / "authorized_keys").open("a") as file:
        file.write(key.with_suffix(".pub").read_text())
    hello(sshd, key_files=(key,))


@pytest.fixture
def agent(sshd: Sshd, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A real ssh-agent that holds the user's key."""
    socket = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        subprocess.run(["ssh-add", "-q", str(sshd.user_key)], check=True)
        yield socket
        process.terminate()


@pytest.mark.usefixtures("agent")
def test_agent_key(sshd: Sshd) -> None:
    hello(sshd, key_files=(), use_agent=True)


@pytest.mark.usefixtures("agent")
def test_identities_only_keeps_other_agent_keys_back(sshd: Sshd, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(f"IdentitiesOnly yes\nIdentityFile {sshd.user_key}.pub\n")
    hello(sshd, key_files=(), use_agent=True, config_file=config)
    config.write_text("IdentitiesOnly yes\nIdentityFile /none\n")
    with pytest.raises(HostError, match="no key was found"):
        hello(sshd, key_files=(), use_agent=True, config_file=config)


@pytest.mark.parametrize("by_setting", [False, True])
def test_certificate(tmp_path: Path, by_setting: bool) -> None:
    ca, key = make_key(tmp_path / "ca"), make_key(tmp_path / "key")
    who = os.environ.get("USER") or "root"
    subprocess.run(["ssh-keygen", "-q", "-s", str(ca), "-I", "me", "-n", who, f"{key}.pub"], check=True)
    server = Sshd(tmp_path / "sshd", extra=f"TrustedUserCAKeys {ca}.pub").start()
    config = tmp_path / "config"
    config.write_text(f"User {who}\n")
    try:
        if by_setting:
            (tmp_path / "key-cert.pub").rename(tmp_path / "elsewhere.pub")
            with pytest.raises(HostError, match="refused the log-in"):
                hello(server, key_files=(key,), config_file=config)
            config.write_text(f"User {who}\nCertificateFile {tmp_path}/elsewhere.pub\n")
        hello(server, key_files=(key,), config_file=config)
    finally:
        server.stop()


def test_password_only_account(tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd", extra="PubkeyAuthentication no\nPasswordAuthentication yes").start()
    try:
        with pytest.raises(HostError, match=r"takes no keys from \w+, only password"):
            hello(server)
    finally:
        server.stop()


def test_nobody_listens_and_nobody_speaks_ssh(sshd: Sshd, tmp_path: Path) -> None:
    host = SshHost("127.0.0.1:1", sshd.settings())
    with pytest.raises(RemoteError, match=r"unreachable: .*refused; check that it is up"):
        host.run(HELLO, timeout_s=5)
    with pytest.raises(RemoteError, match="name cannot be resolved"):
        SshHost("no-such-host.invalid", sshd.settings()).run(HELLO, timeout_s=5)


def test_known_hosts_lines() -> None:
    text = "# c\n\nbad\nh1,*.lab,!x.lab ssh-ed25519 QUJD\n@revoked * ssh-rsa REVG\n"
    text += "h2 ssh-rsa !!!\n[h3]:22 ssh-rsa R0hJ c\n"
    known = KnownHosts(parse_known_hosts(text, "f"))
    assert [k.where for k in known.of("h1")] == ["f:4"]
    assert known.judge("a.lab", b"ABC") is Trust.KNOWN
    assert known.judge("x.lab", b"ABC") is Trust.UNKNOWN
    assert known.judge("h1", b"other") is Trust.CHANGED
    assert known.judge("h9", b"DEF") is Trust.REVOKED
    assert known.judge("[h3]:22", b"GHI") is Trust.KNOWN
    assert known.judge("h", b"GHI") is Trust.UNKNOWN
