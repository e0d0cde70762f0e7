"""JSON Schemas of scenario and study files, by which editors complete and check what is typed.

Keys, types and limits are those of the models that read the files, and what a key means is the
line below it in its model. What models check beyond that, a schema does not know.
"""

from typing import Any

from pydantic import BaseModel

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
    whole: Json = _plain(FILES[file].model_json_schema())
    tables = whole.get("$defs", {}) | {FILES[file].__name__: whole}
    for place, also in _also().items():
        table, key = place.split(".")
        if table in tables:
            keys = tables[table]["properties"]
            meaning = {"description": keys[key].pop("description")}
            keys[key] = meaning | {"anyOf": [*also, keys[key]]}
    if file == "scenario":  # names by which a branch of a union is chosen, where it has several
        rules = [name for name in register.response.names() if name not in COHORTS]
        learners, agents = register.learner.names(), register.agent.names()
        answers = sorted(name for registry in register.ANSWERS for name in registry.names())
        for branch, key, own, known in (
            ("RuleSpec", "response", rules, answers),
            ("LearnerSpec", "response", learners, answers),
            ("AgentSpec", "response", agents, answers),
            ("BaselineSpec", "kind", register.forecaster.names(), list(KINDS)),
        ):  # a name that is not known may be of any of these branches
            others = [name for name in known if name not in own]
            name = tables[branch]["properties"][key]
            name |= {"anyOf": [{"enum": own}, {"type": "string", "not": {"enum": others}}]}
            del name["type"], name["minLength"]
    return {"$schema": DIALECT, "title": f"A {file} file of regretless"} | whole


def _also() -> dict[str, list[Json]]:
    """List what a key may be beside its type: names to propose, and shorter forms of a table.

    A name of the user's own is possible everywhere, so that names are proposed and not demanded.
    """
    text: Json = {"type": "string"}
    bases = {"enum": ["auto", *register.basis.names()]}
    baselines = register.forecaster.names()
    models = {"type": "array", "items": {"anyOf": [{"enum": ["panel", *baselines]}, {}]}}
    named = {"type": "array", "items": text}
    cohort = {
        "actions": [named],
        "basis": [bases, text],
        "utility": [{"enum": register.utility.names()}],
    }
    cohorts = [kind.__name__ for kind in COHORTS.values()]
    return {f"{kind}.{key}": forms for kind in cohorts for key, forms in cohort.items()} | {
        "AdversarySpec.outcomes": [named],
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


def _plain(node: Any) -> Any:
    """Drop titles, which repeat the keys, and null, which TOML does not have; unwrap meanings."""
    if isinstance(node, list):
        return [_plain(entry) for entry in node if entry != {"type": "null"}]
    if not isinstance(node, dict):
        return node
    found = {key: _plain(entry) for key, entry in node.items() if entry is not None}
    if isinstance(found.get("title"), str):
        del found["title"]
    if isinstance(found.get("description"), str):
        found["description"] = " ".join(found["description"].split())
        for key in found.get("properties", {}).values():  # by which the table is told apart
            key.setdefault("description", found["description"])
    if "oneOf" in found:  # a response that is not known may be of several kinds
        found["anyOf"] = found.pop("oneOf")
    if len(found.get("anyOf", ())) == 1:
        found |= found.pop("anyOf")[0]
    return found
