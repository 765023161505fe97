"""An LDAP directory (slapd) and PAM services of the tests' own."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import uuid

import harness

SLAPD = pathlib.Path("/usr/sbin/slapd")
SUFFIX = "dc=example,dc=org"
MANAGER, MANAGER_PASSWORD = "cn=manager," + SUFFIX, "manager-pw"

CONFIGURATION = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {folder}/slapd.pid
TLSCertificateFile {folder}/slapd.crt
TLSCertificateKeyFile {folder}/slapd.key
database mdb
suffix {suffix}
rootdn {manager}
rootpw {manager_password}
directory {folder}/data
maxsize 10485760
"""


def entry(dn, *lines):
    return "dn: %s\n%s\n\n" % (dn, "\n".join(lines))


def person(uid, password, unit="people"):
    return entry(
        "uid=%s,ou=%s,%s" % (uid, unit, SUFFIX),
        "objectClass: inetOrgPerson",
        "cn: " + uid,
        "sn: " + uid,
        "mail: %s@example.org" % uid,
        "userPassword: " + password,
    )


class Directory:
    """carol (carol-pw, as at PostgreSQL) and app (app-dir), each below ou=people; twin is there twice."""

    def __init__(self, folder):
        self.folder, self.port, self.tls_port = folder, harness.free_port(), harness.free_port()
        harness.give_to_service_user(folder)
        # A copy, since rules of the system (AppArmor) may bind the installed one to the system's folders.
        self.binary = shutil.copy(SLAPD, folder)
        self.certificate, _ = harness.make_certificate(folder, "slapd", "subjectAltName=IP:127.0.0.1")
        (folder / "data").mkdir()
        harness.give_to_service_user(folder / "data")
        self.conf = folder / "slapd.conf"
        self.conf.write_text(
            CONFIGURATION.format(folder=folder, suffix=SUFFIX, manager=MANAGER, manager_password=MANAGER_PASSWORD)
        )
        long_unit = "x" * 200
        ldif = entry(SUFFIX, "objectClass: dcObject", "objectClass: organization", "dc: example", "o: example")
        for unit in ("people", "others", long_unit):
            ldif += entry("ou=%s,%s" % (unit, SUFFIX), "objectClass: organizationalUnit", "ou: " + unit)
        ldif += person("carol", "carol-pw") + person("app", "app-dir") + person("stats", "stats-dir")
        ldif += person("twin", "a") + person("twin", "b", "others") + person("mick", "mick-pw", long_unit)
        self.run("-T", "add", "-f", self.conf, input=ldif)
        self.process = None

    def run(self, *arguments, **kw):
        subprocess.run([self.binary, *map(str, arguments)], check=True, text=True, **kw, **harness.as_service_user())

    def start(self):
        urls = "ldap://127.0.0.1:%d ldaps://127.0.0.1:%d" % (self.port, self.tls_port)
        with open(self.folder / "slapd.log", "w") as log:
            self.process = subprocess.Popen(
                [self.binary, "-f", self.conf, "-h", urls, "-d", "0"],
                stdout=log,
                stderr=log,
                **harness.as_service_user()
            )
        harness.eventually(
            lambda: harness.answers_tcp(self.port) and harness.answers_tcp(self.tls_port), 20, "slapd is up"
        )

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(20)


# ------------------------------------------------------------------ PAM

# What the service asks: the password must be NAME-pam; one that begins with "slow" takes its time; the account of
# "mick" is closed. It leaves who came from where.
PAM_SCRIPT = """#!/bin/sh
password=$(tr -d '\\0')
echo "$PAM_TYPE $PAM_USER $PAM_RHOST" >>{folder}/pam.log
case $password in
  slower*) sleep 6 ;;
  slow*) sleep 2 ;;
  stuck*) touch {folder}/stuck; sleep 20 ;;
esac
[ "$PAM_TYPE" = auth ] && [ "${{password#slow* }}" = "$PAM_USER-pam" ]
"""
ACCOUNT_SCRIPT = '#!/bin/sh\n[ "$PAM_USER" != mick ]\n'


def as_root(*command, **kw):
    sudo = [] if os.geteuid() == 0 else ["sudo", "-n"]
    subprocess.run([*sudo, *map(str, command)], check=True, **kw)


@contextlib.contextmanager
def pam_service(folder, name=None):
    """The name of a service whose scripts are in the folder; for a name that is given, what was there comes back."""
    name = name or "lk" + uuid.uuid4().hex[:12]
    path, kept = pathlib.Path("/etc/pam.d") / name, None
    for script, text in (("check", PAM_SCRIPT.format(folder=folder)), ("account", ACCOUNT_SCRIPT)):
        (folder / script).write_text(text)
        (folder / script).chmod(0o755)
    lines = "auth required pam_exec.so expose_authtok quiet %s/check\naccount required pam_exec.so quiet %s/account\n"
    if path.exists():
        kept = path.read_bytes()
    as_root("tee", path, input=(lines % (folder, folder)).encode(), stdout=subprocess.DEVNULL)
    try:
        yield name
    finally:
        if kept is not None:
            as_root("tee", path, input=kept, stdout=subprocess.DEVNULL)
        else:
            as_root("rm", "-f", path)
