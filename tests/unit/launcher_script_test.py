#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""./prawn itself, in a tree of its own where apt, sudo, mmdebstrap, cmake and
ninja are stand-ins: who may run it, what a killed set-up leaves, whose paths
are meant.

usage: launcher_script_test.py ROOT
"""
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = sys.argv[1]
NOBODY = 65534

STANDINS = {
    "dpkg": "echo amd64",
    # Everything is there but what the file "missing" names.
    "dpkg-query": """
shift 3
printf '%s installed\\n' "$@" | grep -vf "$STATE/missing" """,
    "apt-cache": "echo '  Candidate: 1'",
    "apt-get": """
echo "apt-get $*" >>"$STATE/log"
case "$*" in
*indextargets*) echo "http://mirror.invalid/debian stable" ;;
*download*) echo deb >busybox-static_1_amd64.deb ;;
*install*) echo busybox-static >"$STATE/missing" ;;
esac""",
    "dpkg-deb": """
mkdir -p bin && echo '#!/bin/sh' >bin/busybox && chmod +x bin/busybox""",
    "mmdebstrap": """
for word; do case $word in */qemu.part.*) part=$word ;; esac; done
mkdir -p "$part/usr/lib64"
[ ! -e "$STATE/hang" ] || sleep 1000
printf '%s\\n' '#!/bin/sh' "echo 'name \\"vfio-user-pci\\"'" \\
    >"$part/usr/lib64/ld-linux-x86-64.so.2"
chmod +x "$part/usr/lib64/ld-linux-x86-64.so.2" """,
    "qemu-system-x86_64": "echo 'name \"edu\"'",
    "cmake": """
mkdir -p build/release && : >build/release/build.ninja
for word; do case $word in -D*) echo "${word#-D}" ;; esac; done \\
    >build/release/CMakeCache.txt""",
    "ninja": """
d=$2/qemu-device/launcher && mkdir -p "$d"
printf '%s\\n' '#!/bin/sh' 'echo "in $PWD: $*"' >"$d/prawn-launch"
chmod +x "$d/prawn-launch"
mkdir -p "$2/tlm/record" && cp "$d/prawn-launch" "$2/tlm/record/prawn-trace" """,
}


class Script(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # The machine's programs, but neither its sudo nor its QEMU.
        cls.programs = tempfile.mkdtemp(prefix="prawn-script-")
        os.chmod(cls.programs, 0o755)
        for folder in ("/usr/sbin", "/usr/bin", "/sbin", "/bin"):
            for name in os.listdir(folder):
                link = os.path.join(cls.programs, name)
                if name != "sudo" and not os.path.lexists(link):
                    os.symlink(os.path.join(folder, name), link)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.programs)

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="prawn-script-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.tree = os.path.join(self.dir, "tree")
        self.bin = os.path.join(self.dir, "bin")
        self.state = os.path.join(self.dir, "state")
        self.elsewhere = os.path.join(self.dir, "elsewhere")
        for path in (self.bin, self.state, self.elsewhere):
            os.mkdir(path)
        os.makedirs(os.path.join(self.tree, "qemu-device/launcher"))
        shutil.copytree(os.path.join(ROOT, "qemu-device/launcher/help"),
                        os.path.join(self.tree, "qemu-device/launcher/help"))
        for name in ("prawn", "CMakePresets.json"):
            shutil.copy(os.path.join(ROOT, name), self.tree)
        for name, text in STANDINS.items():
            self.stand_in(name, text)
        self.missing("busybox-static")
        for folder, _, files in os.walk(self.dir):
            os.chmod(folder, 0o755)
            if os.geteuid() == 0:
                os.chown(folder, NOBODY, NOBODY)
                for name in files:
                    os.lchown(os.path.join(folder, name), NOBODY, NOBODY)

    def stand_in(self, name, text):
        path = os.path.join(self.bin, name)
        with open(path, "w") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)

    def missing(self, *packages):
        path = os.path.join(self.state, "missing")
        with open(path, "w") as file:
            file.write("".join(p + "\n" for p in packages))
        os.chmod(path, 0o666)

    def start(self, *words, root=False, cwd=None):
        """As an ordinary user, whoever runs the test."""
        environment = {"PATH": f"{self.bin}:{self.programs}",
                       "STATE": self.state, "HOME": self.dir}
        who = {}
        if os.geteuid() == 0 and not root:
            who = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
        return subprocess.Popen(
            [os.path.join(self.tree, "prawn"), *words], env=environment,
            cwd=cwd or self.elsewhere, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, **who)

    def run_prawn(self, *words, **options):
        process = self.start(*words, **options)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def assert_refused(self, result, pattern):
        status, _, err = result
        self.assertEqual(status, 3, err)
        last = err.splitlines()[-1]
        self.assertRegex(last, r"^prawn: error: .*" + pattern, err)
        self.assertEqual(err.count("error: "), 1, err)

    def parts(self):
        return glob.glob(os.path.join(self.tree, "build", "*.part*"))

    def test_paths_are_relative_to_where_the_user_is(self):
        self.stand_in("sudo", 'shift; exec "$@"')
        status, out, err = self.run_prawn("sim", "my.toml", "--json", "x")
        self.assertEqual(status, 0, err)
        self.assertTrue(out.startswith(f"in {self.elsewhere}: "), out)
        self.assertTrue(out.endswith(" sim my.toml --json x\n"), out)
        self.assertEqual(os.listdir(self.elsewhere), [])

    def test_trace_is_handed_over(self):
        self.stand_in("sudo", 'shift; exec "$@"')
        # Its help is there before anything is built, and then by itself.
        status, out, _ = self.run_prawn("trace", "info", "--help")
        self.assertEqual(status, 0)
        self.assertTrue(out.startswith("usage: ./prawn trace"), out)
        status, out, err = self.run_prawn("trace", "info", "my.rec")
        self.assertEqual((status, out),
                         (0, f"in {self.elsewhere}: info my.rec\n"), err)
        status, out, err = self.run_prawn("trace", "info", "--help")
        self.assertEqual((status, out),
                         (0, f"in {self.elsewhere}: info --help\n"), err)
        self.assertTrue(self.run_prawn("trace", "--help")[1].startswith(
            "usage: ./prawn trace"))

    def test_busybox_of_debian_13(self):
        self.stand_in("sudo", 'shift; exec "$@"')
        self.stand_in("dpkg-deb", STANDINS["dpkg-deb"].replace("bin", "usr/bin")
                      .replace("#!/usr/bin/sh", "#!/bin/sh"))
        status, _, err = self.run_prawn("setup")
        self.assertEqual(status, 0, err)
        busybox = os.path.join(self.tree, "build/busybox/usr/bin/busybox")
        with open(os.path.join(self.tree, "build/setup.conf")) as conf:
            self.assertIn(f"busybox={busybox}\n", conf.read())
        self.assertIn("set-up is complete", self.run_prawn("setup")[2])

    def test_a_busybox_package_without_busybox(self):
        self.stand_in("sudo", 'shift; exec "$@"')
        self.stand_in("dpkg-deb", "mkdir -p lib")
        self.assert_refused(self.run_prawn("setup"), "busybox")

    def test_qemu_for_people(self):
        self.stand_in("sudo", 'shift; exec "$@"')
        self.assertEqual(self.run_prawn("setup")[0], 0)
        starter = os.path.join(self.tree, "build", "qemu-system-x86_64")
        said = subprocess.run([starter], text=True, capture_output=True,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(said.stdout, 'name "vfio-user-pci"\n', said.stderr)
        os.unlink(starter)
        self.assertEqual(self.run_prawn("setup")[0], 0)
        self.assertTrue(os.access(starter, os.X_OK))

    def test_set_up_once_as_root_then_as_oneself(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to be root and somebody else")
        self.missing("busybox-static", "ninja-build")
        status, _, err = self.run_prawn("setup", root=True)
        self.assertEqual(status, 0, err)
        status, out, err = self.run_prawn("demo")
        self.assertEqual(status, 0, err)
        self.assertIn("demo", out)

    def test_what_root_has_built_is_named(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to be root and somebody else")
        self.assertEqual(self.run_prawn("demo", root=True)[0], 0)
        self.assert_refused(self.run_prawn("demo"), "is root's.*sudo chown")

    def test_without_sudo(self):
        self.missing("busybox-static", "ninja-build")
        self.assert_refused(self.run_prawn("demo"), "'./prawn setup' once as")

    def test_a_sudo_that_refuses(self):
        self.stand_in("sudo", "echo 'not in the sudoers file' >&2; exit 1")
        self.missing("busybox-static", "ninja-build")
        self.assert_refused(self.run_prawn("setup"), "sudo")

    def test_killed_in_the_middle_and_run_again(self):
        self.stand_in("sudo", 'shift; exec "$@"')
        hang = os.path.join(self.state, "hang")
        with open(hang, "w"):
            pass
        process = self.start("setup")
        end = time.monotonic() + 30
        while not self.parts() and time.monotonic() < end:
            time.sleep(0.02)
        self.assertEqual(len(self.parts()), 1)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        os.unlink(hang)
        status, _, err = self.run_prawn("setup")
        self.assertEqual(status, 0, err)
        self.assertEqual(self.parts(), [])
        status, _, err = self.run_prawn("setup")
        self.assertEqual(status, 0, err)
        self.assertIn("set-up is complete", err)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
