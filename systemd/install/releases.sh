# shellcheck shell=sh
# shellcheck disable=SC2154 # what is set by install.sh and its other parts
# The folder of releases: how one gets there, which of them runs, and which go. After a kill or a power cut at any point the link
# `current` names a whole release.

# A tree that is a release already keeps its name: that of an update's is its image's digest.
release_of() {
  at=$(readlink -f "$1")
  case $at in "$RELEASES"/*) basename "$at" ;; *) release_name "$1" ;; esac
}

provide() { [ -d "$RELEASES/$1" ] || step "put release $1 into $RELEASES" tell "putting release $1 together" put_together "$1"; }

# Made beside and renamed, on disk before: under its name a release is whole.
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
  [ "$(release_name "$new")" = "$1" ] || fail "The tree changed or could not be read while it was copied."
  "$new/node_modules/.bin/node" --version >/dev/null || fail "There is no packaged Node for $(uname -sm)."
  loads "$new" || fail 'The release does not load; nothing was switched.'
  sync -f "$new"
  mv -T "$new" "$RELEASES/$1"
  sync "$RELEASES"
}

# All that services run, without running any of it: what lacks a file or a package is told before anything is switched.
loads() {
  "$1/node_modules/.bin/node" --input-type=module -e '
    const [tree] = process.argv.slice(1);
    for (const part of ["agent/serve", "agent/ssh-gateway/gateway", "validator/serve", "validator/central/serve"])
      await import("file://" + tree + "/" + part + ".ts");' "$1"
}

same_lock() { cmp -s "$1/package-lock.json" "$source_tree/package-lock.json"; }

drop_old_releases() {
  current=$(readlink "$CURRENT_LINK") previous=$(readlink "$PREVIOUS_LINK" || true)
  # shellcheck disable=SC2012 # names are ours: a version and a digest
  ls -1t "$RELEASES" | tail -n "+$((KEPT_RELEASES + 1))" | while read -r old; do
    case releases/$old in "$current" | "$previous") continue ;; esac
    # Without its name before without its files, also when that is cut off.
    mv -T "$RELEASES/$old" "$RELEASES/.gone-$old"
    sync "$RELEASES"
    # What was compiled of it goes, too; the others' is made again at their next start.
    rm -rf /var/cache/podwright-*/* /var/cache/private/podwright-*/*
  done
  rm -rf "${RELEASES:?}"/.gone-*
}

# A rename: whoever looks finds the old release or the new one. On trial from before the switch until it has served; what to
# go back to is the last that has.
switch_to() {
  if [ ! -e "$TRIAL" ]; then
    readlink "$CURRENT_LINK" >"$TRIAL.new" || true
    keep "$TRIAL.new" "$TRIAL"
  fi
  link "releases/$1" "$CURRENT_LINK"
}

# The trial is over.
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
