# Samples the GPUs of a host for as long as a file exists: sh -c TEXT moeagent LEASE PERIOD_MS LOOKS FIELDS...
# Ends when LEASE is gone, when the process that started it is gone, when nobody takes its output any more
# (SIGPIPE then ends nvidia-smi), and in any case after LOOKS looks of a fifth of a second.
# Once in five looks it says how long the server's log beside LEASE is: log SECONDS BYTES.
# Each FIELDS is a list for --query-gpu; the next one is tried when the driver does not know a field.
set -u
lease=$1 period=$2 looks=$3
shift 3

# Where nvidia-smi is a script, what it starts is ended with it: all of it is one process group.
own_group=
command -v setsid >/dev/null && own_group=setsid
smi=
stop() {
  [ -z "$smi" ] || { [ -n "$own_group" ] && kill -- "-$smi"; } || kill "$smi"
}
trap 'stop 2>/dev/null' EXIT
trap 'exit 143' HUP INT TERM

wanted() {
  looks=$((looks - 1))
  [ "$looks" -gt 0 ] && [ -e "$lease" ] || return 1
  read -r line </proc/$$/stat || return 1
  set -- ${line##*) }
  [ "$2" = "$PPID" ]
}

log=${lease%/*}/server.log
length() {
  [ $((looks % 5)) -ne 0 ] || [ ! -e "$log" ] || printf 'log %s %s\n' "$(date +%s)" "$(wc -c <"$log" | tr -d ' ')"
}

command -v nvidia-smi >/dev/null || exit 127
# Into a pipe a program may hold its lines back, and those are lost when it is ended.
by_line=
command -v stdbuf >/dev/null && by_line='stdbuf -oL'
for fields in "$@"; do
  TZ=UTC $own_group $by_line nvidia-smi "--query-gpu=$fields" --format=csv,noheader,nounits -lms "$period" &
  smi=$!
  while kill -0 "$smi" 2>/dev/null; do
    wanted || exit 0
    length
    sleep 0.2
  done
done
