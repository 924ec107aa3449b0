"""Executors whose answer is no observation."""

from __future__ import annotations

from core.errors import ErrorCode
from tests.cage.hostile_processes import Case


def says(text: str) -> str:
    """An executor that writes raw bytes to its output and leaves."""
    return f"import os\ndef run(call):\n    os.write(1, {text})\n    os._exit(0)\n"


ANSWERS = [
    Case("returns_none", "def run(c): return None", ErrorCode.BAD_OUTPUT),
    Case("returns_list", "def run(c): return []", ErrorCode.BAD_OUTPUT),
    Case("returns_set", "def run(c): return {'ok': True, 'content': {1}}", ErrorCode.BAD_OUTPUT),
    Case(
        "returns_nan",
        "def run(c): return {'ok': True, 'content': float('nan')}",
        ErrorCode.BAD_OUTPUT,
    ),
    Case(
        "returns_itself",
        """
        def run(c):
            d = {'ok': True}
            d['content'] = d
            return d
        """,
        ErrorCode.BAD_OUTPUT,
    ),
    Case("returns_ok_as_text", "def run(c): return {'ok': 'true'}", ErrorCode.BAD_OUTPUT),
    Case(
        "returns_bad_entries",
        "def run(c): return {'ok': True, 'entries': [1]}",
        ErrorCode.BAD_OUTPUT,
    ),
    Case("returns_failed_without_error", "def run(c): return {'ok': False}", ErrorCode.BAD_OUTPUT),
    Case(
        "returns_unknown_code",
        "def run(c): return {'ok': False, 'error': {'code': 'nope'}}",
        ErrorCode.EXECUTOR_CRASHED,
    ),
    Case(
        "prints_besides",
        """
        def run(c):
            print('hello')
            return {'ok': True}
        """,
        ErrorCode.BAD_OUTPUT,
    ),
    Case("half_json", says("b'{\"ok\":true,'"), ErrorCode.BAD_OUTPUT),
    Case("no_json", says("b'hello'"), ErrorCode.BAD_OUTPUT),
    Case("two_documents", says('b\'{"ok":true}{"ok":true}\''), ErrorCode.BAD_OUTPUT),
    Case("two_lines", says('b\'{"ok":true}\\n{"ok":true}\\n\''), ErrorCode.BAD_OUTPUT),
    Case(
        "forked_twin",
        """
        import os

        def run(c):
            twin = os.fork()
            if twin:
                os.waitpid(twin, 0)
            return {'ok': True}
        """,
        ErrorCode.BAD_OUTPUT,
        caged=ErrorCode.PERMISSION_DENIED,
    ),
    Case("nan", says('b\'{"ok":true,"content":NaN}\''), ErrorCode.BAD_OUTPUT),
    Case("infinity_by_exponent", says('b\'{"ok":true,"content":1e999}\''), ErrorCode.BAD_OUTPUT),
    Case("duplicate_keys", says('b\'{"ok":true,"ok":false}\''), ErrorCode.BAD_OUTPUT),
    Case(
        "deep_nesting", says("b'{\"ok\":true,\"content\":' + b'[' * 90000"), ErrorCode.BAD_OUTPUT
    ),
    Case(
        "deep_closed_nesting",
        says("b'{\"ok\":true,\"content\":' + b'[' * 90 + b']' * 90 + b'}'"),
        ErrorCode.BAD_OUTPUT,
    ),
    Case(
        "many_brackets",
        says("b'{\"ok\":true,\"content\":[' + b'[],' * 300000 + b'[]]}'"),
        ErrorCode.BAD_OUTPUT,
    ),
    Case(
        "many_values",
        says("b'{\"ok\":true,\"content\":[' + b'\"ab\",' * 700000 + b'1]}'"),
        ErrorCode.BAD_OUTPUT,
        {"output_bytes": 4 * 1024 * 1024},
    ),
    Case(
        "huge_whole_number",
        says("b'{\"ok\":true,\"content\":' + b'9' * 100000 + b'}'"),
        ErrorCode.BAD_OUTPUT,
    ),
    Case(
        "unsafe_whole_number",
        says('b\'{"ok":true,"content":9007199254740993}\''),
        ErrorCode.BAD_OUTPUT,
    ),
    Case("bad_utf8", says('b\'{"ok":true,"content":"\\xff"}\''), ErrorCode.BAD_OUTPUT),
    Case("lone_surrogate", says('b\'{"ok":true,"content":"\\\\ud800"}\''), ErrorCode.BAD_OUTPUT),
    Case("byte_order_mark", says("b'\\xef\\xbb\\xbf{\"ok\":true}'"), ErrorCode.BAD_OUTPUT),
]
