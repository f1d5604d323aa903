# Functions and settings shared by the scripts of this folder; sourced, not run.
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$ROOT"

say() { printf '== %s\n' "$*"; }

# ensure_packages PACKAGE...: installs missing Debian packages, as root or through sudo; otherwise prints the command.
ensure_packages() {
  local missing=() package
  if ! command -v dpkg >/dev/null 2>&1; then
    say "not a Debian system: make sure that these packages, or their counterparts, are installed:"
    printf '   %s\n' "$*" \
      "dnf install gcc-c++ clang cmake ninja-build eigen3-devel json-devel cli11-devel tomlplusplus-devel boost-devel spdlog-devel zlib-devel" \
      "brew install cmake ninja eigen nlohmann-json cli11 tomlplusplus boost spdlog zlib"
    return 0
  fi
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local run=()
  if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
      run=(sudo -n)
    elif command -v sudo >/dev/null 2>&1 && [ -t 0 ]; then
      run=(sudo)
    else
      say "these Debian packages are missing; run as root, then start again:"
      printf '   apt-get update && apt-get install -y --no-install-recommends %s\n' "${missing[*]}"
      printf '   (Fedora: dnf install gcc-c++ clang cmake ninja-build eigen3-devel json-devel cli11-devel tomlplusplus-devel boost-devel spdlog-devel zlib-devel)\n'
      printf '   (macOS:  brew install cmake ninja eigen nlohmann-json cli11 tomlplusplus boost spdlog zlib)\n'
      exit 1
    fi
  fi
  say "installing ${missing[*]}"
  "${run[@]}" apt-get update -qq
  "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

LIBRARY_PACKAGES=(g++ cmake ninja-build nlohmann-json3-dev)
TEST_LIBRARIES=(libboost-test-dev libeigen3-dev libspdlog-dev zlib1g-dev)
TEST_PACKAGES=("${LIBRARY_PACKAGES[@]}" libcli11-dev libtomlplusplus-dev "${TEST_LIBRARIES[@]}" libpng-dev libprotozero-dev
  pkg-config)

# cmake_for FOLDER: sets CMAKE to the cmake that made a build tree. For a new tree this is the cmake on the path, as a
# build by hand would use, unless it is older than 3.25: a tree that two versions configure in turn is compiled again
# each time.
cmake_for() {
  local found
  CMAKE="$(sed -n 's/^CMAKE_COMMAND:INTERNAL=//p' "$1/CMakeCache.txt" 2>/dev/null || true)"
  [ -x "$CMAKE" ] && return
  CMAKE="$(command -v cmake || echo /usr/bin/cmake)"
  found="$("$CMAKE" --version 2>/dev/null | sed -n 's/^cmake version //p')"
  if [ "$(printf '%s\n' 3.25 "$found" | sort -V | head -n 1)" != 3.25 ] && [ -x /usr/bin/cmake ]; then CMAKE=/usr/bin/cmake; fi
}

# configure FOLDER OPTION...: configures a CMake build tree with Ninja. Several sources are compiled at once
# (cmake/FerriteFlags.cmake).
configure() {
  local folder="$1"
  shift
  cmake_for "$folder"
  if ! "$CMAKE" -S . -B "$folder" -G Ninja -DFERRITE_UNITY=ON "$@" >"$folder.log" 2>&1; then
    cat "$folder.log"
    say "the configuration failed"
    exit 1
  fi
}

# own_level: prints FERRITE_LEVELS, or else the widest instruction set of this machine that kernels are compiled for.
own_level() {
  local flags flag level=all
  if [ -n "${FERRITE_LEVELS:-}" ]; then
    level="$FERRITE_LEVELS"
  elif [ "$(uname -m)" = x86_64 ] && flags=" $(sed -n 's/^flags.*: //p' /proc/cpuinfo 2>/dev/null | head -n 1) "; then
    level=avx512
    for flag in avx512f avx512vl avx512dq avx512bw avx512cd; do [[ "$flags" == *" $flag "* ]] || level=avx2; done
    for flag in avx2 fma bmi1 bmi2; do [[ "$flags" == *" $flag "* ]] || level=sse2; done
  fi
  echo "$level"
}

# configure_release OPTION...: configures build/release, the one build that the demo, the tests and the benchmarks
# share. Each script adds its part and leaves the others as they are. Tests, which need Boost, are left out of a new
# build unless they are asked for. Its kernels are those of this machine, unless FERRITE_LEVELS or an option chooses
# others.
configure_release() {
  local start=()
  [ -e build/release/CMakeCache.txt ] || start=(-DFERRITE_BUILD_TESTS=OFF "-DFERRITE_ISA_LEVELS=$(own_level)")
  [ -z "${FERRITE_LEVELS:-}" ] || start+=("-DFERRITE_ISA_LEVELS=$FERRITE_LEVELS")
  mkdir -p build
  configure build/release -DCMAKE_BUILD_TYPE=Release ${start[@]+"${start[@]}"} "$@"
}

# debian_sysroot FOLDER ARCHITECTURE PACKAGE...: unpacks Debian packages of another architecture in FOLDER/sysroot, with
# lists and archives of their own: the system's packages are not changed. Sets SYSROOT.
debian_sysroot() {
  local folder="$ROOT/$1" architecture="$2" package
  SYSROOT="$folder/sysroot"
  shift 2
  [ "$(cat "$SYSROOT/complete" 2>/dev/null)" != "$*" ] || return 0
  say "fetching libraries for $architecture"
  rm -rf "$folder/debs" "$SYSROOT"
  mkdir -p "$folder/apt/lists/partial" "$folder/apt/archives/partial" "$folder/debs" "$SYSROOT"
  : >"$folder/apt/status"
  apt_there() {
    apt-get -qq -o Dir::State="$folder/apt" -o Dir::State::status="$folder/apt/status" -o Dir::Cache="$folder/apt" \
      -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o APT::Sandbox::User=root "$@"
  }
  apt_there update >/dev/null 2>&1 || true  # a source without it does not matter; a missing package does
  (cd "$folder/debs" && apt_there download "$@")
  for package in "$folder"/debs/*.deb; do dpkg-deb -x "$package" "$SYSROOT"; done
  echo "$*" >"$SYSROOT/complete"
}
CROSS_TEST_LIBRARIES=(libeigen3-dev nlohmann-json3-dev libspdlog-dev libspdlog1.10 libfmt-dev libfmt9 zlib1g-dev zlib1g
  libboost1.74-dev libboost-test1.74-dev libboost-test1.74.0 libprotozero-dev)

# header_sysroot FOLDER: makes a folder with the headers of this machine that need no library compiled for another one,
# and their CMake packages. Sets SYSROOT.
header_sysroot() {
  local name
  SYSROOT="$ROOT/$1/sysroot"
  mkdir -p "$SYSROOT/usr/include" "$SYSROOT/usr/share/cmake" "$SYSROOT/usr/share/eigen3"
  cp -r /usr/share/cmake/nlohmann_json /usr/share/cmake/CLI11 "$SYSROOT/usr/share/cmake/"
  cp -r /usr/share/eigen3/cmake "$SYSROOT/usr/share/eigen3/"
  for name in nlohmann boost eigen3 CLI toml++ protozero spdlog fmt; do
    ln -sfn "/usr/include/$name" "$SYSROOT/usr/include/$name"
  done
}

# zig_for TARGET: sets TOOLCHAIN, the options of CMake for `zig c++` and a target. FERRITE_ZIG names the program, which
# comes from a package of PyPI where it is not on the path.
zig_for() {
  if [ -z "${FERRITE_ZIG:-}" ] && ! FERRITE_ZIG="$(type -P zig)"; then
    FERRITE_ZIG="$(python_with zig-venv --no-deps --require-hashes -r tests/systems/requirements.txt >&2 &&
      "$FERRITE_PYTHON" -c 'import os, ziglang; print(os.path.join(ziglang.__path__[0], "zig"))')"
  fi
  TOOLCHAIN=("-DCMAKE_TOOLCHAIN_FILE=$ROOT/cmake/zig.cmake" "-DFERRITE_ZIG=$FERRITE_ZIG" "-DFERRITE_ZIG_TARGET=$1")
}

# comparable_lines: of what tests/digests prints, the lines of bits that are equal on all machines and compilers of a
# family: values, and gradients but those of random programs (docs/numerics.md, rule 13). Functions of doubles are those
# of each C library.
comparable_lines() {
  tr -d '\r' | grep -E '^[^ ]+ (values|gradients)(\.(planned|compiled|whole))?(\.FAULT)? ' |
    grep -vE '/f64|^random/[0-9]+ gradients'
}

# compare_lines HERE THERE: prints how many lines are equal, or which differ; fails where any does.
compare_lines() {
  if diff "$1" "$2" >"$2.differences"; then
    say "$(wc -l <"$1") lines of bits are equal"
  else
    head -n 20 "$2.differences" | cut -c1-200
    say "$(grep -c '^[<]' "$2.differences") of $(wc -l <"$1") lines of bits differ: $2.differences"
    return 1
  fi
}

seconds_since() { echo "$(($(date +%s) - $1)) s"; }

# eigen5: makes FERRITE_EIGEN5 name a folder with the headers of Eigen 5, which come from a package of PyPI.
eigen5() {
  local folder="build/eigen5" wheel
  if [ ! -e "$folder/Eigen/Version" ]; then
    rm -rf "$folder" && mkdir -p "$folder"
    "${FERRITE_PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
      -r tests/eigen/requirements.txt -d "$folder" || { say "no headers of Eigen 5: the test eigen5 is left out"; return 0; }
    for wheel in "$folder"/*.whl; do "${FERRITE_PYTHON:-python3}" -m zipfile -e "$wheel" "$folder/wheel"; done
    mv "$folder/wheel/native/wpimath/include/Eigen" "$folder/Eigen"
    rm -rf "$folder/wheel" "$folder"/*.whl
  fi
  FERRITE_EIGEN5="$ROOT/$folder"
  export FERRITE_EIGEN5
}

# python_with FOLDER OPTION...: makes a virtual environment in build/ with the packages that `pip install OPTION...`
# installs; FERRITE_PYTHON then names its Python. Made again when a requirements file among the options has changed.
python_with() {
  local folder="build/$1" stamp
  shift
  command -v python3 >/dev/null 2>&1 || ensure_packages python3
  stamp="$(cat "${@: -1}" | cksum) $(python3 --version)"
  if [ "$(cat "$folder/stamp" 2>/dev/null)" != "$stamp" ]; then
    python3 -m venv --clear "$folder" >/dev/null 2>&1 || { ensure_packages python3-venv && python3 -m venv --clear "$folder"; }
    if ! "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@" >"$folder/pip.log" 2>&1; then
      tail -n 20 "$folder/pip.log"
      say "could not install $*; this needs Python 3.11 on x86-64 and access to a package registry"
      return 1
    fi
    printf '%s' "$stamp" >"$folder/stamp"
  fi
  FERRITE_PYTHON="$ROOT/$folder/bin/python"
  export FERRITE_PYTHON
}
