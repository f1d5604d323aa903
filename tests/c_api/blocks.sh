#!/bin/sh
# Runs the programs of docs/c-api.md in C# (with Mono, else they are skipped) and Python: blocks.sh PAGE LIBRARY NET FOLDER
set -e
page="$1" library="$2" net="$3" folder="$4"
mkdir -p "$folder"
cp "$library" "$folder/libferrite_c.so"
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$page" | sed '1d;$d'; }
block python | sed "s|libferrite_c.so.1|$folder/libferrite_c.so|; s|amp.nam|$net|" >"$folder/program.py"
echo 'assert any(y), list(y)' >>"$folder/program.py"
python3 "$folder/program.py"
command -v mcs >/dev/null && command -v mono >/dev/null || exit 77
block csharp >"$folder/program.cs"
mcs "$folder/program.cs" -out:"$folder/program.exe"
LD_LIBRARY_PATH="$folder" mono "$folder/program.exe" "$net" | grep -Eq '^(-?[0-9.E-]+ ){63}-?[0-9.E-]+$'
if LD_LIBRARY_PATH="$folder" mono "$folder/program.exe" missing.nam 2>"$folder/error"; then exit 1; fi
grep -q 'missing.nam: cannot open the file' "$folder/error"
