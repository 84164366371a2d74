"""Compares the listed options with what the programs' help shows of them."""

import json
import re
import sys


def shown(text):
    """The options of a help text with the line that follows each; a name may occur twice."""
    return re.findall(r"^ +--([a-z0-9-]+)(?:\[?=<\w+>\]?)? +- (.*)$", text, re.MULTILINE)


def section(text, first, after):
    """The text from one heading to another."""
    assert text.count(first) == 1, f"{first} occurs {text.count(first)} times"
    return text.split(first)[1].split(after)[0]


def check(where, text, options):
    lines = shown(text)
    for option in options:
        helps = [help for name, help in lines if name == option["name"]]
        assert helps == [option["help"]], f"{where}: {option['name']}: {helps}"


listing, translate, run, opt = sys.argv[1:]
with open(listing, encoding="utf-8") as file:
    listed = json.load(file)
assert listed["version"] == 2
options = listed["options"]
names = [option["name"] for option in options]
assert names == sorted(set(names)), names
assert {
    "device",
    "ptxas-feedback",
    "strategy",
    "max-kernels",
    "epsilon-min",
    "c0",
    "calibration",
} <= {*names}
for option in options:
    assert option["read_by"], option
    for key in ("min", "max", "default"):
        if key in option and not isinstance(option[key], (bool, str)):
            text = f"{option[key]:.10g}" if abs(option[key]) < 1e9 else "e+"
            assert text in option["help"] or "e-" in option["help"], option
    for value in option.get("values", []):
        assert value in option["help"], option

basic = [option for option in options if option["level"] == "basic"]
others = {option["name"] for option in options} - {option["name"] for option in basic}
for path in (translate, run):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    check(path, text, basic)
    assert not others & {name for name, _ in shown(text)}, path
    with open(path + "-all", encoding="utf-8") as file:
        check(path + "-all", file.read(), options)
with open(opt, encoding="utf-8") as file:
    text = file.read()
for name, after in (("compile", "front-end"), ("front-end", "form")):
    check(name, section(text, f"--ftuner-{name}  ", f"--ftuner-{after}  "), basic)
of_search = [option for option in options if {"kind": "pipeline"} not in option["read_by"]]
assert len(of_search) == len(options) - 5
of_pass = section(text, "--ukernel-plan-workloads  ", "--ukernel-plan-workspace  ")
check("ukernel-plan-workloads", of_pass, of_search)
assert len(shown(of_pass)) == len(of_search), of_pass
