#!/usr/bin/env python3
"""Writes the table of docs/api.md from src/server/endpoint_list.inc."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- endpoints -->\n", "<!-- end -->\n"


def main():
    text = (ROOT / "src/server/endpoint_list.inc").read_text(encoding="ascii")
    rows = re.findall(r'^ENDPOINT\(\s*"([^"]+)",\s*"([^"]+)",\s*\w+,\s*"([^"]+)"\)', text, re.M)
    table = "| method | path | what it is for |\n|---|---|---|\n"
    table += "".join(f"| {method} | `{path}` | {doc} |\n" for method, path, doc in rows)
    page = ROOT / "docs/api.md"
    before, rest = page.read_text(encoding="ascii").split(BEGIN)
    page.write_text(before + BEGIN + table + END + rest.split(END)[1], encoding="ascii")


if __name__ == "__main__":
    main()
