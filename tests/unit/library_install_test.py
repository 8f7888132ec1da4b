#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What cmake --install gives somebody who writes a program for libvmmc:
header, both libraries, pkg-config file, man pages.

usage: library_install_test.py ROOT BUILD
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT, BUILD = sys.argv[1:3]
HEADER = os.path.join(ROOT, "guest-driver", "include", "vmmc.h")
MAN = os.path.join(ROOT, "guest-driver", "man")


def read(*path):
    with open(os.path.join(*path)) as file:
        return file.read()


def header_functions():
    code = re.sub(r"/\*.*?\*/", "", read(HEADER), flags=re.DOTALL)
    return set(re.findall(r"\b(vmmc_[a-z_]+)\([^;{}]*\);", code))


def example(man_page):
    """The C blocks below EXAMPLES of a man page, as man would show them."""
    section = man_page.split(".SH EXAMPLES\n")[1].split("\n.SH ")[0]
    blocks = re.findall(r"^\.nf\n(.*?)^\.fi$", section,
                        flags=re.DOTALL | re.MULTILINE)
    return ["\n".join(line for line in block.splitlines()
                      if not line.startswith(".")).replace("\\e", "\\")
            for block in blocks]


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.prefix = tempfile.mkdtemp(prefix="prawn-install-")
        try:
            environment = dict(os.environ)
            environment.pop("DESTDIR", None)
            subprocess.run(["cmake", "--install", BUILD, "--prefix",
                            cls.prefix], check=True, capture_output=True,
                           env=environment)
            # Not where it was installed, but where it is now.
            moved = cls.prefix + "-moved"
            os.rename(cls.prefix, moved)
            cls.prefix = moved
            cls.pc = cls.one("lib/**/libvmmc.pc")
            cls.lib = os.path.dirname(os.path.dirname(cls.pc))
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.prefix)

    @classmethod
    def one(cls, pattern):
        found = glob.glob(os.path.join(cls.prefix, pattern), recursive=True)
        if len(found) != 1:
            raise AssertionError(f"{pattern}: {found}")
        return found[0]

    def pkg_config(self, *words):
        environment = dict(os.environ,
                           PKG_CONFIG_LIBDIR=os.path.dirname(self.pc))
        environment.pop("PKG_CONFIG_PATH", None)
        return subprocess.run(["pkg-config", *words, "libvmmc"], check=True,
                              capture_output=True, text=True,
                              env=environment).stdout.split()

    def compile(self, source, *words):
        # Libraries come after what needs them.
        result = subprocess.run(
            ["cc", "-Wall", "-Wextra", "-Werror", source, *words],
            capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)

    def program(self, name, *words):
        path = os.path.join(self.prefix, name)
        self.compile(os.path.join(ROOT, "examples", "box.c"), "-o", path,
                     *words)
        return path

    def assert_runs_as_far_as_it_can(self, program, **environment):
        """There is no card here, and the library says so."""
        result = subprocess.run(
            [program], capture_output=True, text=True, timeout=30,
            env=dict(os.environ, VMMC_DEVICE="/dev/no-such-card",
                     **environment))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertEqual(result.stderr,
                         "box: open: no card, or it has gone\n")

    def test_shared_library(self):
        box = self.program("box-shared", *self.pkg_config("--cflags",
                                                          "--libs"))
        environment = {"LD_LIBRARY_PATH": self.lib}
        listed = subprocess.run(["ldd", box], capture_output=True, text=True,
                                env=dict(os.environ, **environment)).stdout
        self.assertIn(f"libvmmc.so.1 => {self.lib}/libvmmc.so.1 ", listed)
        self.assert_runs_as_far_as_it_can(box, **environment)

    def test_static_library(self):
        box = self.program("box-static", "-static",
                           *self.pkg_config("--cflags", "--static", "--libs"))
        self.assert_runs_as_far_as_it_can(box)

    def test_shared_library_exports_the_header(self):
        listed = subprocess.run(
            ["nm", "-D", "--defined-only",
             os.path.join(self.lib, "libvmmc.so")],
            check=True, capture_output=True, text=True).stdout
        exported = set(re.findall(r" T (\w+)", listed))
        self.assertEqual(exported, header_functions())

    def test_every_function_has_its_page(self):
        pages = {os.path.basename(p)[:-2]
                 for p in glob.glob(os.path.join(MAN, "*.3"))}
        self.assertGreater(len(pages), 15)
        self.assertEqual(pages, header_functions())
        for page in sorted(pages):
            text = read(MAN, page + ".3")
            other = re.search(r"(?m)^\.so man3/(\w+)\.3$", text)
            if other:
                text = read(MAN, other.group(1) + ".3")
            names = re.search(r"(?m)^\.SH NAME\n(.*) \\- ", text).group(1)
            self.assertIn(page, names.split(", "))
            self.assertRegex(text, rf'(?m)^\.B.*[ *"]{page}\(')

    def test_pages_are_installed(self):
        for page in glob.glob(os.path.join(MAN, "*.[137]")):
            self.one(f"share/man/man{page[-1]}/{os.path.basename(page)}")

    def test_example_of_the_page_compiles(self):
        blocks = example(read(MAN, "vmmc.7"))
        self.assertEqual(len(blocks), 2)
        source = os.path.join(self.prefix, "example.c")
        with open(source, "w") as file:
            file.write("#include <stdio.h>\n#include <vmmc.h>\n")
            for number, block in enumerate(blocks):
                file.write(f"void block_{number}(void);\n"
                           f"void block_{number}(void)\n{{\n{block}\n}}\n")
        self.compile(source, "-c", "-o", source + ".o",
                     *self.pkg_config("--cflags"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
