# shellcheck shell=sh
# shellcheck disable=SC2154 # variables of install.sh and its other parts
# Releases: install, switch, remove. After a kill or a power failure at any point, the link `current` points to a complete
# release.

# Prints the name of the tree's release. A tree that is already a release keeps its name: a release from an
# update is named by its image's digest.
release_of() {
  at=$(readlink -f "$1")
  case $at in "$RELEASES"/*) basename "$at" ;; *) release_name "$1" ;; esac
}

provide() { [ -d "$RELEASES/$1" ] || step "put release $1 into $RELEASES" with_progress "putting release $1 together" put_together "$1"; }

# Builds the release in a temporary folder, flushes it to disk and renames it, so that a named release is always
# complete.
put_together() {
  new=$RELEASES/.new
  rm -rf "$new"
  mkdir -p "$new"
  put_files "$new"
  if same_lock "$CURRENT_LINK" && [ -d "$CURRENT_LINK/node_modules" ]; then
    cp -al "$(readlink -f "$CURRENT_LINK")/node_modules" "$new/node_modules"
  else
    put_packages "$new"
  fi
  put_console "$new"
  [ "$(release_name "$new")" = "$1" ] || fail "The tree changed or was unreadable while it was copied."
  "$new/node_modules/.bin/node" --version >/dev/null || fail "There is no packaged Node for $(uname -sm)."
  loads "$new" || fail 'The release does not load; nothing was switched.'
  sync -f "$new"
  mv -T "$new" "$RELEASES/$1"
  sync "$RELEASES"
}

# Loads all code of the services without starting them, to find missing files and packages before the switch.
loads() {
  "$1/node_modules/.bin/node" --input-type=module -e '
    const [tree] = process.argv.slice(1);
    for (const part of ["agent/serve", "agent/ssh-gateway/gateway", "validator/serve", "validator/central/serve"])
      await import("file://" + tree + "/" + part + ".ts");' "$1"
}

same_lock() { cmp -s "$1/package-lock.json" "$source_tree/package-lock.json"; }

drop_old_releases() {
  current=$(readlink "$CURRENT_LINK") previous=$(readlink "$PREVIOUS_LINK" || true)
  # shellcheck disable=SC2012 # names consist of a version and a digest
  ls -1t "$RELEASES" | tail -n "+$((KEPT_RELEASES + 1))" | while read -r old; do
    case releases/$old in "$current" | "$previous") continue ;; esac
    # Renamed before its files are deleted, so that an interruption leaves no incomplete release under its name.
    mv -T "$RELEASES/$old" "$RELEASES/.gone-$old"
    sync "$RELEASES"
    # The compile cache is deleted with the release; the services fill the cache again at their next start.
    rm -rf /var/cache/podwright-*/* /var/cache/private/podwright-*/*
  done
  rm -rf "${RELEASES:?}"/.gone-*
}

# Switches by an atomic rename. The probation begins before the switch and ends when the release has run long
# enough; the release to roll back to is the last release that passed its probation.
switch_to() {
  if [ ! -e "$TRIAL" ]; then
    readlink "$CURRENT_LINK" >"$TRIAL.new" || true
    keep "$TRIAL.new" "$TRIAL"
  fi
  link "releases/$1" "$CURRENT_LINK"
}

# Ends the probation successfully.
prove() {
  before=$(cat "$TRIAL" 2>/dev/null || true)
  if [ -n "$before" ] && [ "$before" != "$(readlink "$CURRENT_LINK")" ]; then link "$before" "$PREVIOUS_LINK"; fi
  end_trial
}

end_trial() {
  rm -f "$TRIAL"
  sync "$OPT"
}

link() {
  ln -sfn "$1" "$2.new"
  mv -T "$2.new" "$2"
  sync "$OPT"
}
