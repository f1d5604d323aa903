"""Compresses a wheel again, in the same format and a twentieth smaller: python scripts/compress_wheel.py WHEEL."""

import pathlib
import sys
import zipfile

import zopfli


def main(path):
    made = path.with_suffix(".made")
    with zipfile.ZipFile(path) as wheel, zopfli.ZipFile(made, "w", compression=zipfile.ZIP_DEFLATED) as out:
        for entry in wheel.infolist():
            out.writestr(entry, wheel.read(entry))
    made.replace(path)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
