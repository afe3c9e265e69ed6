#!/usr/bin/env python3
"""Writes tests/data/templates.json: templates, their variables and what Jinja2 renders.

Needs python3 with jinja2 3.1. The environment is the one in which Transformers renders chat
templates. Usage: make_template_cases.py OUTPUT
"""

import datetime
import json
import pathlib
import re
import sys

import jinja2
import jinja2.ext
from jinja2 import nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).resolve().parent


class GenerationTag(jinja2.ext.Extension):
    """{% generation %}: its body, in the scope of a call block."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def make_environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return env


VARS = {
    "x": {"a": 1, "b": [1, 2, 3], "c": {"d": "e"}},
    "users": [
        {"name": "Ada", "age": 36, "admin": True, "addr": {"city": "London"}},
        {"name": "bob", "age": 50, "admin": False, "addr": {"city": "Oslo"}},
        {"name": "Cyd", "age": 27, "admin": False, "addr": {"city": "London"}},
    ],
    "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3, "c": [{"v": 4, "c": []}]}]},
             {"v": 5, "c": []}],
    "text": "Zu\u0308rich \u6771\u4eac caf\u00e9 \U0001f600 \u0416",
    "floats": [0.1, 1.0, -2.5, 1e21, 1e-7, 3.14159, 100.0, 5e-324, 123456.789],
    "deep": {"a": {"b": {"c": [0, {"d": "found"}, [1, [2, [3]]]]}}},
    "big": 18446744073709551615,
}


def function(name, description, properties, required=None, **more):
    parameters = {"type": "object", "properties": properties}
    if required is not None:
        parameters["required"] = required
    parameters.update(more)
    return {"type": "function", "function": {"name": name, "description": description,
                                             "parameters": parameters}}


TOOLS = [
    function("get_weather", "Weather of a place",
             {"location": {"type": "string", "description": "City & country"},
              "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
              "days": {"type": "integer", "default": 3}}, ["location"]),
    function("search", "Sucht <alles> \u2014 \u6771\u4eac",
             {"query": {"type": ["string", "null"]},
              "tags": {"type": "array", "items": {"type": "string"}},
              "boxes": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
              "opts": {"type": "object", "properties": {"deep": {"type": "boolean"}},
                       "required": ["deep"]},
              "any": {"oneOf": [{"type": "string"}, {"type": "number", "description": "n"}]}},
             ["query", "tags"], additionalProperties=False),
    function("ping", "No arguments.", {}),
]


def call(name, arguments, call_id):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def user(content):
    return {"role": "user", "content": content}


def assistant(content, **more):
    return {"role": "assistant", "content": content, **more}


def system(content):
    return {"role": "system", "content": content}


def result(content, call_id, **more):
    return {"role": "tool", "content": content, "tool_call_id": call_id, **more}


IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
WEATHER = call("get_weather", {"location": "Oslo", "days": 2}, "abcdef123")
SEARCH = call("search", {"query": "\u6771\u4eac \"x\"", "tags": ["a", "b'c"], "opts": {"deep": True},
                         "boxes": [[1.5, 2]], "any": None}, "abcdef124")

CONVERSATIONS = {
    "one": ([user("Hello")], {}),
    "system": ([system("Be brief. /think"), user(" Hi\nthere ")], {}),
    "no_thinking": ([system("S /no_think"), user("q")], {"enable_thinking": False}),
    "thinking": ([user("q")], {"enable_thinking": True, "reasoning_effort": "high"}),
    "turns": ([system("Sys"), user("a"), assistant("b"), user("c"), assistant("d"), user("e")], {}),
    "ends_with_assistant": ([user("a"), assistant("partial ans")], {}),
    "tools_offered": ([system("Use them."), user("weather?")], {"tools": TOOLS}),
    "one_call": ([user("w?"), assistant("", tool_calls=[WEATHER]), result("sunny", "abcdef123")],
                 {"tools": TOOLS}),
    "call_null_content": ([user("w?"), assistant(None, tool_calls=[WEATHER]),
                           result("{\"t\": 5}", "abcdef123"), assistant("5 degrees"),
                           user("thanks")], {"tools": TOOLS[:1]}),
    "parallel": ([system("S"), user("both"), assistant("Let me see.", tool_calls=[WEATHER, SEARCH]),
                  result("sunny", "abcdef123"), result("3 hits", "abcdef124"), user("and?")],
                 {"tools": TOOLS}),
    "string_arguments": ([user("w?"), assistant("ok", tool_calls=[
        call("get_weather", "{\"location\": \"Paris\"}", "abcdef125")]),
        result("rain", "abcdef125", name="get_weather")], {"tools": TOOLS[:1]}),
    "reasoning": ([user("1+1"), assistant("2", reasoning_content="one and one\nis two"),
                   user("2+2"), assistant("4", reasoning_content="sum")], {}),
    "reasoning_inline": ([user("q"), assistant("<think>\nhm\n</think>\n\nanswer"), user("r"),
                          assistant("<think>again</think>last")], {}),
    "reasoning_call": ([user("w?"), assistant("", reasoning_content="need tool",
                                              tool_calls=[WEATHER]),
                        result("sunny", "abcdef123")], {"tools": TOOLS[:1]}),
    "parts": ([user([{"type": "text", "text": "What is"}, IMAGE, {"type": "image"},
                     {"type": "text", "text": " this? "}])], {}),
    "system_parts": ([system([{"type": "text", "text": "Sys part"}]), user("x")], {}),
    "late_system": ([user("a"), system("late"), user("b")], {}),
    "two_users": ([user("a"), user("b")], {}),
    "empty": ([user(""), assistant(""), user(" ")], {}),
    "unicode": ([system("S\u00e9 \u2028"), user("caf\u00e9 \U0001f469\u200d\U0001f4bb <|im_end|> {{ x }} <b>&amp;"),
                 assistant("\u304a\u306f\u3088\u3046"), user("\u0130\u015f\u0131k\n\n")], {}),
    "developer": ([{"role": "developer", "content": "dev"}, user("x")], {}),
    "documents": ([user("sum up")], {"documents": [
        {"doc_id": 7, "text": "A long document about several things, really."},
        {"text": "short"}], "controls": {"length": "short"}}),
    "none": ([], {}),
}


def render(env, source, variables):
    try:
        return {"output": env.from_string(source).render(**variables)}
    except Exception as error:  # every failure is a case: the engine has to fail, too
        raised = isinstance(error, jinja2.exceptions.TemplateError)
        return {"error": str(error) if raised else type(error).__name__ + ": " + str(error)}


def template_cases(env, folder):
    templates, variables, cases = [], [], []
    for number, (name, (messages, more)) in enumerate(CONVERSATIONS.items()):
        variables.append({"messages": messages, "bos_token": "<s>", "eos_token": "</s>",
                          "add_generation_prompt": number % 4 != 3, **more})
    for path in sorted(folder.glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        for index, name in enumerate(CONVERSATIONS):
            cases.append({"name": path.stem + "/" + name, "template": len(templates),
                          "vars": index, **render(env, source, variables[index])})
        templates.append({"name": path.stem, "source": source})
    return templates, variables, cases


def snippet_cases(env, path):
    cases = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not line or line.startswith("# "):
            continue
        source = line.replace("@@", "\n").replace("@R", "\r").replace("@T", "\t")
        source = re.sub("@u([0-9A-F]+);", lambda match: chr(int(match[1], 16)), source)
        cases.append({"template": source, **render(env, source, VARS)})
    return cases


def main():
    env = make_environment()
    templates, variables, cases = template_cases(env, HERE / "templates")
    snippets = snippet_cases(env, HERE / "template_snippets.txt")
    document = {"templates": templates, "vars": variables, "cases": cases, "snippet_vars": VARS,
                "snippets": snippets}
    pathlib.Path(sys.argv[1]).write_text(json.dumps(document, ensure_ascii=False,
                                                    separators=(",", ":")) + "\n", encoding="utf-8")
    failures = sum("error" in case for case in cases + snippets)
    print(len(templates), "templates,", len(cases), "renderings,", len(snippets), "snippets,",
          failures, "of them failures")


if __name__ == "__main__":
    main()
