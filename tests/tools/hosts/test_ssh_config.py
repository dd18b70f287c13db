"""Where a destination leads."""

import subprocess
import sys
from pathlib import Path

import pytest

from moeagent.memory.errors import InputError
from moeagent.tools.hosts.ssh_config import Hop, resolve
from moeagent.tools.hosts.ssh_settings import SshSettings


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".ssh").mkdir()
    return tmp_path


def way(home: Path, spec: str, config: str = "", **settings: object) -> tuple[Hop, ...]:
    (home / ".ssh" / "config").write_text(config)
    return resolve(spec, SshSettings(home=home, **settings))  # type: ignore[arg-type]


def test_without_configuration(home: Path) -> None:
    (hop,) = resolve("me@GPU1:2222", SshSettings(home=home))
    assert (hop.hostname, hop.port, hop.user, hop.known_as) == ("GPU1", 2222, "me", "[gpu1]:2222")
    assert hop.key_files == tuple(home / ".ssh" / n for n in ("id_ed25519", "id_ecdsa", "id_rsa"))
    assert hop.known_hosts == (home / ".ssh/known_hosts", Path("/etc/ssh/ssh_known_hosts"))
    assert not hop.accept_new


def test_ipv6(home: Path) -> None:
    (hop,) = way(home, "me@[::1]:22")
    assert (hop.hostname, hop.port, hop.known_as) == ("::1", 22, "::1")


def test_alias(home: Path) -> None:
    config = (
        "Host gpu\n  HostName 10.0.0.7\n  User root\n  Port 2200\n  IdentityFile ~/.ssh/gpu\n"
        "  IdentitiesOnly yes\n  UserKnownHostsFile ~/k1 ~/k2\n  GlobalKnownHostsFile none\n"
        "  CertificateFile ~/c.pub\n  StrictHostKeyChecking accept-new\nHost *\n  User nobody\n"
    )
    (hop,) = way(home, "gpu", config, key_files=(Path("/extra"),))
    assert (hop.hostname, hop.port, hop.user, hop.known_as) == ("10.0.0.7", 2200, "root", "[10.0.0.7]:2200")
    assert hop.key_files[0] == Path("/extra")
    assert hop.key_files[1].name == "gpu"
    assert (hop.identities_only, hop.accept_new) == (True, True)
    assert hop.known_hosts == (home / "k1", home / "k2")
    assert hop.certificates == (home / "c.pub",)
    assert way(home, "me@gpu:9", config)[0].user == "me"
    assert way(home, "me@gpu:9", config)[0].known_as == "[10.0.0.7]:9"


def test_strict_checking_cannot_be_switched_off(home: Path) -> None:
    assert not way(home, "gpu", "StrictHostKeyChecking no\n")[0].accept_new


def test_jumps_may_be_aliases_with_their_own_way(home: Path) -> None:
    config = (
        "Host gpu\n  ProxyJump me@b:2022,c\nHost b\n  HostName b.lab\n  ProxyJump a\n"
        "Host c\n  ProxyJump never\nHost x\n  ProxyJump none\n"
    )
    assert [h.label for h in way(home, "gpu", config)] == ["a", "me@b:2022", "c", "gpu"]
    assert [h.hostname for h in way(home, "gpu", config)] == ["a", "b.lab", "c", "gpu"]
    assert len(way(home, "x", config)) == 1


def test_a_jump_that_leads_back(home: Path) -> None:
    with pytest.raises(InputError, match="leads back to itself"):
        way(home, "a", "Host a\n ProxyJump b\nHost b\n ProxyJump a\n")


def test_include_and_match(home: Path) -> None:
    (home / ".ssh" / "more").write_text("Host gpu\n  HostName included\n")
    config = "Include more none*\nPort 2200\nMatch originalhost gpu\n  User matched\n"
    (hop,) = way(home, "gpu", config)
    assert (hop.hostname, hop.port, hop.user) == ("included", 2200, "matched")
    assert way(home, "other", config)[0].port == 2200


def test_match_exec(home: Path) -> None:
    """In a process of its own: paramiko runs the command by a library that reads our standard input."""
    config = 'Match exec "false"\n  Port 77\nMatch exec "true"\n  Port 78\n'
    (home / ".ssh" / "config").write_text(config)
    program = (
        "import pathlib, sys; from moeagent.tools.hosts.ssh_config import SshSettings, resolve;"
        "print(resolve('gpu', SshSettings(home=pathlib.Path(sys.argv[1])))[0].port)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(home)], input=b"", capture_output=True, check=True
    )
    assert done.stdout == b"78\n"


def test_include_of_plain_lines_inside_a_block(home: Path) -> None:
    (home / ".ssh" / "plain").write_text("Port 77\n")
    config = "Host gpu\n  Include plain\n"
    assert [way(home, name, config)[0].port for name in ("gpu", "other")] == [77, 22]


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("Host\n", "Unparsable line"),
        ("IdentityAgent /run/agent\n", "identityagent .* not supported: .*SSH_AUTH_SOCK"),
        ("PKCS11Provider /lib/x.so\n", "pkcs11provider .* not supported"),
        ("KnownHostsCommand /bin/x\n", "knownhostscommand .* not supported"),
        ("Port ssh\n", "port 'ssh' .* is not a port number"),
        ("Include config\n", "includes itself"),
        ("Host gpu\n Include blocks\n", "move the Include to the top"),
        ("CanonicalizeHostname yes\n", "cannot work out the settings of gpu"),
    ],
)
def test_what_cannot_be_followed_is_said(home: Path, config: str, message: str) -> None:
    (home / ".ssh" / "blocks").write_text("Host gpu\n Port 1\n")
    with pytest.raises(InputError, match=message):
        way(home, "gpu", config)


def test_a_configuration_that_is_not_there(home: Path) -> None:
    with pytest.raises(InputError, match="cannot read the SSH configuration"):
        resolve("gpu", SshSettings(home=home, config_file=home / "none"))


def test_keep_alive_and_connect_timeout(home: Path) -> None:
    config = "ServerAliveInterval 1m30s\nServerAliveCountMax 2\nConnectTimeout 7\n"
    (hop,) = way(home, "gpu", config)
    assert (hop.keepalive_s, hop.dead_after_s, hop.connect_s) == (90.0, 180.0, 7.0)
    assert way(home, "gpu", "ServerAliveInterval 5\n")[0].dead_after_s == 15.0
    own = SshSettings()
    (hop,) = way(home, "gpu", "ServerAliveInterval 0\n")
    assert (hop.keepalive_s, hop.dead_after_s) == (own.keepalive_s, own.dead_after_s)
    for wrong in ("ServerAliveInterval soon\n", "ConnectTimeout 1x\n", "ServerAliveCountMax many\n"):
        with pytest.raises(InputError, match=r"SSH configuration is not a"):
            way(home, "gpu", wrong)
