"""JSON Schemas of scenario and study files, by which editors complete and check what is typed.

Keys, types and limits are those of the models that read the files, and what a key means is the
line below it in its model. What models check beyond that, a schema does not know.
"""

from typing import Any

from pydantic import BaseModel

from regretless.market import register
from regretless.market.core.errors import UserError, closest
from regretless.scenarios.spec.files import catalogue
from regretless.scenarios.spec.forecaster import KINDS
from regretless.scenarios.spec.scenario import ScenarioSpec
from regretless.scenarios.studies.design import StudySpec

Json = dict[str, Any]
FILES: dict[str, type[BaseModel]] = {"scenario": ScenarioSpec, "study": StudySpec}
DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(file: str) -> Json:
    """Return the schema of "scenario" or "study" files; UserError if there is no such kind."""
    if file not in FILES:
        raise UserError(f"unknown schema '{file}'; {closest(file, FILES)}")
    whole: Json = _plain(FILES[file].model_json_schema())
    tables = whole.get("$defs", {}) | {FILES[file].__name__: whole}
    for place, also in _also().items():
        table, key = place.split(".")
        if table in tables:
            keys = tables[table]["properties"]
            meaning = {"description": keys[key].pop("description")}
            keys[key] = meaning | {"anyOf": [*also, keys[key]]}
    return {"$schema": DIALECT, "title": f"A {file} file of regretless"} | whole


def _also() -> dict[str, list[Json]]:
    """List what a key may be beside its type: names to propose, and shorter forms of a table.

    A name of the user's own is possible everywhere, so that names are proposed and not demanded.
    """
    text: Json = {"type": "string"}
    bases = {"enum": ["auto", *register.basis.names()]}
    baselines = register.forecaster.names()
    models = {"type": "array", "items": {"anyOf": [{"enum": ["panel", *baselines]}, {}]}}
    answers = [name for kind in register.ANSWERS for name in kind.names()]
    named = {"type": "array", "items": text}
    return {
        "AdversarySpec.outcomes": [named],
        "CohortSpec.actions": [named],
        "AdversarySpec.kind": [{"enum": register.adversary.names()}],
        "ReferenceSpec.kind": [{"enum": ["none", *baselines]}],
        "MarketSpec.kind": [{"enum": register.market.names()}],
        "ModelSpec.kind": [{"enum": baselines}],
        "BasisSpec.kind": [bases],
        "CohortSpec.basis": [bases, text],
        "CohortSpec.response": [{"enum": answers}],
        "CohortSpec.utility": [{"enum": register.utility.names()}],
        "ForecasterSpec.reference": [{"enum": ["none", *baselines]}, text],
        "ForecasterSpec.models": [models],
        "ForecasterSpec.kind": [{"enum": [*KINDS, *baselines]}],
        "PolicySpec.kind": [{"enum": register.policy.names()}],
        "StudySpec.scenario": [{"enum": list(catalogue())}],
        "StudySpec.seeds": [{"type": "integer", "minimum": 1}],
    }


def _plain(node: Any) -> Any:
    """Drop titles, which repeat the keys, and null, which TOML does not have; unwrap meanings."""
    if isinstance(node, list):
        return [_plain(entry) for entry in node if entry != {"type": "null"}]
    if not isinstance(node, dict):
        return node
    kept = {key: _plain(entry) for key, entry in node.items() if entry is not None}
    if isinstance(kept.get("title"), str):
        del kept["title"]
    if isinstance(kept.get("description"), str):
        kept["description"] = " ".join(kept["description"].split())
    if len(kept.get("anyOf", ())) == 1:
        kept |= kept.pop("anyOf")[0]
    return kept
