"""/ops: the catalogue, which is the same for every session."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from teletape_engine.catalogue.describe import catalogue
from teletape_engine.catalogue.op import CATALOGUE
from teletape_engine.catalogue.signature import NUMPY_NAMES
from teletape_engine.errors import UnknownOpError
from teletape_server.http.access import Authenticated
from teletape_server.http.declarations import refusals
from teletape_server.http.schemas import Op, OpList
from teletape_server.models.listings import next_link, page
from teletape_server.models.parameters import After, Limit
from teletape_server.problems import Problem

router = APIRouter(prefix="/ops", tags=["catalogue"])


@cache
def _facts() -> dict[str, dict[str, Any]]:
    """Returns every op's description by name; computed once, since the catalogue does not change."""
    return {facts["name"]: facts for facts in catalogue()}


def _differentiable(facts: dict[str, Any]) -> bool:
    return any(gradient["kind"] in ("dense", "slices") for gradient in facts["gradients"].values())


def _named(facts: dict[str, Any], part: str) -> bool:
    numpy = [name for name, op in NUMPY_NAMES.items() if op == facts["name"]]
    names = (facts["name"], facts["op_type"], *facts["tensorflow"], *numpy)
    return any(part.lower() in name.rpartition(".")[2].lower() for name in names)


def _says(facts: dict[str, Any], words: str) -> bool:
    """Returns whether each word is in the op's documentation, or in one of its names."""
    text = facts["documentation"].lower()
    return all(word.lower() in text or _named(facts, word) for word in words.split())


@router.get(
    "",
    summary="List the ops",
    responses=refusals("unauthenticated", "invalid_request", "not_found"),
)
async def list_(
    request: Request,
    response: Response,
    _: Authenticated,
    name: Annotated[
        str | None,
        Query(description="Only ops with this text in their name, TensorFlow's or NumPy's", examples=["mat"]),
    ] = None,
    search: Annotated[
        str | None,
        Query(description="Only ops with each of these words in their documentation or names", examples=["product"]),
    ] = None,
    differentiable: Annotated[bool | None, Query(description="Only ops with a gradient (true) or without")] = None,
    limit: Limit = None,
    after: After = None,
) -> OpList:
    """Lists each op with its inputs, its attributes (as JSON Schema), its gradients and its documentation."""
    if after is not None and after not in _facts():
        raise Problem("not_found", f"after: there is no op {after[:100]!r}; send `next` of the page before")
    facts, has_more = page(
        [
            facts
            for facts in _facts().values()
            if facts["name"] == after
            or (
                (name is None or _named(facts, name))
                and (search is None or _says(facts, search))
                and differentiable in (None, _differentiable(facts))
            )
        ],
        lambda facts: str(facts["name"]),
        after,
        limit,
    )
    following = str(facts[-1]["name"]) if has_more else None
    if following is not None:
        selection = {"name": name, "search": search, "differentiable": differentiable, "limit": limit}
        response.headers["Link"] = next_link(request.url.path, selection, following)
    return OpList(ops=[Op.model_validate(fact) for fact in facts], next=following)


@router.get("/{op}", summary="Get an op", responses=refusals("unauthenticated", "not_found"))
async def get(
    _: Authenticated,
    op: Annotated[str, Path(description="Its name, ours, TensorFlow's or NumPy's", examples=["matmul"])],
) -> Op:
    """Returns what the op computes, what it takes, and what a tape keeps for its gradient."""
    try:
        return Op.model_validate(_facts()[CATALOGUE.named(op).name])
    except UnknownOpError as error:
        raise Problem("not_found", error.message, **error.details) from None
