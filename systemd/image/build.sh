#!/bin/sh
# `npm run image`: builds the agent's image with the Docker engine, from a checkout or an unpacked archive. The release in it has
# the same bytes whenever and wherever it is built of one tree; what the base and its packages bring has not.
set -eu
umask 022

here=$(cd "$(dirname "$0")" && pwd)
source_tree=$(dirname "$(dirname "$here")")
# shellcheck source-path=SCRIPTDIR source=../release.sh
. "$here/../release.sh"
# shellcheck source-path=SCRIPTDIR source=../progress.sh
. "$here/../progress.sh"

tag=
base=
packages=default

usage() {
  cat <<'TEXT'
Usage: npm run image -- --tag NAME:TAG [options]

Builds the agent's image under that name; docker push makes it known to validators and agents.

  --tag NAME:TAG     what the image is called: ghcr.io/example/agent:stable
  --base IMAGE       what it is built on (debian:bookworm-slim)
  --packages 'A B'   Debian packages that the base lacks; empty: none (all that the agent calls)
  --help             prints this text
TEXT
}

main() {
  while [ $# -gt 0 ]; do
    case $1 in
      --tag) tag=${2:-} && shift ;;
      --base) base=${2:-} && shift ;;
      --packages) packages=${2-} && shift ;;
      --help | -h) usage && exit 0 ;;
      *) usage >&2 && exit 2 ;;
    esac
    shift
  done
  [ -n "$tag" ] || { usage >&2 && exit 2; }
  context=$(mktemp -d)
  trap 'rm -rf "$context"' EXIT
  mkdir "$context/tree"
  tell 'packing the release' put_release "$context/tree"
  cp "$here/Dockerfile" "$context/Dockerfile"
  tell 'writing its archive' archive
  set -- --tag "$tag" --build-arg "VERSION=$(release_name "$context/tree")"
  [ -z "$base" ] || set -- "$@" --build-arg "BASE=$base"
  [ "$packages" = default ] || set -- "$@" --build-arg "PACKAGES=$packages"
  tar -C "$context" -cf - Dockerfile release.tar | docker build "$@" -
}

# The same bytes for the same files, whoever builds and when. One file: the engine unpacks it once.
archive() {
  tar -C "$context/tree" --sort=name --mtime="@${SOURCE_DATE_EPOCH:-0}" --owner=0 --group=0 --numeric-owner \
    -cf "$context/release.tar" .
}

main "$@"
