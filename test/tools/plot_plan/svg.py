"""Checks that a figure parses and has its panels.

usage: svg.py FIGURE.svg WORKLOAD [times|metrics]
"""

import sys
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"
# Of each kind of figure: its texts, and how many lines each of its first panels has at least.
KINDS = {
    "times": (
        (
            "predicted time (µs)",
            "slower than the",
            "fastest seen (%)",
            "share of the chosen",
            "program's time (%)",
            "family",
            "chosen program",
            "best single uKernel",
            "SIA's choice",
            "roofline",
            "launch",
            "block start",
        ),
        (4, 3),
    ),
    "metrics": (
        (
            "padding (% of the work)",
            "Occ (% of SMs busy)",
            "CMR (compute / memory time)",
            "score",
            "family",
            "chosen program",
            "best single uKernel",
            "best program of the size",
        ),
        (2, 2, 2, 3),
    ),
}


def main():
    root = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
    texts = ["".join(element.itertext()).strip() for element in root.iter(f"{SVG}text")]
    labels, numbers = KINDS[sys.argv[3] if len(sys.argv) > 3 else "times"]
    for label in labels:
        if label not in texts:
            sys.exit(f"error: no '{label}' among {texts}")
    if not any(sys.argv[2] in text for text in texts):
        sys.exit(f"error: no title with {sys.argv[2]}")
    if not any(text.startswith("size of axis") and text.endswith("(elements)") for text in texts):
        sys.exit("error: the sizes have no label")
    panels = [
        element for element in root.iter(f"{SVG}g") if element.get("id", "").startswith("axes_")
    ]
    expected = 5 if len(numbers) == 4 else 4
    if len(panels) != expected:
        sys.exit(f"error: expected {expected} panels, but got {len(panels)}")
    for panel, number in zip(panels, numbers):
        lines = [
            path
            for group in panel.iter(f"{SVG}g")
            if group.get("id", "").startswith("line2d_")
            for path in group.iter(f"{SVG}path")
            if path.get("d", "").count("L") > 0 and path.get("clip-path")
        ]
        if len(lines) < number:
            sys.exit(f"error: a panel has {len(lines)} lines, expected {number}")
    print("the figure has its panels")


if __name__ == "__main__":
    main()
