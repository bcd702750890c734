"""Tensors: create, list, get, delete; their histograms."""

from __future__ import annotations

from functools import partial

from teletape_engine.session.handlers import nodes
from teletape_engine.session.session import Session
from teletape_server.handlers.answers import created_result, deleted_result, value_result
from teletape_server.handlers.bodies import new_id, path_id, read
from teletape_server.handlers.execution import command, constants, described, execute, inspected
from teletape_server.handlers.listings import delete_several, listing
from teletape_server.handlers.methods import Request, Result, json_result, method
from teletape_server.models.session.tensors import NewTensor, NewTensors


@method("tensor.create")
def create(session: Session, request: Request) -> Result:
    """Creates a tensor from the body."""
    body = read(request, NewTensor)
    id = body.id or new_id()
    execute(session, request, [command("constant", id=id, value=body.value)], replace=body.replace)
    return created_result(session, request, session.describe(id))


@method("tensor.create_all")
def create_all(session: Session, request: Request) -> Result:
    """Creates tensors by id, all or none."""
    body = read(request, NewTensors)
    execute(session, request, constants(body.tensors), replace=body.replace, rollback=True)
    facts = [session.describe(id) for id in body.tensors]
    return json_result({"tensors": facts}, bytes_in_use=session.estimated_bytes())


@method("tensor.list")
def list_(session: Session, request: Request) -> Result:
    """Lists all tensors, sparse gradients too, with their elements only in safetensors."""
    return listing(session, request, "tensors")


@method("tensor.delete_several")
def delete_several_(session: Session, request: Request) -> Result:
    """Releases tensors."""
    return delete_several(session, request, "tensors")


@method("tensor.get")
def get(session: Session, request: Request) -> Result:
    """Returns a tensor with its elements."""
    return value_result(session, request, described(session, path_id(request.params["id"]), "tensors"))


@method("tensor.delete")
def delete(session: Session, request: Request) -> Result:
    """Releases a tensor's id; tapes keep what they need of it."""
    return deleted_result(session, request, "tensors")


@method("tensor.histogram")
def tensor_histogram(session: Session, request: Request) -> Result:
    """Returns statistics of a tensor's elements."""
    id = path_id(request.params["id"])
    facts = described(session, id, "tensors")
    counted = inspected(session, request, partial(nodes.tensor_histogram, name=id, bins=request.params["bins"]))
    return json_result({name: facts[name] for name in ("id", "dtype", "shape")} | counted)
