#!/usr/bin/env python3
"""What bench/confirm.py prints of several runs of a benchmark: figures that a second run confirms, no others."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "bench"))
import confirm  # noqa: E402


class Confirm(unittest.TestCase):
    def test_the_median_of_the_runs_is_printed(self):
        runs = ["H 16    9.8 us", "H 16   10.1 us", "H 16   10.2 us"]
        self.assertEqual(confirm.confirmed(runs), "H 16   10.1 us")

    def test_one_disturbed_run_is_outvoted(self):
        runs = ["128 128   20.2  17.1%", "128 128  100.2  86.1%", "128 128  101.2  87.1%"]
        self.assertEqual(confirm.confirmed(runs), "128 128  100.2  86.1%")

    def test_a_figure_that_no_second_run_confirms_is_a_dash(self):
        runs = ["128 128   20.2  17.1%  84.7", "128 128  100.2  86.1%  84.9", "128 128   60.2  57.1%  84.1"]
        self.assertEqual(confirm.confirmed(runs), "128 128      -      -  84.7")

    def test_sizes_and_names_stay(self):
        runs = ["add_1 4x4 -O2 1000000", "add_1 4x4 -O2 1000000"]
        self.assertEqual(confirm.confirmed(runs), runs[0])

    def test_runs_of_different_tables_are_refused(self):
        with self.assertRaises(ValueError):
            confirm.confirmed(["a 1", "b 1"])


if __name__ == "__main__":
    unittest.main()
