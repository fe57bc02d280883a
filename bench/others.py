"""others.py -- the tools that rwriter is compared with: each function measures one, once

What they return is {what: figure}: "rate" in GB/s, "cpu" in core-seconds per GB of both sides together, "latency"
and "latency 99" in seconds.
"""

import json
import os
import re
import signal
import subprocess

from process import Run, listening, run

import daemon

HOST = "127.0.0.1"
UCX = os.environ | {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "lo", "UCX_WARN_UNUSED_ENV_VARS": "n"}


def serve(*command, **options):
    """Starts a server; PORT in its command is a free port. The server, when it listens, and the port."""
    port = daemon.free_port()
    server = Run(*(str(word).replace("PORT", str(port)) for word in command), **options)
    daemon.until(lambda: listening(port), what=f"{command[0]} to listen")
    return server, port


def both(size, seconds, *runs):
    return {"rate": size / 1e9 / seconds, "cpu": sum(one.cpu for one in runs) / (size / 1e9)}


def iperf3(size, *options):
    server, port = serve("iperf3", "-s", "-1", "-B", HOST, "-p", "PORT")
    client = run("iperf3", "-c", HOST, "-p", port, "-n", size, "-J", *options)
    server.end()
    received = json.loads(client.said)["end"]["sum_received"]
    return both(received["bytes"], received["seconds"], client, server)


def ucx_put(size):
    """Puts of 1 MiB into the memory of another process, over TCP."""
    server, port = serve("ucx_perftest", "-p", "PORT", env=UCX)
    count = size >> 20
    puts = ["-t", "ucp_put_bw", "-s", 1 << 20, "-n", count, "-w", 8]
    client = run("ucx_perftest", "-p", port, HOST, *puts, "-f", env=UCX)
    server.end()
    row = next(line.split() for line in client.said.splitlines() if re.match(rf"\s+{count}\s", line))
    return both(size, size / (float(row[5]) * 1e6 * 1.048576), client, server)


def socat(source, target, *options):
    """A file over TCP into a new file; over when the second process has written all."""
    target.unlink(missing_ok=True)
    server, port = serve("socat", "-u", *options, f"TCP-LISTEN:PORT,bind={HOST},reuseaddr", f"CREATE:{target}")
    client = run("socat", "-u", *options, f"FILE:{source}", f"TCP:{HOST}:{port}")
    server.end()
    return carried(source, target, client, server, server.ended - client.began)


def rsync(source, target):
    """A daemon of rsync receives the file whole, in a directory of its own."""
    target.unlink(missing_ok=True)
    conf = target.with_name("rsyncd.conf")
    conf.write_text(f"use chroot = no\n[in]\npath = {target.parent}\nread only = no\n")
    server, port = serve("rsync", "--daemon", "--no-detach", f"--config={conf}", f"--address={HOST}", "--port=PORT")
    client = run("rsync", "--whole-file", source, f"rsync://{HOST}:{port}/in/{target.name}")
    server.end(signal.SIGTERM, check=False)
    return carried(source, target, client, server, client.ended - client.began)


def carried(source, target, client, server, seconds):
    size = source.stat().st_size
    if target.stat().st_size != size:
        raise RuntimeError(f"{client.command[0]} carried {target.stat().st_size} bytes of {size}")
    target.unlink()
    return both(size, seconds, client, server)


def tcp_latency(seconds):
    """Half a round trip of 64 bytes over TCP, both sides asleep until it comes."""
    server, port = serve("sockperf", "server", "--tcp", "-i", HOST, "-p", "PORT")
    client = run("sockperf", "ping-pong", "--tcp", "-i", HOST, "-p", port, "-m", 64, "-t", seconds)
    server.end(signal.SIGTERM, check=False)
    percentile = {
        match[1]: float(match[2]) / 1e6 for match in re.finditer(r"percentile (\d+)\.000 = +([\d.]+)", client.said)
    }
    return {"latency": percentile["50"], "latency 99": percentile["99"]}


# ---- perftest, over an RDMA device ----


def accepting(port):
    return f":{port} " in subprocess.check_output(["rdma", "resource", "show", "cm_id"], text=True)


def perftest(tool, device, address, *options):
    """What its one row of results says. It is asked again when it could not measure: its clock, or its connection."""
    for _ in range(5):
        port = daemon.free_port()
        command = [tool, "-F", "-R", "-d", device, "-p", port, *options]
        server = Run(*command)
        daemon.until(lambda: accepting(port) or server.process.poll() is not None, what=f"{tool} to listen")
        client = Run(*command, address).end(check=False)
        server.end(signal.SIGTERM if client.process.returncode != 0 else None, check=False)
        row = re.search(r"#bytes.*\n(?:.*r\^2.*\n)?\s*(\d.*)", client.said)
        if client.process.returncode == 0 and row and "inf" not in row[1]:
            return [float(word.replace("-nan", "nan")) for word in row[1].split()]
    raise RuntimeError(f"{tool} over {device} failed five times:\n{client.said}")


def write_bw(device, address, count):
    """So many writes of 1 MiB; without setting up."""
    return {"rate": perftest("ib_write_bw", device, address, "-s", 1 << 20, "-n", count)[3] * 1.048576 / 1e3}


def write_lat(device, address, count):
    """Half a round trip of writes of 64 bytes; both sides spin."""
    row = perftest("ib_write_lat", device, address, "-s", 64, "-n", count)
    return {"latency": row[4] / 1e6, "latency 99": row[7] / 1e6}
