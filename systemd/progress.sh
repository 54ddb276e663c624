# shellcheck shell=sh
# How long a step has lasted, for whoever waits: a line that is drawn anew on a terminal, plain lines elsewhere. Read by scripts,
# not run.

readonly LINE_EVERY_S=5
readonly CLEAR_LINE='\r\033[2K'
ticker=

# tell TEXT COMMAND …: runs it in this shell, and gives its exit status. What it prints itself comes between.
tell() {
  # Without the lock that some hold by this descriptor.
  tick "$1" "$$" 9>&- &
  ticker=$!
  shift
  # With no `||`, which would take `set -e` from what it runs.
  "$@"
  status=$?
  end_step
  return "$status"
}

# Also before a step's end, where something is to be said on a line of its own.
end_step() {
  [ -n "$ticker" ] || return 0
  kill "$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  ticker=
  # shellcheck disable=SC2059 # the format is ours
  [ ! -t 1 ] || printf "$CLEAR_LINE"
}

# Until it is killed, or nobody is left who would.
tick() {
  lasted=0
  while sleep 1 >/dev/null 2>&1 && kill -0 "$2" 2>/dev/null; do
    lasted=$((lasted + 1))
    if [ -t 1 ]; then
      printf "$CLEAR_LINE"'… %s %s s' "$1" "$lasted"
    elif [ $((lasted % LINE_EVERY_S)) = 0 ]; then
      printf '… %s (%s s)\n' "$1" "$lasted"
    fi
  done
}
