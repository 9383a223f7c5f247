#!/usr/bin/env python3
"""Writes schemas.jsonl: JSON Schemas and what the official Python SDK's transform_schema makes of them.

    pip install anthropic==2.14.0 pydantic
    python make_golden.py

A line per schema, each an object: `name`, `schema`, and `supported`, or `refused: true` where the SDK raises.
Both schemas are texts, because the order of keys is part of the prompt. Left out, and tested by hand instead,
is what incipit does otherwise: see the test "where the Python SDK does otherwise".
"""
import copy
import enum
import json
import os
from typing import Dict, List, Literal, Optional, Union

import pydantic
from anthropic.lib._parse._transform import transform_schema

HERE = os.path.dirname(os.path.abspath(__file__))


class Colour(enum.Enum):
    red = "red"
    green = "green"


class Address(pydantic.BaseModel):
    street: str = pydantic.Field(min_length=1, max_length=80)
    zip_code: str = pydantic.Field(pattern=r"^[0-9]{5}$", description="Five digits")


class Person(pydantic.BaseModel):
    """A person, as in the register."""

    name: str
    age: int = pydantic.Field(ge=0, le=150)
    email: Optional[str]
    favourite: Colour
    addresses: List[Address] = pydantic.Field(min_length=1)
    mood: Literal["good", "bad"] = "good"


class Shape(pydantic.BaseModel):
    kind: Literal["circle"]
    radius: float = pydantic.Field(gt=0)


class Square(pydantic.BaseModel):
    kind: Literal["square"]
    side: float


class Drawing(pydantic.BaseModel):
    shapes: List[Union[Shape, Square]]
    labels: Dict[str, str]


class Root(pydantic.RootModel[Person]):
    pass


SCHEMAS = {
    "plain string": {"type": "string"},
    "null": {"type": "null"},
    "integer with bounds": {"type": "integer", "minimum": 1, "maximum": 10, "description": "A number"},
    "number with a fractional step": {"type": "number", "multipleOf": 0.5},
    "string with length and pattern": {"minLength": 3, "type": "string", "pattern": "^a.*ü\"$", "title": "Code"},
    "string of a known format": {"type": "string", "format": "date-time", "description": "When"},
    "string of an unknown format": {"format": "phone", "type": "string", "maxLength": 20},
    "every known format": {
        "type": "object",
        "properties": {
            name: {"type": "string", "format": name}
            for name in ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid", "regex"]
        },
    },
    "object without properties": {"type": "object"},
    "object that lets more in": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "properties": {"b": {"type": "boolean"}, "a": {"type": "string"}},
        "required": ["b", "a"],
        "minProperties": 1,
    },
    "array of at least one": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    "array of at least none": {"type": "array", "items": {"type": "string"}, "minItems": 0},
    "array of at least two": {"minItems": 2, "type": "array", "items": {"type": "integer", "maximum": 9}, "maxItems": 4},
    "array of anything": {"type": "array"},
    "enum of words": {"type": "string", "enum": ["a", "b"], "description": "One of two"},
    "enum of primitives": {"enum": [1, None, True, "x"]},
    "enum of objects is told": {"type": "object", "enum": []},
    "const": {"const": "fixed", "title": "Fixed"},
    "const null": {"const": None},
    "any of": {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}], "title": "Maybe"},
    "one of": {"oneOf": [{"type": "integer"}, {"const": "none"}]},
    "one of beside a type": {"type": "object", "oneOf": [{"type": "object", "properties": {"x": {"type": "string"}}}]},
    "all of": {"allOf": [{"$ref": "#/$defs/base"}, {"type": "object", "properties": {}}], "$defs": {"base": {"type": "object"}}},
    "reference with company": {"$ref": "#/$defs/x", "description": "dropped", "$defs": {"x": {"type": "integer", "minimum": 0}}},
    "deep": {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "object", "properties": {"b": {"anyOf": [{"type": "string", "minLength": 1}]}}}}
        },
    },
    "text beyond ASCII": {"type": "string", "description": "Größe in 漢字 \U0001f600", "minLength": 2},
    "pydantic model": Person.model_json_schema(),
    "pydantic union and map": Drawing.model_json_schema(),
    "pydantic root model": Root.model_json_schema(),
    "no type": {"description": "anything"},
    "no type inside": {"type": "object", "properties": {"x": {"type": "array", "items": {}}}},
    "empty": {},
}


def text(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


with open(os.path.join(HERE, "schemas.jsonl"), "w", encoding="utf-8") as out:
    for name, schema in SCHEMAS.items():
        line = {"name": name, "schema": text(schema)}
        try:
            line["supported"] = text(transform_schema(copy.deepcopy(schema)))
        except ValueError:
            line["refused"] = True
        out.write(text(line) + "\n")
