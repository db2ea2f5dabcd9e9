"""A collector of traces and an origin, what a Larder between them tells of a few requests, and whether it is true.

usage: traces.py HTTP_PORT ORIGIN_PORT COLLECTOR_PORT TLS_FOLDER

Messages are read by Google's runtime. A field that it does not know, or bytes that it would have written otherwise, are
failures.
"""

import gzip
import http.client
import http.server
import os
import pathlib
import ssl
import sys
import threading
import time

from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

HTTP, ORIGIN, COLLECTOR = (int(port) for port in sys.argv[1:4])
TLS = pathlib.Path(sys.argv[4])
KEY = (TLS / "api-key").read_text().strip()
PATIENCE_S = 30

deliveries, told_to_origin, failures = [], {}, []
began = time.time_ns()


def check(what, holds):
    print(f"{'ok' if holds else 'FAILED'}: {what}")
    if not holds:
        failures.append(what)


class Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, fields, body):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Origin(Quiet):
    def do_GET(self):
        told_to_origin[self.path] = self.headers.get("traceparent")
        status = 500 if self.path == "/broken" else 200
        self.answer(status, {"Cache-Control": "max-age=60" if status == 200 else "no-store"}, b"a page")


class Collector(Quiet):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        deliveries.append((self.path, self.headers, body, self.client_address))
        if len(deliveries) == 1:
            return self.answer(503, {"Retry-After": "1"}, b"")
        response = trace_service_pb2.ExportTraceServiceResponse()
        if len(deliveries) == 3:
            response.partial_success.rejected_spans = 1
            response.partial_success.error_message = "one is not wanted"
        self.answer(200, {"Content-Type": "application/x-protobuf"}, response.SerializeToString())


def serve(port, handler, context=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def ask(path, trace, state=""):
    client = http.client.HTTPConnection("127.0.0.1", HTTP, timeout=PATIENCE_S)
    fields = {"Host": "lab.example", "traceparent": f"00-{trace}-00f067aa0ba902b7-01"}
    client.request("GET", path, headers=fields | ({"tracestate": state} if state else {}))
    client.getresponse().read()
    client.close()


def wait(what, holds):
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"FAILED: {what}: not within {PATIENCE_S} s")
        time.sleep(0.05)


def unknown(message):
    """Whether a message or one within it has a field that its description does not have."""
    if len(UnknownFieldSet(message)):
        return True
    for field, value in message.ListFields():
        if field.message_type and any(unknown(each) for each in (value if field.is_repeated else [value])):
            return True
    return False


def read(delivery):
    _, headers, body, _ = delivery
    plain = gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body
    message = trace_service_pb2.ExportTraceServiceRequest.FromString(plain)
    return message, plain


def attributes(attributes):
    return {a.key: getattr(a.value, a.value.WhichOneof("value")) for a in attributes}


def judge_span(span, parent, kind, state):
    name = f"{trace_pb2.Span.SpanKind.Name(span.kind)} of {attributes(span.attributes).get('url.path', 'the origin')}"
    check(f"{name}: ids", len(span.trace_id) == 16 and len(span.span_id) == 8 and span.parent_span_id.hex() == parent)
    check(f"{name}: kind, name and state", (span.kind, span.name, span.trace_state) == (kind, "GET", state))
    check(f"{name}: times", began - 10**9 < span.start_time_unix_nano <= span.end_time_unix_nano <= time.time_ns() + 10**9)


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
    serve(COLLECTOR, Collector, context)
    serve(ORIGIN, Origin)
    first, second = os.urandom(16).hex(), os.urandom(16).hex()
    ask("/page?a=%C3%BC", first, "vendor=value")
    wait("the delivery comes again", lambda: len(deliveries) == 2)
    check("what was answered with 503 comes again as it was", deliveries[0][2] == deliveries[1][2])
    ask("/broken", second)
    wait("another delivery", lambda: len(deliveries) == 3)
    check("all came over one connection", len({delivery[3] for delivery in deliveries}) == 1)
    spans = []
    for path, headers, _, _ in deliveries:
        check("the path", path == "/otlp/v1/traces")
        check("protobuf by gzip", (headers["Content-Type"], headers["Content-Encoding"]) == ("application/x-protobuf", "gzip"))
        check("the key of the file, and the other field", (headers["api-key"], headers["x-team"]) == (KEY, "web"))
    for delivery in deliveries[1:]:
        message, plain = read(delivery)
        check("every field is known", not unknown(message))
        check("Google's runtime writes the same bytes", message.SerializeToString() == plain)
        (of_resource,) = message.resource_spans
        check("the service's name", attributes(of_resource.resource.attributes)["service.name"] == "larder")
        (of_scope,) = of_resource.scope_spans
        check("the scope's name", of_scope.scope.name == "larder" and of_scope.scope.version)
        spans += of_scope.spans
    (server, client, broken, asked) = spans
    Span, Status = trace_pb2.Span, trace_pb2.Status
    for one, trace, parent, kind, state in [
        (server, first, "00f067aa0ba902b7", Span.SPAN_KIND_SERVER, "vendor=value"),
        (client, first, server.span_id.hex(), Span.SPAN_KIND_CLIENT, "vendor=value"),
        (broken, second, "00f067aa0ba902b7", Span.SPAN_KIND_SERVER, ""),
        (asked, second, broken.span_id.hex(), Span.SPAN_KIND_CLIENT, ""),
    ]:
        check("the trace", one.trace_id.hex() == trace)
        judge_span(one, parent, kind, state)
    for one, path in [(client, "/page?a=%C3%BC"), (asked, "/broken")]:
        check("the origin was told the same", told_to_origin[path] == f"00-{one.trace_id.hex()}-{one.span_id.hex()}-01")
    found = attributes(server.attributes)
    wanted = {"url.path": "/page", "url.query": "a=%C3%BC", "http.response.status_code": 200, "larder.served": "MISS"}
    check("attributes", {key: found.get(key) for key in wanted} == wanted)
    check("an error is one", [s.status.code for s in spans] == [Status.STATUS_CODE_UNSET] * 2 + [Status.STATUS_CODE_ERROR] * 2)
    print(f"traces: {len(spans)} spans in {len(deliveries)} deliveries, {len(failures)} failures")
    sys.exit(bool(failures))


main()
