"""JSON Schemas of scenario and study files, by which editors complete and check what is typed.

Keys, types and limits are those of the models that read the files, and what a key means is the
line below it in its model. What models check beyond that, a schema does not know.
"""

from typing import Any

from pydantic import BaseModel

from regretless.forecaster.models.aggregate import MODELS_OF_PANEL
from regretless.market import register
from regretless.market.core.errors import UserError, closest
from regretless.scenarios.config.cohort import COHORTS
from regretless.scenarios.config.files import catalogue
from regretless.scenarios.config.forecaster import KINDS
from regretless.scenarios.config.scenario import ScenarioSpec
from regretless.scenarios.studies.design import StudySpec

Json = dict[str, Any]
FILES: dict[str, type[BaseModel]] = {"scenario": ScenarioSpec, "study": StudySpec}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(file: str) -> Json:
    """Return the schema of "scenario" or "study" files; UserError if there is no such kind."""
    if file not in FILES:
        raise UserError(f"unknown schema '{file}'; {closest(file, FILES)}")
    file_schema: Json = _simplify(FILES[file].model_json_schema())
    table_schemas = file_schema.get("$defs", {}) | {FILES[file].__name__: file_schema}
    for table_and_key, forms in _further_forms().items():
        table, key = table_and_key.split(".")
        if table in table_schemas:
            properties = table_schemas[table]["properties"]
            meaning = {"description": properties[key].pop("description")}
            properties[key] = meaning | {"anyOf": [*forms, properties[key]]}
    if file == "scenario":
        for branch in COHORTS.values():  # a game or a market may say these
            required_keys = table_schemas[branch.__name__]["required"]
            required_keys[:] = [key for key in required_keys if key not in {"utility", "actions"}]
        _tell_branches_apart(table_schemas)
    return {"$schema": DIALECT, "title": f"A {file} file of regretless"} | file_schema


def _tell_branches_apart(table_schemas: dict[str, Json]) -> None:
    """Let each branch of a union accept its own names, and names that no branch knows.

    The schemas are changed in place. A name of the user's own may be of any of these branches.
    """
    rules = [name for name in register.response.names() if name not in COHORTS]
    responses = sorted(name for registry in register.ANSWERS for name in registry.names())
    for branch, key, branch_names, known_names in (
        ("RuleSpec", "response", rules, responses),
        ("LearnerSpec", "response", register.learner.names(), responses),
        ("AgentSpec", "response", register.agent.names(), responses),
        ("BaselineSpec", "kind", register.forecaster.names(), list(KINDS)),
    ):
        other_names = [name for name in known_names if name not in branch_names]
        any_other_text = {"type": "string", "not": {"enum": other_names}}
        key_schema = table_schemas[branch]["properties"][key]
        key_schema["anyOf"] = [{"enum": branch_names}, any_other_text]
        del key_schema["type"], key_schema["minLength"]


def _further_forms() -> dict[str, list[Json]]:
    """Return what a key may be beside its type: names to propose, and shorter forms of a table.

    A name of the user's own is possible everywhere, so that names are proposed and not demanded.
    """
    text: Json = {"type": "string"}
    bases = {"enum": ["auto", *register.basis.names()]}
    baselines = register.forecaster.names()
    models = {"type": "array", "items": {"anyOf": [{"enum": [*MODELS_OF_PANEL, *baselines]}, {}]}}
    list_of_names = {"type": "array", "items": text}
    cohort = {
        "actions": [list_of_names],
        "basis": [bases, text],
        "utility": [{"enum": register.utility.names()}],
    }
    cohort_forms = {}
    for branch in COHORTS.values():
        for key, forms in cohort.items():
            cohort_forms[f"{branch.__name__}.{key}"] = forms
    return cohort_forms | {
        "AdversarySpec.outcomes": [list_of_names],
        "AdversarySpec.kind": [{"enum": register.adversary.names()}],
        "ReferenceSpec.kind": [{"enum": ["none", *baselines]}],
        "MarketSpec.kind": [{"enum": register.market.names()}],
        "ModelSpec.kind": [{"enum": baselines}],
        "BasisSpec.kind": [bases],
        "DecisionSwapSpec.reference": [{"enum": ["none", *baselines]}, text],
        "DecisionSwapSpec.models": [models],
        "PolicySpec.kind": [{"enum": register.policy.names()}],
        "StudySpec.scenario": [{"enum": list(catalogue())}],
        "StudySpec.seeds": [{"type": "integer", "minimum": 1}],
    }


def _simplify(node: Any) -> Any:
    """Return a part of a schema without titles, which repeat the keys, and null, which TOML lacks.

    Descriptions become one line each.
    """
    if isinstance(node, list):
        return [_simplify(entry) for entry in node if entry != {"type": "null"}]
    if not isinstance(node, dict):
        return node
    simple = {key: _simplify(entry) for key, entry in node.items() if entry is not None}
    if isinstance(simple.get("title"), str):
        del simple["title"]
    if isinstance(simple.get("description"), str):
        simple["description"] = " ".join(simple["description"].split())
        # A key without a meaning of its own, such as ``kind``, tells tables apart.
        for key_schema in simple.get("properties", {}).values():
            key_schema.setdefault("description", simple["description"])
    if "oneOf" in simple:  # a response that is not known may be of several kinds
        simple["anyOf"] = simple.pop("oneOf")
    if len(simple.get("anyOf", ())) == 1:
        only_form = simple.pop("anyOf")[0]
        simple |= only_form
    return simple
