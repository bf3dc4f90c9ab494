# Copyright The Espalier authors. SPDX-License-Identifier: Apache-2.0
"""Builds the package: the library by its own makefiles, out of tree, then the extension module.

ESPALIER_BUILD names a build folder that is there already; otherwise build/python of the source tree is made, or brought up
to date.  The library, its back ends and its programs become files of the package, espalier/_lib, where the extension finds
the library by its own place and the library its back ends by its own.
"""
import os
import re
import shutil
import subprocess
import sys
from glob import glob
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent
# `espalier serve` would bring a TLS library; the plug-in for libgccjit is under the GPL.
LEFT_OUT = ("--without-microhttpd", "--without-gccjit")


def read_version() -> str:
    header = (SOURCE / "src/api/espalier.h").read_text()
    return re.search(r'^#define ESP_VERSION "(.*)"$', header, re.M).group(1)


def run(*command: str, cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, check=True, stdin=subprocess.DEVNULL)


def build_library() -> Path:
    """The folder of a build of the library, which is made if there is none."""
    if given := os.environ.get("ESPALIER_BUILD"):
        return Path(given).resolve()
    build = SOURCE / "build/python"
    if not (SOURCE / "configure").exists():
        run("autoreconf", "-fi", cwd=SOURCE)
    if not (build / "Makefile").exists():
        build.mkdir(parents=True, exist_ok=True)
        run(str(SOURCE / "configure"), "-q", "--disable-static", *LEFT_OUT, cwd=build)
    run("make", "-s", f"-j{os.cpu_count()}", cwd=build)
    return build


def copy_library(build: Path, to: Path) -> None:
    """Copies what runs: the library by its soname, back ends, the helper program and the command."""
    shutil.rmtree(to, ignore_errors=True)
    (to / "espalier").mkdir(parents=True)
    (to / "bin").mkdir()
    made = build / ".libs"
    for library in made.glob("libespalier.so.?"):
        shutil.copy(library.resolve(), to / library.name)
    for plugin in ("espalier-llvm.so", "espalier-gccjit.so"):
        if (made / plugin).exists():
            shutil.copy(made / plugin, to / "espalier" / plugin)
    helper = build / "espalier-compile"
    if helper.exists():
        shutil.copy(helper, to / "espalier" / helper.name)
    shutil.copy(made / "espalier", to / "bin" / "espalier")
    if shutil.which("patchelf"):  # otherwise _command.py alone says where the library is
        run("patchelf", "--set-rpath", "$ORIGIN/..", str(to / "bin" / "espalier"), cwd=to)
    for file in to.rglob("*"):
        if file.is_file() and shutil.which("strip"):
            run("strip", "--strip-unneeded", str(file), cwd=to)


class BuildWithLibrary(build_ext):
    """Builds the library first, and puts it beside the extension."""

    def run(self) -> None:
        build = build_library()
        package = HERE / "espalier" if self.inplace else Path(self.build_lib).resolve() / "espalier"
        copy_library(build, package / "_lib")
        for extension in self.extensions:
            extension.extra_link_args.append(str(next((package / "_lib").glob("libespalier.so.?"))))
        super().run()

    def get_outputs(self) -> list[str]:
        library = Path(self.build_lib) / "espalier/_lib"
        return super().get_outputs() + [str(file) for file in library.rglob("*") if file.is_file()]


native = Extension(
    "espalier._native",
    sources=sorted(os.path.relpath(file, HERE) for file in glob(str(HERE / "native/*.c"))),
    depends=sorted(os.path.relpath(file, HERE) for file in glob(str(HERE / "native/*.h"))),
    include_dirs=[os.path.relpath(SOURCE / "src/api", HERE)],
    define_macros=[("Py_LIMITED_API", "0x030b0000")],
    extra_compile_args=["-std=c11", "-fvisibility=hidden", "-Wall", "-Wextra"] + os.environ.get("ESPALIER_CFLAGS", "").split(),
    extra_link_args=["-Wl,-rpath,$ORIGIN/_lib"],
    py_limited_api=True,
)

if sys.platform != "linux":
    sys.exit("espalier runs on Linux")
setup(version=read_version(), ext_modules=[native], cmdclass={"build_ext": BuildWithLibrary})
