# Prints the telling lines of a log with nothing but POSIX tools: $1 file, $2 first lines, $3 last lines, $4 matches;
# patterns (one ERE a line) come on standard input. Lines are `number:text` or `number-text`.
export LC_ALL=C
file=$1
newlines=$(wc -l <"$file") || exit 1
ended=$(tail -c 1 <"$file" | wc -l)
printf 'total %s\n' "$((newlines + 1 - ended))"
head -n "$2" <"$file" | cut -c1-4000 | head -c 150000 | grep -an ''
printf '\ntail\n'
tail -n "$3" <"$file" | cut -c1-4000 | tail -c 350000
printf '\nmatches\n'
grep -anE -m "$4" -B 10 -A 60 -f - <"$file" | cut -c1-4000 | head -c 400000
