"""Tensors: create, list, get, delete; their histograms."""

from __future__ import annotations

from functools import partial

from teletape_engine.session.handlers import nodes
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import created_result, deleted_result, value_result
from teletape_server.handlers.bodies import RAW_TYPE, new_id, path_id
from teletape_server.handlers.endpoints import endpoint
from teletape_server.handlers.execution import command, constants, described, execute, inspected
from teletape_server.handlers.listings import delete_several, listing
from teletape_server.handlers.methods import Request, Result, json_result
from teletape_server.models.listings import Deleted
from teletape_server.models.parameters import Elements, HistogramBins, NamedFields
from teletape_server.models.session.tensors import (
    NewTensor,
    NewTensors,
    PageOfTensors,
    SeveralTensors,
    Tensor,
    TensorHistogram,
    TensorList,
)


@endpoint(
    "POST",
    "/tensors",
    Tensor,
    "Create a tensor",
    status=201,
    problems=("id_in_use", "resource_exhausted"),
    query=NamedFields,
    body_types=(RAW_TYPE,),
)
def create(session: Session, request: Request, body: NewTensor) -> Result:
    """The body is JSON, or the tensor's bytes (application/octet-stream) with dtype and shape in headers.

    Bytes are little-endian and row-major; the server reads them as they arrive and holds them once.
    """
    id = body.id or new_id()
    execute(session, request, [command("constant", id=id, value=body.value)], replace=body.replace)
    return created_result(session, request, session.describe(id))


@endpoint("PUT", "/tensors", TensorList, "Create many tensors", problems=("id_in_use", "resource_exhausted"))
def create_all(session: Session, request: Request, body: NewTensors) -> Result:
    """Creates a tensor under each id, all or none. A safetensors file needs nothing else: its names are the ids."""
    execute(session, request, constants(body.tensors), replace=body.replace, rollback=True)
    facts = [session.describe(id) for id in body.tensors]
    return json_result({"tensors": facts}, bytes_in_use=session.estimated_bytes())


@endpoint("GET", "/tensors", TensorList, "List the tensors", query=PageOfTensors)
def list_(session: Session, request: Request) -> Result:
    """Lists ids, dtypes, shapes and bytes. As safetensors the answer has the elements too, each tensor under its id."""
    return listing(session, request, "tensors")


@endpoint("DELETE", "/tensors", Deleted, "Delete several tensors", query=SeveralTensors)
def delete_several_(session: Session, request: Request) -> Result:
    """Deletes those named by `id`, or those that the filters select, or all."""
    return delete_several(session, request, "tensors")


@endpoint("GET", "/tensors/{tensor}", Tensor, "Get a tensor", query=Elements, answer_types=(RAW_TYPE,))
def get(session: Session, request: Request) -> Result:
    """Returns the tensor as JSON, or its bytes for `Accept: application/octet-stream`."""
    return value_result(session, request, described(session, path_id(request.params["id"]), "tensors"))


@endpoint("DELETE", "/tensors/{tensor}", None, "Delete a tensor")
def delete(session: Session, request: Request) -> Result:
    """Tapes keep what they need of the tensor. A new one can have its id with `replace`."""
    return deleted_result(session, request, "tensors")


@endpoint(
    "GET",
    "/tensors/{tensor}/histogram",
    TensorHistogram,
    "Get a tensor's histogram",
    problems=("invalid_request", "cancelled", "deadline_exceeded"),
    query=HistogramBins,
)
def histogram(session: Session, request: Request) -> Result:
    """Counts the elements: finite, zero, NaN, infinite; their extremes, mean and histogram. Only these are sent."""
    id = path_id(request.params["id"])
    facts = described(session, id, "tensors")
    counted = inspected(session, request, partial(nodes.tensor_histogram, name=id, bins=request.params["bins"]))
    return json_result({name: facts[name] for name in ("id", "dtype", "shape")} | counted)
