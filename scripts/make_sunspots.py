#!/usr/bin/env python3
"""Makes data/sunspots.csv from the table in the `statsmodels` package of PyPI.

    python3 -m pip install --no-deps statsmodels==0.15.0 && python3 scripts/make_sunspots.py [OUTPUT]

Yearly sunspot numbers, 1700 to 2008. Source: National Geophysical Data Center (NOAA), public domain.
"""
import csv
import importlib.util
import pathlib
import sys


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    output = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "data" / "sunspots.csv"
    # The package itself is not imported: it needs pandas and SciPy.
    package = pathlib.Path(importlib.util.find_spec("statsmodels").submodule_search_locations[0])
    with open(package / "datasets" / "sunspots" / "sunspots.csv", newline="") as table:
        rows = list(csv.reader(table))[1:]
    output.write_text("year,sunspots\n" + "".join(f"{year},{number}\n" for year, number in rows))
    print(output, len(rows))


if __name__ == "__main__":
    main()
