"""A small gRPC endpoint for tests that serves the part of Qdrant's API that recall-qdrant uses, over
Qdrant's own engine (PyPI qdrant-edge-py) with the messages of its own client (PyPI qdrant-client).

It proves queries, filters, fusion and formulas. It does not prove a server's write ordering, clustering,
logins or limits: one lock serves one request after another.

Usage: endpoint.py PORT FOLDER
"""

import pathlib
import sys
import threading
import uuid
from concurrent import futures

import grpc
import qdrant_edge as edge
from qdrant_client import grpc as wire


def point_id(wired):
    kind = wired.WhichOneof("point_id_options")
    return wired.num if kind == "num" else uuid.UUID(wired.uuid)


def wired_id(own):
    return wire.PointId(num=own) if isinstance(own, int) else wire.PointId(uuid=str(own))


def value(wired):
    kind = wired.WhichOneof("kind")
    if kind == "list_value":
        return [value(one) for one in wired.list_value.values]
    if kind == "struct_value":
        return {key: value(one) for key, one in wired.struct_value.fields.items()}
    return None if kind in (None, "null_value") else getattr(wired, kind)


def wired_value(own):
    if own is None:
        return wire.Value(null_value=0)
    if isinstance(own, bool):
        return wire.Value(bool_value=own)
    if isinstance(own, int):
        return wire.Value(integer_value=own)
    if isinstance(own, float):
        return wire.Value(double_value=own)
    if isinstance(own, str):
        return wire.Value(string_value=own)
    if isinstance(own, list):
        return wire.Value(list_value=wire.ListValue(values=[wired_value(one) for one in own]))
    fields = {key: wired_value(one) for key, one in own.items()}
    return wire.Value(struct_value=wire.Struct(fields=fields))


def payload(wired):
    return {key: value(one) for key, one in wired.items()}


def wired_payload(own):
    return {key: wired_value(one) for key, one in (own or {}).items()}


def vector(wired):
    kind = wired.WhichOneof("vector")
    if kind == "sparse":
        return edge.SparseVector(list(wired.sparse.indices), list(wired.sparse.values))
    if kind == "dense":
        return list(wired.dense.data)
    if wired.HasField("indices"):
        return edge.SparseVector(list(wired.indices.data), list(wired.data))
    return list(wired.data)


def vectors(wired):
    return {name: vector(one) for name, one in wired.vectors.vectors.items()}


def wired_vectors(own):
    named = {}
    for name, one in (own or {}).items():
        if isinstance(one, edge.SparseVector):
            sparse = wire.SparseVector(indices=one.indices, values=one.values)
            named[name] = wire.VectorOutput(sparse=sparse)
        else:
            named[name] = wire.VectorOutput(dense=wire.DenseVector(data=one))
    return wire.VectorsOutput(vectors=wire.NamedVectorsOutput(vectors=named))


def matches(wired):
    kind = wired.WhichOneof("match_value")
    if kind == "keywords":
        return edge.MatchAny(list(wired.keywords.strings))
    if kind == "integers":
        return edge.MatchAny(list(wired.integers.integers))
    return edge.MatchValue(getattr(wired, kind))


def within(wired):
    bounds = {name: getattr(wired, name) for name in ("gt", "gte", "lt", "lte") if wired.HasField(name)}
    return edge.RangeFloat(**bounds)


def condition(wired):
    kind = wired.WhichOneof("condition_one_of")
    if kind == "field":
        field = wired.field
        if field.HasField("match"):
            return edge.FieldCondition(field.key, match=matches(field.match))
        return edge.FieldCondition(field.key, range=within(field.range))
    if kind == "is_empty":
        return edge.IsEmptyCondition(wired.is_empty.key)
    if kind == "has_id":
        return edge.HasIdCondition({point_id(one) for one in wired.has_id.has_id})
    if kind == "has_vector":
        return edge.HasVectorCondition(wired.has_vector.has_vector)
    if kind == "filter":
        return where(wired.filter)
    raise NotImplementedError(f"condition {kind}")


def where(wired):
    parts = {}
    for name in ("must", "should", "must_not"):
        conditions = [condition(one) for one in getattr(wired, name)]
        if conditions:
            parts[name] = conditions
    return edge.Filter(**parts)


def expression(wired):
    kind = wired.WhichOneof("variant")
    inner = getattr(wired, kind)
    own = edge.Expression
    if kind == "constant":
        return own.Constant(inner)
    if kind == "variable":
        return own.Variable(inner)
    if kind == "condition":
        return own.Condition(condition(inner))
    if kind == "mult":
        return own.Mult([expression(one) for one in inner.mult])
    if kind == "sum":
        return own.Sum([expression(one) for one in inner.sum])
    if kind == "max":
        return own.Max([expression(one) for one in inner.max])
    if kind == "exp_decay":
        bounds = {name: getattr(inner, name) for name in ("scale", "midpoint") if inner.HasField(name)}
        target = expression(inner.target) if inner.HasField("target") else None
        return own.Decay(edge.DecayKind.Exp, expression(inner.x), target=target, **bounds)
    raise NotImplementedError(f"expression {kind}")


def wanted(wired, using):
    kind = wired.WhichOneof("variant")
    if kind == "nearest":
        near = wired.nearest
        if near.WhichOneof("variant") == "sparse":
            own = edge.SparseVector(list(near.sparse.indices), list(near.sparse.values))
        else:
            own = list(near.dense.data)
        return edge.Query.Nearest(own, using=using)
    if kind == "rrf":
        return edge.Fusion.Rrf(k=wired.rrf.k)
    if kind == "formula":
        formula = wired.formula
        return edge.Formula(expression(formula.expression), payload(formula.defaults))
    raise NotImplementedError(f"query {kind}")


def common(wired):
    own = {"query": wanted(wired.query, wired.using or None)}
    if wired.prefetch:
        own["prefetches"] = [edge.Prefetch(limit=one.limit, **common(one)) for one in wired.prefetch]
    if wired.HasField("filter"):
        own["filter"] = where(wired.filter)
    if wired.HasField("score_threshold"):
        own["score_threshold"] = wired.score_threshold
    if wired.HasField("params"):
        idf = None
        if wired.params.HasField("idf"):
            idf = edge.IdfParams(corpus=where(wired.params.idf.corpus))
        own["params"] = edge.SearchParams(exact=wired.params.exact, idf=idf)
    return own


def selected(wired):
    kind = wired.WhichOneof("points_selector_one_of")
    if kind == "filter":
        return where(wired.filter)
    return edge.Filter(must=[edge.HasIdCondition({point_id(one) for one in wired.points.ids})])


DONE = wire.UpdateStatus.Completed


class Shards:
    """The collections, each a shard in a folder."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.lock = threading.RLock()
        self.shards = {}

    def of(self, name, context):
        if name not in self.shards:
            if not (self.folder / name).exists():
                context.abort(grpc.StatusCode.NOT_FOUND, f"Collection `{name}` doesn't exist!")
            self.shards[name] = edge.EdgeShard.load(str(self.folder / name))
        return self.shards[name]


class Collections(wire.CollectionsServicer):
    def __init__(self, shards):
        self.shards = shards

    def CollectionExists(self, request, context):
        with self.shards.lock:
            exists = (self.shards.folder / request.collection_name).exists()
            return wire.CollectionExistsResponse(result=wire.CollectionExists(exists=exists))

    def Create(self, request, context):
        with self.shards.lock:
            path = self.shards.folder / request.collection_name
            if path.exists():
                context.abort(grpc.StatusCode.ALREADY_EXISTS, "it exists")
            path.mkdir(parents=True)
            sparse = {}
            for name, params in request.sparse_vectors_config.map.items():
                is_idf = params.modifier == wire.Modifier.Idf
                modifier = edge.Modifier.Idf if is_idf else None
                sparse[name] = edge.EdgeSparseVectorParams(modifier=modifier)
            config = edge.EdgeConfig(sparse_vectors=sparse)
            self.shards.shards[request.collection_name] = edge.EdgeShard.create(str(path), config)
            return wire.CollectionOperationResponse(result=True)


FIELDS = {
    wire.FieldType.FieldTypeKeyword: edge.PayloadSchemaType.Keyword,
    wire.FieldType.FieldTypeInteger: edge.PayloadSchemaType.Integer,
    wire.FieldType.FieldTypeFloat: edge.PayloadSchemaType.Float,
}


class Points(wire.PointsServicer):
    def __init__(self, shards):
        self.shards = shards

    def change(self, request, context, operation):
        with self.shards.lock:
            shard = self.shards.of(request.collection_name, context)
            shard.update(operation)
            shard.flush()
            return wire.PointsOperationResponse(result=wire.UpdateResult(operation_id=1, status=DONE))

    def Upsert(self, request, context):
        points = [edge.Point(point_id(one.id), vectors(one.vectors), payload(one.payload)) for one in request.points]
        return self.change(request, context, edge.UpdateOperation.upsert_points(points))

    def Delete(self, request, context):
        operation = edge.UpdateOperation.delete_points_by_filter(selected(request.points))
        return self.change(request, context, operation)

    def SetPayload(self, request, context):
        own = payload(request.payload)
        operation = edge.UpdateOperation.set_payload_by_filter(selected(request.points_selector), own)
        return self.change(request, context, operation)

    def CreateFieldIndex(self, request, context):
        schema = FIELDS[request.field_type]
        if request.field_index_params.keyword_index_params.is_tenant:
            schema = edge.KeywordIndexParams(is_tenant=True)
        operation = edge.UpdateOperation.create_field_index(request.field_name, schema)
        return self.change(request, context, operation)

    def CreateVectorName(self, request, context):
        size = request.dense_config.size
        operation = edge.UpdateOperation.create_dense_vector(request.vector_name, size, edge.Distance.Cosine)
        return self.change(request, context, operation)

    def DeleteVectorName(self, request, context):
        operation = edge.UpdateOperation.delete_vector_name(request.vector_name)
        return self.change(request, context, operation)

    def Get(self, request, context):
        with self.shards.lock:
            shard = self.shards.of(request.collection_name, context)
            found = shard.retrieve([point_id(one) for one in request.ids], True, True)
            return wire.GetResponse(result=[self.retrieved(one) for one in found])

    def Scroll(self, request, context):
        with self.shards.lock:
            shard = self.shards.of(request.collection_name, context)
            offset = point_id(request.offset) if request.HasField("offset") else None
            scroll = edge.ScrollRequest(
                offset=offset,
                limit=request.limit,
                filter=where(request.filter),
                with_payload=True,
                with_vector=request.with_vectors.enable,
            )
            found, after = shard.scroll(scroll)
            result = [self.retrieved(one) for one in found]
            if after is None:
                return wire.ScrollResponse(result=result)
            return wire.ScrollResponse(result=result, next_page_offset=wired_id(after))

    def retrieved(self, one):
        return wire.RetrievedPoint(
            id=wired_id(one.id), payload=wired_payload(one.payload), vectors=wired_vectors(one.vector)
        )

    def Count(self, request, context):
        with self.shards.lock:
            shard = self.shards.of(request.collection_name, context)
            count = shard.count(edge.CountRequest(exact=True, filter=where(request.filter)))
            return wire.CountResponse(result=wire.CountResult(count=count))

    def Facet(self, request, context):
        with self.shards.lock:
            shard = self.shards.of(request.collection_name, context)
            ask = edge.FacetRequest(request.key, limit=request.limit, exact=True, filter=where(request.filter))
            hits = [
                wire.FacetHit(value=wire.FacetValue(string_value=hit.value), count=hit.count)
                for hit in shard.facet(ask).hits
            ]
            return wire.FacetResponse(hits=hits)

    def Query(self, request, context):
        with self.shards.lock:
            shard = self.shards.of(request.collection_name, context)
            found = shard.query(edge.QueryRequest(limit=request.limit, with_payload=True, **common(request)))
            result = [
                wire.ScoredPoint(id=wired_id(one.id), payload=wired_payload(one.payload), score=one.score)
                for one in found
            ]
            return wire.QueryResponse(result=result)


class Health(wire.QdrantServicer):
    def HealthCheck(self, request, context):
        return wire.HealthCheckReply(title="qdrant-endpoint", version="0.0.0")


def serve(port, folder):
    shards = Shards(folder)
    options = [("grpc.max_receive_message_length", 64 << 20), ("grpc.so_reuseport", 0)]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8), options=options)
    wire.add_QdrantServicer_to_server(Health(), server)
    wire.add_CollectionsServicer_to_server(Collections(shards), server)
    wire.add_PointsServicer_to_server(Points(shards), server)
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    # It ends with whoever started it.
    sys.stdin.read()
    server.stop(None)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2])
