"""Load on the gateway: throughput, added time per call, start, and memory over many calls.

    python benchmarks/gateway_load.py [--threads 64] [--calls 4] [--many 50000]

A stub server in a process of its own answers after a fixed time. The same calls go to it directly
by one shared httpx client and through the gateway, turn by turn, so that the figures are ratios of
one run. Exits 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path

import httpx
from pydantic import JsonValue

from pytest_modelbench.gateway.client import GatewayClient
from pytest_modelbench.gateway.process import GatewayProcess
from pytest_modelbench.records import Candidate

MESSAGES: list[JsonValue] = [{"role": "user", "content": "What is 17 + 25?"}]
REPLY = json.dumps(
    {
        "model": "stub",
        "choices": [{"message": {"role": "assistant", "content": "42"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 31, "completion_tokens": 2},
    }
).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


def serve(port: Connection) -> None:
    """Answer every POST after the seconds that its path names."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = int(head.partition("content-length:")[2].split("\r\n")[0])
                await reader.readexactly(length)
                seconds = float(head.split("/")[1])
                if seconds:
                    await asyncio.sleep(seconds)
                writer.write(HEAD % len(REPLY) + REPLY)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1024)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def timed(
    threads: int, calls: int, make: Callable[[int], Callable[[], object]]
) -> tuple[float, list[float]]:
    """Make calls of 0.5 s in threads that begin one after the other over 0.5 s.

    Return the mean share of its time that a thread had a reply under way, and the seconds of each
    call. A first call of each thread, which opens its connection, is not counted.
    """
    ready = threading.Barrier(threads)
    times: list[float] = []
    shares: list[float] = []

    def run(number: int) -> None:
        call = make(number)
        call()
        ready.wait()
        time.sleep(number / threads * 0.5)
        own: list[float] = []
        began = time.perf_counter()
        for _ in range(calls):
            start = time.perf_counter()
            call()
            own.append(time.perf_counter() - start)
        shares.append(calls * 0.5 / (time.perf_counter() - began))
        times.extend(own)

    workers = [threading.Thread(target=run, args=(n,)) for n in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return statistics.mean(shares), times


def rss(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def cpu(pid: int) -> float:
    """Return the CPU seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--threads", type=int, default=64)
    parser.add_argument("--calls", type=int, default=4, help="of each thread, 0.5 s each")
    parser.add_argument("--many", type=int, default=50_000, help="calls for the memory figure")
    asked = parser.parse_args()
    here, there = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    server.start()
    base = f"http://127.0.0.1:{here.recv()}"
    slow = Candidate(name="slow", model="openai/stub", api_base=f"{base}/0.5")
    quick = Candidate(name="quick", model="openai/stub", api_base=f"{base}/0")
    began = time.perf_counter()
    missed = 0
    with GatewayProcess.start([slow, quick]) as gateway:
        client = GatewayClient(gateway.address.socket_path, gateway.address.secret)
        client.status()
        print(f"serving after {time.perf_counter() - began:.2f} s")
        missed += load(asked.threads, asked.calls, base, gateway.pid, client)
        missed += one_by_one(base, client)
        missed += memory(asked.many, gateway.pid, client)
    server.kill()
    return 1 if missed else 0


def load(threads: int, calls: int, base: str, pid: int, client: GatewayClient) -> int:
    """Compare many callers of a slow server, directly and through the gateway."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=threads)
    body = {"model": "stub", "messages": MESSAGES}
    with httpx.Client(trust_env=False, limits=limits, timeout=60) as shared:

        def direct(_: int) -> Callable[[], object]:
            return lambda: shared.post(f"{base}/0.5/chat/completions", json=body).json()

        def through(number: int) -> Callable[[], object]:
            session = client.grant(f"attempt-{number}", "slow")
            return lambda: session.chat(MESSAGES)

        direct_share, direct_times = timed(threads, calls, direct)
        used = cpu(pid)
        share, times = timed(threads, calls, through)
        used = (cpu(pid) - used) / (threads * (calls + 1)) * 1000
    added = (statistics.median(times) - statistics.median(direct_times)) * 1000
    print(f"{threads} threads x {calls} calls of 0.5 s:")
    print(f"  direct   {direct_share:.1%} of the ideal throughput")
    print(f"  gateway  {share:.1%} (goal: 90 %), {used:.2f} ms of its CPU a call")
    print(f"  added at the median {added:.2f} ms (goal: at most 6 ms)")
    return int(share < 0.9) + int(added > 6)


def one_by_one(base: str, client: GatewayClient, calls: int = 400) -> int:
    """Compare one caller of an instant server, turn by turn."""
    session = client.grant("alone", "quick")
    direct: list[float] = []
    through: list[float] = []
    body = {"model": "stub", "messages": MESSAGES}
    with httpx.Client(trust_env=False) as shared:
        for _ in range(calls):
            began = time.perf_counter()
            shared.post(f"{base}/0/chat/completions", json=body).raise_for_status()
            middle = time.perf_counter()
            session.chat(MESSAGES)
            direct.append(middle - began)
            through.append(time.perf_counter() - middle)
    one, other = (statistics.median(times) * 1000 for times in (direct, through))
    print(f"one caller, instant replies: direct {one:.2f} ms, gateway {other:.2f} ms, "
          f"ratio {other / one:.2f}")  # fmt: skip
    session.close()
    return 0


def memory(many: int, pid: int, client: GatewayClient) -> int:
    """Measure the gateway's memory over many calls, 50 in each of many grants."""

    def attempt(number: int) -> None:
        session = client.grant(f"many-{number}", "quick")
        for _ in range(50):
            session.chat(MESSAGES)
        session.close()

    def make(first: int, attempts: int) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(attempt, range(first, first + attempts)))

    attempts = max(many // 50, 10)
    make(0, attempts // 10)
    before, began = rss(pid), time.perf_counter()
    make(attempts // 10, attempts)
    after = rss(pid)
    rate = attempts * 50 / (time.perf_counter() - began)
    print(f"{attempts * 50} calls, {rate:.0f} a second: memory {before:.1f} -> {after:.1f} MiB "
          f"({after / before - 1:+.1%}, goal: within 10 %)")  # fmt: skip
    return int(after > before * 1.1)


if __name__ == "__main__":
    sys.exit(main())
