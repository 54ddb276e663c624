#!/bin/sh
# Runs a program of this checkout, for the scripts of package.json:
#
#   sh systemd/run.sh [--setup | --setup-tests] PROGRAM [ARGUMENT …]
#
# With --setup it first installs what is missing. --help or --version as the only argument needs neither installed
# packages nor Node 26: the text of --help is in help.txt beside the program, that of its command NAME in help-NAME.txt.
# `npm run docs` writes these files.
set -eu

readonly INTERRUPTED=130
# Time in tenths of a second for npm to end after the signal.
readonly GRACE_TENTHS=50

cd "$(dirname "$0")/.."

main() {
  setup=
  case $1 in
    --setup) setup=packages && shift ;;
    --setup-tests) setup=tests && shift ;;
  esac
  program=$1
  shift
  case $# in
    1) print_text "$1" help.txt ;;
    2) print_text "$2" "help-$1.txt" ;;
  esac
  case $setup in
    packages) set_up ;;
    tests) set_up --tests ;;
    *) [ -e node_modules/.package-lock.json ] || fail 'The npm packages are not installed. Run: npm run setup' ;;
  esac
  run "$@"
}

# Prints the version, or the text of --help in file $2 if it exists, and ends the script; returns for other arguments.
print_text() {
  case $1 in
    --help) [ ! -e "${program%/*}/$2" ] || { cat "${program%/*}/$2" && exit; } ;;
    --version) sed -n 's/^  "version": "\(.*\)",$/\1/p' package.json && exit ;;
  esac
}

# Runs the set-up in a separate session, so that Ctrl-C reaches only this script. The script then ends all processes of
# the set-up, and waits until apt, which must not be interrupted, has finished.
set_up() {
  trap 'interrupted' INT TERM HUP
  setsid sh systemd/setup.sh "$@" &
  session=$!
  status=0
  wait "$session" || status=$?
  trap - INT TERM HUP
  [ "$status" = 0 ] || exit "$status"
}

interrupted() {
  trap '' INT TERM HUP
  kill -s TERM -- "-$session" 2>/dev/null || true
  wait "$session" || true
  waited=0
  while kill -s 0 -- "-$session" 2>/dev/null; do
    [ "$waited" -lt "$GRACE_TENTHS" ] || kill -s KILL -- "-$session" 2>/dev/null || true
    waited=$((waited + 1))
    sleep 0.1
  done
  echo interrupted
  exit "$INTERRUPTED"
}

# The compile cache makes starts faster. It holds code by Node's flags, so the agent's cache is filled with the agent's
# flags.
run() {
  case $program in
    test/*) exec node "$program" "$@" ;;
  esac
  export NODE_COMPILE_CACHE=node_modules/.cache/podwright
  [ "$program" = agent/main.ts ] || exec node "$program" "$@"
  set -- --max-semi-space-size=2 --optimize-for-size "$program" "$@"
  node --max-semi-space-size=2 --optimize-for-size "$program" --version >/dev/null
  exec node "$@"
}

fail() {
  printf '%s\n' "$1" >&2
  exit 1
}

main "$@"
