# shellcheck shell=sh
# The contents of a release, and how to copy it from a checkout or an unpacked archive. Sourced by install.sh and image/build.sh,
# which set `source_tree`; not run.

# shellcheck disable=SC2154 # source_tree is set by the sourcing script
readonly RELEASE_OF="$source_tree"
# Parts of a release, in addition to the npm packages.
readonly PARTS='agent shared validator systemd package.json package-lock.json README.md LICENSE'
# Folder of the built console, which the central API serves.
readonly BUILT_CONSOLE=node_modules/.cache/podwright/console

# Copies a complete release into an empty folder.
put_release() {
  put_files "$1"
  put_packages "$1"
  put_console "$1"
}

put_files() { list_files "$RELEASE_OF" | copy "$RELEASE_OF" "$1"; }

# Copies the npm packages from the tree if they match its lock file, else downloads them. Files that are not used at run
# time are left out (types, source maps, Node's headers): half of all files.
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

# Builds the console. Its packages are development packages: if the tree lacks them, it is a release with a built
# console, or an archive, for which they are downloaded.
put_console() {
  if [ -e "$RELEASE_OF/node_modules/vite" ]; then
    build_console "$RELEASE_OF" "$1"
  elif [ -e "$RELEASE_OF/$BUILT_CONSOLE/current" ]; then
    (cd "$RELEASE_OF" && find "$BUILT_CONSOLE" -type f) | copy "$RELEASE_OF" "$1"
  else
    mkdir "$1/.console"
    (cd "$RELEASE_OF" && find package.json package-lock.json validator/console -type f) | copy "$RELEASE_OF" "$1/.console"
    (cd "$1/.console" && npm ci --include=dev --include=optional --no-audit --no-fund --no-update-notifier --loglevel=error)
    build_console "$1/.console" "$1"
    rm -rf "$1/.console"
  fi
}

# Builds the console of tree $1 into release $2.
build_console() { "$1/node_modules/.bin/node" "$1/validator/console/build/main.ts" "$2/$BUILT_CONSOLE"; }

# Prints the version and a digest of the tree: equal trees have the same name, different trees have different
# names.
release_name() {
  version=$(sed -n 's/^  "version": "\([0-9A-Za-z.-]*\)",$/\1/p' "$1/package.json")
  digest=$(list_files "$1" | (cd "$1" && tr '\n' '\0' | xargs -0 sha256sum) | sha256sum | cut -c1-12)
  echo "$version-$digest"
}

list_files() {
  # shellcheck disable=SC2086 # a list of names, one word each
  (cd "$1" && find $PARTS -type f ! -name '*.test.ts' | LC_ALL=C sort)
}

# Copies the files named on standard input from one tree to another; owned by root and readable for all. Takes options
# of tar.
copy() {
  tree=$1 to=$2
  shift 2
  tar -C "$tree" --owner=0 --group=0 --mode=u+rwX,go+rX,go-w "$@" -cf - -T - | tar -C "$to" -xf -
}

# Compares npm's record of its last installation with the lock file.
packages_present() {
  [ -e "$RELEASE_OF/node_modules/.bin/node" ] && "$RELEASE_OF/node_modules/.bin/node" -e '
    const [tree] = process.argv.slice(1);
    const { packages: wanted } = require(tree + "/package-lock.json");
    const { packages: present } = require(tree + "/node_modules/.package-lock.json");
    const isThere = ([path, { dev, optional, version }]) =>
      path === "" || dev || optional || present[path]?.version === version;
    process.exit(Object.entries(wanted).every(isThere) ? 0 : 1);' "$RELEASE_OF" 2>/dev/null
}

# The packages of the lock file except development ones, and the link to the packaged Node.
runtime_packages() {
  "$1/node_modules/.bin/node" -e '
    const [tree] = process.argv.slice(1);
    const { packages } = require(tree + "/package-lock.json");
    for (const [path, { dev }] of Object.entries(packages))
      if (path !== "" && !dev && require("node:fs").existsSync(tree + "/" + path)) console.log(path);
    console.log("node_modules/.bin/node");' "$1"
}
