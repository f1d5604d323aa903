#!/bin/sh
# Runs a static program in a folder that holds nothing else, as its root: chroot.sh PROGRAM FOLDER. Exits with 77 if
# neither root nor a user namespace is available.
set -eu
rm -rf "$2"
mkdir -p "$2"
cp "$1" "$2/program"
if [ "$(id -u)" = 0 ]; then
  chroot "$2" /program
elif unshare -r true 2>/dev/null; then
  unshare -r chroot "$2" /program
else
  exit 77
fi
