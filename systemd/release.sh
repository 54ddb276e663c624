# shellcheck shell=sh
# What a release is made of, and how it is taken out of a checkout or an unpacked archive: known to install.sh and to what
# builds the agent's image. Read by them, not run; `source_tree` is theirs.

# shellcheck disable=SC2154 # source_tree is set by whoever reads this
readonly RELEASE_OF="$source_tree"
# Beside its packages.
readonly PARTS='agent shared validator systemd package.json package-lock.json README.md LICENSE'

# Into an empty folder, whole.
put_release() {
  put_files "$1"
  put_packages "$1"
}

put_files() { list_files "$RELEASE_OF" | copy_to "$1"; }

# Packages are taken from the tree where they are those of its lock, else fetched.
put_packages() {
  if packages_present; then
    runtime_packages | copy_to "$1"
  else
    (cd "$1" && npm ci --omit=dev --include=optional --no-audit --no-fund --no-update-notifier --loglevel=error)
  fi
}

# The version and what the tree holds: the same tree has the same name, another one never takes its place.
release_name() {
  version=$(sed -n 's/^  "version": "\([0-9A-Za-z.-]*\)",$/\1/p' "$1/package.json")
  digest=$(list_files "$1" | (cd "$1" && tr '\n' '\0' | xargs -0 sha256sum) | sha256sum | cut -c1-12)
  echo "$version-$digest"
}

list_files() {
  # shellcheck disable=SC2086 # a list of names, one word each
  (cd "$1" && find $PARTS -type f ! -name '*.test.ts' | LC_ALL=C sort)
}

# Names on standard input, below a tree; root's, and readable for all.
copy_to() { tar -C "$RELEASE_OF" --owner=0 --group=0 --mode=u+rwX,go+rX,go-w -cf - -T - | tar -C "$1" -xf -; }

# By what npm noted of its last installation there.
packages_present() {
  [ -e "$RELEASE_OF/node_modules/.bin/node" ] && "$RELEASE_OF/node_modules/.bin/node" -e '
    const [tree] = process.argv.slice(1);
    const { packages: wanted } = require(tree + "/package-lock.json");
    const { packages: present } = require(tree + "/node_modules/.package-lock.json");
    const isThere = ([path, { dev, optional, version }]) =>
      path === "" || dev || optional || present[path]?.version === version;
    process.exit(Object.entries(wanted).every(isThere) ? 0 : 1);' "$RELEASE_OF" 2>/dev/null
}

# Those of the lock that are not only for development, and the link to the packaged Node.
runtime_packages() {
  "$RELEASE_OF/node_modules/.bin/node" -e '
    const [tree] = process.argv.slice(1);
    const { packages } = require(tree + "/package-lock.json");
    for (const [path, { dev }] of Object.entries(packages))
      if (path !== "" && !dev && require("node:fs").existsSync(tree + "/" + path)) console.log(path);
    console.log("node_modules/.bin/node");' "$RELEASE_OF"
}
