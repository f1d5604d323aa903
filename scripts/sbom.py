#!/usr/bin/env python3
"""Writes what a build contains as SPDX 2.3 JSON: scripts/sbom.py BUILD [--output FILE], else BUILD/ferrite.spdx.json.
BUILD is a build of Ferrite by Ninja, or of a project that contains it.

The compiler's records of the headers that each object was made from (`ninja -t deps`) say which libraries are compiled
in, and each header's Debian package says its version. A library whose licence is not in the table below is an error, so
that a new one is noticed. The time is that of SOURCE_DATE_EPOCH if it is set.
"""
import argparse
import collections
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

# By Debian package: the name, the licence, the copyright and the page of a library, and whether it is compiled in
# ("static") or linked at run time ("dynamic").
LIBRARIES = {
    "nlohmann-json3-dev": ("nlohmann-json", "MIT", "2013-2022 Niels Lohmann", "https://github.com/nlohmann/json",
                           "static"),
    "libprotozero-dev": ("protozero", "BSD-2-Clause AND Apache-2.0", "Mapbox", "https://github.com/mapbox/protozero",
                         "static"),
    "libcli11-dev": ("CLI11", "BSD-3-Clause", "2017-2020 University of Cincinnati",
                     "https://github.com/CLIUtils/CLI11", "static"),
    "libtomlplusplus-dev": ("tomlplusplus", "MIT", "2020-2022 Mark Gillard", "https://github.com/marzer/tomlplusplus",
                            "static"),
    "libpng-dev": ("libpng", "libpng-2.0", "1995-2022 The PNG Reference Library Authors", "http://www.libpng.org",
                   "dynamic"),
    "zlib1g-dev": ("zlib", "Zlib", "1995-2022 Jean-loup Gailly and Mark Adler", "https://zlib.net", "dynamic"),
    "libopenmpi-dev": ("openmpi", "BSD-3-Clause", "The Open MPI authors", "https://www.open-mpi.org", "dynamic"),
}
# The compiler's own headers and those of the C and C++ libraries.
TOOLCHAIN = re.compile(
    r"(libc6-dev|linux-libc-dev|libgcc-\d+-dev|libstdc\+\+-\d+-dev|libc\+\+-.*dev|clang.*|libclang.*|g\+\+.*)(-.*)?$")
# The targets of CMake by product, what is installed as one file or two; the kernels are parts of the library.
PRODUCTS = {"ferrite": "ferrite", "ferrite_core": "ferrite", "ferrite_c": "ferrite-c", "ferrite_onnx": "ferrite-onnx",
            "ferrite_png": "ferrite-png", "ferrite_mpi": "ferrite-mpi", "ferrite_tool": "ferrite-command"}


def headers_by_product(build):
    """Returns, for each product, the files that its objects were made from."""
    text = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True, text=True).stdout
    found, product = collections.defaultdict(set), None
    for line in text.splitlines():
        if line.startswith("    "):
            if product:
                found[product].add(line.strip())
        else:
            target = re.search(r"CMakeFiles/(ferrite\w*)\.dir/", line)
            name = re.sub(r"^ferrite_kernels_\w+$", "ferrite", target.group(1)) if target else None
            product = PRODUCTS.get(name)
    return found


def package_of(files):
    """Returns the Debian package of each file; files that belong to none are left out."""
    result = {}
    files = sorted(files)
    for start in range(0, len(files), 500):
        out = subprocess.run(["dpkg", "-S", *files[start:start + 500]], capture_output=True, text=True).stdout
        for line in out.splitlines():
            packages, _, file = line.partition(": ")
            result[file] = packages.split(",")[0].split(":")[0]
    return result


def version_of(package):
    """Returns the version of a Debian package without the packager's part, as 3.11.2, and with it, as 3.11.2-2."""
    query = ["dpkg-query", "-W", "-f", "${Version}", package]
    out = subprocess.run(query, check=True, capture_output=True, text=True).stdout
    return re.sub(r"^\d+:", "", out).rsplit("-", 1)[0].split("+")[0], out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path)
    arguments = parser.parse_args()
    cache = (arguments.build / "CMakeCache.txt").read_text()
    project = re.search(r"^Ferrite_SOURCE_DIR:STATIC=(.*)$", cache, re.MULTILINE)
    if not project:
        sys.exit(f"sbom: {arguments.build}: no build of Ferrite, or of a project that contains it")
    source, build = os.path.realpath(project.group(1)), os.path.realpath(arguments.build)
    text = pathlib.Path(source, "CMakeLists.txt").read_text()
    version = re.search(r"project\(Ferrite VERSION ([0-9.]+)", text).group(1)
    products = headers_by_product(build)
    if not products:
        sys.exit(f"sbom: {build}: nothing of Ferrite was built there by Ninja")

    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    utc = datetime.timezone.utc
    time = datetime.datetime.fromtimestamp(int(epoch), utc) if epoch else datetime.datetime.now(utc)
    packages, relationships, used = [], [], {}

    def identifier(name):
        return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)

    def add(name, number, licence, copyright_text, page, purl=None):
        entry = {"name": name, "SPDXID": identifier(name), "versionInfo": number, "downloadLocation": page,
                 "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence,
                 "copyrightText": copyright_text, "supplier": "NOASSERTION"}
        if purl:
            entry["externalRefs"] = [
                {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]
        packages.append(entry)

    def relate(one, kind, other):
        relationships.append({"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other})

    for product in sorted(products):
        outside = set()
        for file in products[product]:
            path = os.path.realpath(os.path.join(build, file))
            if not path.startswith((source + "/", build + "/")):
                outside.add(path)
        owners = package_of(outside)
        unknown = sorted(path for path in outside - set(owners) if "/lib/gcc" not in path and "/lib/clang" not in path)
        if unknown:
            sys.exit(f"sbom: {product} includes files that belong to no package: {unknown[:3]}")
        add(product, version, "MIT", "2026 The Ferrite authors", "NOASSERTION")
        relate("SPDXRef-DOCUMENT", "DESCRIBES", identifier(product))
        if product != "ferrite":
            relate(identifier(product), "STATIC_LINK", identifier("ferrite"))
        for owner in sorted(set(owners.values())):
            if TOOLCHAIN.match(owner):
                continue
            if owner not in LIBRARIES:
                sys.exit(f"sbom: {product} includes {owner}, whose licence is not in the table of scripts/sbom.py")
            name, licence, copyright_text, page, linkage = LIBRARIES[owner]
            if owner not in used:
                used[owner] = version_of(owner)
                add(name, used[owner][0], licence, copyright_text, page, f"pkg:deb/debian/{owner}@{used[owner][1]}")
            relate(identifier(product), "STATIC_LINK" if linkage == "static" else "DYNAMIC_LINK", identifier(name))

    digest = hashlib.sha256(json.dumps([packages, relationships], sort_keys=True).encode()).hexdigest()[:32]
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"ferrite-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/ferrite-{version}-{digest}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Organization: The Ferrite authors", "Tool: ferrite-sbom"]},
        "packages": packages, "relationships": relationships}
    output = arguments.output or arguments.build / "ferrite.spdx.json"
    output.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    for relationship in relationships:
        print("{spdxElementId} {relationshipType} {relatedSpdxElement}".format(**relationship).replace("SPDXRef-", ""))


if __name__ == "__main__":
    main()
