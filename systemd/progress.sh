# shellcheck shell=sh
# Progress of a step: a redrawn line on a terminal, plain lines elsewhere. Sourced by scripts, not run.

readonly LINE_EVERY_S=5
readonly CLEAR_LINE='\r\033[2K'
ticker=

# with_progress TEXT COMMAND …: runs the command in this shell and returns its exit status. Its output is not hidden.
with_progress() {
  # Closes the descriptor that some scripts use for a lock.
  tick "$1" "$$" 9>&- &
  ticker=$!
  shift
  # No `||`: it would disable `set -e` in the command.
  "$@"
  status=$?
  end_step
  return "$status"
}

# Ends the progress line; also called before other output.
end_step() {
  [ -n "$ticker" ] || return 0
  kill "$ticker" 2>/dev/null || true
  wait "$ticker" 2>/dev/null || true
  ticker=
  # shellcheck disable=SC2059 # the format is ours
  [ ! -t 1 ] || printf "$CLEAR_LINE"
}

# Prints the elapsed time until it is killed, or the script has ended.
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
