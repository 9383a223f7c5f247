"""Random schemas of the supported subset over HTTP, judged by a validator that is not ours.

Section 7.3 of the wire contract. The model is random, so that only what holds it to the schema
can make its replies valid.
"""

from __future__ import annotations

import http.client
import itertools
import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from jsonschema import Draft202012Validator

SEED = 20261130
SCHEMAS = 1000
MOST_OPTIONAL = 24
MOST_UNIONS = 16
MOST_STRICT_TOOLS = 20
FORMATS = "date-time time date duration email hostname uri ipv4 ipv6 uuid".split()
BODY = {
    "model": "claude-sonnet-4-6",
    "max_tokens": 3000,
    "messages": [{"role": "user", "content": "Fill in the form."}],
}


class SchemaWriter:
    """One request's worth of schemas, within the limits that hold for a whole request."""

    def __init__(self, seed: int, optional: int = MOST_OPTIONAL, unions: int = MOST_UNIONS):
        self.random = random.Random(seed)
        self.optional, self.unions = optional, unions
        self.definitions: dict[str, dict] = {}

    def root(self) -> dict:
        self.definitions = {}
        for number in range(self.random.choice([0, 0, 1, 2])):
            self.definitions[f"part{number}"] = self.value(1)
        schema = self.object(0)
        if self.definitions:
            schema["$defs"] = self.definitions
        return schema

    def object(self, depth: int) -> dict:
        names = self.random.sample(
            ["city", "über", "a b", "n", "when", 'quo"te', "list", "x_1", "back\\slash"],
            self.random.randint(0 if depth else 1, 4),
        )
        properties = {name: self.value(depth + 1) for name in names}
        required = []
        for name in names:
            if self.optional > 0 and self.random.random() < 0.3:
                self.optional -= 1
            else:
                required.append(name)
        self.random.shuffle(required)
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        if required or self.random.random() < 0.5:
            schema["required"] = required
        return schema

    def value(self, depth: int) -> dict:
        kinds = ["scalar"] * 3 + ["format", "enum", "const"]
        if depth < 3:
            kinds += ["object", "array"]
            if self.unions > 0:
                kinds += ["anyOf", "types"]
            if self.definitions:
                kinds += ["$ref"]
        schema = getattr(self, "_" + self.random.choice(kinds).lstrip("$"))(depth)
        if self.random.random() < 0.1:
            schema["description"] = "What it is."
        return schema

    def _object(self, depth):
        return self.object(depth)

    def _scalar(self, _):
        return {"type": self.random.choice(["string", "number", "integer", "boolean", "null"])}

    def _format(self, _):
        return {"type": "string", "format": self.random.choice(FORMATS)}

    def _literal(self):
        return self.random.choice(
            ["red", "", "a\nb", "ü€😀", 'say "so"', 0, -7, 2.5, 1e21, True, False, None]
        )

    def _enum(self, _):
        if self.random.random() < 0.5:
            words = ["one", "two", "three", "two and a half", "ünd"]
            chosen = self.random.sample(words, self.random.randint(1, 5))
            return {"type": "string", "enum": chosen}
        literals = {json.dumps(literal): literal for literal in [self._literal() for _ in range(3)]}
        return {"enum": list(literals.values())}

    def _const(self, _):
        return {"const": self._literal()}

    def _array(self, depth):
        schema = {"type": "array", "items": self.value(depth + 1)}
        if self.random.random() < 0.6:
            schema["minItems"] = self.random.choice([0, 1])
        return schema

    def _anyOf(self, depth):
        self.unions -= 1
        return {"anyOf": [self.value(depth + 1) for _ in range(self.random.randint(2, 3))]}

    def _types(self, _):
        self.unions -= 1
        types = ["string", "number", "boolean", "null"]
        return {"type": self.random.sample(types, self.random.randint(2, 3))}

    def _ref(self, _):
        return {"$ref": "#/$defs/" + self.random.choice(list(self.definitions))}


class Caller:
    """Requests over one kept connection per thread."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.local = threading.local()

    def __call__(self, body: dict) -> bytes:
        if not hasattr(self.local, "connection"):
            self.local.connection = http.client.HTTPConnection(
                self.gateway.host, self.gateway.port, timeout=120
            )
        headers = {"anthropic-version": "2023-06-01", "content-type": "application/json"}
        self.local.connection.request("POST", "/v1/messages", json.dumps(body), headers)
        answer = self.local.connection.getresponse()
        received = answer.read()
        assert answer.status == 200, (received, body)
        return received


Block = tuple[str, str]  # its type, its JSON text


def reply_to(call: Caller, body: dict) -> tuple[str, list[Block]]:
    """The stop reason and the blocks."""
    if not body.get("stream"):
        message = json.loads(call(body))
        said = [block.get("text") or json.dumps(block["input"]) for block in message["content"]]
        kinds = [block["type"] for block in message["content"]]
        return message["stop_reason"], list(zip(kinds, said))
    lines = call(body).decode().split("\n")
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    blocks = [[e["content_block"]["type"], ""] for e in events if e["type"] == "content_block_start"]
    for event in events:
        if event["type"] == "content_block_delta":
            delta = event["delta"]
            blocks[event["index"]][1] += delta.get("text", delta.get("partial_json"))
    [end] = [e["delta"] for e in events if e["type"] == "message_delta"]
    return end["stop_reason"], [tuple(block) for block in blocks]


def judge(schema: dict, said: str) -> None:
    validator = Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    errors = [error.message for error in validator.iter_errors(json.loads(said))]
    assert not errors, (errors, schema, said)


def in_format(call: Caller, number: int) -> None:
    schema = SchemaWriter(SEED + number).root()
    output = {"format": {"type": "json_schema", "schema": schema}}
    body = {**BODY, "output_config": output, "stream": number % 3 == 0}
    stop, blocks = reply_to(call, body)
    assert (stop, [kind for kind, _ in blocks]) == ("end_turn", ["text"]), (schema, blocks)
    judge(schema, blocks[0][1])


def in_a_tool(call: Caller, number: int) -> None:
    """One tool or two; now and then as many as may be strict."""
    count = MOST_STRICT_TOOLS if number % 100 == 0 else 1 + (number % 8 == 0)
    writer = SchemaWriter(SEED + number)
    tools = [
        {"name": f"tool_{n}", "strict": True, "input_schema": writer.root()} for n in range(count)
    ]
    chosen = writer.random.choice(tools)
    parallel = number % 12 == 0
    choice = {
        "type": "tool",
        "name": chosen["name"],
        "disable_parallel_tool_use": not parallel,
    }
    body = {**BODY, "tools": tools, "tool_choice": choice, "stream": number % 3 == 0}
    stop, blocks = reply_to(call, body)
    assert stop == "tool_use" and {kind for kind, _ in blocks} == {"tool_use"}, (chosen, blocks)
    assert len(blocks) == 1 or parallel
    for _, said in blocks:
        judge(chosen["input_schema"], said)


def test_every_reply_is_valid_for_its_schema(tiny):
    call = Caller(tiny)
    with ThreadPoolExecutor(max_workers=16) as pool:
        asked = [
            pool.submit(in_format if number % 2 else in_a_tool, call, number)
            for number in range(SCHEMAS)
        ]
        for one in asked:
            one.result()


def test_a_stream_says_what_the_whole_body_says(tiny):
    call = Caller(tiny)
    for number in range(12):
        schema = SchemaWriter(SEED - 1 - number).root()
        Draft202012Validator.check_schema(schema)
        for way in (
            {"output_config": {"format": {"type": "json_schema", "schema": schema}}},
            {
                "tools": [{"name": "fill", "strict": True, "input_schema": schema}],
                "tool_choice": {"type": "any"},
            },
        ):
            body = {**BODY, **way, "temperature": 0}
            whole = reply_to(call, body)
            streamed = reply_to(call, {**body, "stream": True})
            assert streamed[0] == whole[0] in ("end_turn", "tool_use")
            assert [(kind, json.loads(said)) for kind, said in streamed[1]] == [
                (kind, json.loads(said)) for kind, said in whole[1]
            ]
            for _, said in whole[1]:
                judge(schema, said)


def refusal(gateway, **more) -> str:
    status, _, received = gateway.request("POST", "/v1/messages", {**BODY, **more})
    assert status == 400, received
    error = json.loads(received)["error"]
    assert error["type"] == "invalid_request_error"
    return error["message"]


def form(**properties) -> dict:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


NUMBER = {"type": "number"}
WORDS = {"type": "string"}
LIST = {"type": "array", "items": {"type": "null"}}
UNSUPPORTED = [
    ("minimum", {**NUMBER, "minimum": 0}),
    ("maximum", {**NUMBER, "maximum": 0}),
    ("exclusiveMinimum", {**NUMBER, "exclusiveMinimum": 0}),
    ("exclusiveMaximum", {**NUMBER, "exclusiveMaximum": 0}),
    ("multipleOf", {"type": "integer", "multipleOf": 2}),
    ("minLength", {**WORDS, "minLength": 1}),
    ("maxLength", {**WORDS, "maxLength": 9}),
    ("minItems", {**LIST, "minItems": 2}),
    ("maxItems", {**LIST, "maxItems": 3}),
    ("uniqueItems", {**LIST, "uniqueItems": True}),
    ("format", {**WORDS, "format": "iri"}),
    ("additionalProperties", {"type": "object", "properties": {}}),
    ("additionalProperties", {"type": "object", "additionalProperties": True}),
    ("patternProperties", {**form(), "patternProperties": {"^a": NUMBER}}),
    ("$ref", {"$ref": "https://a.example/schema.json"}),
    ("$ref", {"$ref": "#/$defs/nowhere"}),
    ("$ref", {"$ref": "#"}),
    ("not", {"not": NUMBER}),
]


@pytest.mark.parametrize(("keyword", "schema"), UNSUPPORTED)
def test_a_keyword_that_is_not_supported_is_named(tiny, keyword, schema):
    whole = form(field=schema)
    output = {"format": {"type": "json_schema", "schema": whole}}
    said = refusal(tiny, output_config=output)
    assert said.startswith("output_config.format") and "field" in said
    assert keyword in said or (keyword == "$ref" and "recursi" in said), said
    said = refusal(tiny, tools=[{"name": "fill", "strict": True, "input_schema": whole}])
    assert said.startswith("tools.0.custom.input_schema") and "field" in said
    assert keyword in said or (keyword == "$ref" and "recursi" in said), said
    # A call that is forced is valid for its schema as well, strict or not.
    if keyword not in ("additionalProperties", "format"):
        tools = [{"name": "fill", "input_schema": whole}]
        assert "field" in refusal(tiny, tools=tools, tool_choice={"type": "any"})
    # Any other tool that is not strict may have any schema.
    loose = {"name": "fill", "input_schema": whole}
    if keyword != "$ref":
        body = {**BODY, "max_tokens": 1, "tools": [loose]}
        assert tiny.request("POST", "/v1/messages", body)[0] == 200


def strict_tools(count: int, schema: dict) -> list[dict]:
    return [{"name": f"tool_{n}", "strict": True, "input_schema": schema} for n in range(count)]


def optional(count: int) -> dict:
    return {**form(**{f"p{n}": {"type": "null"} for n in range(count)}), "required": []}


def unions(count: int) -> dict:
    kinds = itertools.cycle([{"type": ["string", "null"]}, {"anyOf": [NUMBER, WORDS]}])
    return form(**{f"p{n}": kind for n, kind in zip(range(count), kinds)})


@pytest.mark.parametrize(
    ("allowed", "refused", "number"),
    [
        (strict_tools(20, form(a=NUMBER)), strict_tools(21, form(a=NUMBER)), "20"),
        (strict_tools(1, optional(24)), strict_tools(1, optional(25)), "24"),
        (strict_tools(3, optional(8)), strict_tools(5, optional(5)), "24"),
        (strict_tools(1, unions(16)), strict_tools(1, unions(17)), "16"),
        (strict_tools(4, unions(4)), strict_tools(3, unions(6)), "16"),
    ],
)
def test_limits_hold_for_all_strict_tools_together(tiny, allowed, refused, number):
    assert number in refusal(tiny, tools=refused)
    short = {**BODY, "max_tokens": 1}
    for tools in (allowed, [{**tool, "strict": False} for tool in refused]):
        assert tiny.request("POST", "/v1/messages", {**short, "tools": tools})[0] == 200
