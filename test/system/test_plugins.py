"""Plugins: loading, reloading, SHOW PLUGINS, and lokadb-plugin-check. What they decide is tested elsewhere."""

import os
import pathlib
import shutil
import signal
import subprocess

import pytest

import wire
from harness import ROOT, eventually, runnable_binary, section

BUILD = pathlib.Path(os.environ.get("LOKADB_PROXY", ROOT / "build" / "lokadb-proxy")).parent
CHECK = runnable_binary("lokadb-plugin-check")


def built(name, folder):
    """A copy of a built plugin that the service user can read."""
    place = "plugins/example" if name == "example" else "test/abi/plugins"
    copy = pathlib.Path(folder) / (name + ".so")
    if copy.exists():  # and perhaps loaded: writing into it would change a running program
        return copy
    shutil.copy(BUILD / place / (name + ".so"), copy)
    copy.chmod(0o644)
    return copy


def write(proxy, names, sections=None, **options):
    """The proxy's file with these plugins and sections; a plugin's library is filled in if it has none."""
    sections = {name: dict(entries) for name, entries in (sections or {}).items()}
    for name in names:
        entries = sections.setdefault(name, {})
        if "library" not in entries:
            entries["library"] = built(name, proxy.folder)
    proxy.write(plugins=", ".join(names), **options)
    proxy.ini.write_text(proxy.ini.read_text() + "".join(section(*item) for item in sections.items()))
    return proxy


def does_not_start(proxy):
    """Starts it in the foreground; what it said when it gave up."""
    proxy.launch(str(proxy.ini))
    code = proxy.process.wait(20)
    proxy.process = None
    assert code == 1
    return proxy.stderr_path.read_text()


@pytest.fixture
def example(prepare):
    return write(prepare(pool_mode="transaction"), ["example"], {"example": {"refuse": "truncate*, drop table*"}}).start()


# ------------------------------------------------------------------ start


@pytest.mark.parametrize(
    "name, words",
    [
        ("no_entry", "no_entry.so has no function lokadb_plugin_entry"),
        ("newer_minor", "newer_minor.so is made for version 1.1 of the plugin interface; this proxy has 1.0"),
        ("other_major", "other_major.so is made for version 2.0 of the plugin interface"),
        ("failing_init", "init failed: there is no fish in the section"),
    ],
)
def test_a_faulty_plugin_stops_the_start(prepare, name, words):
    said = does_not_start(write(prepare(), [name]))
    assert 'FATAL' in said and words in said and 'plugin "%s"' % name in said


@pytest.mark.parametrize(
    "sections, words",
    [
        ({"example": {"library": "/nonexistent/example.so"}}, "/nonexistent/example.so: cannot open shared object file"),
        ({"example": {"refuze": "x"}}, "unknown parameter: example/refuze in configuration ("),
        ({"exemple": {"refuse": "x"}}, 'invalid section "exemple" in configuration ('),
        ({"example": {"required": "maybe"}}, 'invalid value "maybe" for parameter required in configuration ('),
        ({"example": {"refuse": "a, ,b"}}, "init failed: option refuse of [example] has an empty pattern"),
    ],
)
def test_a_faulty_section_stops_the_start(prepare, sections, words):
    said = does_not_start(write(prepare(), ["example"], sections))
    assert words in said


def test_a_plugin_is_looked_for_where_plugins_are_installed(prepare):
    said = does_not_start(write(prepare(), ["example"], {"example": {"library": "surely-not-installed.so"}}))
    assert "/lokadb/surely-not-installed.so: cannot open shared object file" in said


def test_without_plugins_there_are_none(start):
    proxy = start()
    assert proxy.show("plugins") == []
    assert [row["value"] for row in proxy.show("config", key="plugins")] == [""]


def test_sections_of_plugins_that_are_not_loaded_are_faults(prepare):
    proxy = prepare()
    proxy.ini.write_text(proxy.ini.read_text() + "[example]\nrefuse = x\n")
    said = does_not_start(proxy)
    assert 'invalid section "example" in configuration (%s:' % proxy.ini in said


# ------------------------------------------------------------------ running


def test_show_plugins(example):
    (row,) = example.show("plugins")
    assert (row["name"], row["version"], row["interface"], row["required"]) == ("example", "1.0", "1.0", "1")
    assert row["library"] == str(example.folder / "example.so")
    assert (row["refused"], row["failed"], row["slow"], row["reasons"]) == ("0", "0", "0", "")
    assert int(row["calls"]) >= 1 and int(row["max_us"]) <= int(row["total_us"]) + 1
    assert "plugin example 1.0 loaded from" in example.log()
    assert example.show("config", key="plugins")[0]["changeable"] == "no"


def test_clients_are_served_and_plugins_are_unloaded_at_the_end(example):
    for _ in range(3):
        with example.connect() as client:
            assert client.value("select 42") == "42"
    example.process.send_signal(signal.SIGTERM)
    assert example.process.wait(20) == 0
    example.check_output()
    example.process = None


def test_an_advisory_plugin(prepare):
    proxy = write(prepare(), ["example"], {"example": {"required": "0"}}).start()
    assert proxy.show("plugins")[0]["required"] == "0"
    assert "(advisory)" in proxy.log()


def test_the_order_is_that_of_the_file(prepare):
    proxy = write(prepare(), ["linked", "example", "slow"]).start()
    assert [row["name"] for row in proxy.show("plugins")] == ["linked", "example", "slow"]


def test_plugins_read_further_sections(prepare):
    places = {"places": {"user": "customers_app", "7": "host=db7", "8": "host=db8"}}
    proxy = write(prepare(), ["frozen_1_0"], places).start()
    assert proxy.show("plugins")[0]["version"] == "1.0"
    write(proxy, ["frozen_1_0"], {"places": {"7": "host=db7"}})
    with pytest.raises(wire.PgError, match="RELOAD failed"):
        proxy.admin("reload")
    assert "reload failed: places has no user" in proxy.log()


def test_a_feed_is_up_to_date_when_its_plugin_is(prepare):
    proxy = write(prepare(), ["slow_feed"]).start()
    proxy.wait_log("feed of slow_feed from .*: up to date")
    log = proxy.log()
    assert -1 < log.find("news taken in") < log.find("feed of slow_feed from ")


def test_a_feed_that_a_reload_ends_is_lost(prepare):
    proxy = write(prepare(databases={"app": "", "second": ""}), ["slow_feed"]).start()
    for name in ("app", "second"):
        proxy.wait_log("feed of slow_feed from %s: up to date" % name)
    del proxy.databases["second"]
    write(proxy, ["slow_feed"])
    proxy.admin("reload")
    proxy.wait_log("plugin slow_feed: lost")
    assert proxy.log().count("plugin slow_feed: lost") == 1


# ------------------------------------------------------------------ reload


@pytest.fixture
def reloadable(prepare):
    return write(prepare(), ["failing_reload"], {"failing_reload": {"value": "one"}}, default_pool_size=7).start()


def test_a_reload_that_a_plugin_refuses_changes_nothing_at_all(reloadable):
    write(reloadable, ["failing_reload"], {"failing_reload": {"bad": "1"}}, default_pool_size=8)
    with pytest.raises(wire.PgError) as refused:
        reloadable.admin("reload")
    assert refused.value.code == "F0000"
    assert "RELOAD failed, see logs for additional details" in str(refused.value)
    log = reloadable.log()
    assert 'ERROR plugin "failing_reload" (%s): reload failed: bad is 1' % (reloadable.folder / "failing_reload.so") in log
    assert "WARNING plugins could not be reloaded, keeping old configuration" in log
    assert reloadable.show("config", key="default_pool_size")[0]["value"] == "7"


def test_a_reload_by_signal_that_a_plugin_refuses_changes_nothing(reloadable):
    write(reloadable, ["failing_reload"], {"failing_reload": {"bad": "1"}}, default_pool_size=8)
    reloadable.process.send_signal(signal.SIGHUP)
    eventually(lambda: "plugins could not be reloaded" in reloadable.log())
    assert reloadable.show("config", key="default_pool_size")[0]["value"] == "7"


@pytest.mark.parametrize(
    "sections, words",
    [
        ({"failing_reload": {"vlaue": "x"}}, "unknown parameter: failing_reload/vlaue in configuration ("),
        ({"else": {"value": "x"}}, 'invalid section "else" in configuration ('),
    ],
)
def test_a_reload_with_a_faulty_section_changes_nothing(reloadable, sections, words):
    write(reloadable, ["failing_reload"], sections, default_pool_size=8)
    with pytest.raises(wire.PgError, match="RELOAD failed"):
        reloadable.admin("reload")
    assert words in reloadable.log()
    assert reloadable.show("config", key="default_pool_size")[0]["value"] == "7"


def test_a_good_reload(reloadable):
    write(reloadable, ["failing_reload"], {"failing_reload": {"value": "two", "required": "0"}}, default_pool_size=8)
    reloadable.admin("reload")
    assert reloadable.show("config", key="default_pool_size")[0]["value"] == "8"
    assert reloadable.show("plugins")[0]["required"] == "0"


def test_a_reload_that_fails_for_another_reason_is_taken_back_in_the_plugins(reloadable):
    write(reloadable, ["failing_reload"], {"failing_reload": {"required": "0"}}, client_tls_sslmode="require")
    with pytest.raises(wire.PgError, match="RELOAD failed"):
        reloadable.admin("reload")
    assert reloadable.show("plugins")[0]["required"] == "1"
    assert reloadable.show("plugins")[0]["failed"] == "0"


def test_which_plugins_there_are_is_settled_at_the_start(reloadable):
    write(reloadable, ["failing_reload", "slow"])
    with pytest.raises(wire.PgError, match="RELOAD failed"):
        reloadable.admin("reload")
    assert 'invalid section "slow"' in reloadable.log()
    assert [row["name"] for row in reloadable.show("plugins")] == ["failing_reload"]


# ------------------------------------------------------------------ lokadb-plugin-check


@pytest.fixture
def check(tmp_path):
    tmp_path.chmod(0o755)

    def run(name, *arguments, script=None):
        command = [CHECK, *arguments, str(BUILD / ("plugins/example" if name == "example" else "test/abi/plugins") / (name + ".so"))]
        if script is not None:
            (tmp_path / "script").write_text(script)
            command.append(str(tmp_path / "script"))
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    return run


def test_check_finds_no_fault_in_good_plugins(check):
    for name, arguments in (
        ("example", ["-o", "refuse=truncate*, *pg_sleep*"]),
        ("frozen_1_0", ["-o", "places/user=u", "-o", "places/7=host=x"]),
        ("linked", ["-t", "2"]),
    ):
        done = check(name, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.endswith("no faults\n")
        assert "FAULT" not in done.stdout


@pytest.mark.parametrize(
    "name, words",
    [
        ("no_entry", "has no function lokadb_plugin_entry"),
        ("failing_init", "there is no fish in the section"),
        ("unknown_kind", "of its calls failed"),
        ("endless", "of its calls failed"),
        ("throwing", "of its calls failed"),
    ],
)
def test_check_finds_faults(check, name, words):
    done = check(name)
    assert done.returncode == 1
    assert words in done.stdout and done.stdout.endswith("faults\n")


def test_check_finds_slow_plugins(check):
    done = check("slow", "-t", "1")
    assert done.returncode == 1
    assert "a simple statement: a call took longer than 50 ms" in done.stdout


SCRIPT = """
# Comments and empty lines are skipped.
batch a listed statement
simple  TRUNCATE documents
expect refuse 42501 because listed

batch another one
bind select $1
param 25 text truncate
expect no opinion
"""


def test_check_runs_scripts(check):
    done = check("example", "-v", "-o", "refuse=truncate*", script=SCRIPT)
    assert done.returncode == 0, done.stdout
    assert "ok     a listed statement: refuse 42501 because listed" in done.stdout
    assert "refused: this statement is not allowed here" in done.stdout
    other = check("example", "-o", "refuse=select*", script=SCRIPT)
    assert other.returncode == 1
    assert "FAULT  a listed statement: expected refuse 42501 because listed, but it said no opinion" in other.stdout


def test_check_answers_steps(check):
    script = """
batch a key that is found
bind select $1
param 25 text k1
answer
row 42
expect direct 42 because known
batch a key that nobody has
bind select $1
param 25 text k2
answer
expect cloud because no-organization
batch nothing to look up
simple select 1
answer
row 1
"""
    done = check("frozen_1_0", "-o", "places/user=u", script=script)
    assert "ok     a key that is found: direct 42 because known" in done.stdout
    assert "ok     a key that nobody has: cloud because no-organization" in done.stdout
    assert "FAULT  nothing to look up: asked for 0 steps, but there are 1 answers" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
    "script, words",
    [
        ("simple select 1", "line 1: the first line must be batch"),
        ("batch a\nsimpel select 1", "line 2: unknown keyword simpel"),
        ("batch a\nsimple x\nparam 25 text y", "line 3: param without bind"),
        ("batch a\nbind x\nparam 25 binary 0g", "line 3: binary wants pairs of hexadecimal digits"),
        ("batch a\nrow 1", "line 2: row without answer"),
    ],
)
def test_check_refuses_faulty_scripts(check, script, words):
    done = check("example", script=script)
    assert done.returncode == 2
    assert words in done.stderr


def test_check_is_called_rightly(check):
    assert check("example", "-x").returncode == 2
    assert "usage: lokadb-plugin-check" in check("example", "-t", "0").stderr
    assert check("example", "-h").stdout.startswith("usage:")
