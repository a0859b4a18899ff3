"""A small agent program for tests, standard library only: it speaks one of three APIs.

    stub.py WIRE TASK [--print FILE] [--exit STATUS] [--turns N] [--hang] [--no-calls] [--tell]

Its address and key are in STUB_BASE_URL and STUB_KEY. It offers one tool, write_file, and goes on
until the model makes no more calls, like most programs; it tries again where a connection breaks.
"""

import argparse
import json
import os
import platform
import sys
import time
import urllib.error
import urllib.request

PARAMETERS = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
}


def post(path, body):
    request = urllib.request.Request(
        f"{os.environ['STUB_BASE_URL']}/v1/{path}",
        json.dumps(body).encode(),
        {"x-api-key": os.environ["STUB_KEY"], "content-type": "application/json"},
    )
    for _ in range(1200):
        try:
            with urllib.request.urlopen(request) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            print(f"HTTP {error.code}: {error.read().decode()[:300]}", flush=True)
            sys.exit(1 if options.exit is None else options.exit)
        except OSError as error:
            print(f"trying again: {error}", flush=True)
            time.sleep(0.05)
    sys.exit("the connection is gone")


def chat(history):
    tool = {"name": "write_file", "parameters": PARAMETERS}
    body = {"model": "x", "messages": history, "tools": [{"type": "function", "function": tool}]}
    message = post("chat/completions", body)["choices"][0]["message"]
    history.append(message)
    calls = message.get("tool_calls") or []
    for call in calls:
        write(json.loads(call["function"]["arguments"]))
        history.append({"role": "tool", "tool_call_id": call["id"], "content": "done"})
    return bool(calls)


def messages(history):
    tool = {"name": "write_file", "input_schema": PARAMETERS}
    body = {"model": "x", "max_tokens": 999, "messages": history, "tools": [tool]}
    content = post("messages", body)["content"]
    history.append({"role": "assistant", "content": content})
    calls = [block for block in content if block["type"] == "tool_use"]
    for call in calls:
        write(call["input"])
    results = [{"type": "tool_result", "tool_use_id": c["id"], "content": "done"} for c in calls]
    history.append({"role": "user", "content": results})
    return bool(calls)


def responses(history):
    tool = {"type": "function", "name": "write_file", "parameters": PARAMETERS}
    output = post("responses", {"model": "x", "input": history, "tools": [tool]})["output"]
    history.extend(output)
    calls = [item for item in output if item["type"] == "function_call"]
    for call in calls:
        write(json.loads(call["arguments"]))
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "done"}
        history.append(result)
    return bool(calls)


def write(arguments):
    with open(arguments["path"], "w") as file:
        file.write(arguments["content"])


parser = argparse.ArgumentParser()
parser.add_argument("wire")
parser.add_argument("task")
parser.add_argument("--print")
parser.add_argument("--exit", type=int)
parser.add_argument("--turns", type=int, default=1000)
parser.add_argument("--hang", action="store_true")
parser.add_argument("--no-calls", action="store_true")
parser.add_argument("--tell", action="store_true")
options = parser.parse_args()

task = options.task
if task == "-":
    task = sys.stdin.read()
elif task.startswith("@"):
    task = open(task[1:]).read()
if options.tell:
    # What many programs put into the context of their own accord.
    told = {
        "user": os.environ.get("USER"),
        "home": os.path.expanduser("~"),
        "folder": os.getcwd(),
        "host": platform.node(),
        "variables": sorted(os.environ),
        "files": sorted(os.listdir(os.path.expanduser("~"))),
        "passwd": open("/etc/passwd").read(),
    }
    task += "\n" + json.dumps(told)
turn = {"chat": chat, "messages": messages, "responses": responses}[options.wire]
history = [{"role": "user", "content": task}]
if not options.no_calls:
    for _ in range(options.turns):
        if not turn(history):
            break
if options.hang:
    print("hanging", flush=True)
    time.sleep(600)
if options.print:
    print(open(options.print).read())
sys.exit(options.exit or 0)
