"""Checks that a figure parses and has its panels.

usage: svg.py FIGURE.svg WORKLOAD
"""

import sys
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"
LABELS = ("padding (% of the work)", "Occ (% of SMs busy)", "CMR (compute / memory time)", "score", "family",
          "chosen program", "best single uKernel", "best program of the size")


def main():
    root = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
    texts = ["".join(element.itertext()).strip() for element in root.iter(f"{SVG}text")]
    for label in LABELS:
        if label not in texts:
            sys.exit(f"error: no '{label}' among {texts}")
    if not any(sys.argv[2] in text for text in texts):
        sys.exit(f"error: no title with {sys.argv[2]}")
    if not any(text.startswith("size of axis") and text.endswith("(elements)") for text in texts):
        sys.exit("error: the sizes have no label")
    panels = [element for element in root.iter(f"{SVG}g") if element.get("id", "").startswith("axes_")]
    if len(panels) != 5:
        sys.exit(f"error: expected five panels, but got {len(panels)}")
    for panel in panels[:4]:
        lines = [path for group in panel.iter(f"{SVG}g") if group.get("id", "").startswith("line2d_")
                 for path in group.iter(f"{SVG}path") if path.get("d", "").count("L") > 1]
        if len(lines) < 2:
            sys.exit("error: a panel without the lines of both programs")
    print("the figure has its panels")


if __name__ == "__main__":
    main()
