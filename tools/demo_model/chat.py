"""The demo model's chat format: ChatML with tools and thoughts. `TEMPLATE` is what ships; `segments` writes the same text
piece by piece and marks what the assistant says (`python3 chat.py` compares the two)."""

import json
from dataclasses import dataclass, field

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
           "<tool_response>", "</tool_response>"]
END_OF_TEXT, IM_START, IM_END = range(3)
NO_THOUGHT = "<think>\n\n</think>\n\n"
TOOLS_INTRO = "# Tools\n\nThese functions can be called:\n<tools>"
TOOLS_OUTRO = '\n</tools>\n\nA call looks like this:\n<tool_call>\n{"name": "...", "arguments": {...}}\n</tool_call>'

TEMPLATE = r"""{#- ChatML with tools. A thought is kept only behind the last question of the user. -#}
{%- set state = namespace(question=-1) %}
{%- for m in messages %}
    {%- if m.role == 'user' %}
        {%- set state.question = loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages and messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- INTRO }}
    {%- for tool in tools %}
        {{- '\n' + (tool | tojson) }}
    {%- endfor %}
    {{- OUTRO + '<|im_end|>\n' }}
{%- endif %}
{%- for m in messages %}
    {%- set said = m.content if m.content is string else '' %}
    {%- if m.role == 'system' and loop.first and tools %}
        {#- written above -#}
    {%- elif m.role == 'assistant' %}
        {%- set thought = m.reasoning_content | default('', true) %}
        {%- if not thought and '</think>' in said %}
            {%- set thought = said.split('</think>')[0].split('<think>')[-1].strip('\n') %}
            {%- set said = said.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {{- '<|im_start|>assistant\n' }}
        {%- if thought and loop.index0 > state.question %}
            {{- '<think>\n' + thought.strip('\n') + '\n</think>\n\n' }}
        {%- endif %}
        {{- said }}
        {%- for c in m.tool_calls or [] %}
            {%- set c = c.function or c %}
            {{- '\n' if said or not loop.first }}
            {{- '<tool_call>\n{"name": "' + c.name + '", "arguments": ' }}
            {{- c.arguments if c.arguments is string else c.arguments | tojson }}
            {{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif m.role == 'tool' %}
        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' + said + '\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- else %}
        {{- '<|im_start|>' + m.role + '\n' + said + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- NO_THOUGHT }}
    {%- endif %}
{%- endif %}
""".replace("INTRO", repr(TOOLS_INTRO)).replace("OUTRO", repr(TOOLS_OUTRO)).replace("NO_THOUGHT", repr(NO_THOUGHT))


@dataclass
class Example:
    """One exchange: `messages` ends with what the assistant must say. `direct`: asked with enable_thinking = false."""

    kind: str
    messages: list
    tools: list = field(default_factory=list)
    direct: bool = False

    def key(self):
        """What makes two exchanges the same question: everything before the last answer."""
        return json.dumps([self.messages[:-1], self.tools, self.direct])


def user(text):
    return {"role": "user", "content": text}


def assistant(text, thought=""):
    out = {"role": "assistant", "content": text}
    if thought:
        out["reasoning_content"] = thought
    return out


def call(name, arguments):
    return {"role": "assistant", "content": "", "tool_calls": [
        {"type": "function", "function": {"name": name, "arguments": arguments}}]}


def answer_text(message):
    """What the assistant says after any thought, as the model writes it."""
    out = message["content"]
    for c in message.get("tool_calls", []):
        f = c["function"]
        out += ("\n" if out else "") + '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>' % (
            f["name"], json.dumps(f["arguments"], ensure_ascii=False))
    return out


def segments(messages, tools=(), direct=False, generation_prompt=False):
    """[(text, message index or -1)]: -1 is what the model is given, else what it says. With `direct` the last answer
    follows the empty thought that enable_thinking = false writes."""
    out, given = [], ""
    question = max((i for i, m in enumerate(messages) if m["role"] == "user"), default=-1)
    if tools:
        system = messages[0]["content"] + "\n\n" if messages and messages[0]["role"] == "system" else ""
        lines = "".join("\n" + json.dumps(t, ensure_ascii=False) for t in tools)
        given = f"<|im_start|>system\n{system}{TOOLS_INTRO}{lines}{TOOLS_OUTRO}<|im_end|>\n"
    for i, m in enumerate(messages):
        if m["role"] == "system" and i == 0 and tools:
            continue
        if m["role"] == "assistant":
            given += "<|im_start|>assistant\n"
            thought = m.get("reasoning_content", "") if i > question else ""
            if direct and i == len(messages) - 1 and not generation_prompt:
                given += NO_THOUGHT
                thought = ""
            said = f"<think>\n{thought}\n</think>\n\n" if thought else ""
            out += [(given, -1), (said + answer_text(m) + "<|im_end|>", i)]
            given = "\n"
        elif m["role"] == "tool":
            first = i == 0 or messages[i - 1]["role"] != "tool"
            last = i + 1 == len(messages) or messages[i + 1]["role"] != "tool"
            given += ("<|im_start|>user" if first else "") + f"\n<tool_response>\n{m['content']}\n</tool_response>"
            given += "<|im_end|>\n" if last else ""
        else:
            given += f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n"
    if generation_prompt:
        given += "<|im_start|>assistant\n" + (NO_THOUGHT if direct else "")
    return out + ([(given, -1)] if given else [])


def render(messages, tools=(), direct=False, generation_prompt=False):
    return "".join(text for text, _ in segments(messages, tools, direct, generation_prompt))
