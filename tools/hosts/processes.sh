# Detached processes on a Linux host, for processes.py: sh -c TEXT moeagent VERB ARGUMENT...
# Nothing is installed on the host: this text travels with each call.
# Files in the folder of a process: server.log, process (who it is), exit_code, started (taken once).
set -u

say() { printf '%s\n' "$*" >&2; }

# born PID: the start time of a process in clock ticks since boot, field 22 of its stat.
# The name in field 2 may hold spaces and parentheses, so counting begins behind its last one.
born_text='born() {
  read -r line 2>/dev/null <"/proc/$1/stat" || return 1
  set -- ${line##*) }
  [ "$1" != Z ] && [ "$1" != X ] && shift 19 && printf "%s" "$1"
}'
eval "$born_text"

boot_id() { cat /proc/sys/kernel/random/boot_id; }

# The child: writes down who it is, tells the starter, and becomes the command.
become_text='
folder=$1 mask=$2
shift 2
{
  printf "tag %s\n" "$MOEAGENT_TAG"
  printf "pid %s\n" "$$"
  printf "start_time %s\n" "$(born "$$")"
  printf "session %s\n" "$PPID"
  printf "session_start %s\n" "$(born "$PPID")"
  printf "boot_id %s\n" "$(cat /proc/sys/kernel/random/boot_id)"
} >"$folder/process.part" && mv "$folder/process.part" "$folder/process" || exit 125
echo started >&3
exec 3>&-
umask "$mask"
exec "$@"'

# The leader of the session: outlives polite signals so that it can write the exit code down.
# Handlers, unlike ignored signals, are not inherited by the child.
supervise_text='
trap : HUP INT TERM
umask 077
folder=$1 text=$2
shift 2
sh -c "$text" moeagent-child "$folder" "$@"
printf "%s\n" "$?" >"$folder/exit_code.part"
mv "$folder/exit_code.part" "$folder/exit_code"'

# start FOLDER COMMAND...: prints the process file. Asked again for the same folder, gives the same answer.
start() {
  folder=$1
  shift
  mask=$(umask)
  umask 077
  mkdir -p "$folder" || exit 73
  if ! mkdir "$folder/started" 2>/dev/null; then
    [ -w "$folder" ] || { say "no permission to write in $folder"; exit 73; }
    if started_before; then return; fi
  fi
  {
    setsid sh -c "$supervise_text" moeagent-server "$folder" "$born_text
$become_text" "$mask" "$@" 3>&1 </dev/null >>"$folder/server.log" 2>&1 &
  } | {
    read -r _ || { tail -n 5 "$folder/server.log" >&2; exit 70; }
  } || exit 70
  cat "$folder/process"
}

# False when the earlier start was killed before it had started anything.
started_before() {
  tries=0
  until [ -e "$folder/process" ]; do
    tries=$((tries + 1))
    [ "$tries" -le 50 ] || { say "an earlier start in $folder was cut off"; exit 75; }
    elsewhere "$MOEAGENT_TAG" || [ -e "$folder/process" ] || return 1
    sleep 0.1
  done
  grep -qxF "tag $MOEAGENT_TAG" "$folder/process" || { say "$folder belongs to another process"; exit 76; }
  cat "$folder/process"
}

# probe FOLDER PID START SESSION SESSION_START BOOT: is it that very process, and how did it end?
probe() {
  lives "$2" "$3" "$6" && alive=1 || alive=0
  tries=0
  while [ "$alive" = 0 ] && [ ! -e "$1/exit_code" ] && lives "$4" "$5" "$6" && [ "$tries" -lt 20 ]; do
    tries=$((tries + 1))
    sleep 0.1
  done
  printf 'alive %s\n' "$alive"
  [ "$6" = "$(boot_id)" ] || printf 'rebooted 1\n'
  [ ! -r "$1/exit_code" ] || printf 'exit_code %s\n' "$(cat "$1/exit_code")"
}

# end_of SECONDS and the arguments of probe: as probe, once it has ended or the seconds have passed.
end_of() {
  looks=$(($1 * 5))
  shift
  while [ "$looks" -gt 0 ] && lives "$2" "$3" "$6"; do
    looks=$((looks - 1))
    sleep 0.2
  done
  probe "$@"
}

lives() { [ "$3" = "$(boot_id)" ] && [ "$(born "$1")" = "$2" ]; }

# carriers TEXT: processes of this user whose environment holds MOEAGENT_TAG=TEXT..., one pid a line.
carriers() {
  grep -lsF "MOEAGENT_TAG=$1" /proc/[0-9]*/environ 2>/dev/null | while read -r file; do
    [ ! -O "$file" ] || { file=${file%/environ}; printf '%s\n' "${file#/proc/}"; }
  done
}

# One variable a line; a newline inside a value cannot pass for the start of a variable.
environment() { tr '\000\n' '\n\001' 2>/dev/null <"/proc/$1/environ"; }

tagged() {
  for pid in $(carriers "$1"); do
    environment "$pid" | grep -qxF "MOEAGENT_TAG=$1" && printf '%s ' "$pid"
  done
}

session_of() { sed 's/^.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 4; }

# elsewhere TAG: does a process outside of this call's session carry the tag?
elsewhere() {
  own=$(session_of "$$")
  for pid in $(tagged "$1"); do
    session=$(session_of "$pid")
    [ -z "$session" ] || [ "$session" = "$own" ] || return 0
  done
  return 1
}

# ours TAG PID START SESSION SESSION_START BOOT: "pid start" of each living process that is ours:
# it carries the tag, or is one of the two recorded processes by start time, or shares a session with
# such a one, or descends from one of these. Always of this user.
ours() {
  known=$(tagged "$1")
  ! lives "$2" "$3" "$6" || known="$known $2"
  ! lives "$4" "$5" "$6" || known="$known $4"
  [ -n "$known" ] || return 0
  cat /proc/[0-9]*/stat 2>/dev/null | awk -v known="$known" -v session="$4" '
    { pid = $1; sub(/^.*\) /, ""); if ($1 == "Z" || $1 == "X") next
      parent[pid] = $2; group[pid] = $4; start[pid] = $20 }
    END {
      count = split(known, list, " ")
      for (i = 1; i <= count; i++) if (list[i] in start) {
        mine[list[i]] = 1
        if (group[list[i]] == session) trusted = 1
      }
      for (pid in start) if (trusted && group[pid] == session) mine[pid] = 1
      do {
        grown = 0
        for (pid in start) if (!(pid in mine) && (parent[pid] in mine)) { mine[pid] = 1; grown = 1 }
      } while (grown)
      for (pid in mine) print pid, start[pid]
    }' | while read -r pid start; do
    [ ! -O "/proc/$pid" ] || printf '%s %s\n' "$pid" "$start"
  done
}

# signal SIGNAL SPARED TAG PID START SESSION SESSION_START BOOT: to all that is ours, except SPARED.
# The start time is read again right before each signal.
signal() {
  name=$1 spared=$2
  shift 2
  ours "$@" | while read -r pid start; do
    [ "$pid" = "$spared" ] || [ "$(born "$pid")" != "$start" ] || kill -s "$name" "$pid" 2>/dev/null
  done
  return 0
}

# find PREFIX: "pid start session boot tag folder" of each process whose tag starts so.
find_tagged() {
  for pid in $(carriers "$1"); do
    tag=$(environment "$pid" | sed -n 's/^MOEAGENT_TAG=//p')
    folder=$(environment "$pid" | sed -n 's/^MOEAGENT_FOLDER=//p')
    start=$(born "$pid") || continue
    case $tag in "$1"*) ;; *) continue ;; esac
    session=$(session_of "$pid")
    printf '%s %s %s %s %s %s\n' "$pid" "$start" "${session:-0}" "$(boot_id)" "$tag" "$folder"
  done
}

# carrying TAG: "pid tag" of each process that carries exactly this tag.
carrying() {
  for pid in $(tagged "$1"); do
    printf '%s %s\n' "$pid" "$1"
  done
}

verb=$1
shift
case $verb in
  start) start "$@" ;;
  probe) probe "$@" ;;
  end_of) end_of "$@" ;;
  ours) ours "$@" ;;
  signal) signal "$@" ;;
  find) find_tagged "$@" ;;
  carrying) carrying "$@" ;;
  *) say "no such verb: $verb"; exit 64 ;;
esac
