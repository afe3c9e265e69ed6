"""Collects plain English for the demo model from the documentation of Debian packages with permissive licences, as JSON
lines {"package", "licence", "text"}. Debian 12; needs the packages cmake-data, openssl, libpython3.11-stdlib and groff-base.

    python3 collect_text.py english.jsonl
"""

import ast
import gzip
import json
import pathlib
import re
import subprocess
import sys

LIMIT = 12000  # characters of one piece


def python_topics():
    path = pathlib.Path("/usr/lib/python3.11/pydoc_data/topics.py")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign):
            topics = ast.literal_eval(node.value)
            for name in sorted(topics):
                yield topics[name]


def cmake_help():
    for path in sorted(pathlib.Path("/usr/share/cmake-3.25/Help").rglob("*.rst")):
        text = path.read_text(encoding="utf-8")
        text = re.sub(r":[a-z-]+:`([^`<]+?)(?: <[^`]*>)?`", r"\1", text)  # :command:`x` -> x
        text = re.sub(r"^\.\. .*$", "", text, flags=re.M)
        yield text.replace("``", "")


def openssl_pages():
    for path in sorted(pathlib.Path("/usr/share/man").glob("man[17]/*ssl.gz")):
        source = gzip.decompress(path.read_bytes())
        out = subprocess.run(["groff", "-man", "-Tascii", "-P-c", "-P-b", "-P-o", "-P-u", "-rLL=78n", "-rHY=0"], input=source,
                             capture_output=True, check=True).stdout.decode("ascii", "replace")
        yield out


def licences():
    for name in ("Apache-2.0", "CC0-1.0", "MPL-2.0"):
        yield pathlib.Path("/usr/share/common-licenses", name).read_text(encoding="utf-8")


SOURCES = [("libpython3.11-stdlib", "PSF-2.0", python_topics), ("cmake-data", "BSD-3-Clause", cmake_help),
           ("openssl", "Apache-2.0", openssl_pages), ("base-files", "the licence texts themselves", licences)]


def clean(text):
    text = "".join(c for c in text.expandtabs(4) if c == "\n" or " " <= c <= "~")
    text = re.sub(r"[ ]+\n", "\n", text)
    text = re.sub(r"([=~*^-])\1{6,}", r"\1\1\1\1", text)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def pieces(text):
    """The text cut at empty lines."""
    part = ""
    for paragraph in text.split("\n\n"):
        if part and len(part) + len(paragraph) > LIMIT:
            yield part
            part = ""
        part += ("\n\n" if part else "") + paragraph[:LIMIT]
    if part:
        yield part


def main():
    with open(sys.argv[1], "w", encoding="ascii") as f:
        for package, licence, source in SOURCES:
            count = 0
            for text in source():
                for piece in pieces(clean(text)):
                    if len(piece) > 300:
                        f.write(json.dumps({"package": package, "licence": licence, "text": piece}) + "\n")
                        count += len(piece)
            print(f"{package} ({licence}): {count} characters")


if __name__ == "__main__":
    main()
