import subprocess
import sys
import unittest


class Report(unittest.TestCase):
    def test_it_prints_mean_and_median(self):
        command = [sys.executable, "report.py"]
        found = subprocess.run(command, input="1\n2\n6\n", capture_output=True, text=True)
        self.assertEqual(found.stdout, "mean   3.00\nmedian 2.00\n")
