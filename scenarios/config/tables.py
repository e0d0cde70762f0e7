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

MAX_NAME_CHARACTERS = 100  # of a name that the file gives
Name = Annotated[str, Field(min_length=1)]
Label = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS)]
MAX_COUNT = 10**12  # of anything that is counted; sizes of arrays do not overflow below it
Count = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Rate = Annotated[float, Field(gt=0, le=1)]


def _require_different_ends(interval: list[float]) -> list[float]:
    if interval[0] == interval[1]:
        raise ValueError("the ends are equal; give two different numbers")
    return interval


Range = Annotated[
    list[float], Field(min_length=2, max_length=2), AfterValidator(_require_different_ends)
]
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
    owner = next(base for base in table.__mro__ if key in vars(base).get("__annotations__", {}))
    return _written_meanings(owner).get(key)


class Table(BaseModel):
    """A table of a file: values are of their types, and finite."""

    model_config = ConfigDict(allow_inf_nan=False, strict=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the schema with the meaning of every key as its description."""
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for key, field in cls.model_fields.items():
            meaning = meaning_of(cls, key)
            name = field.alias or key
            if meaning is not None and name in properties:
                properties[name].setdefault("description", meaning)
        return schema


class Strict(Table, extra="forbid"):
    """A table in which every key is known."""


class Counted(Table):
    """A table with a key, such as ``actions``, for a number of things or a list of their names."""

    COUNTS: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _count_names(cls, raw: Any) -> Any:
        """Replace a list of names by their number, and put the names under a key of their own."""
        key = cls.COUNTS
        names = raw.get(key) if isinstance(raw, dict) else None
        if not isinstance(names, list):
            return raw
        if not all(isinstance(name, str) for name in names):
            raise ValueError(f"{key} = {names}: give a number, or a list of names")
        return raw | {key: len(names), f"{key[:-1]}_names": names}

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        key = self.COUNTS
        names_key = f"{key[:-1]}_names"
        number = vars(self)[key]
        names = vars(self)[names_key]
        if names is None:
            return self
        if number is None:
            raise ValueError(f"{names_key} = {names}: {key} is missing; write {key} = {names}")
        if len(names) != number or len(set(names)) < len(names):
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
    def _refuse_barred_key(cls, value: Any, info: ValidationInfo) -> Any:
        key = info.field_name or ""
        if key in cls.BARRED:
            raise ValueError(cls.BARRED[key])
        return value

    @model_serializer(mode="wrap")
    def _without_barred_keys(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if key not in self.BARRED}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return a schema without the barred keys, which forbids them among parameters too."""
        schema = super().__get_pydantic_json_schema__(core, handler)
        table = handler.resolve_ref_schema(schema)
        table["properties"] = {key: table["properties"][key] for key in cls.known()}
        if table.get("additionalProperties"):
            table["propertyNames"] = {"not": {"enum": list(cls.BARRED)}}
        return schema
