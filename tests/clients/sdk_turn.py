#!/usr/bin/env python3
"""The official Python SDKs take the scripted turn of agents.py: chat, responses and messages, at once and as streams.

  tests/clients/agents.py --only python-sdks --python VENV/bin/python
"""
import json
import pathlib
import sys

import anthropic
import openai

URL, PROMPT, RESULT = sys.argv[1:4]
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
FUNCTION = {"name": "write_file", "description": "Write a file", "parameters": SCHEMA}


def write(path):
    pathlib.Path(path).write_text(RESULT + "\n")
    return RESULT


def chat(stream):
    client = openai.OpenAI(base_url=URL + "/v1", api_key="local-key", max_retries=0)
    messages = [{"role": "user", "content": PROMPT}]
    tools = [{"type": "function", "function": FUNCTION}]
    for _ in range(3):
        if stream:
            with client.chat.completions.stream(model="m", messages=messages, tools=tools) as events:
                answer = events.get_final_completion()
        else:
            answer = client.chat.completions.create(model="m", messages=messages, tools=tools)
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content
        assert answer.choices[0].finish_reason == "tool_calls"
        messages.append(message.model_dump(exclude_none=True))
        for made in message.tool_calls:
            path = json.loads(made.function.arguments)["path"]
            messages.append({"role": "tool", "tool_call_id": made.id, "content": write(path)})
    raise AssertionError("no last text")


def responses(stream):
    client = openai.OpenAI(base_url=URL + "/v1", api_key="local-key", max_retries=0)
    items = [{"role": "user", "content": PROMPT}]
    tools = [{"type": "function", "strict": False, **FUNCTION}]
    for _ in range(3):
        if stream:
            with client.responses.stream(model="m", input=items, tools=tools) as events:
                answer = events.get_final_response()
        else:
            answer = client.responses.create(model="m", input=items, tools=tools)
        calls = [item for item in answer.output if item.type == "function_call"]
        if not calls:
            return answer.output_text
        items += [item.model_dump(exclude_none=True) for item in answer.output]
        items += [{"type": "function_call_output", "call_id": made.call_id, "output": write("made.txt")} for made in calls]
    raise AssertionError("no last text")


def messages_api(stream):
    client = anthropic.Anthropic(base_url=URL, api_key="local-key", max_retries=0)
    history = [{"role": "user", "content": PROMPT}]
    tools = [{"name": "write_file", "description": "Write a file", "input_schema": SCHEMA}]
    for _ in range(3):
        if stream:
            with client.messages.stream(model="m", max_tokens=500, messages=history, tools=tools) as events:
                answer = events.get_final_message()
        else:
            answer = client.messages.create(model="m", max_tokens=500, messages=history, tools=tools)
        uses = [block for block in answer.content if block.type == "tool_use"]
        if not uses:
            return answer.content[0].text
        assert answer.stop_reason == "tool_use"
        history.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]})
        history.append({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": use.id, "content": write(use.input["path"])} for use in uses]})
    raise AssertionError("no last text")


print(f"openai {openai.__version__}, anthropic {anthropic.__version__}")
for turn in (chat, responses, messages_api):
    for streamed in (False, True):
        text = turn(streamed)
        print(turn.__name__, "stream" if streamed else "whole", text)
        assert text.startswith("TQ-FINAL"), text
