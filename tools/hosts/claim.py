"""A run's folder on a host belongs to one run: two controllers with the same run id must not share it."""

import json

from moeagent.memory.errors import HostError, InputError
from moeagent.memory.records.base import Record
from moeagent.tools.hosts.command import Command
from moeagent.tools.hosts.protocol import Host
from moeagent.tools.hosts.script import said

# A hard link appears whole or not at all; where the file system has none, the shell's noclobber does.
_CLAIM = """
case $1 in '~'/*) base=$HOME/${1#'~'/} ;; *) base=$1 ;; esac
umask 077
mkdir -p "$base" && printf '%s\\n' "$2" >"$base/.owner.$$" || exit 73
ln "$base/.owner.$$" "$base/owner" 2>/dev/null ||
  (set -C; cat "$base/.owner.$$" >"$base/owner") 2>/dev/null
rm -f "$base/.owner.$$"
cat "$base/owner"
"""
_TIMEOUT_S = 60.0


class Owner(Record):
    """Whose folder it is."""

    id: str
    """Of the run, drawn when it began: the same at every resume, whatever machine it goes on from."""
    by: str
    """user@controller that claimed it."""
    place: str
    """The run's folder there."""


def claim_folder(host: Host, folder: str, owner: Owner) -> None:
    """Make the folder this run's, or see that it is. A leading ~ is the host's home.

    Raises InputError when it is another run's, HostError when it cannot be made.
    """
    argv = ("sh", "-c", _CLAIM, "moeagent", folder, owner.model_dump_json())
    result = host.run(Command(argv, repeatable=True, title=f"claiming {folder}"), timeout_s=_TIMEOUT_S)
    if not result.ok:
        raise HostError(f"{host.name}: {folder} cannot be made or read: {said(result)}")
    holder = parse_owner(result.text)
    if holder is None:
        raise InputError(
            f"{host.name}: {folder}/owner is damaged: choose another --run-id, or remove the folder"
        )
    if holder.id != owner.id:
        raise InputError(
            f"{host.name}: {folder} belongs to another run of that name, which {holder.by} keeps in "
            f"{holder.place}: choose another --run-id, or remove the folder if that run is gone for good"
        )


def parse_owner(text: str) -> Owner | None:
    """The owner file's content; None where it is none."""
    try:
        return Owner.model_validate(json.loads(text))
    except ValueError:
        return None
