"""The walk through the fields of a request, by its layout."""

from typing import Final

from mypy_extensions import i64 as native
from mypy_extensions import mypyc_attr

from proxy.wire.errors import Short
from proxy.wire.keyed.layout import BYTES, NUMBERS, STRING, STRINGS, STRUCTURES, Field, RequestLayout
from proxy.wire.reader import Reader


@mypyc_attr(allow_interpreted_subclasses=True)
class LayoutWalk:
    """Reads the fields of a request in turn. A subclass says what it does with arrays."""

    def __init__(self, reader: Reader, api_key: int, version: native, flexible: bool) -> None:
        self.reader: Final = reader
        self.api_key: Final = api_key
        self.version: Final[native] = version
        self.flexible: Final = flexible

    def structures(self, field: Field) -> None:
        """Read an array of structures."""
        raise NotImplementedError

    def strings(self) -> None:
        """Read an array of strings."""
        raise NotImplementedError

    def numbers(self, field: Field) -> None:
        """Read an array of elements of `field.size` bytes."""
        reader = self.reader
        reader.skip(reader.count(self.flexible) * field.size)

    def read_request(self, layout: RequestLayout) -> bool:
        """Read the fields of a request; return False if it ends before the last one."""
        try:
            if self.flexible:
                self.reader.skip_tags()
            self.read(layout.fields, 0)
        except Short:
            return False
        return True

    def read(self, fields: list[Field], first: native) -> None:
        """Read the fields from the first on."""
        reader = self.reader
        at = first
        while at < len(fields):
            field = fields[at]
            at += 1
            if field.since > self.version or field.until < self.version:
                continue
            kind = field.kind
            if kind == STRUCTURES:
                self.structures(field)
            elif kind == STRING:
                reader.skip_string(self.flexible)
            elif kind == NUMBERS:
                self.numbers(field)
            elif kind == BYTES:
                reader.skip(reader.bytes_length(self.flexible))
            elif kind == STRINGS:
                self.strings()
            else:
                reader.take(field.size)

    def end_element(self, field: Field, first: native) -> None:
        """Read the fields of an element of an array from the first on, and its tagged fields."""
        self.read(field.fields, first)
        if self.flexible and not self.reader.skip_no_tags():
            self.reader.skip_tags()
