"""What can go wrong, in one tree, and the one way from an exception to what people and models see.

MetnosError
├── SettingsInvalid            a setting names what is wrong and what is allowed (exit 2)
├── AlreadyRunning             another process holds the home (exit 75)
├── StoreError
│   ├── StoreCorrupt           quick_check failed
│   ├── StoreTooNew            written by a newer version
│   ├── KeyUnusable            the key of what is entrusted is missing, open to others or no key
│   └── SecretUnreadable       what was entrusted does not open: other key, other owner, changed
├── CatalogError
│   ├── ManifestInvalid
│   └── SignatureRefused
├── ModelError
│   ├── ModelUnreachable       refused, reset, DNS, 5xx after the retries
│   ├── ModelTimeout           silent for too long
│   ├── ModelRefused           401, 403, 404, 429, quota
│   └── ModelReplyInvalid      HTML, half JSON, empty, tool-shaped text
├── CallRefused                the gate's own no: arguments, references, scope, guard
└── TextMissing                a message key without text
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class ErrorCode(StrEnum):
    """Closed list. Every code has the text `error.<code>` in every language."""

    # arguments and references
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGS = "invalid_args"
    BAD_REFERENCE = "bad_reference"
    BAD_TEXT = "bad_text"
    MISSING_INPUT = "missing_input"
    UNGROUNDED = "ungrounded"
    # policy
    OUT_OF_SCOPE = "out_of_scope"
    OUT_OF_WORKSPACE = "out_of_workspace"
    FORBIDDEN_PATH = "forbidden_path"
    FORBIDDEN_HOST = "forbidden_host"
    JUDGE_DENIED = "judge_denied"
    NOT_AUTHORIZED = "not_authorized"
    DECLINED = "declined"
    QUESTION_EXPIRED = "question_expired"
    CANCELLED = "cancelled"
    PRIVATE_CHAT_CLOSED = "private_chat_closed"
    # guards and caps
    DUPLICATE_CALL = "duplicate_call"
    DUPLICATE_READ = "duplicate_read"
    VECTORISE = "vectorise"
    CAP_STEPS = "cap_steps"
    CAP_SAME_EXECUTOR = "cap_same_executor"
    LOOP_BREAK = "loop_break"
    REQUEST_TOO_LONG = "request_too_long"
    QUOTA_TURNS = "quota_turns"
    QUOTA_DAY = "quota_day"
    # pipeline shape
    NEEDS_DATA_SOURCE = "needs_data_source"
    NEEDS_ACTION_TARGET = "needs_action_target"
    PIPELINE_CLOSED = "pipeline_already_closed"
    # executors
    EXECUTOR_CRASHED = "executor_crashed"
    EXECUTOR_CHANGED = "executor_changed"
    SERVER_DOWN = "server_down"
    TOOL_ASLEEP = "tool_asleep"
    TIMEOUT = "timeout"
    OUTPUT_TOO_LARGE = "output_too_large"
    BAD_OUTPUT = "bad_output"
    RESOURCE_LIMIT = "resource_limit"
    SANDBOX_UNAVAILABLE = "sandbox_unavailable"
    # what executors report
    NOT_FOUND = "not_found"
    ALREADY_EXISTS = "already_exists"
    INTO_ITSELF = "into_itself"
    IS_DIRECTORY = "is_directory"
    NOT_DIRECTORY = "not_directory"
    NOT_REGULAR = "not_regular"
    MANY_NAMES = "many_names"
    NOT_TEXT = "not_text"
    OTHER_ENCODING = "other_encoding"
    DAMAGED = "damaged"
    PASSWORD_NEEDED = "password_needed"  # noqa: S105 - a code, not one
    NAME_TOO_LONG = "name_too_long"
    PERMISSION_DENIED = "permission_denied"
    TOO_LARGE = "too_large"
    TOO_MANY = "too_many"
    DISK_FULL = "disk_full"
    UNKNOWN_PLACE = "unknown_place"
    NEEDS_LOCATION = "needs_location"
    NEEDS_CREDENTIALS = "needs_credentials"
    WRONG_CREDENTIALS = "wrong_credentials"
    SERVICE_OFF = "service_off"
    UNKNOWN_FIELD = "unknown_field"
    NOT_NUMERIC = "not_numeric"
    WRITE_FAILED = "write_failed"
    NETWORK = "network"
    HTTP_STATUS = "http_status"
    BAD_ANSWER = "bad_answer"
    HOST_DENIED = "host_denied"
    HOST_NOT_FOUND = "host_not_found"
    OTHER_SERVER = "other_server"
    TLS_FAILED = "tls_failed"
    CERTIFICATE_EXPIRED = "certificate_expired"
    UNSUPPORTED = "unsupported"
    UNSUPPORTED_FORMAT = "unsupported_format"
    SAME_FORMAT = "same_format"
    NO_SHARED_FIELD = "no_shared_field"
    SERIES_STAYS = "series_stays"
    MACHINE_SILENT = "machine_silent"
    # taking back
    CHANGED_SINCE = "changed_since"
    COPY_GONE = "copy_gone"
    NOT_UNDOABLE = "not_undoable"
    # model
    MODEL_UNREACHABLE = "model_unreachable"
    MODEL_TIMEOUT = "model_timeout"
    MODEL_REFUSED = "model_refused"
    MODEL_REPLY_INVALID = "model_reply_invalid"
    MODEL_MISSING = "model_missing"
    # the house
    CATALOG_EMPTY = "catalog_empty"
    STORE_FAILED = "store_failed"
    SECRET_UNREADABLE = "secret_unreadable"  # noqa: S105 - a code, not one
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """One failure as data: people see `message_key` in their language, models see code and detail.

    `params` fill the text of `message_key`; they never hold secrets. `detail` is short English
    for the model and the log: which argument, which limit, what would be accepted.
    """

    code: ErrorCode
    params: Mapping[str, Any] = field(default_factory=dict)
    retryable: bool = False
    detail: str = ""

    @property
    def message_key(self) -> str:
        return f"error.{self.code.value}"

    def to_json(self) -> dict[str, Any]:
        return {
            "code": self.code.value,
            "params": dict(self.params),
            "retryable": self.retryable,
            "detail": self.detail,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ErrorInfo:
        """Read what `to_json` or an executor wrote; an unknown code becomes `internal`."""
        try:
            code = ErrorCode(str(data.get("code")))
        except ValueError:
            code = ErrorCode.INTERNAL
        params = data.get("params")
        return cls(
            code,
            dict(params) if isinstance(params, Mapping) else {},
            data.get("retryable") is True,
            str(data.get("detail") or "")[:2000],
        )


class MetnosError(Exception):
    """Base of everything this project raises on purpose."""

    code: ErrorCode = ErrorCode.INTERNAL
    retryable: bool = False

    def __init__(self, detail: str = "", /, **params: Any) -> None:
        super().__init__(detail or self.code.value)
        self.detail = detail
        self.params = params


class SettingsInvalid(MetnosError):
    """`detail` is the whole sentence for the person; it never holds the value of a secret."""


class AlreadyRunning(MetnosError):
    """Another process holds this home; `params` may hold `pid` and `command` of the holder."""


class ChannelDeaf(MetnosError):
    """A channel hears nothing any more although its service answers; only a new process helps.
    `params` hold the `seconds`."""


class StoreError(MetnosError):
    code = ErrorCode.STORE_FAILED


class StoreCorrupt(StoreError):
    pass


class StoreTooNew(StoreError):
    pass


class KeyUnusable(StoreError):
    code = ErrorCode.SECRET_UNREADABLE


class SecretUnreadable(StoreError):
    code = ErrorCode.SECRET_UNREADABLE


class CatalogError(MetnosError):
    pass


class ManifestInvalid(CatalogError):
    pass


class SignatureRefused(CatalogError):
    pass


class ModelError(MetnosError):
    code = ErrorCode.MODEL_UNREACHABLE


class ModelMissing(ModelError):
    """Nothing is there to ask; `detail` says what is missing and the one command that mends it."""

    code = ErrorCode.MODEL_MISSING


class ModelPullFailed(ModelError):
    """The bundled model could not be fetched; what had come is kept for the next attempt."""

    def __init__(self, code: ErrorCode, detail: str = "", /, **params: Any) -> None:
        self.code = code
        super().__init__(detail, **params)


class ModelUnreachable(ModelError):
    code = ErrorCode.MODEL_UNREACHABLE
    retryable = True


class ModelTimeout(ModelError):
    code = ErrorCode.MODEL_TIMEOUT
    retryable = True


class ModelRefused(ModelError):
    code = ErrorCode.MODEL_REFUSED


class ModelReplyInvalid(ModelError):
    code = ErrorCode.MODEL_REPLY_INVALID


class CallRefused(MetnosError):
    """The gate says no before anything ran. Raised inside the rules, caught by the gate."""

    def __init__(self, code: ErrorCode, detail: str = "", /, **params: Any) -> None:
        self.code = code
        super().__init__(detail, **params)


class TextMissing(MetnosError):
    pass


def to_error_info(exc: BaseException) -> ErrorInfo:
    """The only way from an exception to `ErrorInfo`. Unknown exceptions become `internal`
    without their text, which may hold anything: the log has it."""
    if isinstance(exc, MetnosError):
        return ErrorInfo(exc.code, dict(exc.params), exc.retryable, exc.detail)
    if isinstance(exc, TimeoutError):
        return ErrorInfo(ErrorCode.TIMEOUT, retryable=True)
    if isinstance(exc, OSError) and exc.errno == 28:
        return ErrorInfo(ErrorCode.DISK_FULL)
    return ErrorInfo(ErrorCode.INTERNAL, detail=type(exc).__name__)
