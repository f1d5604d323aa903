#!/bin/sh
# man_page_test.sh TOOL FOLDER: the manual page says the same as the help, and formatters accept it without warnings.
set -eu
tool="$1" folder="$2/man"
rm -rf "$folder" && mkdir -p "$folder" && cd "$folder"
"$tool" man >ferrite.1
failures=0
fail() { echo "$1"; failures=$((failures + 1)); }

# Every command and option of the help, as the source of the page writes it.
for command in $("$tool" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
  grep -q "^\.SS .*ferrite.* .fB$command" ferrite.1 || fail "$command is missing"
  for option in $("$tool" "$command" --help | sed -n 's/^  \(-h,\)\{0,1\}\(--[a-z]*\).*/\2/p'); do
    grep -q "$(echo "$option" | sed 's/-/\\\\-/g')" ferrite.1 || fail "$option of $command is missing"
  done
done
grep -q '^\.SH EXIT CODES$' ferrite.1 || fail "the exit codes are missing"
grep -q '^  ferrite train sunspots.toml ' ferrite.1 || fail "the examples are missing"
formatters=0
if command -v groff >/dev/null; then
  formatters=1
  said="$(groff -man -ww -Tutf8 ferrite.1 2>&1 >page.txt)"
  [ -z "$said" ] || fail "groff: $said"
  grep -q 'kernel-and-layer' page.txt || fail "groff shows no options"
fi
if command -v mandoc >/dev/null; then
  formatters=1
  said="$(mandoc -T lint -W warning ferrite.1 | grep -v 'missing date' || true)"  # it has none: builds shall be alike
  [ -z "$said" ] || fail "mandoc: $said"
fi
[ "$formatters" -eq 1 ] || echo "no formatter is here: the page was not formatted"
[ "$failures" -eq 0 ] && echo "the page is whole"
