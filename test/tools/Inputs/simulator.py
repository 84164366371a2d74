"""A command that measures, for tests: wide blocks are fast, and those of 64 threads with one uKernel do not launch.

The first argument is a file that gets a line for each request; the second ends the run after so many.
"""

import json
import os
import sys

path, most = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None
if (
    most is not None
    and os.path.exists(path)
    and sum(1 for _ in open(path, encoding="utf-8")) >= most
):
    sys.exit("the simulator went away")
request = json.loads(sys.stdin.readline())
assert sorted(request) == ["device", "family", "shape", "workload"], request
assert request["device"] == "h200" and len(request["shape"]) == 3
with open(path, "a", encoding="utf-8") as file:
    file.write(json.dumps(request) + "\n")
schedule = request["family"]["schedule"]
if schedule["threads_m"] * schedule["threads_n"] == 64 and len(request["family"]["ukernels"]) == 1:
    print(json.dumps({"error": "no launch"}))
else:
    tile = request["family"]["ukernels"][-1]["block_tile"]
    print(json.dumps({"microseconds": 1000 / tile[1] + tile[0] / 8 + tile[2] / 1024}))
