"""What an executor gives back: entries that worked or not, one content, or a failure with a code.

Codes are those of the engine's closed list, as text: `not_found`, `out_of_scope`, `host_denied`, …
"""

from __future__ import annotations

import errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_CODES = {
    errno.ENOENT: "not_found",
    errno.EEXIST: "already_exists",
    errno.ENOTEMPTY: "already_exists",
    errno.EISDIR: "is_directory",
    errno.ENOTDIR: "not_directory",
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EROFS: "permission_denied",
    errno.ELOOP: "out_of_scope",
    errno.EXDEV: "out_of_scope",
    errno.ENXIO: "not_regular",
    errno.ENAMETOOLONG: "name_too_long",
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EFBIG: "resource_limit",
    errno.EMFILE: "resource_limit",
    errno.ENOMEM: "resource_limit",
    errno.ECONNREFUSED: "network",
    errno.ECONNRESET: "network",
    errno.EHOSTUNREACH: "network",
    errno.ENETUNREACH: "network",
    errno.ENETDOWN: "network",
    errno.EHOSTDOWN: "network",
    errno.ECONNABORTED: "network",
    errno.ENOTCONN: "network",
    errno.EADDRNOTAVAIL: "network",
    errno.EAFNOSUPPORT: "network",
    errno.ETIMEDOUT: "timeout",
    errno.EPIPE: "network",
}
_RETRYABLE = frozenset({"network", "timeout", "bad_answer"})
_ABOUT_HOSTS = frozenset(
    "network timeout tls_failed certificate_expired host_not_found host_denied bad_answer".split()
)
_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED
_NO_SUCH_NAME = (-2, -5)  # EAI_NONAME, EAI_NODATA


class Failure(Exception):
    """The whole call did not work, for a reason with a code. Raise it from anywhere in `run`.

    `params` fill the sentence the person reads; they hold no secrets. Raised before anything was
    changed it says so by itself; where a change may have happened all the same, raise `unsure()`.
    """

    def __init__(self, code: str, detail: str = "", **params: Any) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code
        self.detail = detail
        self.params = params
        self.is_unsure = False

    def unsure(self) -> Failure:
        """This failure, of a change that nobody knows to have happened or not: a server that hung
        up after it was told to."""
        self.is_unsure = True
        return self


def item(**fields: Any) -> dict[str, Any]:
    """One entry that worked."""
    return {"ok": True, **fields}


def failed_item(code: str, detail: str = "", **fields: Any) -> dict[str, Any]:
    """One entry that did not work; `fields` name it (`path=…`)."""
    return {"ok": False, **fields, "error": _error(code, detail, {})}


def failed_by(failure: Failure, **fields: Any) -> dict[str, Any]:
    """The entry of an item that failed with this, params and doubt included."""
    entry = {"ok": False, **fields, "error": _error(failure.code, failure.detail, failure.params)}
    return {**entry, "unsure": True} if failure.is_unsure else entry


def done(
    entries: Iterable[dict[str, Any]] | None = None, content: Any = None, **metadata: Any
) -> dict[str, Any]:
    """The result of a call: `entries` (a vector executor, also for none or one), or `content`.

    Adds `count`, `ok_count` and `failed_count` to the metadata of entries. When there are entries
    and none worked the whole call failed, with the error of the first one. One that nobody knows
    about (`failed_by`) makes the effects of the whole call unknown; where all that worked are
    marked `unchanged`, since everything was as wanted, it had none.
    """
    result: dict[str, Any] = {"ok": True}
    if entries is not None:
        listed = list(entries)
        failed = [entry for entry in listed if entry.get("ok") is False]
        result["entries"] = listed
        metadata = {
            "count": len(listed),
            "ok_count": len(listed) - len(failed),
            "failed_count": len(failed),
            **metadata,
        }
        if listed and len(failed) == len(listed):
            first = dict(failed[0].get("error") or {"code": "internal"})
            named = {key: failed[0][key] for key in ("path", "url") if key in failed[0]}
            first["params"] = {**named, **(first.get("params") or {})}
            result["ok"] = False
            result["error"] = first
        worked = [entry for entry in listed if entry.get("ok") is not False]
        if any(entry.get("unsure") is True for entry in failed):
            metadata["effects"] = "unknown"
        elif worked and all(entry.get("unchanged") is True for entry in worked):
            metadata["effects"] = "none"
    if content is not None:
        result["content"] = content
    if metadata:
        result["metadata"] = metadata
    return result


def failure(code: str, detail: str = "", **params: Any) -> dict[str, Any]:
    """The result of a call that did not work as a whole."""
    return {"ok": False, "error": _error(code, detail, params)}


def told(failure: Failure) -> dict[str, Any]:
    """The result of a call that raised this."""
    result: dict[str, Any] = {
        "ok": False,
        "error": _error(failure.code, failure.detail, failure.params),
    }
    return {**result, "metadata": {"effects": "unknown"}} if failure.is_unsure else result


def from_exception(exc: BaseException) -> Failure | None:
    """The failure an exception stands for, or None when it is a mistake of the program.

    Knows `Failure`, operating system errors (`HostDenied` and TLS errors among them) and
    `MemoryError`, also where another error was raised `from` them (httpx does). Use it to turn the
    error of one item into `failed_item(f.code, f.detail)`.
    """
    cause: BaseException | None = exc
    for _ in range(10):
        if cause is None:
            return None
        known = _from_one(cause)
        if known is not None:
            return known
        if cause.__cause__ is None and type(cause).__module__ != "builtins":
            # httpcore raises "from None", which would hide why it could not connect.
            cause = cause.__context__
        else:
            cause = cause.__cause__
    return None


def _from_one(exc: BaseException) -> Failure | None:
    if isinstance(exc, Failure):
        return exc
    if isinstance(exc, MemoryError):
        return Failure("resource_limit", "out of memory")
    if not isinstance(exc, OSError):
        return None
    named = getattr(exc, "metnos_code", None)
    if isinstance(named, str):
        return Failure(named, str(exc))
    inner = getattr(exc, "reason", None)  # urllib keeps the cause there
    if isinstance(inner, OSError) and inner is not exc:
        return _from_one(inner)
    kinds = {cls.__name__ for cls in type(exc).__mro__}
    if "SSLError" in kinds:
        return of_tls(exc)
    if isinstance(exc, TimeoutError):
        return Failure("timeout", "no answer in time")
    if "gaierror" in kinds:
        return of_lookup(exc)
    code = _CODES.get(exc.errno or 0, "internal")
    return Failure(code, exc.strerror or type(exc).__name__)


def of_tls(exc: BaseException, **params: Any) -> Failure:
    """What a failed handshake stands for: a certificate that has run out is told apart."""
    reason = getattr(exc, "verify_message", "") or getattr(exc, "reason", "") or "no handshake"
    is_old = getattr(exc, "verify_code", 0) == _EXPIRED
    return Failure("certificate_expired" if is_old else "tls_failed", str(reason)[:200], **params)


def of_lookup(exc: BaseException, **params: Any) -> Failure:
    """What a name that was not resolved stands for: nobody of that name, or nobody to ask."""
    if getattr(exc, "errno", None) in _NO_SUCH_NAME:
        return Failure("host_not_found", "the name is not known", **params)
    return Failure("network", "name not resolved", **params)


def at_host(exc: BaseException, host: str) -> Failure | None:
    """`from_exception`, with the host that it was about where the sentence names one."""
    found = from_exception(exc)
    if found is not None and found.code in _ABOUT_HOSTS:
        found.params = {"host": host, **found.params}
    return found


def _error(code: str, detail: str, params: dict[str, Any]) -> dict[str, Any]:
    return {
        "code": code,
        "detail": detail,
        "params": params,
        "retryable": code in _RETRYABLE,
    }
