# Listening TCP ports of a Linux host, for ports.py: sh -c TEXT moeagent listening | holders HEXPORT
set -u

# "HEXPORT INODE" of each listening socket; 0A is TCP_LISTEN.
listening() {
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    awk '$4 == "0A" { n = split($2, address, ":"); print address[n], $10 }'
}

# "pid user name" of each process that holds the port, as far as this user may see.
holders() {
  for inode in $(listening | awk -v port="$1" '$1 == port { print $2 }' | sort -u); do
    ls -l /proc/[0-9]*/fd 2>/dev/null | awk -v wanted="socket:[$inode]" '
      /^\/proc\/[0-9]+\/fd:$/ { split($0, part, "/"); pid = part[3] }
      $NF == wanted { print pid }'
  done | sort -un | while read -r pid; do
    user=$(ls -ld "/proc/$pid" 2>/dev/null | awk '{ print $3 }')
    read -r name 2>/dev/null <"/proc/$pid/comm" || name=?
    printf '%s %s %s\n' "$pid" "${user:-?}" "$name"
  done
}

verb=$1
shift
case $verb in
  listening) listening ;;
  holders) holders "$@" ;;
esac
