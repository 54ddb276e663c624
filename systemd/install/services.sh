# shellcheck shell=sh
# shellcheck disable=SC2154 # what is set by install.sh and its other parts
# Services brought up, watched, and taken back with a release that does not serve.

# Starts what can start, and takes a release back that does not serve.
bring_up() {
  [ "$dry_run" = no ] || { say "would enable and restart: $(all_services)" "would watch them for $probation_s s" && return; }
  for component in $ready; do
    # shellcheck disable=SC2046 # a list of names, one word each
    systemctl --quiet enable $(enabled_of "$component")
    [ "$component" != agent ] || systemctl --quiet enable --now "$AGENT_UPDATE.path"
  done
  if [ -z "$ready" ]; then
    prove
  elif [ "$proven" = yes ] && [ "$changed" = no ] && are_active; then
    say 'Nothing to do: this release runs.'
  elif restart && tell "watching for $probation_s s whether they serve" watch; then
    # What systemctl has linked, too.
    sync -f "$UNITS"
    prove
    say "Release $(basename "$(readlink "$CURRENT_LINK")") serves: $ready"
  else
    take_back
  fi
  for component in $refused; do
    say "The $component is installed and not started: complete $ETC/$component.env, then repeat this command."
  done
}

all_services() { for component in $components; do services_of "$component"; done | tr '\n' ' '; }

# The agent's unit wants that for the kernel's log, which is nothing by itself.
enabled_of() { for unit in $(services_of "$1"); do [ "$unit" = podwright-kernel-log.service ] || echo "$unit"; done; }

# At once: each is away only for as long as it takes itself.
restart() {
  # shellcheck disable=SC2046
  systemctl restart $(for component in $ready; do services_of "$component"; done)
}

are_active() {
  for component in $ready; do
    for unit in $(enabled_of "$component"); do systemctl --quiet is-active "$unit" || return 1; done
  done
}

# Active, and not started again by systemd since.
serves() {
  are_active || return 1
  for component in $ready; do
    for unit in $(enabled_of "$component"); do
      [ "$(systemctl show --property=NRestarts --value "$unit")" = 0 ] || return 1
    done
  done
}

# For the probation.
watch() {
  waited=0
  while serves; do
    [ "$waited" -lt "$probation_s" ] || return 0
    waited=$((waited + 1))
    sleep 1
  done
  return 1
}

take_back() {
  for component in $ready; do
    for unit in $(enabled_of "$component"); do
      journalctl --unit "$unit" --lines 20 --no-pager >&2 || true
    done
  done
  bad=$(basename "$(readlink "$CURRENT_LINK")")
  before=$(cat "$TRIAL" 2>/dev/null || true)
  if [ -z "$before" ] || [ "$before" = "releases/$bad" ]; then
    fail "Release $bad does not serve, and there is none before it. Its last messages are above."
  fi
  say "Release $bad does not serve; going back to $(basename "$before")."
  link "$before" "$CURRENT_LINK"
  install_units
  if restart && tell "watching for $probation_s s whether they serve" watch; then
    end_trial
    fail "Release $bad was taken back; $(basename "$before") serves again. Its last messages are above."
  fi
  fail "Release $bad was taken back, and $(basename "$before") does not serve either: see journalctl."
}
