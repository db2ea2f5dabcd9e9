"""Python's grpcio, which is gRPC's C core, against Larder; prints the checks as Go's client does."""

import concurrent.futures
import os
import queue
import sys
import threading

import grpc

PLAIN, SECURE = os.environ["LAB_HTTP"], os.environ["LAB_HTTPS"]
ROOT = open(os.environ["LAB_ROOT"], "rb").read()
LONG = 20
rows = []


def check(what, good, got=""):
    rows.append(bool(good))
    print(f"{'ok    ' if good else 'FAILED'}  {what}" + (f"  [{str(got)[:160]}]" if got != "" else ""), flush=True)


class Server:
    """The methods of the server, whose messages are bytes."""

    def __init__(self, target, authority, secure):
        options = [("grpc.default_authority", authority), ("grpc.max_receive_message_length", 1 << 24)]
        if secure:
            # The name in the certificate, and the authority.
            options.append(("grpc.ssl_target_name_override", authority))
            self.channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(ROOT), options)
        else:
            self.channel = grpc.insecure_channel(target, options)

    def unary(self, method):
        return self.channel.unary_unary("/lab.Echo/" + method)

    def up(self, method):
        return self.channel.stream_unary("/lab.Echo/" + method)

    def down(self, method):
        return self.channel.unary_stream("/lab.Echo/" + method)

    def both(self, method):
        return self.channel.stream_stream("/lab.Echo/" + method)


def failure(call):
    """The failure of a call, or None."""
    try:
        call()
    except grpc.RpcError as error:
        return error
    return None


def calls(server):
    asks = (("lab-asks", "for this"),)
    got, call = server.unary("Unary").with_call(b"hello", timeout=LONG, metadata=asks)
    check("a call is answered", got == b"hello", got)
    check("the head's metadata come", ("lab-asked", "for this") in call.initial_metadata())
    check("its trailers come with the answer", ("lab-trailer", "for this") in call.trailing_metadata())
    large = os.urandom(1 << 20)
    check("a megabyte there and back", server.unary("Unary")(large, timeout=LONG) == large)
    check("an empty message", server.unary("Unary")(b"", timeout=LONG) == b"")


def streams(server):
    total = server.up("Collect")((bytes(5000) for _ in range(200)), timeout=LONG)
    check("a client's stream of 200 messages", total == b"1000000", total)
    got = list(server.down("Count")(b"500", timeout=LONG))
    check("a server's stream of 500 messages", len(got) == 500 and got[-1] == b"message 499", len(got))
    said = queue.SimpleQueue()
    heard = server.both("Talk")(iter(said.get, None), timeout=LONG)
    heard.initial_metadata()
    rounds = 0
    for rounds in range(300):
        message = b"round %d" % rounds + bytes(rounds * 10)
        said.put(message)
        if next(heard) != message:
            break
    check("each message of a dialogue is answered before the next", rounds == 299, rounds)
    said.put(None)
    check("a dialogue ends with its client's end", list(heard) == [])


def failures(server):
    error = failure(lambda: server.unary("Fail")(b"", timeout=LONG))
    check(
        "a failed call keeps status and text",
        error.code() == grpc.StatusCode.FAILED_PRECONDITION and error.details() == "not today",
        error.code(),
    )
    error = failure(lambda: server.up("Early")((bytes(10_000) for _ in range(10_000)), timeout=LONG))
    check(
        "an answer in the middle of an upload ends it",
        error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED and error.details() == "no more, thanks: 100 %",
        error.code(),
    )
    error = failure(lambda: server.unary("Slow")(b"", timeout=0.3))
    check("a deadline ends a call", error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error.code())
    call = server.unary("Slow").future(b"", timeout=LONG)
    threading.Timer(0.2, call.cancel).start()
    try:
        call.result()
        check("a call is cancelled", False)
    except grpc.FutureCancelledError:
        check("a call is cancelled", True)


def many(server):
    """2,000 calls, 40 at once, of which one in eight is given up after some milliseconds."""
    answered, gave_up, wrong = [], [], []

    def one(number):
        if number % 8 == 3:
            error = failure(lambda: server.unary("Slow")(b"", timeout=(number % 10 + 1) / 1000))
            (gave_up if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED else wrong).append(error)
        else:
            said = b"%d" % number
            try:
                (answered if server.unary("Unary")(said, timeout=LONG) == said else wrong).append(said)
            except grpc.RpcError as error:
                wrong.append(error)

    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        list(pool.map(one, range(2000)))
    for row in wrong[:3]:
        print("#", str(row)[:300])
    sums = f"{len(answered)} answered, {len(gave_up)} given up, {len(wrong)} wrong"
    check("2,000 calls beside each other, of which some are given up", len(answered) == 1750 and len(gave_up) == 250, sums)


for name, server in [
    ("h2c to h2c", Server(PLAIN, "h2c.localhost", False)),
    ("TLS to TLS", Server(SECURE, "grpc.localhost", True)),
]:
    print("#", name)
    for part in (calls, streams, failures, many):
        try:
            part(server)
        except Exception as error:  # pylint: disable=broad-except
            check(part.__name__, False, error)
for authority, code in [("down.localhost", grpc.StatusCode.UNAVAILABLE), ("unknown.localhost", grpc.StatusCode.UNIMPLEMENTED)]:
    error = failure(lambda: Server(PLAIN, authority, False).unary("Unary")(b"", timeout=LONG))
    check(authority, error.code() == code, error.details())
print(f"{sum(rows)} of {len(rows)} checks hold")
sys.exit(not all(rows))
