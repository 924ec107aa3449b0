"""The texts that models are given, as templates in `locales/<lang>/prompts/`.

Sandboxed: a template sees what it is given and cannot reach further. Values are data and are
never themselves read as a template.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined, TemplateError, TemplateNotFound
from jinja2.sandbox import ImmutableSandboxedEnvironment

from core.errors import TextMissing


class Prompts:
    """Renders prompts. Templates are compiled once and kept."""

    def __init__(self, locales_root: Path) -> None:
        self._env = ImmutableSandboxedEnvironment(
            loader=FileSystemLoader(locales_root),
            undefined=StrictUndefined,
            autoescape=False,
            auto_reload=False,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=False,
            cache_size=200,
        )

    def render(self, role: str, lang: str, **variables: Any) -> str:
        """The prompt `<lang>/prompts/<role>.j2`, without the empty lines at its ends.

        The same variables give the same bytes. Raises `TextMissing` for a template that is not
        there, is broken, or uses a variable that was not given.
        """
        name = f"{lang}/prompts/{role}.j2"
        try:
            return self._env.get_template(name).render(variables).strip()
        except TemplateNotFound as exc:
            raise TextMissing(f"no prompt {name}") from exc
        except TemplateError as exc:
            raise TextMissing(f"prompt {name}: {exc.message}") from exc
