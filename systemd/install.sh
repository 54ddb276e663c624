#!/bin/sh
# Installs Podwright's services on a host with systemd, from a checkout or an unpacked archive: a folder per
# release, a link to the current one, units, and variable files that are written once and never changed. The
# script can be killed at any point and repeated; the services always run a complete release.
set -eu
# Services of other users must be able to read the release, whatever the caller's umask.
umask 022

here=$(cd "$(dirname "$0")" && pwd)
source_tree=$(dirname "$here")
# shellcheck source-path=SCRIPTDIR source=installation.sh
. "$here/installation.sh"
# shellcheck source-path=SCRIPTDIR source=release.sh
. "$here/release.sh"
# shellcheck source-path=SCRIPTDIR source=progress.sh
. "$here/progress.sh"
# shellcheck source-path=SCRIPTDIR source=install/preflight.sh
. "$here/install/preflight.sh"
# shellcheck source-path=SCRIPTDIR source=install/releases.sh
. "$here/install/releases.sh"
# shellcheck source-path=SCRIPTDIR source=install/configuration.sh
. "$here/install/configuration.sh"
# shellcheck source-path=SCRIPTDIR source=install/units.sh
. "$here/install/units.sh"
# shellcheck source-path=SCRIPTDIR source=install/services.sh
. "$here/install/services.sh"

# Number of releases to keep.
readonly KEPT_RELEASES=3
# Seconds for which a new release must run before it is accepted.
probation_s=30

components=
mode=install

usage() {
  cat <<'TEXT'
Usage: sh systemd/install.sh --component agent|validator|central [--component ...] [options]
       sh systemd/install.sh [options]              upgrade what is installed
       sh /opt/podwright/current/systemd/install.sh --rollback

Checks the host and prints everything that is missing. Then installs this tree as a release below
/opt/podwright, switches to it, restarts the services and watches them; a release that fails is rolled
back. Variables are in /etc/podwright/<component>.env, which is written once and never changed.

  --component NAME   agent, validator or central (default: all that are installed)
  --probation S      seconds for which the new release must run (default 30)
  --rollback         return to the previous release
  --dry-run          print every step without changing anything
  --help             print this text
TEXT
}

main() {
  while [ $# -gt 0 ]; do
    case $1 in
      --component) is_component "${2:-}" || misused "--component must be one of $ALL_COMPONENTS, not '${2:-}'"
        components="$components$2 " && shift ;;
      --probation) probation_s=$(number "${2:-}") || exit 2
        shift ;;
      --rollback) mode=rollback ;;
      --dry-run) dry_run=yes ;;
      --help | -h) usage && exit 0 ;;
      *) misused "Unknown option '$1'" ;;
    esac
    shift
  done
  [ "$(id -u)" = 0 ] || fail 'Run this script as root.'
  # Without a writable /run the lock cannot be taken; preflight then reports the problem before anything is
  # changed.
  [ "$dry_run" = yes ] || { [ "$mode" = install ] && [ ! -w /run ]; } || hold_lock
  requested=$components
  components=$(for each in $ALL_COMPONENTS; do
    case " $requested$(installed)" in *" $each "*) printf '%s ' "$each" ;; esac
  done)
  [ -n "$components" ] || misused 'Nothing is installed on this host yet: set --component'
  if [ "$mode" = rollback ]; then roll_back; else install; fi
}

number() {
  case $1 in '' | *[!0-9]*) misused "--probation must be a number of seconds, not '$1'" ;; *) echo "$1" ;; esac
}

install() {
  stages=8
  stage 'check this host' preflight
  [ "$dry_run" = yes ] || mark_folders
  release=$(release_of "$source_tree")
  stage "release $release" provide "$release"
  stage 'variables and keys' configure_all
  proven=no
  [ "$(readlink "$CURRENT_LINK" 2>/dev/null)" != "releases/$release" ] || [ -e "$TRIAL" ] || proven=yes
  stage 'check the variables with that release' check_configurations "$release"
  stage 'switch' change_to "$release"
  stage 'units' step 'install the units' install_units
  stage 'services' bring_up
  stage 'old releases' step "remove all releases except the newest $KEPT_RELEASES" drop_old_releases
  # Only a dry run gets here with problems.
  [ -z "$problems" ] || exit 1
}

# Returns to the previous release; the current release becomes the previous release.
roll_back() {
  before=$(readlink "$PREVIOUS_LINK" || true)
  now=$(readlink "$CURRENT_LINK" || true)
  if [ "$before" = "$now" ] || [ ! -d "$OPT/${before:-none}" ]; then fail 'There is no previous release.'; fi
  release=$(basename "$before")
  proven=no
  stages=4
  stage 'check the variables with that release' check_configurations "$release"
  stage 'switch' change_to "$release"
  stage 'units' step 'install the units' install_units
  stage 'services' bring_up
}

change_to() { [ "$proven" = yes ] || step "switch to release $1" switch_to "$1"; }

# Runs one of `stages` stages. On a terminal, prints the stage's number and duration; otherwise only the steps
# print.
stage() {
  if [ ! -t 1 ]; then
    shift
    "$@"
    return
  fi
  stage_no=$((${stage_no:-0} + 1)) stage_since=$(date +%s)
  say "[$stage_no/$stages] $1"
  shift
  "$@"
  stage_s=$(($(date +%s) - stage_since))
  [ "$stage_s" = 0 ] || say "      $stage_s s"
}

main "$@"
