"""A run's folder on a host is one run's."""

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from moeagent.memory.errors import HostError, InputError
from moeagent.tools.hosts.claim import Owner, claim_folder
from moeagent.tools.hosts.local import LocalHost
from moeagent.tools.hosts.protocol import Host

OURS = Owner(id="a1", by="me@here", place="/runs/night")
THEIRS = Owner(id="b2", by="you@there", place="/other/runs/night")


def test_the_first_gets_it_and_keeps_it(host: Host, tmp_path: Path) -> None:
    folder = tmp_path / "box" / "night it's"
    claim_folder(host, str(folder), OURS)
    claim_folder(host, str(folder), OURS.model_copy(update={"by": "me@elsewhere"}))
    with pytest.raises(InputError) as refused:
        claim_folder(host, str(folder), THEIRS)
    for part in (str(folder), "me@here", "/runs/night", "--run-id"):
        assert part in str(refused.value)
    assert [file.name for file in folder.iterdir()] == ["owner"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_of_many_at_the_same_moment_one_gets_it(tmp_path: Path) -> None:
    def claimed(number: int) -> bool:
        try:
            claim_folder(LocalHost(), str(tmp_path / "night"), OURS.model_copy(update={"id": f"r{number}"}))
        except InputError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claimed, range(16))) == 1


def test_a_damaged_owner_and_a_folder_that_cannot_be_made_are_named(tmp_path: Path) -> None:
    (tmp_path / "night").mkdir()
    (tmp_path / "night" / "owner").write_text("{")
    with pytest.raises(InputError, match="owner is damaged"):
        claim_folder(LocalHost(), str(tmp_path / "night"), OURS)
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match="cannot be made"):
        claim_folder(LocalHost(), str(tmp_path / "file" / "night"), OURS)
