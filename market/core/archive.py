"""One file of named arrays that says its format and the digest of its content.

The file is a ZIP archive that compresses nothing. Each array is a member ``NAME.npy`` in NumPy's
format; the last member, ``format.json``, is a table of two keys:

    format    ``FORMAT``, which rises when files of an earlier version can no longer be read
    digest    SHA-256 over the name and the bytes of every other member, in their order

The bytes of a member hold an array's dtype, shape, order in memory and values, so that the digest
covers all of them. ``read`` checks it before any array is made. It finds torn and edited files; it
is no signature, since whoever writes a file can compute its digest.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

# Format 1 had neither ``format.json`` nor a digest; states of format 2 have older names.
FORMAT = 3
HEADER = "format.json"
SUFFIX = ".npy"
BLOCK_BYTES = 1 << 20  # read at a time
LONGEST_HEADER = 1000  # bytes


class ArchiveError(ValueError):
    """A file that ``read`` refuses; its text is the reason, which goes on a line after the path."""


class _DigestingWriter:
    """Passes on what is written to a member of an archive, and computes its digest."""

    def __init__(self, member: IO[bytes]) -> None:
        self.member = member
        self.digest = hashlib.sha256()

    def write(self, content: bytes) -> int:
        """Write bytes, and add them to the digest."""
        self.digest.update(content)
        return self.member.write(content)


def write(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays by name to a new file; the same arrays give the same bytes.

    ValueError if an array holds objects.
    """
    digest_of_member: dict[str, str] = {}
    with ZipFile(path, "w") as archive:  # closed whatever happens
        for name, array in arrays.items():
            with archive.open(name + SUFFIX, "w", force_zip64=True) as member:
                writer: Any = _DigestingWriter(member)
                np.lib.format.write_array(writer, array, allow_pickle=False)
            digest_of_member[name + SUFFIX] = writer.digest.hexdigest()
        header = {"format": FORMAT, "digest": combined_digest(digest_of_member)}
        archive.writestr(ZipInfo(HEADER), json.dumps(header))


def read(path: Path) -> dict[str, NDArray[Any]]:
    """Read the arrays that ``write`` wrote, by name.

    ArchiveError if the file is torn, edited, of another format or of something else; OSError if it
    cannot be opened.
    """
    try:
        with ZipFile(path) as archive:
            check_archive(archive, path.stat().st_size)
            arrays: dict[str, NDArray[Any]] = {}
            for name in archive.namelist():
                if name != HEADER:
                    with archive.open(name) as member:
                        array = np.lib.format.read_array(member, allow_pickle=False)
                    arrays[name.removesuffix(SUFFIX)] = array
            return arrays
    except (OSError, ArchiveError):
        raise
    except BadZipFile as error:
        raise ArchiveError("it is torn, or something else wrote it") from error
    except Exception as error:  # what a damaged archive or array may raise is no closed list
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ArchiveError(f"it is damaged ({reason})") from error


def check_archive(archive: ZipFile, size: int) -> None:
    """Raise ArchiveError unless an archive of so many bytes has our format and its own digest."""
    refuse_expanding(archive, size)
    names = archive.namelist()
    if len(set(names)) < len(names):
        raise ArchiveError("it has two members of one name")
    if HEADER not in names:
        if f"plain.json{SUFFIX}" in names:
            raise ArchiveError(f"it is of format 1, an older one; this version reads {FORMAT}")
        raise ArchiveError("something else wrote it")
    with archive.open(HEADER) as member:
        header = json.loads(member.read(LONGEST_HEADER))
    if not isinstance(header, dict) or header.keys() != {"format", "digest"}:
        raise ArchiveError("something else wrote it")
    if header["format"] != FORMAT or isinstance(header["format"], float):
        raise ArchiveError(f"it is of format {header['format']!r:.20}; this version reads {FORMAT}")
    digest_of_member = {name: _digest(archive, name) for name in names if name != HEADER}
    if combined_digest(digest_of_member) != header["digest"]:
        raise ArchiveError("its content was changed after it was written")


def combined_digest(digest_of_member: Mapping[str, str]) -> str:
    """Return the digest over the names of members and the digest of each one's bytes."""
    combined = hashlib.sha256()
    for name, digest in digest_of_member.items():
        combined.update(f"{digest} {name}\n".encode())
    return combined.hexdigest()


def _digest(archive: ZipFile, name: str) -> str:
    digest = hashlib.sha256()
    with archive.open(name) as member:
        while block := member.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def refuse_expanding(file: ZipFile | Path | BinaryIO, size: int) -> None:
    """Raise ArchiveError if more would be read than the bytes of a file, which are not compressed.

    Such a file would take more memory than its length tells.
    """
    if isinstance(file, ZipFile):
        members = file.infolist()
    else:
        with ZipFile(file) as archive:
            members = archive.infolist()
    are_stored = all(member.compress_type == ZIP_STORED for member in members)
    if not are_stored or sum(member.file_size for member in members) > size:
        raise ArchiveError("its members are compressed or overlap")
