"""What a model is shown of an argument schema."""

from __future__ import annotations

import json
from pathlib import Path

from core.catalog.manifest import parse_manifest
from core.catalog.tool_schema import in_language, tool_schema

EXAMPLE = (Path(__file__).parents[1] / "support" / "example_manifest.toml").read_bytes()


def test_tool_schema_shows_from_step_in_place_of_entries():
    schema = parse_manifest(EXAMPLE, folder="move_files").tool_schema("en")

    assert list(schema["properties"]) == ["paths", "from_step", "dst", "overwrite"]
    assert schema["properties"]["from_step"]["type"] == "integer"
    assert schema["required"] == ["dst"]


def test_tool_schema_speaks_one_language_and_drops_marks():
    manifest = parse_manifest(EXAMPLE, folder="move_files")

    italian, english = (
        json.dumps(manifest.tool_schema("it")),
        json.dumps(manifest.tool_schema("en")),
    )

    assert "cartella esistente" in italian
    assert "existing folder" in english
    assert "cartella" not in english
    assert "x-" not in english
    assert "additionalProperties" not in english
    assert "minItems" not in english
    assert len(english) < 600


def test_tool_schema_when_only_entries_can_be_given_requires_from_step():
    args = {"properties": {"entries": {"type": "array"}, "by": {"type": "string"}}}

    required = tool_schema({**args, "required": ["entries", "by"]}, "it")["required"]
    one_of = tool_schema({**args, "requires_one_of": [["entries"]]}, "it")["required"]

    assert required == ["by", "from_step"]
    assert one_of == ["from_step"]


def test_tool_schema_hides_what_the_runtime_resolves():
    args = {
        "properties": {"actor": {"type": "string", "x-runtime-resolved": True}},
        "required": ["actor"],
    }

    assert tool_schema(args, "it") == {"type": "object", "properties": {}}


def test_tool_schema_keeps_an_argument_that_is_named_description():
    texts = {"it": "titolo", "en": "title"}
    args = {
        "properties": {
            "description": {"type": "string", "description": texts},
            "where": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"description": {"type": "string", "description": texts}},
                    "additionalProperties": False,
                },
                "description": texts,
            },
        }
    }

    shown = tool_schema(args, "en")["properties"]

    assert shown["description"] == {"type": "string", "description": "title"}
    assert shown["where"]["items"] == {
        "type": "object",
        "properties": {"description": {"type": "string", "description": "title"}},
    }


def test_in_language_keeps_what_a_validator_needs():
    spec = {"type": "string", "maxLength": 3, "description": {"it": "a", "en": "b"}}

    assert in_language(spec, "it") == {"type": "string", "maxLength": 3, "description": "a"}


def test_tool_schema_is_the_same_object_every_time():
    manifest = parse_manifest(EXAMPLE, folder="move_files")

    assert manifest.tool_schema("it") is manifest.tool_schema("it")


def test_tool_schema_shows_other_step_in_place_of_a_second_list():
    args = {
        "properties": {"entries": {"type": "array"}, "other_entries": {"type": "array"}},
        "required": ["entries", "other_entries"],
    }

    schema = tool_schema(args, "it")

    assert list(schema["properties"]) == ["from_step", "other_step"]
    assert schema["required"] == ["from_step", "other_step"]
