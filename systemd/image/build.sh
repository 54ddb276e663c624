#!/bin/sh
# `npm run image`: builds the image of the agent, the central API or the validator with the Docker engine, from a checkout or an unpacked archive.
# The release in it is reproducible: the same tree produces the same bytes. The base image and its packages
# are not reproducible.
set -eu
umask 022

here=$(cd "$(dirname "$0")" && pwd)
source_tree=$(dirname "$(dirname "$here")")
# shellcheck source-path=SCRIPTDIR source=../release.sh
. "$here/../release.sh"
# shellcheck source-path=SCRIPTDIR source=../progress.sh
. "$here/../progress.sh"

component=agent
tag=
base=
packages=default

usage() {
  cat <<'TEXT'
Usage: npm run image -- --tag NAME:TAG [options]

Builds an image. Use docker push to publish it.

  --tag NAME:TAG     name of the image, such as ghcr.io/example/agent:stable
  --component NAME   agent (default), central or validator
  --base IMAGE       base image (default debian:bookworm-slim)
  --packages 'A B'   Debian packages to install; empty: none (default: all that the component calls)
  --help             print this text
TEXT
}

main() {
  while [ $# -gt 0 ]; do
    case $1 in
      --tag) tag=${2:-} && shift ;;
      --component) component=${2:-} && shift ;;
      --base) base=${2:-} && shift ;;
      --packages) packages=${2-} && shift ;;
      --help | -h) usage && exit 0 ;;
      *) usage >&2 && exit 2 ;;
    esac
    shift
  done
  [ -n "$tag" ] || { usage >&2 && exit 2; }
  case $component in agent | central | validator) ;; *) usage >&2 && exit 2 ;; esac
  context=$(mktemp -d)
  trap 'rm -rf "$context"' EXIT
  mkdir "$context/tree"
  with_progress 'packing the release' put_release "$context/tree"
  cp "$here/$component.Dockerfile" "$context/Dockerfile"
  with_progress 'writing its archive' archive
  set -- --tag "$tag" --build-arg "VERSION=$(release_name "$context/tree")"
  [ -z "$base" ] || set -- "$@" --build-arg "BASE=$base"
  [ "$packages" = default ] || set -- "$@" --build-arg "PACKAGES=$packages"
  tar -C "$context" -cf - Dockerfile release.tar | docker build "$@" -
}

# Writes the same bytes for the same files. A single archive lets the engine unpack it in one step.
archive() {
  tar -C "$context/tree" --sort=name --mtime="@${SOURCE_DATE_EPOCH:-0}" --owner=0 --group=0 --numeric-owner \
    -cf "$context/release.tar" .
}

main "$@"
