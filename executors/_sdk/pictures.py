"""Pictures: what they say of themselves, and making one of another kind. The room of Pillow."""

from __future__ import annotations

import io
import warnings
from contextlib import suppress
from datetime import datetime

from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from executors._sdk.result import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any

# As Pillow calls them.
FORMATS = {
    "jpg": "JPEG", "jpeg": "JPEG", "png": "PNG", "webp": "WEBP", "gif": "GIF", "bmp": "BMP",
    "tiff": "TIFF", "tif": "TIFF",
}  # fmt: skip
_MOST_PIXELS = 120_000_000
# What Pillow raises for a file that is no picture, or a broken one.
_BROKEN = (UnidentifiedImageError, OSError, ValueError, SyntaxError, KeyError, TypeError)

Image.MAX_IMAGE_PIXELS = _MOST_PIXELS


def facts_of(file: IO[bytes]) -> dict[str, Any]:
    """`width`, `height`, and of a photograph `taken` (as its clock said), `camera`, `lat`, `lon`.
    Nothing for what is no picture, whatever its name says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(file, formats=sorted(set(FORMATS.values()))) as picture:
                found: dict[str, Any] = {"width": picture.width, "height": picture.height}
                with suppress(*_BROKEN):
                    found |= _photograph(picture.getexif())
                return found
        except (*_BROKEN, Image.DecompressionBombError):
            return {}


def _photograph(exif: Image.Exif) -> dict[str, Any]:
    found: dict[str, Any] = {}
    own = exif.get_ifd(ExifTags.IFD.Exif)
    taken = str(own.get(ExifTags.Base.DateTimeOriginal) or exif.get(ExifTags.Base.DateTime) or "")
    date, _, time = taken.strip("\0 ").partition(" ")
    said = f"{date.replace(':', '-')}T{time}" if time else date.replace(":", "-")
    with suppress(ValueError):  # many clocks were never set, and some tell what no clock does
        datetime.fromisoformat(said)
        found["taken"] = said
    names = [str(exif.get(tag) or "").strip("\0 ") for tag in (271, 272)]  # maker, model
    # Many models repeat their maker's name.
    camera = names[1] if names[0] and names[1].startswith(names[0]) else " ".join(names).strip()
    if camera:
        found["camera"] = camera[:120]
    place = exif.get_ifd(ExifTags.IFD.GPSInfo)
    lat = _degrees(place.get(2), place.get(1), 90)
    lon = _degrees(place.get(4), place.get(3), 180)
    if lat is not None and lon is not None and (lat, lon) != (0, 0):  # no place was found there
        found |= {"lat": lat, "lon": lon}
    return found


def _degrees(parts: Any, side: Any, most: int) -> float | None:
    try:
        degrees, minutes, seconds = (float(part) for part in parts)
    except (TypeError, ValueError, ZeroDivisionError):
        return None
    value = degrees + minutes / 60 + seconds / 3600
    if value != value or not 0 <= value <= most:
        return None
    return round(-value if str(side)[:1] in {"S", "W"} else value, 6)


def converted(file: IO[bytes], ext: str) -> bytes:
    """The picture in another format, upright, without what it says of place and camera.

    Raises `Failure`: damaged, too_large (more than 120 million points).
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(file, formats=sorted(set(FORMATS.values()))) as opened:
                if opened.width * opened.height > _MOST_PIXELS:
                    raise Failure("too_large", "the picture has too many points")
                upright = ImageOps.exif_transpose(opened) or opened
                picture = _flat(upright) if FORMATS[ext] in {"JPEG", "BMP"} else upright
                target = io.BytesIO()
                options = {"quality": 90} if FORMATS[ext] in {"JPEG", "WEBP"} else {}
                picture.info.pop("exif", None)
                picture.save(target, FORMATS[ext], **options)
                return target.getvalue()
        except Image.DecompressionBombError as exc:
            raise Failure("too_large", "the picture has too many points") from exc
        except _BROKEN as exc:
            raise Failure("damaged", f"no readable picture: {type(exc).__name__}") from exc


def _flat(picture: Image.Image) -> Image.Image:
    """Without transparency, which such files do not have: white stands behind it."""
    if picture.mode in {"RGBA", "LA", "PA"} or "transparency" in picture.info:
        above = picture.convert("RGBA")
        behind = Image.new("RGBA", above.size, (255, 255, 255, 255))
        return Image.alpha_composite(behind, above).convert("RGB")
    return picture if picture.mode in {"RGB", "L"} else picture.convert("RGB")
