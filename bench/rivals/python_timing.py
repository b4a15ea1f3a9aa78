"""What the comparisons of Python packages measure with."""

import subprocess
import sys
import time

# Prints the time that an import takes, and the memory that it adds, in ms and MB.
IMPORT = """
import time
def resident():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1e3
before, start = resident(), time.perf_counter()
{statement}
print(1000 * (time.perf_counter() - start), resident() - before)
"""


def imported(statement):
    """The time and memory of an import, in ms and MB: the least of five, as the files are in memory then."""
    runs = []
    for _ in range(5):
        command = [sys.executable, "-c", IMPORT.format(statement=statement)]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        runs.append([float(figure) for figure in out.split()[-2:]])
    return min(run[0] for run in runs), min(run[1] for run in runs)


def median_us(call, repeats):
    """The median time of a call, after a warm-up."""
    for number in range(repeats // 10):
        call(number)
    times = []
    for number in range(repeats):
        start = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - start)
    return 1e6 * sorted(times)[repeats // 2]
