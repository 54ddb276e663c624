#!/bin/sh
# Removes Podwright's services from a host. Only --pods remove touches Docker objects, and only those of this executor.
# It can be killed at any point and repeated.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source-path=SCRIPTDIR source=installation.sh
. "$here/installation.sh"

components=
data=
pods=refuse

usage() {
  cat <<'TEXT'
Usage: sh /opt/podwright/current/systemd/uninstall.sh --keep-data | --purge [options]

Stops the services and removes their units and, with the last component, the programs.

  --keep-data        keep variables, keys, databases and the enrolment for a later installation
  --purge            delete all of these, if the installer has created their folders; the keys of this host are then
                     lost. Other folders stay, and the script lists them: folders that existed before the installation,
                     links, homes set in variables, drop-ins of units
  --component NAME   agent, validator or central (default: all that are installed)
  --pods leave       continue although there are pods; they keep running, and a reinstalled agent finds them
  --pods remove      first remove the pods of this executor and their data
  --dry-run          print every step without changing anything
  --help             print this text

Without --pods the script stops if the engine has pods of this executor or does not respond. --purge and
--pods leave together require that there are no pods, because pods use files of the agent. The script removes
nothing while a process other than the stopped services uses one of the folders.
TEXT
}

main() {
  while [ $# -gt 0 ]; do
    case $1 in
      --keep-data) choose_data keep ;;
      --purge) choose_data purge ;;
      --component) is_component "${2:-}" || misused "--component must be one of $ALL_COMPONENTS, not '${2:-}'"
        components="$components$2 " && shift ;;
      --pods) case ${2:-} in leave | remove) pods=$2 && shift ;; *) misused "--pods must be leave or remove, not '${2:-}'" ;; esac ;;
      --dry-run) dry_run=yes ;;
      --help | -h) usage && exit 0 ;;
      *) misused "Unknown option '$1'" ;;
    esac
    shift
  done
  [ -n "$data" ] || misused 'Choose what happens to the data: --keep-data or --purge'
  [ "$(id -u)" = 0 ] || fail 'Run this script as root.'
  [ "$dry_run" = yes ] || hold_lock
  [ -n "$components" ] || components=$(installed)
  # --purge also deletes data that an earlier uninstallation kept.
  [ "$data" = keep ] || [ -n "$components" ] || components=$ALL_COMPONENTS
  case " $components" in *' agent '*) settle_pods ;; esac
  for component in $components; do stop_units "$component"; done
  last=$(is_last)
  [ "$dry_run" = yes ] || refuse_if_used
  for component in $components; do remove "$component"; done
  step 'reload the units of systemd' systemctl daemon-reload
  [ "$data" = keep ] || for component in $components; do purge "$component"; done
  if [ "$last" = yes ]; then
    remove_programs
    [ "$data" = keep ] || remove_folder "$ETC"
  fi
}

# Prints yes if no component remains.
is_last() {
  for each in $(installed); do
    case " $components" in *" $each "*) ;; *) echo no && return ;; esac
  done
  echo yes
}

# Deleted data cannot be restored, so contradictory options are rejected.
choose_data() {
  case $data in
    '' | "$1") data=$1 ;;
    *) say '--keep-data and --purge contradict each other: use one of them.' >&2 && exit 2 ;;
  esac
}

# Runs before any service is stopped. With `--pods remove` the agent is stopped first, because it would start
# the pods again.
settle_pods() {
  [ -e "$CURRENT_LINK/node_modules/.bin/node" ] || return 0
  case $pods in
    leave)
      [ "$data" = purge ] || return 0
      count=$(count_pods) || fail 'The Docker engine does not respond, so its pods are unknown: start it, or use --keep-data.'
      [ "$count" = 0 ] || fail "This host has $count pods, which use files of the agent: use --keep-data, or --pods remove."
      ;;
    remove)
      step 'stop the agent' systemctl stop podwright-agent.service
      step 'remove the pods of this executor' remove_pods
      ;;
    refuse)
      count=$(count_pods) || fail 'The Docker engine does not respond, so its pods are unknown: start it, or use --pods leave.'
      [ "$count" = 0 ] || fail "This host has $count pods: remove them at the marketplace, or use --pods leave or --pods remove."
      ;;
  esac
}

remove_pods() { as_service "$CURRENT_LINK" agent remove-all; }

stop_units() {
  for unit in $(units_of "$1"); do
    [ ! -e "$UNITS/$unit" ] || step "stop $unit" systemctl stop "$unit"
  done
}

# Prints the folders that will be removed.
doomed() {
  if [ "$last" = yes ]; then if is_marked "$OPT"; then echo "$OPT"; else echo "$RELEASES"; fi; fi
  [ "$data" = keep ] || for component in $components; do folders_of "$component"; done
}

refuse_if_used() {
  for folder in $(doomed); do
    is_marked "$folder" || continue
    users=$(users_of "$folder")
    [ -z "$users" ] || fail "Nothing was removed: processes use $folder. End them, then repeat this command:" "$users"
  done
}

# Lists processes with a program, working folder or open file in a folder, except this script.
users_of() {
  find /proc/[0-9]*/exe /proc/[0-9]*/cwd /proc/[0-9]*/root /proc/[0-9]*/fd -maxdepth 1 \
    \( -lname "$1" -o -lname "$1/*" \) 2>/dev/null | cut -d / -f 3 | sort -un | while read -r pid; do
    is_this_script "$pid" || say "  $pid $(tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null | cut -c -200)"
  done
}

# Succeeds for this shell and its children.
is_this_script() {
  at=$1
  while [ "${at:-0}" -gt 1 ]; do
    [ "$at" != $$ ] || return 0
    at=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$at/status" 2>/dev/null)
  done
  # A process that has ended uses nothing.
  [ ! -e "/proc/$1/status" ]
}

remove() {
  for unit in $(units_of "$1"); do
    [ -e "$UNITS/$unit" ] || continue
    step "remove $unit" remove_unit "$unit"
  done
  case $(installed) in '' | "$1 ") [ ! -e "$UNITS/$SLICE" ] || step "remove $SLICE" remove_unit "$SLICE" ;; esac
}

# Disables the unit before removing it, so that a kill in between leaves no dangling link.
remove_unit() {
  systemctl stop "$1"
  systemctl --quiet disable "$1" 2>/dev/null || true
  systemctl --quiet reset-failed "$1" 2>/dev/null || true
  rm -f "$UNITS/$1.d/10-docker-root.conf" "$UNITS/$1"
}

purge() {
  name=$(printf '%s' "$1" | tr '[:lower:]' '[:upper:]')_HOME
  home=$(variable "$1" "$name")
  [ -z "$home" ] || kept "$home" "$name names it"
  for folder in $(folders_of "$1"); do remove_folder "$folder"; done
  for unit in $(units_of "$1"); do
    rmdir "$UNITS/$unit.d" 2>/dev/null || ! is_there "$UNITS/$unit.d" || kept "$UNITS/$unit.d" 'it contains other files'
  done
  ! is_marked "$ETC" || step "remove variables and keys of the $1" remove_variables "$1"
}

remove_variables() {
  rm -f "$ETC/$1.env" "$CREDENTIALS/$1".*
  [ "$1" != agent ] || rm -f "$ETC/ssh-gateway.env"
}

# Removes a folder if the installer has created it, and systemd's link to it.
remove_folder() {
  if is_marked "$1"; then
    step "remove $1" clear_folder "$1"
  elif is_there "$1"; then
    kept "$1" 'the installer did not create it'
  fi
  link=$(link_to "$1")
  [ -n "$link" ] || return 0
  if [ -L "$link" ] && [ ! -e "$link" ]; then
    step "remove $link" rm -f "$link"
  elif [ ! -L "$link" ] && [ -e "$link" ]; then
    kept "$link" 'the installer did not create it'
  fi
}

# Removes the mark last, so that an interrupted removal can be repeated. Stays on the folder's file system.
clear_folder() {
  find "$1" -xdev -mindepth 1 ! -path "$1/$MARKER" -delete
  rm -f "$1/$MARKER"
  rmdir "$1"
}

# A folder for programs that existed before the installation loses only what the installer put into it.
remove_programs() {
  if is_marked "$OPT" || ! is_there "$OPT"; then
    remove_folder "$OPT"
    return
  fi
  kept "$OPT" 'the installer did not create it'
  remove_folder "$RELEASES"
  for each in "$CURRENT_LINK" "$PREVIOUS_LINK"; do
    case $(readlink "$each") in releases/*) step "remove $each" rm -f "$each" ;; esac
  done
}

kept() { say "kept $1: $2"; }

main "$@"
