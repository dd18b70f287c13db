# What SSH itself lacks, for ssh.py: sh -c TEXT moeagent VERB ARGUMENT...
#   read PATH OFFSET [LIMIT] | put PATH MODE BYTES <DATA | stop PID START GROUP
set -u
fail() { printf '%s\n' "$1" >&2; exit "$2"; }

read_part() {
  [ -e "$1" ] || fail "no such file" 66
  [ ! -d "$1" ] || fail "it is a folder" 66
  [ -r "$1" ] || fail "no permission" 66
  if [ -n "$3" ]; then
    tail -c "+$(($2 + 1))" -- "$1" | head -c "$3"
  else
    tail -c "+$(($2 + 1))" -- "$1"
  fi
}

# The file takes its name only when all of it came: a broken connection looks like the end of input.
put() {
  path=$1 mode=$2 bytes=$3
  umask 077
  case $path in */*) mkdir -p -- "${path%/*}/" || exit 73 ;; esac
  partial=$(mktemp -- "$path.XXXXXX") || exit 73
  trap 'rm -f -- "$partial"' EXIT
  cat >"$partial" || exit 73
  [ "$(wc -c <"$partial")" -eq "$bytes" ] || fail "only a part arrived" 74
  chmod "$mode" "$partial" && mv -f -- "$partial" "$path" || exit 73
}

# stop PID START GROUP: end a process group while the shell that told of it is still that very one.
# That shell is halted first: as long as it is there, the number of the group stays its own.
stop() {
  pid=$1 start=$2 group=$3
  read -r line 2>/dev/null <"/proc/$pid/stat" || return 0
  set -- ${line##*) }
  [ "${20}" = "$start" ] || return 0
  kill -s STOP "$pid" && kill -s TERM -- "-$group"
  sleep 0.5
  kill -s KILL -- "-$group"
}

verb=$1
shift
case $verb in
  read) read_part "$@" ;;
  put) put "$@" ;;
  stop) stop "$@" ;;
esac
