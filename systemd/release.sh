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

put_files() { list_files "$RELEASE_OF" | copy "$RELEASE_OF" "$1"; }

# Packages are taken from the tree where they are those of its lock, else fetched. What nothing reads at run time stays out: types,
# maps of sources, Node's headers, half of all files.
put_packages() {
  from=$RELEASE_OF
  packages_present || fetch_packages "$1/.fetched"
  runtime_packages "$from" | copy "$from" "$1" --exclude='*.d.ts' --exclude='*.d.mts' --exclude='*.d.cts' \
    --exclude='*.map' --exclude='node-linux-*/include'
  rm -rf "$1/.fetched"
}

fetch_packages() {
  from=$1
  mkdir "$from"
  cp "$RELEASE_OF/package.json" "$RELEASE_OF/package-lock.json" "$from"
  (cd "$from" && npm ci --omit=dev --include=optional --no-audit --no-fund --no-update-notifier --loglevel=error)
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

# Names on standard input, from one tree to another, with options of tar's; root's, and readable for all.
copy() {
  tree=$1 to=$2
  shift 2
  tar -C "$tree" --owner=0 --group=0 --mode=u+rwX,go+rX,go-w "$@" -cf - -T - | tar -C "$to" -xf -
}

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
  "$1/node_modules/.bin/node" -e '
    const [tree] = process.argv.slice(1);
    const { packages } = require(tree + "/package-lock.json");
    for (const [path, { dev }] of Object.entries(packages))
      if (path !== "" && !dev && require("node:fs").existsSync(tree + "/" + path)) console.log(path);
    console.log("node_modules/.bin/node");' "$1"
}
