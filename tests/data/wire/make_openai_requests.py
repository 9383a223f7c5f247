"""Request bodies of the official OpenAI Python SDK, for tests/sdk/openai_equality_test.cpp.

    pip install openai==3.57.0
    python make_openai_requests.py > openai_requests.json

Each case is a call of the SDK with the network cut off behind its last step: what comes out is the
body that it would have sent.
"""

import json

import httpx2
import openai

TOOL_SCHEMA = {
    "type": "object",
    "properties": {"place": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
    "required": ["place"],
    "additionalProperties": False,
}
ANSWER_SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "sure": {"type": "boolean"}},
    "required": ["answer", "sure"],
    "additionalProperties": False,
}
PIXEL = "data:image/png;base64,iVBORw0KGgo="
BREAKPOINT = {"mode": "explicit"}


def user(content):
    return {"role": "user", "content": content}


def chat_tool(**more):
    return {"type": "function", "function": {"name": "forecast", **more}}


def response_tool(**more):
    return {"type": "function", "name": "forecast", "parameters": None, "strict": None, **more}


CHAT = {
    "plain": dict(messages=[user("Name a fjord.")]),
    "roles": dict(
        messages=[
            {"role": "developer", "content": "Be brief.", "name": "editor"},
            {"role": "system", "content": ""},
            user("Hi"),
            {"role": "assistant", "content": "Hello."},
            user("Grüße, \u4e16\u754c \U0001f30d \"quoted\" \\ \t\n\u2028 end"),
        ]
    ),
    "settings": dict(
        messages=[user("Hi")],
        max_completion_tokens=256,
        temperature=0.3,
        top_p=0.95,
        stop=["END", "\n\n"],
        seed=-7,
        reasoning_effort="low",
    ),
    "tools": dict(
        messages=[user("Weather in Bergen?")],
        tools=[
            chat_tool(description="Says the weather", parameters=TOOL_SCHEMA, strict=True),
            {"type": "function", "function": {"name": "now"}},
        ],
        tool_choice="required",
    ),
    "tool results": dict(
        messages=[
            user("Weather in Bergen and Oslo?"),
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "forecast", "arguments": '{"place": "Bergen"}'},
                    },
                    {
                        "id": "call_2",
                        "type": "function",
                        "function": {"name": "forecast", "arguments": '{"place":"Oslo"}'},
                    },
                ],
            },
            {"role": "tool", "content": "rain", "tool_call_id": "call_1"},
            {"role": "tool", "content": "snow", "tool_call_id": "call_2"},
        ],
        tools=[chat_tool(parameters=TOOL_SCHEMA)],
        tool_choice={"type": "function", "function": {"name": "forecast"}},
    ),
    "custom tool call": dict(
        messages=[
            user("Run it."),
            {
                "role": "assistant",
                "content": "Running.",
                "tool_calls": [
                    {"id": "call_9", "type": "custom", "custom": {"name": "shell", "input": "ls -l"}}
                ],
            },
            {"role": "tool", "content": "total 0", "tool_call_id": "call_9"},
        ]
    ),
    "parts and breakpoint": dict(
        messages=[
            user(
                [
                    {
                        "type": "text",
                        "text": "A long handbook.",
                        "prompt_cache_breakpoint": BREAKPOINT,
                    },
                    {"type": "text", "text": "What does it say?"},
                ]
            )
        ],
        prompt_cache_key="handbook",
        prompt_cache_options={"mode": "explicit", "ttl": "30m"},
    ),
    "images": dict(
        messages=[
            user(
                [
                    {"type": "text", "text": "Compare."},
                    {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
                    {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
                ]
            )
        ]
    ),
    "schema": dict(
        messages=[user("Answer in JSON.")],
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": ANSWER_SCHEMA, "strict": True},
        },
    ),
    "refusal": dict(
        messages=[
            user("Do it."),
            {"role": "assistant", "content": None, "refusal": "I will not."},
            user("Why?"),
        ]
    ),
    "stream": dict(
        messages=[user("Hi")],
        stream=True,
        stream_options={"include_usage": True},
        prompt_cache_retention="24h",
    ),
    "extra": dict(
        messages=[user("Hi")],
        parallel_tool_calls=False,
        metadata={"team": "docs"},
        logit_bias={"50256": -100},
        extra_body={"cache_salt": "s", "top_k": 40},
    ),
}

RESPONSES = {
    "plain": dict(input=[user("Name a fjord.")]),
    "instructions": dict(instructions="Be brief.", input=[user("Hi")], store=False),
    "settings": dict(
        input=[user("Hi")],
        max_output_tokens=512,
        temperature=1.0,
        top_p=0.5,
        reasoning={"effort": "high", "summary": "auto"},
        include=["reasoning.encrypted_content", "message.output_text.logprobs"],
    ),
    "tools": dict(
        input=[user("Weather in Bergen?")],
        tools=[
            response_tool(description="Says the weather", parameters=TOOL_SCHEMA, strict=True),
            {**response_tool(), "name": "now"},
        ],
        tool_choice="auto",
    ),
    "allowed tools": dict(
        input=[user("Weather in Bergen?")],
        tools=[response_tool(parameters=TOOL_SCHEMA, strict=False)],
        tool_choice={
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "forecast"}],
        },
    ),
    "replayed call": dict(
        input=[
            user("Weather in Bergen?"),
            {
                "id": "rs_1",
                "type": "reasoning",
                "summary": [],
                "encrypted_content": "gAAAAB==",
            },
            {
                "id": "fc_1",
                "type": "function_call",
                "status": "completed",
                "call_id": "call_1",
                "name": "forecast",
                "arguments": '{"place":"Bergen"}',
            },
            {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
        ],
        tools=[response_tool(parameters=TOOL_SCHEMA)],
    ),
    "replayed message": dict(
        input=[
            user("Hi"),
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
            },
            user("And?"),
        ]
    ),
    "parts and breakpoint": dict(
        input=[
            {
                "type": "message",
                "role": "user",
                "content": [
                    {
                        "type": "input_text",
                        "text": "A long handbook.",
                        "prompt_cache_breakpoint": BREAKPOINT,
                    },
                    {"type": "input_image", "image_url": PIXEL, "detail": "high"},
                ],
            }
        ],
        prompt_cache_key="handbook",
        prompt_cache_options={"mode": "implicit", "ttl": "30m"},
    ),
    "schema": dict(
        input=[user("Answer in JSON.")],
        text={
            "format": {
                "type": "json_schema",
                "name": "answer",
                "schema": ANSWER_SCHEMA,
                "strict": True,
            },
            "verbosity": "low",
        },
    ),
    "continued": dict(
        input=[user("And?")],
        previous_response_id="resp_1",
        store=True,
        prompt_cache_retention="24h",
    ),
    "stream": dict(input=[{"role": "developer", "content": "Be brief."}, user("Hi")], stream=True),
    "extra": dict(
        input=[user("Hi")],
        parallel_tool_calls=True,
        truncation="disabled",
        metadata={},
        extra_body={"vendor": {"nested": [1, 2.5, None]}},
    ),
}


def main():
    bodies = []

    def answer(request):
        bodies.append(json.loads(request.content))
        return httpx2.Response(200, json={}, headers={"content-type": "application/json"})

    client = openai.OpenAI(
        api_key="none",
        base_url="http://nowhere.invalid/v1",
        http_client=httpx2.Client(transport=httpx2.MockTransport(answer)),
    )

    def body_of(call, arguments):
        call(model="gpt-5.6-terra", **arguments)
        return bodies.pop()

    golden = {
        "sdk": "openai " + openai.__version__,
        "chat": {name: body_of(client.chat.completions.create, case) for name, case in CHAT.items()},
        "responses": {name: body_of(client.responses.create, case) for name, case in RESPONSES.items()},
    }
    print(json.dumps(golden, indent=1))


main()
