#!/bin/sh
# Installs Podwright's services on a host with systemd, from a checkout or an unpacked archive: a folder per release, one link
# that says which of them runs, units, and files of variables that are never touched again. It may be killed at any
# point and repeated: what runs is always a whole release.
set -eu
# What services of other users read is readable for them, whatever the caller's habits.
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

# How many releases stay.
readonly KEPT_RELEASES=3
# Seconds for which a new release has to serve before it counts.
probation_s=30

components=
mode=install

usage() {
  cat <<'TEXT'
Usage: sh systemd/install.sh --component agent|validator|central [--component ...] [options]
       sh systemd/install.sh [options]              upgrade what is installed
       sh /opt/podwright/current/systemd/install.sh --rollback

Looks first, and says all that is missing. Then installs this tree as a release below /opt/podwright,
switches to it, restarts the services and watches them; a release that does not serve is taken back.
Variables are in /etc/podwright/<component>.env, which is made once and never changed.

  --component NAME   agent, validator or central; without it: those that are installed
  --probation S      seconds for which the new release has to serve (30)
  --rollback         back to the release before
  --dry-run          changes nothing; prints every step
  --help             prints this text
TEXT
}

main() {
  while [ $# -gt 0 ]; do
    case $1 in
      --component) is_component "${2:-}" || misused "--component is one of $ALL_COMPONENTS, not '${2:-}'"
        components="$components$2 " && shift ;;
      --probation) probation_s=$(number "${2:-}") || exit 2
        shift ;;
      --rollback) mode=rollback ;;
      --dry-run) dry_run=yes ;;
      --help | -h) usage && exit 0 ;;
      *) misused "There is no option '$1'" ;;
    esac
    shift
  done
  [ "$(id -u)" = 0 ] || fail 'Run this as root.'
  # Without /run there is no lock to hold; the look at this host tells of it, with all else, before anything is touched.
  [ "$dry_run" = yes ] || { [ "$mode" = install ] && [ ! -w /run ]; } || hold_lock
  asked=$components
  components=$(for each in $ALL_COMPONENTS; do
    case " $asked$(installed)" in *" $each "*) printf '%s ' "$each" ;; esac
  done)
  [ -n "$components" ] || misused 'Nothing is installed here yet: name a --component'
  if [ "$mode" = rollback ]; then roll_back; else install; fi
}

number() {
  case $1 in '' | *[!0-9]*) misused "--probation is a number of seconds, not '$1'" ;; *) echo "$1" ;; esac
}

install() {
  stages=8
  stage 'look at this host' preflight
  release=$(release_of "$source_tree")
  stage "release $release" provide "$release"
  stage 'variables and keys' configure_all
  proven=no
  [ "$(readlink "$CURRENT_LINK" 2>/dev/null)" != "releases/$release" ] || [ -e "$TRIAL" ] || proven=yes
  stage 'check of the variables by that release' check_configurations "$release"
  stage 'switch' change_to "$release"
  stage 'units' step 'install the units' install_units
  stage 'services' bring_up
  stage 'old releases' step "remove releases but the newest $KEPT_RELEASES" drop_old_releases
}

# By hand. What was current is then the one before.
roll_back() {
  before=$(readlink "$PREVIOUS_LINK" || true)
  now=$(readlink "$CURRENT_LINK" || true)
  if [ "$before" = "$now" ] || [ ! -d "$OPT/${before:-none}" ]; then fail 'There is no release to go back to.'; fi
  release=$(basename "$before")
  proven=no
  stages=4
  stage 'check of the variables by that release' check_configurations "$release"
  stage 'switch' change_to "$release"
  stage 'units' step 'install the units' install_units
  stage 'services' bring_up
}

change_to() { [ "$proven" = yes ] || step "switch to release $1" switch_to "$1"; }

# A part of the whole, one of `stages`. On a terminal it has a number and, once it has ended, its time; elsewhere its steps say enough.
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
