"""What direct reads cost: the part of script/bench --routing that needs servers."""

import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import tempfile
import time

import harness
import relay
import routed_world
import wire

TRIP = 0.02  # seconds: round trip of the far link
CLOUD_CONNECTIONS, FAR_CONNECTIONS, CLIENTS = 20, 200, 200
READ = "select id, title from documents where organization_id = %s and id = %s"
MODES = ("simple", "extended", "prepared")


def cpu(process):
    """Seconds of processor time so far."""
    fields = pathlib.Path("/proc/%d/stat" % process.pid).read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


class Place:
    """A cluster with the cloud and the organizations' databases, reached through a relay, and proxies."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="lkbench", dir="/tmp"))
        self.folder.chmod(0o755)
        (self.folder / "cluster").mkdir()
        self.cluster = harness.Cluster(self.folder / "cluster")
        with open(self.cluster.data / "postgresql.conf", "a") as f:
            f.write("max_connections = %d\nlog_statement = none\nlog_connections = off\n" % (FAR_CONNECTIONS + 200))
        self.cluster.start()
        self.cluster.sql(harness.CLUSTER_SQL, "postgres")
        self.cluster.sql("create database app", "postgres")
        self.proxies = []
        self.far = relay.Relay(self.cluster.port)
        self.world = None

    def move(self):
        # Organization 2 is reached at once, 3 over the link.
        self.world = routed_world.make(self.cluster, organizations=("2",))
        self.world.move("3", self.far.port)
        self.keys = {org: routed_world.documents(self.world, org)[0][0] for org in ("2", "3")}

    def read(self, org):
        return READ % (org, self.keys[org])

    def proxy(self, name, **settings):
        folder = self.folder / name
        folder.mkdir()
        made = harness.Proxy(
            self.cluster,
            folder,
            log_connections=0,
            log_disconnections=0,
            log_stats=0,
            max_client_conn=2000,
            worker_threads=1,
            server_lifetime=36000,
            **settings
        )
        made.start()
        self.proxies.append(made)
        return made

    def stop(self):
        for proxy in self.proxies:
            proxy.process.send_signal(signal.SIGQUIT)
            proxy.process.wait(10)
        self.far.stop()
        if self.world is not None:
            self.world.drop()
        if self.cluster.process.poll() is None:
            self.cluster.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def pgbench(self, proxy, sql, mode, clients, seconds, rate=None):
        """(processor microseconds of the proxy per read, reads per second)"""
        script = self.folder / "read.sql"
        script.write_text(sql + ";\n")
        before = cpu(proxy.process)
        words = ["-n", "-f", script, "-M", mode, "-T", seconds, "-c", clients, "-j", 1, "-h", "127.0.0.1"]
        words += ["-R", int(rate)] if rate else []
        words += ["-p", proxy.port, "-U", "app", "app"]
        done = subprocess.run([str(w) for w in [harness.PG_BIN / "pgbench", *words]], capture_output=True, text=True)
        found = re.search(r"transactions actually processed: (\d+)", done.stdout)
        rate = re.search(r"tps = ([\d.]+)", done.stdout)
        if done.returncode or not found or not rate:
            raise SystemExit("pgbench failed: %s" % done.stderr[-500:])
        return (cpu(proxy.process) - before) / int(found.group(1)) * 1e6, float(rate.group(1))


def went_direct(proxy):
    return routed_world.counts(proxy).get("tenant-known", 0)


def compare_cpu(place, routed, rounds, seconds):
    """Against a proxy without plugins in front of the organization's database itself, at the same rate: the more there
    is to do, the more of it is done in one turn, for both."""
    plain = place.proxy(
        "plain",
        databases={"app": "host=127.0.0.1 port=%d dbname=%s user=customers_app password=app-pw"
                   % (place.cluster.port, place.world.org_database["2"])},
        pool_mode="transaction",
    )
    print("%-34s %10s %10s %7s %9s" % ("10 clients, us CPU of the proxy", "direct", "plain", "ratio", "reads/s"))
    for mode in MODES:
        samples = {routed: [], plain: []}
        direct_before, total = went_direct(routed), 0
        rate = 0.7 * place.pgbench(routed, place.read("2"), mode, 10, seconds)[1]
        for number in range(rounds):
            for proxy in (routed, plain) if number % 2 == 0 else (plain, routed):
                samples[proxy].append(place.pgbench(proxy, place.read("2"), mode, 10, seconds, rate))
                total += samples[proxy][-1][1] * seconds * (proxy is routed)
        if went_direct(routed) - direct_before < total * 0.95:
            raise SystemExit("reads did not go direct: %s" % routed_world.counts(routed))
        ours, theirs = (statistics.median(spent for spent, _ in samples[p]) for p in (routed, plain))
        print("%-34s %10.1f %10.1f %7.2f %9.0f" % (mode, ours, theirs, ours / theirs, rate), flush=True)


def median_latency(client, batch, times=40):
    spent = []
    for _ in range(times):
        begin = time.perf_counter()
        answer = client.ask(batch)
        spent.append(time.perf_counter() - begin)
        if answer.codes:
            raise SystemExit("error %s" % answer.errors)
    return statistics.median(spent[5:]) * 1000


def compare_latency(place, routed):
    past = place.proxy(
        "fdw",
        databases={"app": "host=127.0.0.1 port=%d dbname=%s" % (place.cluster.port, place.world.cloud)},
        pool_mode="transaction",
    )
    place.far.delay = TRIP / 2
    link = wire.Conn(place.far.port, user="customers_app", password="app-pw", database=place.world.org_database["3"])
    trip = median_latency(link, wire.query(""))
    read = place.read("3")
    direct, fdw = (median_latency(p.connect(), wire.query(read)) for p in (routed, past))
    prepared = routed.connect()
    prepared.ask(wire.extended(read, name="s"))
    bound = median_latency(prepared, wire.bind("", "s") + wire.execute() + wire.sync())
    print("\nlatency over a link of %.0f ms%12s %10s" % (TRIP * 1000, "ms", "trips"))
    for title, value in (("the link alone", trip), ("direct, simple", direct), ("direct, prepared", bound), ("by postgres_fdw", fdw)):
        print("%-34s %10.2f %10.2f" % (title, value, value / trip), flush=True)
    link.drop()


def measure_rate(place, routed, seconds):
    place.far.delay = TRIP / 2
    place.pgbench(routed, place.read("3"), "prepared", CLIENTS, 3)  # connections are made
    place.far.reset()
    _, rate = place.pgbench(routed, place.read("3"), "prepared", CLIENTS, seconds)
    used = [r for r in routed.show("pools") if r["database"] == "app" and r["user"] == "app"][0]
    cloud = sum(int(used[k]) for k in ("sv_active", "sv_idle", "sv_used", "sv_tested", "sv_login"))
    held = CLOUD_CONNECTIONS / TRIP
    print("\n%d clients over a link of %.0f ms: %.0f direct reads/s with %d cloud connections (held ones: at most %.0f)"
          % (CLIENTS, TRIP * 1000, rate, cloud, held), flush=True)


def run(rounds, seconds):
    place = Place()
    try:
        place.move()
        settings = routed_world.settings(place.world, default_pool_size=FAR_CONNECTIONS)
        settings["databases"]["app"] += " pool_size=%d" % CLOUD_CONNECTIONS
        routed = routed_world.is_ready(place.proxy("routed", **settings))
        compare_cpu(place, routed, rounds, seconds)
        compare_latency(place, routed)
        measure_rate(place, routed, 3 * seconds)
    finally:
        place.stop()
