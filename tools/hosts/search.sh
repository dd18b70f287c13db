# Selected lines of a file, for search.py: sh -c TEXT moeagent PATH WANTED UNWANTED CONTEXT MATCHES LINE BYTES
# WANTED and UNWANTED hold one extended regular expression a line; UNWANTED may be empty.
# Prints as grep -n does: NUMBER:matched line, NUMBER-context line, -- between blocks.
set -u
path=$1 wanted=$2 unwanted=$3 context=$4 matches=$5 line=$6 bytes=$7
# In the C locale grep reads bytes, so that no encoding can hide a line.
LC_ALL=C
export LC_ALL

[ -f "$path" ] || { printf 'no such file\n' >&2; exit 66; }
[ -r "$path" ] || { printf 'no permission\n' >&2; exit 66; }
for pattern in "$wanted" "$unwanted"; do
  printf '' | grep -E -e "$pattern"
  [ "$?" -le 1 ] || exit 65
done

# numbers PATTERNS SIGN: "number sign" of each line that matches.
numbers() { grep -naE -e "$1" -- "$path" | sed "s/:.*/ $2/"; }

{
  [ -z "$unwanted" ] || numbers "$unwanted" -
  numbers "$wanted" +
} | SEARCHED=$path awk -v context="$context" -v matches="$matches" '
  $2 == "-" { unwanted[$1] = 1; next }
  !($1 in unwanted) && count < matches {
    count++
    for (n = $1 - context; n <= $1 + context; n++) if (!(n in mark)) mark[n] = "-"
    mark[$1] = ":"
    last = $1 + context
  }
  END {
    while (at < last && (getline text < ENVIRON["SEARCHED"]) > 0) {
      at++
      if (!(at in mark)) continue
      if (shown && at != shown + 1) print "--"
      print at mark[at] text
      shown = at
    }
  }' | cut -b "1-$((line + 10))" | head -c "$bytes"
