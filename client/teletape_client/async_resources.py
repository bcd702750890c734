"""The resources of a server for event loops: a method for each operation.

Written by `make reference` from openapi/openapi.json, with resources.py. Long because it has every operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from teletape_client import models
from teletape_client.base import AsyncResource, inputs_of
from teletape_client.base import async_raw as raw
from teletape_client.items import AsyncCollection, AsyncContext, AsyncItem, AsyncWatched
from teletape_client.network.actions import RUN, Call, quoted
from teletape_client.running import AsyncRunning

if TYPE_CHECKING:
    from teletape_client import params
    from teletape_client.tensors.values import Id, Input, TensorInput


class AsyncVariable(AsyncItem[models.Variable]):
    """A variable of a session."""

    @property
    def with_raw_response(self) -> AsyncVariableWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncVariableWithRawResponse(self._with(self._options._replace(raw=True)))

    async def get(self) -> models.Variable:
        """Get a variable.

        Returns the variable and its value as JSON, or the value's bytes for `Accept: application/octet-stream`.
        """
        answer: models.Variable = await self._send(
            Call("GET", self._path, models.Variable.read, offers_file=True, has_full=True)
        )
        return answer

    async def assign(
        self,
        value: Input,
        *,
        mode: Literal[
            "set",
            "add",
            "sub",
            "scatter_update",
            "scatter_add",
            "scatter_sub",
            "scatter_mul",
            "scatter_div",
            "scatter_min",
            "scatter_max",
            "scatter_nd_update",
            "scatter_nd_add",
            "scatter_nd_sub",
            "scatter_nd_min",
            "scatter_nd_max",
            "slice",
        ]
        | None = None,
        indices: Input | None = None,
        if_match: str | None = None,
    ) -> models.Variable:
        """Assign to a variable.

        Replaces the value, adds to it or subtracts from it. Dtype and shape stay; the version increases by 1. With
        If-Match nothing is changed if somebody else has changed the variable meanwhile (412).

        Args:
            value: An id, a tensor or a number.
            mode: Set, add or sub: the whole variable; scatter_…: the rows at `indices`; scatter_nd_…: the elements
                at `indices`; slice: the part that `indices` describes. Default: "set".
            indices: The part to change; without it the whole variable.
            if_match: An ETag: the request is refused if the variable has another version by now.
        """
        answer: models.Variable = await self._send(
            Call(
                "PUT",
                self._path,
                models.Variable.read,
                fields={"value": value, "mode": mode, "indices": indices},
                headers={"If-Match": if_match},
                takes_file=True,
                offers_file=True,
            )
        )
        return answer

    async def delete(self, *, if_match: str | None = None) -> None:
        """Delete a variable.

        Tapes that watch the variable keep what they need. A new one can have its id with `replace`.

        Args:
            if_match: An ETag: the request is refused if the variable has another version by now.
        """
        await self._send(Call("DELETE", self._path, None, headers={"If-Match": if_match}))


class AsyncVariableWithRawResponse:
    """The methods of `AsyncVariable`, which return the response as it came."""

    def __init__(self, resource: AsyncVariable) -> None:
        self.get = raw(resource.get)
        self.assign = raw(resource.assign)
        self.delete = raw(resource.delete)


class AsyncVariables(AsyncCollection[AsyncVariable]):
    """The variables of a session."""

    _item = AsyncVariable

    @property
    def with_raw_response(self) -> AsyncVariablesWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncVariablesWithRawResponse(self._with(self._options._replace(raw=True)))

    async def create(
        self,
        value: Input,
        *,
        id: str | None = None,
        replace: bool | None = None,
        trainable: bool | None = None,
        name: str | None = None,
    ) -> AsyncVariable:
        """Create a variable.

        Its first value is a tensor, a number or an id: in JSON, or as bytes with dtype and shape in headers.

        Args:
            value: An id, a tensor or a number.
            id: An id of your choice; ids that the server generates begin with _.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            trainable: Whether tapes watch it by themselves. Default: true.
            name: A label for people.
        """
        answer: AsyncVariable = await self._send(
            Call(
                "POST",
                self._path,
                self._created(models.Variable.read),
                fields={"value": value, "id": id, "replace": replace, "trainable": trainable, "name": name},
                takes_file=True,
                offers_file=True,
            )
        )
        return answer

    async def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        prefix: str | None = None,
        dtype: str | None = None,
        values: bool = False,
    ) -> models.VariableList:
        """List the variables.

        Lists ids, dtypes, shapes and versions. As safetensors the answer has the values too, each under its id.

        Args:
            limit: Most items; without it all.
            after: Continue after this item: `next` of the page before.
            prefix: Only those whose id begins with this text.
            dtype: Only those of this dtype, such as float32.
            values: Whether each comes with its value.
        """
        answer: models.VariableList = await self._send(
            Call(
                "GET",
                self._path,
                models.VariableList.read,
                query={"limit": limit, "after": after, "prefix": prefix, "dtype": dtype},
                offers_file=values,
            )
        )
        return answer

    async def write_all(self, variables: Mapping[str, Input], *, trainable: bool | None = None) -> models.VariableList:
        """Write many variables.

        Assigns to each variable by its id, and creates those that do not exist. A safetensors file is enough.

        Args:
            variables: See the guide.
            trainable: Of those that are created: whether tapes watch them. Default: true.
        """
        answer: models.VariableList = await self._send(
            Call(
                "PUT",
                self._path,
                models.VariableList.read,
                fields={"variables": variables, "trainable": trainable},
                takes_file=True,
                offers_file=True,
            )
        )
        return answer

    async def delete_several(
        self,
        *,
        id: Sequence[str] | None = None,
        prefix: str | None = None,
        dtype: str | None = None,
        all: bool | None = None,
    ) -> models.Deleted:
        """Delete several variables.

        Deletes those named by `id`, or those that the filters select, or all.

        Args:
            id: Ids, the parameter repeated; those that name nothing are skipped.
            prefix: Only those whose id begins with this text.
            dtype: Only those of this dtype, such as float32.
            all: All of them.
        """
        answer: models.Deleted = await self._send(
            Call(
                "DELETE",
                self._path,
                models.Deleted.read,
                query={"id": id, "prefix": prefix, "dtype": dtype, "all": all},
            )
        )
        return answer


class AsyncVariablesWithRawResponse:
    """The methods of `AsyncVariables`, which return the response as it came."""

    def __init__(self, resource: AsyncVariables) -> None:
        self.create = raw(resource.create)
        self.list = raw(resource.list)
        self.write_all = raw(resource.write_all)
        self.delete_several = raw(resource.delete_several)


class AsyncTensor(AsyncItem[models.Tensor]):
    """A tensor of a session."""

    @property
    def with_raw_response(self) -> AsyncTensorWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncTensorWithRawResponse(self._with(self._options._replace(raw=True)))

    async def get(self) -> models.Tensor:
        """Get a tensor.

        Returns the tensor as JSON, or its bytes for `Accept: application/octet-stream`.
        """
        answer: models.Tensor = await self._send(
            Call("GET", self._path, models.Tensor.read, offers_file=True, has_full=True)
        )
        return answer

    async def delete(self) -> None:
        """Delete a tensor.

        Tapes keep what they need of the tensor. A new one can have its id with `replace`.
        """
        await self._send(Call("DELETE", self._path, None))

    async def histogram(self, *, bins: int | None = None) -> models.TensorHistogram:
        """Get a tensor's histogram.

        Counts the elements: finite, zero, NaN, infinite; their extremes, mean and histogram. Only these are sent.

        Args:
            bins: Most bins of a histogram.
        """
        answer: models.TensorHistogram = await self._send(
            Call("GET", f"{self._path}/histogram", models.TensorHistogram.read, query={"bins": bins})
        )
        return answer


class AsyncTensorWithRawResponse:
    """The methods of `AsyncTensor`, which return the response as it came."""

    def __init__(self, resource: AsyncTensor) -> None:
        self.get = raw(resource.get)
        self.delete = raw(resource.delete)
        self.histogram = raw(resource.histogram)


class AsyncTensors(AsyncCollection[AsyncTensor]):
    """The tensors of a session, also results that were kept."""

    _item = AsyncTensor

    @property
    def with_raw_response(self) -> AsyncTensorsWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncTensorsWithRawResponse(self._with(self._options._replace(raw=True)))

    async def create(self, value: TensorInput, *, id: str | None = None, replace: bool | None = None) -> AsyncTensor:
        """Create a tensor.

        The body is JSON, or the tensor's bytes (application/octet-stream) with dtype and shape in headers. Bytes are
        little-endian and row-major; the server reads them as they arrive and holds them once.

        Args:
            value: A tensor or a number.
            id: An id of your choice; ids that the server generates begin with _.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
        """
        answer: AsyncTensor = await self._send(
            Call(
                "POST",
                self._path,
                self._created(models.Tensor.read),
                fields={"value": value, "id": id, "replace": replace},
                takes_file=True,
                offers_file=True,
            )
        )
        return answer

    async def list(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        prefix: str | None = None,
        kind: Literal["tensor", "slices"] | None = None,
        dtype: str | None = None,
        values: bool = False,
    ) -> models.TensorList:
        """List the tensors.

        Lists ids, dtypes, shapes and bytes. As safetensors the answer has the elements too, each tensor under its id.

        Args:
            limit: Most items; without it all.
            after: Continue after this item: `next` of the page before.
            prefix: Only those whose id begins with this text.
            kind: Only tensors, or only sparse gradients.
            dtype: Only those of this dtype, such as float32.
            values: Whether each comes with its value.
        """
        answer: models.TensorList = await self._send(
            Call(
                "GET",
                self._path,
                models.TensorList.read,
                query={"limit": limit, "after": after, "prefix": prefix, "kind": kind, "dtype": dtype},
                offers_file=values,
            )
        )
        return answer

    async def create_all(self, tensors: Mapping[str, TensorInput], *, replace: bool | None = None) -> models.TensorList:
        """Create many tensors.

        Creates a tensor under each id, all or none. A safetensors file needs nothing else: its names are the ids.

        Args:
            tensors: See the guide.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
        """
        answer: models.TensorList = await self._send(
            Call(
                "PUT",
                self._path,
                models.TensorList.read,
                fields={"tensors": tensors, "replace": replace},
                takes_file=True,
                offers_file=True,
            )
        )
        return answer

    async def delete_several(
        self,
        *,
        id: Sequence[str] | None = None,
        prefix: str | None = None,
        kind: Literal["tensor", "slices"] | None = None,
        dtype: str | None = None,
        all: bool | None = None,
    ) -> models.Deleted:
        """Delete several tensors.

        Deletes those named by `id`, or those that the filters select, or all.

        Args:
            id: Ids, the parameter repeated; those that name nothing are skipped.
            prefix: Only those whose id begins with this text.
            kind: Only tensors, or only sparse gradients.
            dtype: Only those of this dtype, such as float32.
            all: All of them.
        """
        answer: models.Deleted = await self._send(
            Call(
                "DELETE",
                self._path,
                models.Deleted.read,
                query={"id": id, "prefix": prefix, "kind": kind, "dtype": dtype, "all": all},
            )
        )
        return answer


class AsyncTensorsWithRawResponse:
    """The methods of `AsyncTensors`, which return the response as it came."""

    def __init__(self, resource: AsyncTensors) -> None:
        self.create = raw(resource.create)
        self.list = raw(resource.list)
        self.create_all = raw(resource.create_all)
        self.delete_several = raw(resource.delete_several)


class AsyncTape(AsyncItem[models.Tape]):
    """A tape of a session."""

    @property
    def with_raw_response(self) -> AsyncTapeWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncTapeWithRawResponse(self._with(self._options._replace(raw=True)))

    async def get(self) -> models.Tape:
        """Get a tape.

        Returns how many ops and bytes the tape holds, and which variables it watches.
        """
        answer: models.Tape = await self._send(Call("GET", self._path, models.Tape.read))
        return answer

    async def delete(self) -> None:
        """Delete a tape.

        Frees everything that the tape keeps. A new one can have its id with `replace`.
        """
        await self._send(Call("DELETE", self._path, None))

    async def watch(self, tensors: Sequence[Id]) -> models.Tape:
        """Watch tensors.

        The tape tracks these tensors in ops posted from now on. It watches trainable variables by itself.

        Args:
            tensors: The id of a tensor, variable, tape or function: a name, or {id: integer}.
        """
        answer: models.Tape = await self._send(
            Call("POST", f"{self._path}/watch", models.Tape.read, fields={"tensors": tensors})
        )
        return answer

    async def run_ops(
        self,
        ops: Sequence[params.OpCall],
        *,
        scratch: bool | None = None,
        keep: Sequence[str] | None = None,
        replace: bool | None = None,
        fetch: Id | Sequence[Id] | None = None,
    ) -> models.OpResults:
        """Run ops on a tape.

        Runs ops in order, recorded by the tape and its parents. If an op fails, the results of those before it stay,
        and the ids of the rest stay free.

        Args:
            ops: One call of an op.
            scratch: Whether the results end with the request; `fetch` still returns them. Default: false.
            keep: Ids of results that stay; the others end with the request.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            fetch: Ids to return in `values`; without it the last result's.
        """
        answer: models.OpResults = await self._send(
            Call(
                "POST",
                f"{self._path}/ops",
                models.OpResults.read,
                fields={"ops": ops, "scratch": scratch, "keep": keep, "replace": replace, "fetch": fetch},
                takes_file=True,
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def gradient(
        self,
        targets: Id | Sequence[Id],
        wrt: Id | Sequence[Id],
        *,
        output_gradients: Sequence[Input | None] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
    ) -> models.Derivatives:
        """Compute gradients.

        Computes the gradient of the targets' sum with respect to each source. The tape's parents record the
        computation, so that they can differentiate it again.

        Args:
            targets: Tensors whose sum is differentiated.
            wrt: Tensors and variables to differentiate by.
            output_gradients: A weight for each target, of its shape; null: ones.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            outputs: Ids for the results, null for none; without it nothing is kept.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
        """
        answer: models.Derivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/gradient",
                models.Derivatives.read,
                fields={
                    "targets": targets,
                    "sources": wrt,
                    "output_gradients": output_gradients,
                    "unconnected": unconnected,
                    "outputs": outputs,
                    "replace": replace,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def estimate(
        self,
        targets: Id | Sequence[Id],
        wrt: Id | Sequence[Id],
        *,
        question: Literal["gradient", "jacobian", "batch_jacobian", "hessian", "hvp"] | None = None,
        max_bytes: int | None = None,
    ) -> models.DerivativeEstimate:
        """Estimate a derivative.

        Returns what a derivative would take: bytes, ops, multiply-adds, about how many seconds. The backward pass is
        followed by shapes alone. The tape stays, also one that is not persistent.

        Args:
            targets: Tensors whose sum is differentiated.
            wrt: Tensors and variables to differentiate by.
            question: Which derivative it is. Default: "gradient".
            max_bytes: Most bytes for batched cotangents; without it 64 MiB, or what the session has left.
        """
        answer: models.DerivativeEstimate = await self._send(
            Call(
                "POST",
                f"{self._path}/estimate",
                models.DerivativeEstimate.read,
                fields={"targets": targets, "sources": wrt, "question": question, "max_bytes": max_bytes},
            )
        )
        return answer

    async def gradient_statistics(
        self,
        targets: Id | Sequence[Id],
        wrt: Id | Sequence[Id],
        *,
        output_gradients: Sequence[Input | None] | None = None,
    ) -> models.GradientsNumbers:
        """Compute statistics of gradients.

        Computes norm, largest magnitude, mean and the shares of non-finite and zero elements of each gradient. The
        elements stay here. The tape stays too, also one that is not persistent.

        Args:
            targets: Tensors whose sum is differentiated.
            wrt: Tensors and variables to differentiate by.
            output_gradients: A weight for each target, of its shape; null: ones.
        """
        answer: models.GradientsNumbers = await self._send(
            Call(
                "POST",
                f"{self._path}/gradient_statistics",
                models.GradientsNumbers.read,
                fields={"targets": targets, "sources": wrt, "output_gradients": output_gradients},
                takes_file=True,
            )
        )
        return answer

    async def jacobian(
        self,
        targets: Id | Sequence[Id],
        wrt: Id | Sequence[Id],
        *,
        unconnected: Literal["none", "zero"] | None = None,
        max_bytes: int | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
    ) -> models.Derivatives:
        """Compute Jacobians.

        Computes the Jacobian of one target with respect to each source, in one batched backward pass.

        Args:
            targets: The tensor to differentiate: one id.
            wrt: Tensors and variables to differentiate by.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            max_bytes: Most bytes for batched cotangents; without it 64 MiB, or what the session has left.
            outputs: Ids for the results, null for none; without it nothing is kept.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
        """
        answer: models.Derivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/jacobian",
                models.Derivatives.read,
                fields={
                    "targets": targets,
                    "sources": wrt,
                    "unconnected": unconnected,
                    "max_bytes": max_bytes,
                    "outputs": outputs,
                    "replace": replace,
                },
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def batch_jacobian(
        self,
        targets: Id | Sequence[Id],
        wrt: Id | Sequence[Id],
        *,
        max_bytes: int | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
    ) -> models.Derivatives:
        """Compute the Jacobian of each example.

        Computes d target[i] / d source[i] for each example i, for a target[i] that depends on source[i] alone.

        Args:
            targets: The tensor to differentiate: one id.
            wrt: One id.
            max_bytes: Most bytes for batched cotangents; without it 64 MiB, or what the session has left.
            outputs: One id to keep it.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
        """
        answer: models.Derivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/batch_jacobian",
                models.Derivatives.read,
                fields={
                    "targets": targets,
                    "sources": wrt,
                    "max_bytes": max_bytes,
                    "outputs": outputs,
                    "replace": replace,
                },
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def vjps(
        self,
        targets: Id | Sequence[Id],
        wrt: Id | Sequence[Id],
        output_gradients: Sequence[Input | None],
        *,
        unconnected: Literal["none", "zero"] | None = None,
        max_bytes: int | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
    ) -> models.Derivatives:
        """Compute gradients for many output gradients.

        Computes one gradient for each of k output gradients, in one batched backward pass.

        Args:
            targets: Tensors whose sum is differentiated.
            wrt: Tensors and variables to differentiate by.
            output_gradients: For each target k weights along a leading axis; null: ones.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            max_bytes: Most bytes for batched cotangents; without it 64 MiB, or what the session has left.
            outputs: Ids for the results, null for none; without it nothing is kept.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
        """
        answer: models.Derivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/vjps",
                models.Derivatives.read,
                fields={
                    "targets": targets,
                    "sources": wrt,
                    "output_gradients": output_gradients,
                    "unconnected": unconnected,
                    "max_bytes": max_bytes,
                    "outputs": outputs,
                    "replace": replace,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def hessian(
        self,
        targets: Id | Sequence[Id],
        wrt: Id | Sequence[Id],
        *,
        unconnected: Literal["none", "zero"] | None = None,
        max_bytes: int | None = None,
        outputs: Sequence[Sequence[str | None]] | None = None,
        replace: bool | None = None,
    ) -> models.HessianBlocks:
        """Compute a Hessian.

        Computes the second derivatives of the targets' sum, a block for each pair of sources. Needs no parent tape.

        Args:
            targets: Tensors whose sum is differentiated.
            wrt: Tensors and variables to differentiate by.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            max_bytes: Most bytes for batched cotangents; without it 64 MiB, or what the session has left.
            outputs: For each source a list with an id for each source, null for none.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
        """
        answer: models.HessianBlocks = await self._send(
            Call(
                "POST",
                f"{self._path}/hessian",
                models.HessianBlocks.read,
                fields={
                    "targets": targets,
                    "sources": wrt,
                    "unconnected": unconnected,
                    "max_bytes": max_bytes,
                    "outputs": outputs,
                    "replace": replace,
                },
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def hvp(
        self,
        targets: Id | Sequence[Id],
        wrt: Id | Sequence[Id],
        vectors: Sequence[Input],
        *,
        output_gradients: Sequence[Input | None] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
    ) -> models.Derivatives:
        """Compute Hessian-vector products.

        Computes the Hessian times a vector at the cost of two gradients. Needs no parent tape.

        Args:
            targets: Tensors whose sum is differentiated.
            wrt: Tensors and variables to differentiate by.
            vectors: The vector's part for each source, of its shape.
            output_gradients: A weight for each target, of its shape; null: ones.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            outputs: Ids for the results, null for none; without it nothing is kept.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
        """
        answer: models.Derivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/hvp",
                models.Derivatives.read,
                fields={
                    "targets": targets,
                    "sources": wrt,
                    "vectors": vectors,
                    "output_gradients": output_gradients,
                    "unconnected": unconnected,
                    "outputs": outputs,
                    "replace": replace,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def sparse_jacobian(
        self,
        targets: Id | Sequence[Id],
        wrt: Id | Sequence[Id],
        *,
        format: Literal["coo", "csr"] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        max_bytes: int | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
    ) -> models.SparseAnswer:
        """Compute a sparse Jacobian.

        Computes the elements of a Jacobian that may differ from zero, as COO or CSR, in few products with vectors.
        Where they are is read off the recorded ops. The tape's parents cannot record it.

        Args:
            targets: The tensor to differentiate: one id.
            wrt: One id.
            format: Coo: row and column of each entry; csr: where each row begins, and the column of each entry.
                Default: "coo".
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            max_bytes: Most bytes for products that are computed together; without it 16 MiB.
            outputs: Ids to keep the parts under, null for none: rows (coo) or row starts (csr), columns, values.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
        """
        answer: models.SparseAnswer = await self._send(
            Call(
                "POST",
                f"{self._path}/sparse_jacobian",
                models.SparseAnswer.read,
                fields={
                    "targets": targets,
                    "sources": wrt,
                    "format": format,
                    "unconnected": unconnected,
                    "max_bytes": max_bytes,
                    "outputs": outputs,
                    "replace": replace,
                },
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def sparse_hessian(
        self,
        targets: Id | Sequence[Id],
        wrt: Id | Sequence[Id],
        *,
        format: Literal["coo", "csr"] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        max_bytes: int | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
    ) -> models.SparseAnswer:
        """Compute a sparse Hessian.

        Computes the second derivatives that may differ from zero, as COO or CSR, in few Hessian-vector products.

        Args:
            targets: Tensors whose sum is differentiated.
            wrt: One id.
            format: Coo: row and column of each entry; csr: where each row begins, and the column of each entry.
                Default: "coo".
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            max_bytes: Most bytes for products that are computed together; without it 16 MiB.
            outputs: Ids to keep the parts under, null for none: rows (coo) or row starts (csr), columns, values.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
        """
        answer: models.SparseAnswer = await self._send(
            Call(
                "POST",
                f"{self._path}/sparse_hessian",
                models.SparseAnswer.read,
                fields={
                    "targets": targets,
                    "sources": wrt,
                    "format": format,
                    "unconnected": unconnected,
                    "max_bytes": max_bytes,
                    "outputs": outputs,
                    "replace": replace,
                },
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def questions(
        self,
        questions: Sequence[
            params.GradientQuestionItem
            | params.JacobianQuestionItem
            | params.BatchJacobianQuestionItem
            | params.VjpsQuestionItem
            | params.HessianQuestionItem
            | params.HvpQuestionItem
        ],
    ) -> models.QuestionResults:
        """Compute many derivatives in one request.

        Answers several questions, also from a tape that is not persistent. If a question fails, nothing is kept.

        Args:
            questions: Each the body of /gradient, or of the path that `do` names: jacobian, batch_jacobian, vjps,
                hessian, hvp.
        """
        answer: models.QuestionResults = await self._send(
            Call(
                "POST",
                f"{self._path}/questions",
                models.QuestionResults.read,
                fields={"questions": questions},
                takes_file=True,
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def explain(self, targets: Id | Sequence[Id], wrt: Id | Sequence[Id]) -> models.Explanations:
        """Explain a gradient.

        Explains why a gradient is null, zero or not finite: the reason, the op, your line of it, and what to do. The
        tape stays unchanged. A consumed tape still explains null gradients, but not zeros and NaN, since it has no
        numbers any more.

        Args:
            targets: The id of a tensor, variable, tape or function: a name, or {id: integer}.
            wrt: The id of a tensor, variable, tape or function: a name, or {id: integer}.
        """
        answer: models.Explanations = await self._send(
            Call("POST", f"{self._path}/explain", models.Explanations.read, fields={"targets": targets, "sources": wrt})
        )
        return answer

    async def graph(
        self,
        *,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        nodes: int | None = None,
        first: int | None = None,
        ops: int | None = None,
    ) -> models.Graph:
        """Get a tape's graph.

        Draws what the tape watches, the ops it recorded and the bytes that each keeps. Works for a consumed tape too.

        Args:
            targets: With `sources`: mark the path of the gradient of this target. Repeatable.
            wrt: With `targets`: mark the path to this source, or where it is cut. Repeatable.
            nodes: Most nodes to draw: above that, repeated or neighbouring ops share a node.
            first: Draw only a part: the `ops` ops from this position on. A group's `first` and `ops`.
            ops: With `first`: ops to draw.
        """
        answer: models.Graph = await self._send(
            Call(
                "GET",
                f"{self._path}/graph",
                models.Graph.read,
                query={"targets": targets, "sources": wrt, "nodes": nodes, "first": first, "ops": ops},
            )
        )
        return answer

    async def node(self, node: str, *, bins: int | None = None) -> models.Node:
        """Get a node.

        Returns an op or a watched value of the tape's graph, with the histogram of its value.

        Args:
            node: The id of a node in the tape's graph.
            bins: Most bins of a histogram.
        """
        answer: models.Node = await self._send(
            Call("GET", f"{self._path}/nodes/{quoted(node)}", models.Node.read, query={"bins": bins})
        )
        return answer

    async def node_gradient(
        self, node: str, *, wrt: str | Sequence[str] | None = None, bins: int | None = None
    ) -> models.NodeGradient:
        """Get the gradient of a node.

        Computes the gradient of the node's sum by what the tape watches, and returns histograms. Changes nothing. A
        tape that is not persistent can still answer afterwards.

        Args:
            node: The id of a node in the tape's graph.
            wrt: Nodes of the graph. Repeatable; without it: the first 64 that the tape watches.
            bins: Most bins of a histogram.
        """
        answer: models.NodeGradient = await self._send(
            Call(
                "GET",
                f"{self._path}/nodes/{quoted(node)}/gradient",
                models.NodeGradient.read,
                query={"sources": wrt, "bins": bins},
            )
        )
        return answer

    async def node_explain(self, node: str, *, wrt: str | Sequence[str] | None = None) -> models.NodeExplanations:
        """Explain the gradient of a node.

        Explains why the gradient of the node is what it is for each source. Works for a consumed tape too.

        Args:
            node: The id of a node in the tape's graph.
            wrt: Nodes of the graph. Repeatable; without it: the first 64 that the tape watches.
        """
        answer: models.NodeExplanations = await self._send(
            Call(
                "GET",
                f"{self._path}/nodes/{quoted(node)}/explain",
                models.NodeExplanations.read,
                query={"sources": wrt},
            )
        )
        return answer

    async def check_gradients(
        self, targets: Id | Sequence[Id], wrt: Id | Sequence[Id], *, settings: params.CheckSettings | None = None
    ) -> models.CheckReport:
        """Check a tape's gradients.

        Compares the gradients with finite differences of the recorded ops, which needs a `replayable` tape.

        Args:
            targets: The id of a tensor, variable, tape or function: a name, or {id: integer}.
            wrt: The id of a tensor, variable, tape or function: a name, or {id: integer}.
            settings: How to compare derivatives with finite differences.
        """
        answer: models.CheckReport = await self._send(
            Call(
                "POST",
                f"{self._path}/check_gradients",
                models.CheckReport.read,
                fields={"targets": targets, "sources": wrt, "settings": settings},
            )
        )
        return answer

    async def reset(self, *, release_outputs: bool | None = None) -> models.Tape:
        """Reset a tape.

        Removes everything that the tape recorded and watched; it can record again. With `release_outputs` the next
        step of a loop can begin with the same ids.

        Args:
            release_outputs: Whether tensors that requests on this tape left in the session end too: results of ops,
                calls and loops, and derivatives. Their ids are free again. Default: false.
        """
        answer: models.Tape = await self._send(
            Call("POST", f"{self._path}/reset", models.Tape.read, fields={"release_outputs": release_outputs})
        )
        return answer


class AsyncTapeWithRawResponse:
    """The methods of `AsyncTape`, which return the response as it came."""

    def __init__(self, resource: AsyncTape) -> None:
        self.get = raw(resource.get)
        self.delete = raw(resource.delete)
        self.watch = raw(resource.watch)
        self.run_ops = raw(resource.run_ops)
        self.gradient = raw(resource.gradient)
        self.estimate = raw(resource.estimate)
        self.gradient_statistics = raw(resource.gradient_statistics)
        self.jacobian = raw(resource.jacobian)
        self.batch_jacobian = raw(resource.batch_jacobian)
        self.vjps = raw(resource.vjps)
        self.hessian = raw(resource.hessian)
        self.hvp = raw(resource.hvp)
        self.sparse_jacobian = raw(resource.sparse_jacobian)
        self.sparse_hessian = raw(resource.sparse_hessian)
        self.questions = raw(resource.questions)
        self.explain = raw(resource.explain)
        self.graph = raw(resource.graph)
        self.node = raw(resource.node)
        self.node_gradient = raw(resource.node_gradient)
        self.node_explain = raw(resource.node_explain)
        self.check_gradients = raw(resource.check_gradients)
        self.reset = raw(resource.reset)


class AsyncTapes(AsyncCollection[AsyncTape]):
    """The tapes of a session."""

    _item = AsyncTape

    @property
    def with_raw_response(self) -> AsyncTapesWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncTapesWithRawResponse(self._with(self._options._replace(raw=True)))

    async def create(
        self,
        *,
        id: str | None = None,
        replace: bool | None = None,
        persistent: bool | None = None,
        watch_accessed: bool | None = None,
        replayable: bool | None = None,
        parents: Sequence[Id] | None = None,
    ) -> AsyncTape:
        """Create a tape.

        The tape records the ops that are posted to its /ops. Its `parents` record them too, and its gradients.

        Args:
            id: An id of your choice; ids that the server generates begin with _.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            persistent: Whether it answers more than one question. Default: false.
            watch_accessed: Whether it watches trainable variables that ops read. Default: true.
            replayable: Whether it keeps every input, which check_gradients needs. Default: false.
            parents: Outer tapes that record this tape's ops and gradients too, for second derivatives.
        """
        answer: AsyncTape = await self._send(
            Call(
                "POST",
                self._path,
                self._created(models.Tape.read),
                fields={
                    "id": id,
                    "replace": replace,
                    "persistent": persistent,
                    "watch_accessed": watch_accessed,
                    "replayable": replayable,
                    "parents": parents,
                },
            )
        )
        return answer

    async def list(
        self, *, limit: int | None = None, after: str | None = None, prefix: str | None = None
    ) -> models.TapeList:
        """List the tapes.

        Lists the tapes with their ops and bytes.

        Args:
            limit: Most items; without it all.
            after: Continue after this item: `next` of the page before.
            prefix: Only those whose id begins with this text.
        """
        answer: models.TapeList = await self._send(
            Call("GET", self._path, models.TapeList.read, query={"limit": limit, "after": after, "prefix": prefix})
        )
        return answer

    async def delete_several(
        self, *, id: Sequence[str] | None = None, prefix: str | None = None, all: bool | None = None
    ) -> models.Deleted:
        """Delete several tapes.

        Deletes those named by `id`, or those that the filters select, or all.

        Args:
            id: Ids, the parameter repeated; those that name nothing are skipped.
            prefix: Only those whose id begins with this text.
            all: All of them.
        """
        answer: models.Deleted = await self._send(
            Call("DELETE", self._path, models.Deleted.read, query={"id": id, "prefix": prefix, "all": all})
        )
        return answer


class AsyncTapesWithRawResponse:
    """The methods of `AsyncTapes`, which return the response as it came."""

    def __init__(self, resource: AsyncTapes) -> None:
        self.create = raw(resource.create)
        self.list = raw(resource.list)
        self.delete_several = raw(resource.delete_several)


class AsyncAccumulator(AsyncItem[models.Accumulator]):
    """Sums of gradients of a session."""

    @property
    def with_raw_response(self) -> AsyncAccumulatorWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncAccumulatorWithRawResponse(self._with(self._options._replace(raw=True)))

    async def get(self, *, as_: Literal["sum", "mean"] | None = None) -> models.Accumulator:
        """Read an accumulator.

        Returns the sum of the gradients that were added with their weights, or their mean, and the numbers of
        batches. A question for gradients with `accumulate` creates it.

        Args:
            as_: Sum: of the gradients with their weights; mean: that divided by the weight.
        """
        answer: models.Accumulator = await self._send(
            Call("GET", self._path, models.Accumulator.read, query={"as": as_}, offers_file=True, has_full=True)
        )
        return answer

    async def delete(self) -> None:
        """Reset an accumulator.

        Forgets its sums and its batches: the next question that names it begins anew.
        """
        await self._send(Call("DELETE", self._path, None))


class AsyncAccumulatorWithRawResponse:
    """The methods of `AsyncAccumulator`, which return the response as it came."""

    def __init__(self, resource: AsyncAccumulator) -> None:
        self.get = raw(resource.get)
        self.delete = raw(resource.delete)


class AsyncAccumulators(AsyncCollection[AsyncAccumulator]):
    """The accumulators of a session."""

    _item = AsyncAccumulator

    @property
    def with_raw_response(self) -> AsyncAccumulatorsWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncAccumulatorsWithRawResponse(self._with(self._options._replace(raw=True)))

    async def list(self) -> models.AccumulatorList:
        """List the accumulators.

        Lists their ids, counts and weights.
        """
        answer: models.AccumulatorList = await self._send(Call("GET", self._path, models.AccumulatorList.read))
        return answer


class AsyncAccumulatorsWithRawResponse:
    """The methods of `AsyncAccumulators`, which return the response as it came."""

    def __init__(self, resource: AsyncAccumulators) -> None:
        self.list = raw(resource.list)


class AsyncFunction(AsyncItem[models.NewFunctionAnswer]):
    """A function of a session."""

    @property
    def with_raw_response(self) -> AsyncFunctionWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncFunctionWithRawResponse(self._with(self._options._replace(raw=True)))

    async def get(self) -> models.Function:
        """Get a function.

        Returns the function's inputs, steps and outputs.
        """
        answer: models.Function = await self._send(Call("GET", self._path, models.Function.read))
        return answer

    async def delete(self) -> None:
        """Delete a function.

        The tensors that it computed stay. A new one can have its id with `replace`.
        """
        await self._send(Call("DELETE", self._path, None))

    async def call(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        scratch: bool | None = None,
        keep: Sequence[str] | None = None,
        replace: bool | None = None,
        map: Mapping[str, int] | None = None,
        outputs: Sequence[str] | None = None,
        tape: Id | None = None,
        fetch: Id | Sequence[Id] | None = None,
        **named: Input,
    ) -> models.OpResults:
        """Call a function.

        Runs the function on tensors and variables. If `tape` is given, it records the function's ops. `values` are
        called as `fetch` calls them: by ids, or by the function's names of its outputs. Without `fetch` they have the
        ids in `outputs`; results that end with the request, and have no id of yours, have the function's names.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            scratch: Whether the results end with the request; `fetch` still returns them. Default: false.
            keep: Ids of results that stay; the others end with the request.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            outputs: An id for each result; without it the server generates them.
            tape: A tape that records the call, with its parents.
            fetch: Ids, or the function's names of outputs, to return in `values`; without it all results.
            **named: Inputs by their names.
        """
        answer: models.OpResults = await self._send(
            Call(
                "POST",
                f"{self._path}/call",
                models.OpResults.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "scratch": scratch,
                    "keep": keep,
                    "replace": replace,
                    "map": map,
                    "outputs": outputs,
                    "tape": tape,
                    "fetch": fetch,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def gradient(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        map: Mapping[str, int] | None = None,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        output_gradients: Sequence[Input | None] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
        fetch: str | Sequence[str] | None = None,
        per_example: params.PerExample | None = None,
        part: params.GradientPart | None = None,
        accumulate: params.Accumulate | None = None,
        numeric: bool | params.NumericSettings | None = None,
        remainder: str | None = None,
        **named: Input,
    ) -> models.FunctionDerivatives:
        """Compute a function's gradients.

        Computes the gradient of the targets' sum with respect to each source, for these inputs. This question and
        those below keep nothing in the session, except the derivatives that `outputs` names and what the function's
        steps assign to variables.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            targets: Names of outputs whose sum is differentiated; default: all.
            wrt: Names of inputs to differentiate by, or ids in `inputs`. Default: all inputs of floats.
            output_gradients: A weight for each target, of its shape; null: ones. In a map one for all entries, or a
                stack of them.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            outputs: Ids for the results, null for none; without it nothing is kept.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            fetch: Names of outputs to return in `values`; default: none.
            per_example: Clip the gradient of each example, and sum them, without all of them being there at a time.
            part: Answer a part of each gradient alone.
            accumulate: Add the gradients to an accumulator of the session, once for each number of a batch; they
                are not answered then.
            numeric: Compute the gradients by central differences, from the function's values alone. Default: false.
            remainder: With `part`: the rest of each gradient stays in the session's variable {remainder}.{source},
                and is added to the next gradient with this remainder.
            **named: Inputs by their names.
        """
        answer: models.FunctionDerivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/gradient",
                models.FunctionDerivatives.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "map": map,
                    "targets": targets,
                    "sources": wrt,
                    "output_gradients": output_gradients,
                    "unconnected": unconnected,
                    "outputs": outputs,
                    "replace": replace,
                    "fetch": fetch,
                    "per_example": per_example,
                    "part": part,
                    "accumulate": accumulate,
                    "numeric": numeric,
                    "remainder": remainder,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                function=self._path,
            )
        )
        return answer

    async def value_and_gradient(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        map: Mapping[str, int] | None = None,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        output_gradients: Sequence[Input | None] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
        fetch: str | Sequence[str] | None = None,
        per_example: params.PerExample | None = None,
        part: params.GradientPart | None = None,
        accumulate: params.Accumulate | None = None,
        numeric: bool | params.NumericSettings | None = None,
        remainder: str | None = None,
        **named: Input,
    ) -> models.FunctionDerivatives:
        """Compute a function's outputs and gradients.

        Computes the outputs, and the gradient of the targets' sum with respect to each source, in one pass.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            targets: Names of outputs whose sum is differentiated; default: all.
            wrt: Names of inputs to differentiate by, or ids in `inputs`. Default: all inputs of floats.
            output_gradients: A weight for each target, of its shape; null: ones. In a map one for all entries, or a
                stack of them.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            outputs: Ids for the results, null for none; without it nothing is kept.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            fetch: Names of outputs to return in `values`; default: all.
            per_example: Clip the gradient of each example, and sum them, without all of them being there at a time.
            part: Answer a part of each gradient alone.
            accumulate: Add the gradients to an accumulator of the session, once for each number of a batch; they
                are not answered then.
            numeric: Compute the gradients by central differences, from the function's values alone. Default: false.
            remainder: With `part`: the rest of each gradient stays in the session's variable {remainder}.{source},
                and is added to the next gradient with this remainder.
            **named: Inputs by their names.
        """
        answer: models.FunctionDerivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/value_and_gradient",
                models.FunctionDerivatives.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "map": map,
                    "targets": targets,
                    "sources": wrt,
                    "output_gradients": output_gradients,
                    "unconnected": unconnected,
                    "outputs": outputs,
                    "replace": replace,
                    "fetch": fetch,
                    "per_example": per_example,
                    "part": part,
                    "accumulate": accumulate,
                    "numeric": numeric,
                    "remainder": remainder,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                function=self._path,
            )
        )
        return answer

    async def jacobian(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        map: Mapping[str, int] | None = None,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        max_bytes: int | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
        fetch: str | Sequence[str] | None = None,
        **named: Input,
    ) -> models.FunctionDerivatives:
        """Compute a function's Jacobians.

        Computes the Jacobian of one output with respect to each source, in one batched backward pass.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            targets: The name of the output to differentiate; default: the only one.
            wrt: Names of inputs to differentiate by, or ids in `inputs`. Default: all inputs of floats.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            max_bytes: Most bytes for batched cotangents; without it 64 MiB, or what the session has left.
            outputs: Ids for the results, null for none; without it nothing is kept.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            fetch: Names of outputs to return in `values`; default: none.
            **named: Inputs by their names.
        """
        answer: models.FunctionDerivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/jacobian",
                models.FunctionDerivatives.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "map": map,
                    "targets": targets,
                    "sources": wrt,
                    "unconnected": unconnected,
                    "max_bytes": max_bytes,
                    "outputs": outputs,
                    "replace": replace,
                    "fetch": fetch,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                function=self._path,
            )
        )
        return answer

    async def hessian(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        map: Mapping[str, int] | None = None,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        max_bytes: int | None = None,
        outputs: Sequence[Sequence[str | None]] | None = None,
        replace: bool | None = None,
        fetch: str | Sequence[str] | None = None,
        **named: Input,
    ) -> models.FunctionHessian:
        """Compute a function's Hessian.

        Computes the second derivatives of the targets' sum, a block for each pair of sources.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            targets: Names of outputs whose sum is differentiated; default: all.
            wrt: Names of inputs to differentiate by, or ids in `inputs`. Default: all inputs of floats.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            max_bytes: Most bytes for batched cotangents; without it 64 MiB, or what the session has left.
            outputs: For each source a list with an id for each source, null for none.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            fetch: Names of outputs to return in `values`; default: none.
            **named: Inputs by their names.
        """
        answer: models.FunctionHessian = await self._send(
            Call(
                "POST",
                f"{self._path}/hessian",
                models.FunctionHessian.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "map": map,
                    "targets": targets,
                    "sources": wrt,
                    "unconnected": unconnected,
                    "max_bytes": max_bytes,
                    "outputs": outputs,
                    "replace": replace,
                    "fetch": fetch,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                function=self._path,
            )
        )
        return answer

    async def hvp(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        vectors: Sequence[Input],
        map: Mapping[str, int] | None = None,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        output_gradients: Sequence[Input | None] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
        fetch: str | Sequence[str] | None = None,
        **named: Input,
    ) -> models.FunctionDerivatives:
        """Compute a function's Hessian-vector products.

        Computes the Hessian of the targets' sum times a vector at the cost of two gradients.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            vectors: The vector's part for each source, of its shape.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            targets: Names of outputs whose sum is differentiated; default: all.
            wrt: Names of inputs to differentiate by, or ids in `inputs`. Default: all inputs of floats.
            output_gradients: A weight for each target, of its shape; null: ones. In a map one for all entries, or a
                stack of them.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            outputs: Ids for the results, null for none; without it nothing is kept.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            fetch: Names of outputs to return in `values`; default: none.
            **named: Inputs by their names.
        """
        answer: models.FunctionDerivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/hvp",
                models.FunctionDerivatives.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "vectors": vectors,
                    "map": map,
                    "targets": targets,
                    "sources": wrt,
                    "output_gradients": output_gradients,
                    "unconnected": unconnected,
                    "outputs": outputs,
                    "replace": replace,
                    "fetch": fetch,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                function=self._path,
            )
        )
        return answer

    async def sparse_jacobian(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        format: Literal["coo", "csr"] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        max_bytes: int | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
        fetch: str | Sequence[str] | None = None,
        **named: Input,
    ) -> models.FunctionSparseDerivative:
        """Compute a function's sparse Jacobian.

        Computes the elements of a Jacobian that may differ from zero, as COO or CSR, in few products with vectors.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            targets: The name of the output to differentiate; default: the only one.
            wrt: The name of the input to differentiate by, or an id in `inputs`. Default: the only input of floats.
            format: Coo: row and column of each entry; csr: where each row begins, and the column of each entry.
                Default: "coo".
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            max_bytes: Most bytes for products that are computed together; without it 16 MiB.
            outputs: Ids to keep the parts under, null for none: rows (coo) or row starts (csr), columns, values.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            fetch: Names of outputs to return in `values`; default: none.
            **named: Inputs by their names.
        """
        answer: models.FunctionSparseDerivative = await self._send(
            Call(
                "POST",
                f"{self._path}/sparse_jacobian",
                models.FunctionSparseDerivative.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "targets": targets,
                    "sources": wrt,
                    "format": format,
                    "unconnected": unconnected,
                    "max_bytes": max_bytes,
                    "outputs": outputs,
                    "replace": replace,
                    "fetch": fetch,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                function=self._path,
            )
        )
        return answer

    async def sparse_hessian(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        format: Literal["coo", "csr"] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        max_bytes: int | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
        fetch: str | Sequence[str] | None = None,
        **named: Input,
    ) -> models.FunctionSparseDerivative:
        """Compute a function's sparse Hessian.

        Computes the second derivatives that may differ from zero, as COO or CSR, in few Hessian-vector products.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            targets: Names of outputs whose sum is differentiated; default: all.
            wrt: The name of the input to differentiate by, or an id in `inputs`. Default: the only input of floats.
            format: Coo: row and column of each entry; csr: where each row begins, and the column of each entry.
                Default: "coo".
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            max_bytes: Most bytes for products that are computed together; without it 16 MiB.
            outputs: Ids to keep the parts under, null for none: rows (coo) or row starts (csr), columns, values.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            fetch: Names of outputs to return in `values`; default: none.
            **named: Inputs by their names.
        """
        answer: models.FunctionSparseDerivative = await self._send(
            Call(
                "POST",
                f"{self._path}/sparse_hessian",
                models.FunctionSparseDerivative.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "targets": targets,
                    "sources": wrt,
                    "format": format,
                    "unconnected": unconnected,
                    "max_bytes": max_bytes,
                    "outputs": outputs,
                    "replace": replace,
                    "fetch": fetch,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                function=self._path,
            )
        )
        return answer

    async def vjp(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        output_gradients: Sequence[Input | None],
        map: Mapping[str, int] | None = None,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
        fetch: str | Sequence[str] | None = None,
        per_example: params.PerExample | None = None,
        part: params.GradientPart | None = None,
        accumulate: params.Accumulate | None = None,
        numeric: bool | params.NumericSettings | None = None,
        remainder: str | None = None,
        **named: Input,
    ) -> models.FunctionDerivatives:
        """Compute a function's vector-Jacobian products.

        Computes the output gradients times the Jacobian, with respect to each source, in one backward pass.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            output_gradients: A weight for each target, of its shape; null: ones. In a map one for all entries, or a
                stack of them.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            targets: Names of outputs whose sum is differentiated; default: all.
            wrt: Names of inputs to differentiate by, or ids in `inputs`. Default: all inputs of floats.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            outputs: Ids for the results, null for none; without it nothing is kept.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            fetch: Names of outputs to return in `values`; default: none.
            per_example: Clip the gradient of each example, and sum them, without all of them being there at a time.
            part: Answer a part of each gradient alone.
            accumulate: Add the gradients to an accumulator of the session, once for each number of a batch; they
                are not answered then.
            numeric: Compute the gradients by central differences, from the function's values alone. Default: false.
            remainder: With `part`: the rest of each gradient stays in the session's variable {remainder}.{source},
                and is added to the next gradient with this remainder.
            **named: Inputs by their names.
        """
        answer: models.FunctionDerivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/vjp",
                models.FunctionDerivatives.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "output_gradients": output_gradients,
                    "map": map,
                    "targets": targets,
                    "sources": wrt,
                    "unconnected": unconnected,
                    "outputs": outputs,
                    "replace": replace,
                    "fetch": fetch,
                    "per_example": per_example,
                    "part": part,
                    "accumulate": accumulate,
                    "numeric": numeric,
                    "remainder": remainder,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                function=self._path,
            )
        )
        return answer

    async def jvp(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        tangents: Sequence[Input],
        map: Mapping[str, int] | None = None,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        vectors: Sequence[Input] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        outputs: Sequence[str | None] | None = None,
        replace: bool | None = None,
        fetch: str | Sequence[str] | None = None,
        **named: Input,
    ) -> models.FunctionTangents:
        """Compute a function's Jacobian-vector products.

        Computes the derivative of each target along the tangents, in forward mode: in one pass, without a tape.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            tangents: The direction of each source, of its shape.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            targets: Names of outputs to differentiate; default: all.
            wrt: Names of inputs to differentiate by, or ids in `inputs`. Default: all inputs of floats.
            vectors: With them: the derivative along these vectors of the derivative along the tangents.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            outputs: Ids for the results, null for none; without it nothing is kept.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            fetch: Names of outputs to return in `values`; default: none.
            **named: Inputs by their names.
        """
        answer: models.FunctionTangents = await self._send(
            Call(
                "POST",
                f"{self._path}/jvp",
                models.FunctionTangents.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "tangents": tangents,
                    "map": map,
                    "targets": targets,
                    "sources": wrt,
                    "vectors": vectors,
                    "unconnected": unconnected,
                    "outputs": outputs,
                    "replace": replace,
                    "fetch": fetch,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                function=self._path,
            )
        )
        return answer

    async def explain(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        **named: Input,
    ) -> models.Explanations:
        """Explain a function's gradients.

        Explains why a gradient is null, zero or not finite for these inputs: the reason, the op, and what to do.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            targets: Names of outputs whose sum is differentiated; default: all.
            wrt: Names of inputs to differentiate by, or ids in `inputs`. Default: all inputs.
            **named: Inputs by their names.
        """
        answer: models.Explanations = await self._send(
            Call(
                "POST",
                f"{self._path}/explain",
                models.Explanations.read,
                fields={"inputs": inputs_of(inputs, named), "targets": targets, "sources": wrt},
                takes_file=True,
                function=self._path,
            )
        )
        return answer

    async def check_gradients(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        settings: params.CheckSettings | None = None,
        **named: Input,
    ) -> models.CheckReport:
        """Check a function's gradients.

        Compares the gradients with finite differences. The status is 200 in both cases: read `agrees` and `worst`.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            settings: How to compare derivatives with finite differences.
            **named: Inputs by their names.
        """
        answer: models.CheckReport = await self._send(
            Call(
                "POST",
                f"{self._path}/check_gradients",
                models.CheckReport.read,
                fields={"inputs": inputs_of(inputs, named), "settings": settings},
                takes_file=True,
                function=self._path,
            )
        )
        return answer

    async def while_(
        self,
        inputs: Sequence[Input],
        cond: str | params.InlineFunction,
        *,
        scratch: bool | None = None,
        keep: Sequence[str] | None = None,
        replace: bool | None = None,
        captured: int | None = None,
        outputs: Sequence[str] | None = None,
        tape: Id | None = None,
        fetch: Id | Sequence[Id] | None = None,
        maximum_iterations: int | None = None,
    ) -> models.OpResults:
        """Run a function in a while loop.

        Calls the function on its own results while a condition holds: a thousand iterations are one request. The
        results have the shapes and dtypes of the inputs. Send `Accept: text/event-stream` to watch the progress; POST
        /cancel stops the loop between two iterations.

        Args:
            inputs: An id, a tensor or a number.
            cond: A function of the same inputs that returns a scalar bool or integer: its id or its steps.
            scratch: Whether the results end with the request; `fetch` still returns them. Default: false.
            keep: Ids of results that stay; the others end with the request.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            captured: Number of inputs, the last ones, that are the same in every iteration. Default: 0.
            outputs: An id for each result; without it the server generates them.
            tape: A tape that records the loop, with its parents.
            fetch: Ids to return in `values`; without it all results.
            maximum_iterations: Most iterations; without it no limit.
        """
        answer: models.OpResults = await self._send(
            Call(
                "POST",
                f"{self._path}/while",
                models.OpResults.read,
                fields={
                    "inputs": inputs,
                    "cond": cond,
                    "scratch": scratch,
                    "keep": keep,
                    "replace": replace,
                    "captured": captured,
                    "outputs": outputs,
                    "tape": tape,
                    "fetch": fetch,
                    "maximum_iterations": maximum_iterations,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def scan(
        self,
        inputs: Sequence[Input],
        *,
        scratch: bool | None = None,
        keep: Sequence[str] | None = None,
        replace: bool | None = None,
        captured: int | None = None,
        outputs: Sequence[str] | None = None,
        tape: Id | None = None,
        fetch: Id | Sequence[Id] | None = None,
        carried: int | None = None,
        reverse: bool | None = None,
        length: int | None = None,
    ) -> models.OpResults:
        """Run a function over elements.

        Calls the function once for each element along axis 0: a map, a fold or a scan, depending on what it carries.

        Args:
            inputs: An id, a tensor or a number.
            scratch: Whether the results end with the request; `fetch` still returns them. Default: false.
            keep: Ids of results that stay; the others end with the request.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            captured: Number of inputs, the last ones, that are the same in every iteration. Default: 0.
            outputs: An id for each result; without it the server generates them.
            tape: A tape that records the loop, with its parents.
            fetch: Ids to return in `values`; without it all results.
            carried: Number of inputs, the first ones, that the first results replace each time. Default: 0.
            reverse: Whether to begin with the last element. Default: false.
            length: Iterations, if no input has elements.
        """
        answer: models.OpResults = await self._send(
            Call(
                "POST",
                f"{self._path}/scan",
                models.OpResults.read,
                fields={
                    "inputs": inputs,
                    "scratch": scratch,
                    "keep": keep,
                    "replace": replace,
                    "captured": captured,
                    "outputs": outputs,
                    "tape": tape,
                    "fetch": fetch,
                    "carried": carried,
                    "reverse": reverse,
                    "length": length,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def train(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        optimizer: params.OptimizerSettings,
        variables: Sequence[str] | None = None,
        loss: str | None = None,
        batches: Sequence[Mapping[str, Input]] | None = None,
        data: Mapping[str, Input] | None = None,
        batch_size: int | None = None,
        drop_remainder: bool | None = None,
        shuffle: int | None = None,
        epochs: int | None = None,
        steps: int | None = None,
        fetch: Id | Sequence[Id] | None = None,
        **named: Input,
    ) -> AsyncRunning[models.TrainingAnswer]:
        """Train variables.

        Minimizes one of the function's outputs: each step computes the gradients and changes the variables. Send
        `Accept: text/event-stream` to watch steps and loss. POST /cancel stops it between two steps: the variables
        keep what whole steps have assigned.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            optimizer: How gradients change variables: formulas and defaults are those of Keras 3. A setting is
                refused elsewhere.
            variables: Names of inputs, or ids of variables, to train. Default: the trainable variables among
                `inputs`.
            loss: The name of the output to minimize; default: the only one.
            batches: For each step the inputs that differ, by name: tensors of the same shapes and dtypes.
            data: By name: whole tensors, of which each step takes rows along axis 0.
            batch_size: Rows of `data` in a step; default: all.
            drop_remainder: Whether to leave out the rows of an epoch that do not fill a batch. Default: false.
            shuffle: A seed: each epoch takes the rows or batches in another order.
            epochs: How often to take all batches; default: once.
            steps: Number of steps, in place of `epochs`.
            fetch: Ids to return in `values`, as they are at the end.
            **named: Inputs by their names.

        Returns:
            An iterator of the progress; its `result()` is the answer.
        """
        answer: AsyncRunning[models.TrainingAnswer] = await self._begin(
            Call(
                "POST",
                f"{self._path}/train",
                models.TrainingAnswer.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "optimizer": optimizer,
                    "variables": variables,
                    "loss": loss,
                    "batches": batches,
                    "data": data,
                    "batch_size": batch_size,
                    "drop_remainder": drop_remainder,
                    "shuffle": shuffle,
                    "epochs": epochs,
                    "steps": steps,
                    "fetch": fetch,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
            )
        )
        return answer


class AsyncFunctionWithRawResponse:
    """The methods of `AsyncFunction`, which return the response as it came."""

    def __init__(self, resource: AsyncFunction) -> None:
        self.get = raw(resource.get)
        self.delete = raw(resource.delete)
        self.call = raw(resource.call)
        self.gradient = raw(resource.gradient)
        self.value_and_gradient = raw(resource.value_and_gradient)
        self.jacobian = raw(resource.jacobian)
        self.hessian = raw(resource.hessian)
        self.hvp = raw(resource.hvp)
        self.sparse_jacobian = raw(resource.sparse_jacobian)
        self.sparse_hessian = raw(resource.sparse_hessian)
        self.vjp = raw(resource.vjp)
        self.jvp = raw(resource.jvp)
        self.explain = raw(resource.explain)
        self.check_gradients = raw(resource.check_gradients)
        self.while_ = raw(resource.while_)
        self.scan = raw(resource.scan)


class AsyncFunctions(AsyncCollection[AsyncFunction]):
    """The functions of a session."""

    _item = AsyncFunction

    @property
    def with_raw_response(self) -> AsyncFunctionsWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncFunctionsWithRawResponse(self._with(self._options._replace(raw=True)))

    async def create(
        self,
        *,
        dtype: Literal["float16", "bfloat16", "float32", "float64"] | None = None,
        id: str | None = None,
        replace: bool | None = None,
        text: str | None = None,
        inputs: Sequence[str] | None = None,
        steps: Sequence[params.Step] | None = None,
        outputs: Sequence[str] | None = None,
    ) -> AsyncFunction:
        """Create a function.

        A function is a list of steps on named inputs: ops, assignments, calls of other functions, loops, conditions.
        With `text` the steps come from formulas, as those of `POST /v1/expressions`. The server checks names, ops and
        attributes now, and shapes when the function is called.

        Args:
            dtype: Of numbers without a dtype that meet no tensor; default: the session's, or float32.
            id: An id of your choice; ids that the server generates begin with _.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            text: Formulas as POST /v1/expressions takes them, in place of `inputs` and `steps`.
            inputs: Names; without `text` they are needed.
            steps: In order; without `text` they are needed.
            outputs: Names of inputs or results of steps; default with `text`: the names that no other line uses;
                what is not needed for them is left out.
        """
        answer: AsyncFunction = await self._send(
            Call(
                "POST",
                self._path,
                self._created(models.NewFunctionAnswer.read),
                fields={
                    "dtype": dtype,
                    "id": id,
                    "replace": replace,
                    "text": text,
                    "inputs": inputs,
                    "steps": steps,
                    "outputs": outputs,
                },
                takes_file=True,
            )
        )
        return answer

    async def list(
        self, *, limit: int | None = None, after: str | None = None, prefix: str | None = None
    ) -> models.FunctionList:
        """List the functions.

        Lists the session's functions with their steps.

        Args:
            limit: Most items; without it all.
            after: Continue after this item: `next` of the page before.
            prefix: Only those whose id begins with this text.
        """
        answer: models.FunctionList = await self._send(
            Call("GET", self._path, models.FunctionList.read, query={"limit": limit, "after": after, "prefix": prefix})
        )
        return answer

    async def delete_several(
        self, *, id: Sequence[str] | None = None, prefix: str | None = None, all: bool | None = None
    ) -> models.Deleted:
        """Delete several functions.

        Deletes those named by `id`, or those that the filters select, or all.

        Args:
            id: Ids, the parameter repeated; those that name nothing are skipped.
            prefix: Only those whose id begins with this text.
            all: All of them.
        """
        answer: models.Deleted = await self._send(
            Call("DELETE", self._path, models.Deleted.read, query={"id": id, "prefix": prefix, "all": all})
        )
        return answer


class AsyncFunctionsWithRawResponse:
    """The methods of `AsyncFunctions`, which return the response as it came."""

    def __init__(self, resource: AsyncFunctions) -> None:
        self.create = raw(resource.create)
        self.list = raw(resource.list)
        self.delete_several = raw(resource.delete_several)


class AsyncSession(AsyncContext[models.Session]):
    """A session: what it holds stays on the server until it ends. As a context it ends after the block."""

    @property
    def variables(self) -> AsyncVariables:
        """The variables."""
        return AsyncVariables(self._connection, self._options, f"{self._path}/variables")

    @property
    def tensors(self) -> AsyncTensors:
        """The tensors."""
        return AsyncTensors(self._connection, self._options, f"{self._path}/tensors")

    @property
    def tapes(self) -> AsyncTapes:
        """The tapes."""
        return AsyncTapes(self._connection, self._options, f"{self._path}/tapes")

    @property
    def functions(self) -> AsyncFunctions:
        """The functions."""
        return AsyncFunctions(self._connection, self._options, f"{self._path}/functions")

    @property
    def accumulators(self) -> AsyncAccumulators:
        """The accumulators."""
        return AsyncAccumulators(self._connection, self._options, f"{self._path}/accumulators")

    @property
    def with_raw_response(self) -> AsyncSessionWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncSessionWithRawResponse(self._with(self._options._replace(raw=True)))

    async def extend(self, seconds: float) -> models.Session:
        """Extend a session.

        Keeps the session for at least `seconds` from now, idle or not, up to the server's maximum age.

        Args:
            seconds: From now on, idle or not.
        """
        answer: models.Session = await self._send(
            Call("POST", f"{self._path}/extend", models.Session.read, fields={"seconds": seconds})
        )
        return answer

    async def cancel(self, *, client: int | None = None, seq: int | None = None) -> models.Session:
        """Cancel running work.

        Stops running and waiting requests before their next step; they fail with `cancelled`. A step is a command, an
        iteration of a loop, or some ops of a function, a gradient or a check. With `client` and `seq` one batch is
        stopped, a frame, and no other request; one that does not run is not looked for.

        Args:
            client: Of a client's batch, which is stopped alone: its number.
            seq: The batch's number in the client's sequence.
        """
        answer: models.Session = await self._send(
            Call(
                "POST", f"{self._path}/cancel", models.Session.read, query={"client": client, "seq": seq}, is_work=False
            )
        )
        return answer

    async def park(self) -> models.Session:
        """Park a session.

        Writes down what the session has, and ends its process; the next request starts another one. Nothing is lost.
        What runs or waits is finished before; if that takes longer than the server's patience, nothing is done:
        `busy`. A session without a process that has a log to run gets one for that. A session of which nothing
        outlives its process (durability `none`) stays as it is.
        """
        answer: models.Session = await self._send(
            Call("POST", f"{self._path}/park", models.Session.read, is_work=False)
        )
        return answer

    async def run_ops(
        self,
        ops: Sequence[params.OpCall],
        *,
        scratch: bool | None = None,
        keep: Sequence[str] | None = None,
        replace: bool | None = None,
        fetch: Id | Sequence[Id] | None = None,
    ) -> models.OpResults:
        """Run ops without a tape.

        Runs ops in order. If one fails, the results of those before it stay, and the ids of the rest stay free.

        Args:
            ops: One call of an op.
            scratch: Whether the results end with the request; `fetch` still returns them. Default: false.
            keep: Ids of results that stay; the others end with the request.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            fetch: Ids to return in `values`; without it the last result's.
        """
        answer: models.OpResults = await self._send(
            Call(
                "POST",
                f"{self._path}/ops",
                models.OpResults.read,
                fields={"ops": ops, "scratch": scratch, "keep": keep, "replace": replace, "fetch": fetch},
                takes_file=True,
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def run(
        self,
        commands: Sequence[params.Command],
        *,
        scratch: bool | None = None,
        keep: Sequence[str] | None = None,
        replace: bool | None = None,
        dtype: Literal["float16", "bfloat16", "float32", "float64"] | None = None,
        tensors: Mapping[str, TensorInput] | None = None,
        fetch: Id | Sequence[Id] | None = None,
    ) -> models.SessionRunAnswer:
        """Run commands in a session.

        Runs the commands of a batch, such as a step of a training loop, and returns the values of `fetch`. What the
        commands create stays, or ends with the request (`scratch`, `keep`). Tapes are paused afterwards. If a command
        fails, those before it stay done.

        Args:
            commands: One command; `do` names it.
            scratch: Whether the results end with the request; `fetch` still returns them. Default: false.
            keep: Ids of results that stay; the others end with the request.
            replace: Whether new ids may be in use or released: they then name the new thing, if of the same kind.
                Default: false.
            dtype: Of numbers without a dtype that meet no tensor; default: the session's, or float32.
            tensors: Tensors to create before the commands, by id.
            fetch: Ids to return in `values`.
        """
        answer: models.SessionRunAnswer = await self._send(
            Call(
                "POST",
                f"{self._path}/run",
                models.SessionRunAnswer.read,
                fields={
                    "commands": commands,
                    "scratch": scratch,
                    "keep": keep,
                    "replace": replace,
                    "dtype": dtype,
                    "tensors": tensors,
                    "fetch": fetch,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
            )
        )
        return answer

    async def get(self, *, client: int | None = None) -> models.Session:
        """Get a session.

        Returns the session's device, memory, end and running work. This request does not keep an idle session alive.

        Args:
            client: Whose newest batch `running.wait` is about.
        """
        answer: models.Session = await self._send(
            Call("GET", self._path, models.Session.read, query={"client": client}, is_work=False)
        )
        return answer

    async def delete(self) -> None:
        """Delete a session.

        Ends the session and frees its memory; its unanswered requests fail with `session_ended`.
        """
        await self._send(Call("DELETE", self._path, None, is_work=False))


class AsyncSessionWithRawResponse:
    """The methods of `AsyncSession`, which return the response as it came."""

    def __init__(self, resource: AsyncSession) -> None:
        self.extend = raw(resource.extend)
        self.cancel = raw(resource.cancel)
        self.park = raw(resource.park)
        self.run_ops = raw(resource.run_ops)
        self.run = raw(resource.run)
        self.get = raw(resource.get)
        self.delete = raw(resource.delete)


class AsyncSessions(AsyncWatched, AsyncCollection[AsyncSession]):
    """Your sessions."""

    _item = AsyncSession

    @property
    def with_raw_response(self) -> AsyncSessionsWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncSessionsWithRawResponse(self._with(self._options._replace(raw=True)))

    async def create(
        self,
        *,
        id: str | None = None,
        device: str | None = None,
        memory_limit: int | None = None,
        dtype: Literal["float16", "bfloat16", "float32", "float64"] | None = None,
        replace: bool | None = None,
        dedicated: bool | None = None,
        durability: Literal["none", "journal", "journal-sync"] | None = None,
    ) -> AsyncSession:
        """Create a session.

        Creates a session (201), or returns the existing one with the same id, device, memory limit and dtype (200).
        With `replace`, an existing session with this id is ended first. With an Idempotency-Key, a retry of this
        request creates nothing and ends nothing.

        Args:
            id: Your name for the session; without it the server generates one that begins with _.
            device: Cpu, gpu:N, gpu (any), or auto: a GPU if there is one, else the CPU.
            memory_limit: Bytes that its arrays and other objects may take.
            dtype: Of numbers that are sent without a dtype and meet no tensor. Default: "float32".
            replace: End an existing session with this id first. Default: false.
            dedicated: On a GPU: a process of its own, which no other session can end or delay. Default: false.
            durability: What outlives its process: nothing; all that was answered, after a power cut up to 50 ms
                less; all that was answered. Without it the server's default.
        """
        answer: AsyncSession = await self._send(
            Call(
                "POST",
                self._path,
                self._created(models.Session.read),
                fields={
                    "id": id,
                    "device": device,
                    "memory_limit": memory_limit,
                    "dtype": dtype,
                    "replace": replace,
                    "dedicated": dedicated,
                    "durability": durability,
                },
            )
        )
        return answer

    async def list(
        self, *, limit: int | None = None, after: str | None = None, prefix: str | None = None
    ) -> models.SessionList:
        """List your sessions.

        Lists live sessions; for an admin those of all keys. GET an ended session's URL to learn why it ended. With
        `Accept: text/event-stream` the answer is events: `sessions` with all of them, then `session` for each that is
        new or has changed (memory, progress of the running request, end) and `ended`, until you close it. The number
        of such streams is limited: `busy`.

        Args:
            limit: Most items; without it all.
            after: Continue after this item: `next` of the page before.
            prefix: Only those whose id begins with this text.
        """
        answer: models.SessionList = await self._send(
            Call(
                "GET",
                self._path,
                models.SessionList.read,
                query={"limit": limit, "after": after, "prefix": prefix},
                is_work=False,
            )
        )
        return answer

    async def delete_several(
        self, *, id: Sequence[str] | None = None, prefix: str | None = None, all: bool | None = None
    ) -> models.DeletedSessions:
        """End several sessions.

        Ends those named by `id`, those whose id begins with `prefix`, or all. Unanswered requests are cancelled.

        Args:
            id: Ids, the parameter repeated; those that name nothing are skipped.
            prefix: Only those whose id begins with this text.
            all: All of them.
        """
        answer: models.DeletedSessions = await self._send(
            Call(
                "DELETE",
                self._path,
                models.DeletedSessions.read,
                query={"id": id, "prefix": prefix, "all": all},
                is_work=False,
            )
        )
        return answer


class AsyncSessionsWithRawResponse:
    """The methods of `AsyncSessions`, which return the response as it came."""

    def __init__(self, resource: AsyncSessions) -> None:
        self.create = raw(resource.create)
        self.list = raw(resource.list)
        self.delete_several = raw(resource.delete_several)


class AsyncPublishedFunction(AsyncItem[models.PublishedFunction]):
    """A published function: it is called without a session."""

    @property
    def with_raw_response(self) -> AsyncPublishedFunctionWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncPublishedFunctionWithRawResponse(self._with(self._options._replace(raw=True)))

    async def publish(
        self,
        function: str | params.NewFunction,
        inputs: Mapping[str, params.InputDeclaration],
        *,
        weights: Mapping[str, Input] | None = None,
        visibility: Literal["me", "group", "everybody"] | None = None,
        group: Sequence[str] | None = None,
        description: str | None = None,
        examples: Sequence[params.PublishedExample] | None = None,
        session: str | None = None,
    ) -> models.PublishedFunction:
        """Publish a function.

        Publishes a version of a function under a name: whoever may see it can call it, without a session. A version
        is named by a hash of its content: the same function, inputs and weights are the same version again. What the
        body says of visibility and description is from now on that of the name. Examples are computed, compared with
        the outputs that they have, and stored; the gradients at the first one are compared with finite differences. A
        body of the type application/vnd.safetensors has the weights as tensors `weights/NAME`, or is the export of a
        version.

        Args:
            function: As POST /functions takes it; or the name of one in the session that the query names.
            inputs: What a caller gives, by name.
            weights: The function's other inputs, by name: tensors, or ids of variables and tensors in the session.
            visibility: Who may see and call it: your key, also those in `group`, or every key. Default: "me".
            group: Names of API keys.
            description: For people.
            examples: Inputs, and the outputs that they have to give.
            session: The session whose function, variables and tensors the body names.
        """
        answer: models.PublishedFunction = await self._send(
            Call(
                "PUT",
                self._path,
                models.PublishedFunction.read,
                fields={
                    "function": function,
                    "inputs": inputs,
                    "weights": weights,
                    "visibility": visibility,
                    "group": group,
                    "description": description,
                    "examples": examples,
                },
                query={"session": session},
                takes_file=True,
                is_work=False,
            )
        )
        return answer

    async def get(self) -> models.PublishedFunction:
        """Get a published function.

        Returns whose it is, its versions' aliases, and the inputs, outputs, weights and examples of one version.
        """
        answer: models.PublishedFunction = await self._send(
            Call("GET", self._path, models.PublishedFunction.read, is_work=False)
        )
        return answer

    async def delete(self) -> None:
        """Delete a published function.

        Deletes it with its versions; of `name@version` that version alone. Calls that run are answered.
        """
        await self._send(Call("DELETE", self._path, None, is_work=False))

    async def versions(self) -> models.PublishedVersions:
        """List the versions of a published function.

        Lists the versions, the oldest first.
        """
        answer: models.PublishedVersions = await self._send(
            Call("GET", f"{self._path}/versions", models.PublishedVersions.read, is_work=False)
        )
        return answer

    async def ready(self) -> models.PublishedReady:
        """Wait until a published function is loaded.

        Answers as soon as a process has loaded the version: a call then waits for nothing but other calls.
        """
        answer: models.PublishedReady = await self._send(
            Call("GET", f"{self._path}/ready", models.PublishedReady.read, is_work=False)
        )
        return answer

    async def alias(self, alias: str, version: str) -> models.PublishedFunction:
        """Name a version.

        Makes an alias name a version from now on, so that callers of `name@alias` get it; `latest` is set by itself.

        Args:
            alias: A name of a version, such as stable.
            version: A version, or another alias, whose version is taken now.
        """
        answer: models.PublishedFunction = await self._send(
            Call(
                "PUT",
                f"{self._path}/aliases/{quoted(alias)}",
                models.PublishedFunction.read,
                fields={"version": version},
                is_work=False,
            )
        )
        return answer

    async def call(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        map: Mapping[str, int] | None = None,
        fetch: str | Sequence[str] | None = None,
        exact: bool | None = None,
        **named: Input,
    ) -> models.PublishedOpResults:
        """Call a published function.

        Computes the outputs, or those that `fetch` names. Calls of several callers may be computed together: `batch`
        says how it was.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            fetch: Names of outputs to return in `values`; default: all where the question is for the outputs, else
                none.
            exact: Compute this call by itself, so that no other call changes its last bits. Default: false.
            **named: Inputs by their names.
        """
        answer: models.PublishedOpResults = await self._send(
            Call(
                "POST",
                f"{self._path}/call",
                models.PublishedOpResults.read,
                fields={"inputs": inputs_of(inputs, named), "map": map, "fetch": fetch, "exact": exact},
                takes_file=True,
                offers_file=True,
                has_full=True,
                is_work=False,
            )
        )
        return answer

    async def value_and_gradient(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        map: Mapping[str, int] | None = None,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        output_gradients: Sequence[TensorInput | None] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        fetch: str | Sequence[str] | None = None,
        per_example: params.PerExample | None = None,
        part: params.GradientPart | None = None,
        numeric: bool | params.NumericSettings | None = None,
        exact: bool | None = None,
        **named: Input,
    ) -> models.PublishedFunctionDerivatives:
        """Compute a published function's outputs and gradients.

        Computes the outputs, and the gradient of the targets' sum with respect to each source, in one pass. Calls of
        several callers may be computed together: `batch` says how it was.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            targets: Names of outputs whose sum is differentiated; default: all.
            wrt: Inputs or weights to differentiate by; default: all declared inputs of floats.
            output_gradients: A weight for each target, of its shape; null: ones.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            fetch: Names of outputs to return in `values`; default: all where the question is for the outputs, else
                none.
            per_example: Clip the gradient of each example, and sum them, without all of them being there at a time.
            part: Answer a part of each gradient alone.
            numeric: Compute the gradients by central differences, from the function's values alone. Default: false.
            exact: Compute this call by itself, so that no other call changes its last bits. Default: false.
            **named: Inputs by their names.
        """
        answer: models.PublishedFunctionDerivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/value_and_gradient",
                models.PublishedFunctionDerivatives.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "map": map,
                    "targets": targets,
                    "sources": wrt,
                    "output_gradients": output_gradients,
                    "unconnected": unconnected,
                    "fetch": fetch,
                    "per_example": per_example,
                    "part": part,
                    "numeric": numeric,
                    "exact": exact,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                is_work=False,
            )
        )
        return answer

    async def gradient(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        map: Mapping[str, int] | None = None,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        output_gradients: Sequence[TensorInput | None] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        fetch: str | Sequence[str] | None = None,
        per_example: params.PerExample | None = None,
        part: params.GradientPart | None = None,
        numeric: bool | params.NumericSettings | None = None,
        exact: bool | None = None,
        **named: Input,
    ) -> models.PublishedFunctionDerivatives:
        """Compute a published function's gradients.

        Computes the gradient of the targets' sum with respect to each source. Calls of several callers may be
        computed together: `batch` says how it was.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            targets: Names of outputs whose sum is differentiated; default: all.
            wrt: Inputs or weights to differentiate by; default: all declared inputs of floats.
            output_gradients: A weight for each target, of its shape; null: ones.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            fetch: Names of outputs to return in `values`; default: all where the question is for the outputs, else
                none.
            per_example: Clip the gradient of each example, and sum them, without all of them being there at a time.
            part: Answer a part of each gradient alone.
            numeric: Compute the gradients by central differences, from the function's values alone. Default: false.
            exact: Compute this call by itself, so that no other call changes its last bits. Default: false.
            **named: Inputs by their names.
        """
        answer: models.PublishedFunctionDerivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/gradient",
                models.PublishedFunctionDerivatives.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "map": map,
                    "targets": targets,
                    "sources": wrt,
                    "output_gradients": output_gradients,
                    "unconnected": unconnected,
                    "fetch": fetch,
                    "per_example": per_example,
                    "part": part,
                    "numeric": numeric,
                    "exact": exact,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                is_work=False,
            )
        )
        return answer

    async def vjp(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        output_gradients: Sequence[TensorInput | None],
        map: Mapping[str, int] | None = None,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        fetch: str | Sequence[str] | None = None,
        per_example: params.PerExample | None = None,
        part: params.GradientPart | None = None,
        numeric: bool | params.NumericSettings | None = None,
        exact: bool | None = None,
        **named: Input,
    ) -> models.PublishedFunctionDerivatives:
        """Compute a published function's vector-Jacobian products.

        Computes the output gradients times the Jacobian, with respect to each source. Calls of several callers may be
        computed together: `batch` says how it was.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            output_gradients: A weight for each target, of its shape; null: ones.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            targets: Names of outputs whose sum is differentiated; default: all.
            wrt: Inputs or weights to differentiate by; default: all declared inputs of floats.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            fetch: Names of outputs to return in `values`; default: all where the question is for the outputs, else
                none.
            per_example: Clip the gradient of each example, and sum them, without all of them being there at a time.
            part: Answer a part of each gradient alone.
            numeric: Compute the gradients by central differences, from the function's values alone. Default: false.
            exact: Compute this call by itself, so that no other call changes its last bits. Default: false.
            **named: Inputs by their names.
        """
        answer: models.PublishedFunctionDerivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/vjp",
                models.PublishedFunctionDerivatives.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "output_gradients": output_gradients,
                    "map": map,
                    "targets": targets,
                    "sources": wrt,
                    "unconnected": unconnected,
                    "fetch": fetch,
                    "per_example": per_example,
                    "part": part,
                    "numeric": numeric,
                    "exact": exact,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                is_work=False,
            )
        )
        return answer

    async def jvp(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        tangents: Sequence[TensorInput],
        map: Mapping[str, int] | None = None,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        vectors: Sequence[TensorInput] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        fetch: str | Sequence[str] | None = None,
        exact: bool | None = None,
        **named: Input,
    ) -> models.PublishedFunctionTangents:
        """Compute a published function's Jacobian-vector products.

        Computes the derivative of each target along the tangents, in forward mode. Calls of several callers may be
        computed together: `batch` says how it was.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            tangents: The direction of each source, of its shape.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            targets: Names of outputs to differentiate; default: all.
            wrt: Inputs or weights to differentiate by; default: all declared inputs of floats.
            vectors: The vector's part for each source, of its shape.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            fetch: Names of outputs to return in `values`; default: all where the question is for the outputs, else
                none.
            exact: Compute this call by itself, so that no other call changes its last bits. Default: false.
            **named: Inputs by their names.
        """
        answer: models.PublishedFunctionTangents = await self._send(
            Call(
                "POST",
                f"{self._path}/jvp",
                models.PublishedFunctionTangents.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "tangents": tangents,
                    "map": map,
                    "targets": targets,
                    "sources": wrt,
                    "vectors": vectors,
                    "unconnected": unconnected,
                    "fetch": fetch,
                    "exact": exact,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                is_work=False,
            )
        )
        return answer

    async def jacobian(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        map: Mapping[str, int] | None = None,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        max_bytes: int | None = None,
        fetch: str | Sequence[str] | None = None,
        exact: bool | None = None,
        **named: Input,
    ) -> models.PublishedFunctionDerivatives:
        """Compute a published function's Jacobians.

        Computes the Jacobian of one output with respect to each source. Calls of several callers may be computed
        together: `batch` says how it was.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            targets: The name of the output to differentiate; default: the only one.
            wrt: Inputs or weights to differentiate by; default: all declared inputs of floats.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            max_bytes: Most bytes for batched cotangents; without it 64 MiB, or what the session has left.
            fetch: Names of outputs to return in `values`; default: all where the question is for the outputs, else
                none.
            exact: Compute this call by itself, so that no other call changes its last bits. Default: false.
            **named: Inputs by their names.
        """
        answer: models.PublishedFunctionDerivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/jacobian",
                models.PublishedFunctionDerivatives.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "map": map,
                    "targets": targets,
                    "sources": wrt,
                    "unconnected": unconnected,
                    "max_bytes": max_bytes,
                    "fetch": fetch,
                    "exact": exact,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                is_work=False,
            )
        )
        return answer

    async def hessian(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        map: Mapping[str, int] | None = None,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        max_bytes: int | None = None,
        fetch: str | Sequence[str] | None = None,
        exact: bool | None = None,
        **named: Input,
    ) -> models.PublishedFunctionHessian:
        """Compute a published function's Hessian.

        Computes the second derivatives of the targets' sum, a block for each pair of sources. Calls of several
        callers may be computed together: `batch` says how it was.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            targets: Names of outputs whose sum is differentiated; default: all.
            wrt: Inputs or weights to differentiate by; default: all declared inputs of floats.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            max_bytes: Most bytes for batched cotangents; without it 64 MiB, or what the session has left.
            fetch: Names of outputs to return in `values`; default: all where the question is for the outputs, else
                none.
            exact: Compute this call by itself, so that no other call changes its last bits. Default: false.
            **named: Inputs by their names.
        """
        answer: models.PublishedFunctionHessian = await self._send(
            Call(
                "POST",
                f"{self._path}/hessian",
                models.PublishedFunctionHessian.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "map": map,
                    "targets": targets,
                    "sources": wrt,
                    "unconnected": unconnected,
                    "max_bytes": max_bytes,
                    "fetch": fetch,
                    "exact": exact,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                is_work=False,
            )
        )
        return answer

    async def hvp(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        vectors: Sequence[TensorInput],
        map: Mapping[str, int] | None = None,
        targets: str | Sequence[str] | None = None,
        wrt: str | Sequence[str] | None = None,
        output_gradients: Sequence[TensorInput | None] | None = None,
        unconnected: Literal["none", "zero"] | None = None,
        fetch: str | Sequence[str] | None = None,
        exact: bool | None = None,
        **named: Input,
    ) -> models.PublishedFunctionDerivatives:
        """Compute a published function's Hessian-vector products.

        Computes the Hessian of the targets' sum times a vector at the cost of two gradients. Calls of several callers
        may be computed together: `batch` says how it was.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            vectors: The vector's part for each source, of its shape.
            map: For inputs by name the axis of their entries: the function runs for each entry, and all results are
                stacked along axis 0; other inputs are the same for all.
            targets: Names of outputs whose sum is differentiated; default: all.
            wrt: Inputs or weights to differentiate by; default: all declared inputs of floats.
            output_gradients: A weight for each target, of its shape; null: ones.
            unconnected: The derivative if the target does not depend on the source: null or zeros. Default: "none".
            fetch: Names of outputs to return in `values`; default: all where the question is for the outputs, else
                none.
            exact: Compute this call by itself, so that no other call changes its last bits. Default: false.
            **named: Inputs by their names.
        """
        answer: models.PublishedFunctionDerivatives = await self._send(
            Call(
                "POST",
                f"{self._path}/hvp",
                models.PublishedFunctionDerivatives.read,
                fields={
                    "inputs": inputs_of(inputs, named),
                    "vectors": vectors,
                    "map": map,
                    "targets": targets,
                    "sources": wrt,
                    "output_gradients": output_gradients,
                    "unconnected": unconnected,
                    "fetch": fetch,
                    "exact": exact,
                },
                takes_file=True,
                offers_file=True,
                has_full=True,
                is_work=False,
            )
        )
        return answer

    async def check(
        self,
        inputs: Sequence[Input] | Mapping[str, Input] | None = None,
        /,
        *,
        settings: params.CheckSettings | None = None,
        exact: bool | None = None,
        **named: Input,
    ) -> models.PublishedCheckReport:
        """Check a published function's gradients.

        Compares the gradients with finite differences. The status is 200 in both cases: read `agrees` and `worst`.
        Calls of several callers may be computed together: `batch` says how it was.

        Args:
            inputs: In the order of the function's inputs, or by their names.
            settings: How to compare derivatives with finite differences.
            exact: Compute this call by itself, so that no other call changes its last bits. Default: false.
            **named: Inputs by their names.
        """
        answer: models.PublishedCheckReport = await self._send(
            Call(
                "POST",
                f"{self._path}/check",
                models.PublishedCheckReport.read,
                fields={"inputs": inputs_of(inputs, named), "settings": settings, "exact": exact},
                takes_file=True,
                has_full=True,
                is_work=False,
            )
        )
        return answer


class AsyncPublishedFunctionWithRawResponse:
    """The methods of `AsyncPublishedFunction`, which return the response as it came."""

    def __init__(self, resource: AsyncPublishedFunction) -> None:
        self.publish = raw(resource.publish)
        self.get = raw(resource.get)
        self.delete = raw(resource.delete)
        self.versions = raw(resource.versions)
        self.ready = raw(resource.ready)
        self.alias = raw(resource.alias)
        self.call = raw(resource.call)
        self.value_and_gradient = raw(resource.value_and_gradient)
        self.gradient = raw(resource.gradient)
        self.vjp = raw(resource.vjp)
        self.jvp = raw(resource.jvp)
        self.jacobian = raw(resource.jacobian)
        self.hessian = raw(resource.hessian)
        self.hvp = raw(resource.hvp)
        self.check = raw(resource.check)


class AsyncPublished(AsyncCollection[AsyncPublishedFunction]):
    """The published functions."""

    _item = AsyncPublishedFunction

    @property
    def with_raw_response(self) -> AsyncPublishedWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncPublishedWithRawResponse(self._with(self._options._replace(raw=True)))

    async def list(
        self, *, limit: int | None = None, after: str | None = None, prefix: str | None = None
    ) -> models.PublishedList:
        """List the published functions.

        Lists those that your key may call, by name, each with its latest version.

        Args:
            limit: Most items; without it all.
            after: Continue after this item: `next` of the page before.
            prefix: Only those whose id begins with this text.
        """
        answer: models.PublishedList = await self._send(
            Call(
                "GET",
                self._path,
                models.PublishedList.read,
                query={"limit": limit, "after": after, "prefix": prefix},
                is_work=False,
            )
        )
        return answer


class AsyncPublishedWithRawResponse:
    """The methods of `AsyncPublished`, which return the response as it came."""

    def __init__(self, resource: AsyncPublished) -> None:
        self.list = raw(resource.list)


class AsyncExpressions(AsyncResource):
    """Formulas as text."""

    @property
    def with_raw_response(self) -> AsyncExpressionsWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncExpressionsWithRawResponse(self._with(self._options._replace(raw=True)))

    async def parse(
        self, text: str, *, dtype: Literal["float16", "bfloat16", "float32", "float64"] | None = None
    ) -> models.Expression:
        """Parse an expression.

        Returns the function that a text such as `y = sin(x) * x` means, as `POST /functions` takes it. Nothing is
        computed and nothing is stored. docs/expressions.md describes the language. Texts are parsed one at a time;
        more than a few at once are refused: `busy`.

        Args:
            text: Lines such as `y = sin(x) * x`; names without a value are the function's inputs.
            dtype: Of `values`, and of constants that meet no input. Default: "float32".
        """
        answer: models.Expression = await self._send(
            Call("POST", self._path, models.Expression.read, fields={"text": text, "dtype": dtype})
        )
        return answer


class AsyncExpressionsWithRawResponse:
    """The methods of `AsyncExpressions`, which return the response as it came."""

    def __init__(self, resource: AsyncExpressions) -> None:
        self.parse = raw(resource.parse)


class AsyncOps(AsyncResource):
    """The catalogue of ops."""

    @property
    def with_raw_response(self) -> AsyncOpsWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncOpsWithRawResponse(self._with(self._options._replace(raw=True)))

    async def list(
        self,
        *,
        name: str | None = None,
        search: str | None = None,
        differentiable: bool | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> models.OpList:
        """List the ops.

        Lists each op with its inputs, its attributes (as JSON Schema), its gradients and its documentation.

        Args:
            name: Only ops with this text in their name, TensorFlow's or NumPy's.
            search: Only ops with each of these words in their documentation or names.
            differentiable: Only ops with a gradient (true) or without.
            limit: Most items; without it all.
            after: Continue after this item: `next` of the page before.
        """
        answer: models.OpList = await self._send(
            Call(
                "GET",
                self._path,
                models.OpList.read,
                query={
                    "name": name,
                    "search": search,
                    "differentiable": differentiable,
                    "limit": limit,
                    "after": after,
                },
                is_work=False,
            )
        )
        return answer

    async def get(self, op: str) -> models.Op:
        """Get an op.

        Returns what the op computes, what it takes, and what a tape keeps for its gradient.

        Args:
            op: Its name, ours, TensorFlow's or NumPy's.
        """
        answer: models.Op = await self._send(Call("GET", f"{self._path}/{quoted(op)}", models.Op.read, is_work=False))
        return answer


class AsyncOpsWithRawResponse:
    """The methods of `AsyncOps`, which return the response as it came."""

    def __init__(self, resource: AsyncOps) -> None:
        self.list = raw(resource.list)
        self.get = raw(resource.get)


class AsyncServer(AsyncResource):
    """A server."""

    @property
    def sessions(self) -> AsyncSessions:
        """Your sessions."""
        return AsyncSessions(self._connection, self._options, f"{self._path}/sessions")

    @property
    def published(self) -> AsyncPublished:
        """The published functions."""
        return AsyncPublished(self._connection, self._options, f"{self._path}/published")

    @property
    def expressions(self) -> AsyncExpressions:
        """Formulas as text."""
        return AsyncExpressions(self._connection, self._options, f"{self._path}/expressions")

    @property
    def ops(self) -> AsyncOps:
        """The catalogue of ops."""
        return AsyncOps(self._connection, self._options, f"{self._path}/ops")

    @property
    def with_raw_response(self) -> AsyncServerWithRawResponse:
        """The same methods, which return the response as it came; its `parse()` is the answer."""
        return AsyncServerWithRawResponse(self._with(self._options._replace(raw=True)))

    async def health(self) -> models.Health:
        """Check that the server lives.

        Needs no key and reaches no session. A server that is stopping lives until its running requests are answered.
        """
        answer: models.Health = await self._send(Call("GET", f"{self._path}/health", models.Health.read, is_work=False))
        return answer

    async def ready(self) -> models.Ready:
        """Check that the server takes new requests.

        Needs no key. 503 while the server is stopping, and while it cannot start the process of a new session.
        """
        answer: models.Ready = await self._send(Call("GET", f"{self._path}/ready", models.Ready.read, is_work=False))
        return answer

    async def info(self) -> models.Info:
        """Get versions, limits and features.

        Returns what this server supports. A client compares the catalogue's digest with that of its own ops.
        """
        answer: models.Info = await self._send(Call("GET", f"{self._path}/info", models.Info.read, is_work=False))
        return answer

    async def devices(self) -> models.Devices:
        """List the devices.

        Lists the devices on which sessions can compute, with their memory, and why a GPU cannot be used; the default.
        """
        answer: models.Devices = await self._send(
            Call("GET", f"{self._path}/devices", models.Devices.read, is_work=False)
        )
        return answer

    async def run(
        self,
        commands: Sequence[params.Command],
        *,
        dtype: Literal["float16", "bfloat16", "float32", "float64"] | None = None,
        tensors: Mapping[str, TensorInput] | None = None,
        fetch: Id | Sequence[Id] | None = None,
        device: str | None = None,
    ) -> models.RunAnswer:
        """Run commands once, keep nothing.

        Runs the commands of a batch, beginning with nothing, and returns the values of `fetch`. Nothing stays. It
        does not count as a session: it waits for its turn, a key's requests in their order and the keys one after the
        other, and is `overloaded` if that takes too long. The request is safe to repeat. If the client disconnects,
        the computation is cancelled; with an Idempotency-Key it goes on, for the retry.

        Args:
            commands: One command; `do` names it.
            dtype: Of numbers without a dtype that meet no tensor; default: the session's, or float32.
            tensors: Tensors to create before the commands, by id.
            fetch: Ids to return in `values`.
            device: Where to compute; default: the server's setting.
        """
        answer: models.RunAnswer = await self._send(
            Call(
                "POST",
                f"{self._path}/run",
                models.RunAnswer.read,
                fields={"commands": commands, "dtype": dtype, "tensors": tensors, "fetch": fetch},
                query={"device": device},
                takes_file=True,
                offers_file=True,
                has_full=True,
                function=RUN,
            )
        )
        return answer

    async def price(
        self,
        commands: Sequence[Mapping[str, Any]],
        *,
        dtype: Literal["float16", "bfloat16", "float32", "float64"] | None = None,
        session: str | None = None,
        tensors: Mapping[str, TensorInput | params.TensorSpec] | None = None,
        fetch: Id | Sequence[Id] | None = None,
        release: Sequence[Id] | None = None,
        replace: bool | None = None,
    ) -> models.PriceAnswer:
        """See what commands would take.

        Returns what the commands would need and make, and whether they would run now, wait, or be refused and why.
        Nothing is run, and no session changes. A tensor may be given by dtype and shape alone: `{"dtype": "float32",
        "shape": [1000, 1000]}`. The commands run as in `POST /run`, or in the `session` that is named. If that
        session computes for longer than a second, the answer is `waits`, without a price.

        Args:
            commands: See the guide.
            dtype: Of numbers without a dtype that meet no tensor; default: the session's, or float32.
            session: A session of yours in which the commands would run; null: none, as in POST /run.
            tensors: Tensors to create before the commands, by id; data may be absent.
            fetch: Ids whose values would be returned.
            release: Ids to release after their last use.
            replace: Whether new ids may be in use or released. Default: false.
        """
        answer: models.PriceAnswer = await self._send(
            Call(
                "POST",
                f"{self._path}/price",
                models.PriceAnswer.read,
                fields={
                    "commands": commands,
                    "dtype": dtype,
                    "session": session,
                    "tensors": tensors,
                    "fetch": fetch,
                    "release": release,
                    "replace": replace,
                },
            )
        )
        return answer

    async def create(
        self,
        *,
        name: str | None = None,
        owner: str | None = None,
        role: Literal["user", "admin"] | None = None,
        group: str | None = None,
        scopes: Sequence[Literal["sessions", "call", "publish", "keys"]] | None = None,
        expires_in: float | None = None,
        limits: params.LimitsBody | None = None,
    ) -> models.NewApiKey:
        """Create an API key.

        Creates a key, and shows it: nothing shows it again. It allows at most what the key of the request does. An
        admin creates keys for any owner, and gives them limits. Others create further ones of their own, which count
        with the key of the request.

        Args:
            name: For people: where the key is used.
            owner: Without it: your own.
            role: Admin: it sees and ends what all owners have. Default: "user".
            group: Only an admin chooses; without it that of the owner.
            scopes: What it is for. sessions: sessions and runs; call: published functions; publish: to publish and
                withdraw them; keys: to see, create, rotate and revoke keys.
            expires_in: Seconds after which it ends by itself; without it never.
            limits: Its own, which an admin sets: it counts by itself then, else with the others of its owner.
        """
        answer: models.NewApiKey = await self._send(
            Call(
                "POST",
                f"{self._path}/admin/keys",
                models.NewApiKey.read,
                fields={
                    "name": name,
                    "owner": owner,
                    "role": role,
                    "group": group,
                    "scopes": scopes,
                    "expires_in": expires_in,
                    "limits": limits,
                },
            )
        )
        return answer

    async def list(self) -> models.ApiKeyList:
        """List API keys.

        Lists your keys, also those that have ended; for an admin those of all owners. No secret is shown.
        """
        answer: models.ApiKeyList = await self._send(
            Call("GET", f"{self._path}/admin/keys", models.ApiKeyList.read, is_work=False)
        )
        return answer

    async def rotate(self, id: str, *, overlap: float | None = None) -> models.NewApiKey:
        """Replace an API key.

        Creates a key that allows what this one does, and shows it; this one ends, at once or after `overlap` seconds.

        Args:
            id: The key's id.
            overlap: Seconds for which the former one stays valid. Default: 0.
        """
        answer: models.NewApiKey = await self._send(
            Call(
                "POST",
                f"{self._path}/admin/keys/{quoted(id)}/rotate",
                models.NewApiKey.read,
                fields={"overlap": overlap},
            )
        )
        return answer

    async def revoke(self, id: str) -> None:
        """Revoke an API key.

        Ends a key within a second, also on connections that are open. Its owner's sessions stay.

        Args:
            id: The key's id.
        """
        await self._send(Call("DELETE", f"{self._path}/admin/keys/{quoted(id)}", None, is_work=False))

    async def revoke_tokens(self, owner: str) -> None:
        """End an owner's tokens.

        Ends all tokens of an OpenID issuer that an owner has now, within a second, also on connections that are open.
        Those that the issuer gives more than 5 seconds later are valid. Keys of the owner, and sessions, stay. It
        needs the key of an admin.

        Args:
            owner: Whose tokens they are.
        """
        await self._send(Call("DELETE", f"{self._path}/admin/tokens/{quoted(owner)}", None, is_work=False))

    async def audit(
        self,
        *,
        limit: int | None = None,
        after: int | None = None,
        subject: str | None = None,
        action: Literal[
            "session.created",
            "session.ended",
            "session.seen",
            "key.created",
            "key.rotated",
            "key.revoked",
            "tokens.revoked",
            "limits.changed",
            "function.published",
            "function.aliased",
            "function.deleted",
        ]
        | None = None,
    ) -> models.Audit:
        """List what was done.

        Lists who created and ended sessions, changed keys, published, or looked into another owner's session. The
        newest come first. Nothing is changed in it, and what is removed is old. It needs the key of an admin.

        Args:
            limit: Most entries.
            after: Continue after this one: `next` of the page before.
            subject: Those of one subject alone: OWNER:ID, the id of a key, an account.
            action: Those of one action alone.
        """
        answer: models.Audit = await self._send(
            Call(
                "GET",
                f"{self._path}/admin/audit",
                models.Audit.read,
                query={"limit": limit, "after": after, "subject": subject, "action": action},
                is_work=False,
            )
        )
        return answer

    async def usage(self, *, timeline: Literal["minutes", "hours", "days"] | None = None) -> models.BoxUse:
        """See who uses the server, and why you wait.

        Lists what each key has now: sessions, memory, processes that compute, requests that wait, and its share. Your
        own unanswered requests are listed with what each waits for: who is ahead, when it will start as far as that
        can be estimated, and the reason in one sentence. Other keys are named, and of their sessions only the one
        that is idle for longest: its owner may park or end it. All of it is as of half a second ago at most. With
        `timeline`, who computed when: an admin sees all accounts, others their own and the rest as a sum.

        Args:
            timeline: Say who computed when: in the last 180 minutes, 48 hours or 30 days.
        """
        answer: models.BoxUse = await self._send(
            Call("GET", f"{self._path}/usage", models.BoxUse.read, query={"timeline": timeline}, is_work=False)
        )
        return answer

    async def me(self) -> models.Me:
        """Get who you are, and what you may use.

        Returns your key's owner, role, group and scopes, its limits, what is used of them, and what was used when.
        Memory, disk and sessions are those of now. What is added up over days counts by hours: an hour counts until
        all of it is older than that.
        """
        answer: models.Me = await self._send(Call("GET", f"{self._path}/me", models.Me.read, is_work=False))
        return answer

    async def accounts(self) -> models.Accounts:
        """List what all accounts may use, and use.

        Lists the accounts of owners, of keys with limits of their own, and of groups. It needs the key of an admin.
        """
        answer: models.Accounts = await self._send(
            Call("GET", f"{self._path}/admin/limits", models.Accounts.read, is_work=False)
        )
        return answer

    async def limit(
        self,
        account: str,
        *,
        sessions: int | None = None,
        memory_bytes: int | None = None,
        disk_bytes: int | None = None,
        requests_per_second: float | None = None,
        compute_seconds_1d: float | None = None,
        compute_seconds_7d: float | None = None,
        compute_seconds_30d: float | None = None,
        gib_hours_1d: float | None = None,
        gib_hours_7d: float | None = None,
        gib_hours_30d: float | None = None,
    ) -> models.AccountState:
        """Replace the limits of an account.

        Replaces all limits that an account has of its own, at once; what is not named is again the server's default.
        The limits of a group have no defaults. It needs the key of an admin.

        Args:
            account: OWNER; OWNER:KEY, of a key with limits of its own; or @GROUP.
            sessions: With a place at a time.
            memory_bytes: Of the arrays of all its sessions.
            disk_bytes: Of the files of all its sessions.
            requests_per_second: As many may come at once; its connections are not handed to processes.
            compute_seconds_1d: That its sessions compute in a day.
            compute_seconds_7d: The same in 7 days.
            compute_seconds_30d: The same in 30 days.
            gib_hours_1d: GiB of memory times hours, in a day.
            gib_hours_7d: The same in 7 days.
            gib_hours_30d: The same in 30 days.
        """
        answer: models.AccountState = await self._send(
            Call(
                "PUT",
                f"{self._path}/admin/limits/{quoted(account)}",
                models.AccountState.read,
                fields={
                    "sessions": sessions,
                    "memory_bytes": memory_bytes,
                    "disk_bytes": disk_bytes,
                    "requests_per_second": requests_per_second,
                    "compute_seconds_1d": compute_seconds_1d,
                    "compute_seconds_7d": compute_seconds_7d,
                    "compute_seconds_30d": compute_seconds_30d,
                    "gib_hours_1d": gib_hours_1d,
                    "gib_hours_7d": gib_hours_7d,
                    "gib_hours_30d": gib_hours_30d,
                },
            )
        )
        return answer


class AsyncServerWithRawResponse:
    """The methods of `AsyncServer`, which return the response as it came."""

    def __init__(self, resource: AsyncServer) -> None:
        self.health = raw(resource.health)
        self.ready = raw(resource.ready)
        self.info = raw(resource.info)
        self.devices = raw(resource.devices)
        self.run = raw(resource.run)
        self.price = raw(resource.price)
        self.create = raw(resource.create)
        self.list = raw(resource.list)
        self.rotate = raw(resource.rotate)
        self.revoke = raw(resource.revoke)
        self.revoke_tokens = raw(resource.revoke_tokens)
        self.audit = raw(resource.audit)
        self.usage = raw(resource.usage)
        self.me = raw(resource.me)
        self.accounts = raw(resource.accounts)
        self.limit = raw(resource.limit)
