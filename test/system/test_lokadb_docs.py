"""The documents of lokadb say what is so: the manual has all flags, the tutorial runs from top to bottom."""

import os
import re
import shutil
import subprocess

import conftest
import harness
import pytest
from harness import ROOT
from lokadb_world import LOKADB


def help_of(*words):
    return subprocess.run([LOKADB, *words, "-h"], capture_output=True, text=True, check=True).stdout


def subcommands():
    return re.findall(r"^  (\S+) ", help_of(), re.MULTILINE)


def manual_sections():
    """Subcommand -> its text in lokadb(1)."""
    text = (ROOT / "doc" / "lokadb.1").read_text().replace("\\-", "-")
    commands = text.split(".SH SUBCOMMANDS\n")[1].split("\n.SH ")[0]
    parts = re.split(r"^\.SS (\S+)\n", commands, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def test_the_manual_has_every_subcommand():
    assert list(manual_sections()) == subcommands()


@pytest.mark.parametrize("name", subcommands())
def test_the_manual_has_every_flag(name):
    said = re.findall(r"^  -([\w-]+)( [^ ]+)? ", help_of(name), re.MULTILINE)
    written = re.findall(r'^\.BI? "?-([\w-]+)(?: " ([^"\n]+)"?)?', manual_sections()[name], re.MULTILINE)
    assert [(flag, value.strip()) for flag, value in said] == [(flag, value.strip()) for flag, value in written]


def test_the_manual_is_well_formed():
    run = subprocess.run(
        ["groff", "-k", "-Tutf8", "-man", "-ww", ROOT / "doc" / "lokadb.1"], capture_output=True, text=True
    )
    assert run.returncode == 0 and run.stderr == "" and "refs-sync" in run.stdout


def test_the_tutorial_runs():
    folder = conftest.new_folder()
    try:
        (folder / "bin").mkdir(mode=0o755)
        shutil.copy(LOKADB, folder / "bin" / "lokadb")
        text = (ROOT / "doc" / "tutorial.md").read_text()
        script = "set -eu -o pipefail\n" + "".join(re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
        # Other ports than a reader's, in case somebody is following it right now.
        for port in ("5611", "5612"):
            script = script.replace(port, str(harness.free_port()))
        # Nothing stays behind if it fails halfway.
        stop = "for c in acme cloud; do pg_ctl -D $T/$c -m immediate stop; done; rm -rf $T"
        script = "trap '[ ! -d ${T:-/nowhere} ] || { %s; }' EXIT\n" % stop + script
        run = subprocess.run(
            ["bash", "-c", script],
            cwd="/",
            env={"PATH": "%s:%s" % (folder / "bin", os.environ["PATH"]), "LC_ALL": "C.UTF-8", "HOME": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=170,
            **harness.as_service_user()
        )
        assert run.returncode == 0, run.stdout
        # What it promises in passing.
        for words in (
            "3 repaired, 1 left",
            "paused for",
            "came home",
            "ON CONFLICT specification",
            "keys in conflict (organization 2 has a row",
        ):
            assert words in run.stdout, run.stdout
    finally:
        shutil.rmtree(folder)
