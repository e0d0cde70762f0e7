"""What the tables of scenario and study files have in common: types of values, and their rules."""

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

LONGEST = 100  # characters of a name that the file gives
Name = Annotated[str, Field(min_length=1)]
Label = Annotated[str, Field(min_length=1, max_length=LONGEST)]
MOST = 10**12  # of anything that is counted: below what the sizes of arrays overflow at
Count = Annotated[int, Field(ge=1, le=MOST)]
Rate = Annotated[float, Field(gt=0, le=1)]


def _differ(ends: list[float]) -> list[float]:
    if ends[0] == ends[1]:
        raise ValueError("the ends are equal; give two different numbers")
    return ends


Range = Annotated[list[float], Field(min_length=2, max_length=2), AfterValidator(_differ)]


ByName = BeforeValidator(  # for a table that may be given by its kind alone
    lambda table: {"kind": table} if isinstance(table, str) else table
)


@cache
def _written_meanings(table: type[BaseModel]) -> dict[str, str]:
    """Return what the text below each key says in a model's own source, by the key's name."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(table))).body[0]
    assert isinstance(tree, ast.ClassDef)  # noqa: S101 - the source of a class is one
    meanings = {}
    for key, text in pairwise(tree.body):
        if not isinstance(key, ast.AnnAssign) or not isinstance(key.target, ast.Name):
            continue
        if not isinstance(text, ast.Expr) or not isinstance(text.value, ast.Constant):
            continue
        if isinstance(text.value.value, str):
            meanings[key.target.id] = inspect.cleandoc(text.value.value)
    return meanings


def meaning_of(table: type[BaseModel], key: str) -> str | None:
    """Return what a key of a table means: the line below it in its model; None without one.

    Sources are read when somebody asks. Pydantic's ``use_attribute_docstrings`` reads them while
    the models are imported, which every run would wait for.
    """
    described = table.model_fields[key].description
    if described is not None:
        return described
    owner = next(own for own in table.__mro__ if key in vars(own).get("__annotations__", {}))
    return _written_meanings(owner).get(key)


class Table(BaseModel):
    """A table of a file: values are of their types, and finite."""

    model_config = ConfigDict(allow_inf_nan=False, strict=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Say of every key what it means."""
        found = handler(core)
        properties = handler.resolve_ref_schema(found).get("properties", {})
        for key, field in cls.model_fields.items():
            meaning = meaning_of(cls, key)
            name = field.alias or key
            if meaning is not None and name in properties:
                properties[name].setdefault("description", meaning)
        return found


class Strict(Table, extra="forbid"):
    """A table in which every key is known."""


class Counted(Table):
    """A table with a key, such as ``actions``, for a number of things or a list of their names."""

    COUNTS: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _names_counted(cls, raw: Any) -> Any:
        names = raw.get(key := cls.COUNTS) if isinstance(raw, dict) else None
        if not isinstance(names, list):
            return raw
        if not all(isinstance(name, str) for name in names):
            raise ValueError(f"{key} = {names}: give a number, or a list of names")
        return raw | {key: len(names), f"{key[:-1]}_names": names}

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        key, named = self.COUNTS, f"{self.COUNTS[:-1]}_names"
        number, names = vars(self)[key], vars(self)[named]
        if names is not None and number is None:
            raise ValueError(f"{named} = {names}: {key} is missing; write {key} = {names}")
        if names is not None and (len(names) != number or len(set(names)) < len(names)):
            raise ValueError(f"{key} = {names}: give each of the {number} a name of its own")
        return self


class Open(Table, extra="allow"):
    """Keys beyond the named ones are parameters of the building block that is named."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys beyond the named ones."""
        return dict(self.model_extra or {})


class Variant(Table):
    """One of several models of a table, told apart by one key, in which some keys mean nothing."""

    BARRED: ClassVar[dict[str, str]] = {}  # keys without a meaning here, and why

    @classmethod
    def known(cls) -> list[str]:
        """Return the keys that a file may give."""
        return [key for key in cls.model_fields if key not in cls.BARRED]

    @field_validator("*", mode="before")
    @classmethod
    def _means_something(cls, value: Any, info: ValidationInfo) -> Any:
        key = info.field_name or ""
        usual = cls.model_fields[key].get_default(call_default_factory=True)
        if key in cls.BARRED and value != usual:  # which a resolved file may repeat
            raise ValueError(cls.BARRED[key])
        return value

    @model_serializer(mode="wrap")
    def _written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if key not in self.BARRED}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Leave out the keys without a meaning, and forbid them where others are parameters."""
        found = super().__get_pydantic_json_schema__(core, handler)
        table = handler.resolve_ref_schema(found)
        table["properties"] = {key: table["properties"][key] for key in cls.known()}
        if table.get("additionalProperties"):
            table["propertyNames"] = {"not": {"enum": list(cls.BARRED)}}
        return found
