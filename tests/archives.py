"""Archives taken apart and put together again, for tests of damaged save files and checkpoints."""

import hashlib
import json
from pathlib import Path
from zipfile import ZipFile, ZipInfo

import numpy as np

from regretless.market.core import archive


def members_of(path: Path) -> dict[str, bytes]:
    """Return the bytes of every member by its name."""
    with ZipFile(path) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def write_members(path: Path, members: dict[str, bytes]) -> None:
    """Write a sound ZIP archive of these members, whatever is in them."""
    with ZipFile(path, "w") as opened:
        for name, content in members.items():
            opened.writestr(ZipInfo(name), content)


def with_right_digest(members: dict[str, bytes], *, file_format: int = archive.FORMAT) -> None:
    """Put in the header that members need, in place, so that only their content can be refused."""
    members.pop(archive.HEADER, None)
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in members.items()}
    header = {"format": file_format, "digest": archive.combined_digest(digests)}
    members[archive.HEADER] = json.dumps(header).encode()


def flipped_byte(content: bytes, rng: np.random.Generator) -> bytes:
    """Change one byte to another value."""
    position = int(rng.integers(len(content)))
    changed = content[position] ^ int(rng.integers(1, 256))
    return content[:position] + bytes([changed]) + content[position + 1 :]


def truncated(content: bytes, rng: np.random.Generator) -> bytes:
    """Leave out the end."""
    return content[: int(rng.integers(len(content)))]


def edited_member(path: Path, rng: np.random.Generator) -> None:
    """Change, leave out, rename or empty one member, in an archive that stays sound.

    The checksum that ZIP keeps of each member fits again; the header stays as it is.
    """
    members = members_of(path)
    names = [name for name in members if name != archive.HEADER]
    chosen = names[int(rng.integers(len(names)))]
    kind = rng.choice(["byte", "missing", "renamed", "emptied"], p=[0.85, 0.05, 0.05, 0.05])
    edited: dict[str, bytes] = {}
    for name, content in members.items():
        if name != chosen:
            edited[name] = content
        elif kind == "byte":
            edited[name] = flipped_byte(content, rng)
        elif kind == "renamed":
            edited[f"x{name}"] = content
        elif kind == "emptied":
            edited[name] = b""
    write_members(path, edited)


def mutate(path: Path, rng: np.random.Generator) -> str:
    """Damage a file in one of three ways, and return which."""
    kind = str(rng.choice(["flipped byte", "truncated", "edited member"], p=[0.4, 0.2, 0.4]))
    if kind == "edited member":
        edited_member(path, rng)
    elif kind == "truncated":
        path.write_bytes(truncated(path.read_bytes(), rng))
    else:
        path.write_bytes(flipped_byte(path.read_bytes(), rng))
    return kind
